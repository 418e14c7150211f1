"""Measures what each part of the page is worth: it is switched off, and the rest is measured on sessions of any folder.

    .venv/bin/python -m benchmarks.ablate                                      # the recorded sessions, at 30,000
    .venv/bin/python -m benchmarks.ablate --sessions DIR --window 60000
    .venv/bin/python -m benchmarks.ablate --sessions DIR --beside DIR --only default    # two folders and their gap
    .venv/bin/python -m benchmarks.ablate --window 30000 --window 60000 --window 200000 --keep   # the table of docs/tuning.md

A part whose row is like that of the default is not worth its room.  `--beside` shows the means over a second folder and
the gap: a default that was fitted to the first folder is worse on the second.  The means are over the sessions that
exceed the window and then use older names.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.results import keep_all
from benchmarks.trials import FIGURES, Bench, Trial, in_folder, read, sessions
from persistence.sessions import Session
from render import Policy
from timeline import policy_named

PARTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "default": {},
    "without where things stand": {"state_ratio": 0.0},
    "without found and decided": {"found_ratio": 0.0},
    "without the working set": {"working_ratio": 0.0},
    "without what was done": {"done_ratio": 0.0},
    "without the user's words": {"user_ratio": 0.0},
    "without standing instructions": {"standing_ratio": 0.0},
}
"""The changes to the policy that switch one part off, by the name of the row."""
COLUMNS: Final = tuple(FIGURES.values())
GAP: Final = "gap"


def tried(
    found: Sequence[Session], policies: Mapping[str, Policy], window: int, jobs: int
) -> dict[str, Trial]:
    """Try each policy on the sessions that exceed the window."""
    trials = Bench(found, window, jobs).trials([(policy, {}) for policy in policies.values()])
    return dict(zip(policies, trials, strict=True))


def figures(trial: Trial) -> list[float | None]:
    """The means of a trial, in the order of the columns."""
    return [getattr(trial.means, field) for field in FIGURES]


def gap(first: Sequence[float | None], second: Sequence[float | None]) -> list[float | None]:
    """What the second has less than the first; None where one has no value."""
    pairs = zip(first, second, strict=True)
    return [None if a is None or b is None else a - b for a, b in pairs]


def rows(found: Mapping[str, Mapping[str, Trial]]) -> Iterator[tuple[str, ...]]:
    """A row for each policy and folder; with two folders also one for their gap."""
    for name in next(iter(found.values())):
        means = {folder: figures(trials[name]) for folder, trials in found.items()}
        for folder, values in means.items():
            yield name, folder, str(len(found[folder][name].results)), *cells(values)
        if len(means) > 1:
            yield name, GAP, "", *cells(gap(*means.values()))


def cells(values: Sequence[float | None]) -> Iterator[str]:
    """Values to three digits, a dash for None."""
    return ("-" if value is None else f"{value:.3f}" for value in values)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablate")
    parser.add_argument("--sessions", type=Path, metavar="DIR", help="default: the recorded ones")
    parser.add_argument("--beside", type=Path, metavar="DIR", help="a second folder")
    parser.add_argument("--window", type=int, action="append")
    parser.add_argument("--policy", default="default", help="the policy of which parts are taken")
    parser.add_argument("--only", action="append", choices=[*PARTS], help="these rows, not all")
    parser.add_argument("--keep", action="store_true", help="save the rows for docs/tuning.md")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def main() -> None:
    """Replay, and print a table for each window."""
    given, console = arguments(), Console(width=150)
    base = policy_named(given.policy)
    policies = {name: attrs.evolve(base, **PARTS[name]) for name in given.only or PARTS}
    folders = [given.sessions, *([given.beside] if given.beside else [])]
    found = {
        str(folder) if folder else "recorded": [
            *read(in_folder(folder) if folder else sessions(), console)
        ]
        for folder in folders
    }
    kept = list[dict[str, str]]()
    for window in given.window or (30_000,):
        trials = {name: tried(them, policies, window, given.jobs) for name, them in found.items()}
        table = Table(title=f"Window {window:,}", title_justify="left", box=box.MARKDOWN)
        for title in ("policy", "sessions", "number", *COLUMNS):
            table.add_column(title, justify="right" if title in COLUMNS else "left")
        for row in rows(trials):
            table.add_row(*row)
            name, _, _, *means = row
            measured = dict(zip(COLUMNS, means, strict=True))
            kept.append({"window": f"{window:,}", "page": name, **measured})
        console.print(table)
    if given.keep:
        keep_all("ablate", kept, f"{sum(map(len, found.values()))} sessions")


if __name__ == "__main__":
    main()
