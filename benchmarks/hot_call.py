"""Measures every call of a long agent run in a window of 60,000 tokens, compactions included.

    .venv/bin/python -m benchmarks.hot_call --rounds 2000

For a flame graph, with py-spy installed:

    py-spy record --rate 500 --format flamegraph --output call.svg -- \\
        .venv/bin/python benchmarks/hot_call.py --rounds 4000
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.material import STARTED_AT, SYSTEM, TOOLS, Writer
from benchmarks.results import keep
from timeline import Timeline


def run(rounds: int, window: int) -> tuple[list[float], list[float]]:
    """The milliseconds of calls without a compaction, and of calls with one."""
    writer, now = Writer(seed=5), [STARTED_AT]
    timeline = Timeline.open("hot", window=window, counter="o200k", clock=lambda: now[0])
    timeline.append(*writer.blocks(10))
    plain: list[float] = []
    compacting: list[float] = []
    for _ in range(rounds):
        now[0] += 1.0
        start = perf_counter()
        timeline.append(*writer.round())
        rendered = timeline.render(system=SYSTEM, tools=TOOLS)
        took = 1000 * (perf_counter() - start)
        kinds = {type(event).__name__ for event in rendered.decisions}
        (compacting if "RangeCompacted" in kinds else plain).append(took)
    return plain, compacting


def share(values: list[float], part: float) -> float:
    """A percentile."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)] if values else 0.0


def main() -> int:
    """Run, and print the percentiles."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--window", type=int, default=60_000)
    parser.add_argument(
        "--keep", action="store_true", help="keep the figures in benchmarks/results"
    )
    given = parser.parse_args()
    rows: list[dict[str, str]] = []
    for name, values in zip(("plain", "compacting"), run(given.rounds, given.window), strict=True):
        times = {f"p{round(100 * p)}": f"{share(values, p):.2f} ms" for p in (0.5, 0.9, 0.99)}
        rows.append({"calls": name, "number": f"{len(values):,}", **times})
        print(rows[-1])
    if given.keep:
        keep("hot-call", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
