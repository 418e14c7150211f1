"""Replays the recorded sessions for each provider: compares recall, and checks that every request is valid.

    .venv/bin/python -m benchmarks.providers --window 30000

One tokenizer counts for all, so that a window holds the same text for each.  Costs are shares of sending
everything to the same provider, by its own cache rules.
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

from benchmarks.trials import sessions
from persistence.sessions import read_session
from render import PROVIDERS
from timeline.replay import ReplayOptions, ReplayResult, replay

Job: TypeAlias = tuple[Path, str, int]
FIGURES = ("far", "far_context", "far_wide", "quotes")
COLUMNS = ("provider", "sessions", "cost", *FIGURES, "over", "violations", "problems")


def measured(job: Job) -> ReplayResult | None:
    """Replay one session for one provider; None if it fits the window or used no older name."""
    path, provider, window = job
    options = ReplayOptions(window=window, counter="o200k", provider=provider)
    result = replay(read_session(path), options)
    return result if result.recall.far is not None else None


def row(provider: str, results: Sequence[ReplayResult]) -> list[str]:
    """The means of a provider's results, and the sums of the problems."""
    means = [
        fmean(value for r in results if (value := getattr(r.recall, name)) is not None)
        for name in FIGURES
    ]
    sums = (
        sum(r.over_window_calls for r in results),
        sum(r.validity_violations for r in results),
        sum(len(r.problems) for r in results),
    )
    cost = fmean(r.cost.ratio for r in results)
    shown = (f"{value:.3f}" for value in (cost, *means))
    return [provider, str(len(results)), *shown, *map(str, sums)]


def main() -> None:
    """Replay, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--provider", action="append", choices=[*PROVIDERS])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    table = Table(title=f"Window {given.window:,}", title_justify="left", box=box.MARKDOWN)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "provider" else "right")
    with ProcessPoolExecutor(given.jobs) as pool:
        for provider in given.provider or [*PROVIDERS]:
            jobs = [(path, provider, given.window) for path in sessions()]
            table.add_row(*row(provider, [r for r in pool.map(measured, jobs) if r]))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
