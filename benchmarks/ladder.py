"""Measures cost and recall of each set and each order of the ladder's rungs.

    make ladder                                        # both windows; a quarter of an hour
    .venv/bin/python benchmarks/ladder.py --window 30000 --markdown

Every non-empty set of rungs in the default order, then every order of all four, is replayed over
every recorded session, otherwise with the default policy.  A set with `externalize` writes to an
artifact store in memory.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from statistics import fmean
from typing import Any

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.trials import FIGURES, Bench, Trial, read, sessions
from render import Policy, RungName
from timeline import policy_named

RUNGS: tuple[RungName, ...] = ("externalize", "summarize", "clear", "drop")
COLUMNS = (*FIGURES.values(), "folds/100")


def policies(base: str) -> Iterator[tuple[Policy, Mapping[str, Any]]]:
    """One policy for each set of rungs, and for each order of all of them."""
    sets = (chosen for size in range(1, 5) for chosen in combinations(RUNGS, size))
    for rungs in dict.fromkeys((*sets, *permutations(RUNGS))):
        yield attrs.evolve(policy_named(base), rungs=rungs), {"rungs": rungs}


def rows(trials: Sequence[Trial]) -> Iterator[list[str]]:
    """The figures of each ladder, in the order of the trials."""
    for trial in trials:
        folds = fmean(100 * result.folds / max(result.calls, 1) for result in trial.results)
        yield [", ".join(map(str, trial.policy.rungs)), *trial.figures(), f"{folds:.3f}"]


def markdown(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """The table for the documentation."""
    yield "| rungs | " + " | ".join(COLUMNS) + " |"
    yield "|---|" + "---|" * len(COLUMNS)
    yield from ("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Replay, and print a table for each window."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--window", type=int, action="append")
    parser.add_argument("--policy", default="default", help="whose other numbers count")
    parser.add_argument("--markdown", action="store_true", help="print tables for the docs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    console, ladders = Console(), list(policies(given.policy))
    for window in given.window or (30_000, 60_000):
        lines = list(rows(Bench([*read(sessions(), console)], window, given.jobs).trials(ladders)))
        if given.markdown:
            print(f"\nWindow {window:,}\n", *markdown(lines), sep="\n")
            continue
        table = Table(title=f"Ladders, window {window:,}", title_justify="left")
        table.add_column("rungs")
        for title in COLUMNS:
            table.add_column(title, justify="right")
        for line in lines:
            table.add_row(*line)
        console.print(table)


if __name__ == "__main__":
    main()
