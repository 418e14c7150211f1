"""Measures recall at context widths that no measure of the replay uses and no excerpt was tuned for.

    .venv/bin/python -m benchmarks.widths --window 60000 --policy default --policy frugal --keep

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

import msgspec

from benchmarks.results import keep, kept
from benchmarks.trials import options, sessions
from persistence.sessions import read_session
from timeline.replay import DumpRecord, replay
from timeline.replay._recall import Need, RequestTexts, needs_of, share_around

WIDTHS = (20, 40, 80, 150, 300, 600)

Shares: TypeAlias = dict[int, tuple[float, float]]
"""By width: the share found whole, and the share of characters."""


def measured(job: tuple[Path, str, int]) -> Shares | None:
    """Measure one policy on one session; None if it fits the window or used no older name."""
    path, policy, window = job
    session = read_session(path)
    sent: list[str] = []
    words = RequestTexts()

    def keep(each: DumpRecord) -> None:
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


def row(window: int, policy: str, jobs: int) -> dict[str, str]:
    """The means of one policy over the sessions that say something."""
    with ProcessPoolExecutor(jobs) as pool:
        given = [(path, policy, window) for path in sessions()]
        found = [shares for shares in pool.map(measured, given) if shares]
    cells = {
        str(
            width
        ): f"{fmean(s[width][0] for s in found):.2f} / {fmean(s[width][1] for s in found):.2f}"
        for width in WIDTHS
    }
    return {"window": f"{window:,}", "policy": policy, **cells, "sessions": str(len(found))}


def main() -> None:
    """Replay, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--policy", action="append", metavar="NAME|FILE.toml")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--keep", action="store_true", help="keep the figures in benchmarks/results"
    )
    given = parser.parse_args()
    policies = given.policy or ["frugal", "default", "generous"]
    rows = [row(given.window, policy, given.jobs) for policy in policies]
    print(msgspec.structs.replace(kept("widths"), rows=()).with_rows(rows).table())
    if given.keep:
        keep("widths", rows)


if __name__ == "__main__":
    main()
