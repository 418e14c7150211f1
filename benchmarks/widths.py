"""Measures recall at context widths that no measure of the replay uses and no excerpt was tuned for.

    .venv/bin/python -m benchmarks.widths --window 60000 --policy default --policy frugal

For the names that the agent used next and had last seen more than five calls before, it prints the share
that its request has with a number of characters on each side of one of their last occurrences, across
lines; then the share of those characters, counted line by line.
"""

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.tune import options, sessions
from persistence.sessions import read_session
from timeline.replay import Sent, replay
from timeline.replay._needs import Need, needs_of
from timeline.replay._recall import share_around
from timeline.replay._words import Words

WIDTHS = (20, 40, 80, 150, 300, 600)

Shares: TypeAlias = dict[int, tuple[float, float]]
"""By width: the share found whole, and the share of characters."""


def measured(job: tuple[Path, str, int]) -> Shares | None:
    """Measure one policy on one session; None if it fits the window or used no older name."""
    path, policy, window = job
    session = read_session(path)
    sent: list[str] = []
    words = Words()

    def keep(each: Sent) -> None:
        sent.append(words.of(each.rendered))

    result = replay(session, options(window, policy), dump=keep)
    pressed = [point.call for point in result.points if point.full_tokens > window]
    needs = needs_of(session)
    calls = [(needs[call].far, sent[call]) for call in pressed if needs[call].far]
    return {width: _means(calls, width) for width in WIDTHS} if calls else None


def _means(calls: Sequence[tuple[Sequence[Need], str]], width: int) -> tuple[float, float]:
    """The means over calls of equal weight, as in a replay."""
    shares = [
        [share_around(need, text, width) if need.name in text else 0.0 for need in far]
        for far, text in calls
    ]
    whole = fmean(fmean(share == 1 for share in call) for call in shares)
    return whole, fmean(fmean(call) for call in shares)


def main() -> None:
    """Replay, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--policy", action="append", metavar="NAME|FILE.toml")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    title = f"Whole / share, window {given.window:,}"
    table = Table(title=title, title_justify="left", box=box.MARKDOWN)
    for column in ("policy", *map(str, WIDTHS), "sessions"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for policy in given.policy or ["frugal", "default", "generous"]:
        jobs = [(path, policy, given.window) for path in sessions()]
        with ProcessPoolExecutor(given.jobs) as pool:
            found = [shares for shares in pool.map(measured, jobs) if shares]
        cells = (
            f"{fmean(s[width][0] for s in found):.2f} / {fmean(s[width][1] for s in found):.2f}"
            for width in WIDTHS
        )
        table.add_row(policy, *cells, str(len(found)))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
