"""What each rung of the ladder, and each order of rungs, costs and keeps.

    make ladder                                        # both windows; a quarter of an hour
    .venv/bin/python benchmarks/ladder.py --window 30000 --markdown

Every non-empty set of rungs in the shipped order, then every order of all four, is replayed over
every recorded session with the default policy's other numbers.  A set with `externalize` writes to
an artifact store, in memory.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.tune import Score, grouped, mean, replayed, sessions
from render import Policy, RungName
from timeline import policy_named

RUNGS: tuple[RungName, ...] = ("externalize", "summarize", "clear", "drop")
COLUMNS = {
    "cost": "cost",
    "far": "far",
    "context": "farctx",
    "wide": "farwide",
    "rules": "rules",
    "folds": "folds/100",
}
"""Fields of a score, and what they are called."""


def policies(base: str) -> Iterator[Policy]:
    """One policy for each set of rungs, and for each order of all of them."""
    sets = (chosen for size in range(1, 5) for chosen in combinations(RUNGS, size))
    for rungs in dict.fromkeys((*sets, *permutations(RUNGS))):
        yield attrs.evolve(policy_named(base), name=", ".join(rungs), rungs=rungs)


def rows(scores: Sequence[Score], names: Sequence[str]) -> Iterator[list[str]]:
    """The figures of each ladder, in the order in which they were asked for."""
    groups = grouped(scores)
    for name in names:
        yield [name, *(f"{mean(groups[name], field):.3f}" for field in COLUMNS)]


def markdown(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """The table for the documentation."""
    yield "| rungs | " + " | ".join(COLUMNS.values()) + " |"
    yield "|---|" + "---|" * len(COLUMNS)
    yield from ("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Replay, and show a table for each window."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--window", type=int, action="append")
    parser.add_argument("--policy", default="default", help="whose other numbers count")
    parser.add_argument("--markdown", action="store_true", help="print tables for the docs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    console, ladders = Console(), list(policies(given.policy))
    for window in given.window or (30_000, 60_000):
        jobs = [(policy, path, window) for policy in ladders for path in sessions()]
        scores = replayed(jobs, given.jobs)
        lines = list(rows(scores, [policy.name for policy in ladders]))
        if given.markdown:
            print(f"\nWindow {window:,}\n", *markdown(lines), sep="\n")
            continue
        table = Table(title=f"Ladders, window {window:,}", title_justify="left")
        table.add_column("rungs")
        for title in COLUMNS.values():
            table.add_column(title, justify="right")
        for line in lines:
            table.add_row(*line)
        console.print(table)


if __name__ == "__main__":
    main()
