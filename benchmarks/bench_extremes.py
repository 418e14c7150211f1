"""Measures extremes: thousands of parallel calls in one response, a text far larger than the window."""

from collections.abc import Callable
from hashlib import sha256
from time import perf_counter

import msgspec
import pytest

from benchmarks.figures import Figures, Meter, Sample, spoken
from timeline import Timeline
from timeline.tokens._counter import o200k

FEW, TIMES = 1_000, 4
GROWTH_MAX = 2.0 * TIMES
"""The allowed growth in time: linear would be `TIMES`; copies of growing tuples add to it."""
ROUNDS = 5
OVERSIZED_SECONDS_MAX = 2.0
AGAIN_MAX = 1.0
"""The allowed time of the second render of a request that cannot fit, relative to the first."""
PROSE = "The quick brown fox jumps over the lazy dog, and goes home in the evening.\n"


def parallel(number: int) -> None:
    """One response with `number` calls, their results one by one, two requests and a compaction."""
    timeline = Timeline.open("parallel", counter="estimate")
    timeline.user("go")
    calls = [
        {"type": "tool_use", "id": f"c{n}", "name": "read_file", "input": {"path": f"src/{n}.py"}}
        for n in range(number)
    ]
    timeline.record({"id": "m", "content": calls})
    timeline.render()
    for n in range(number):
        timeline.tool_result(f"c{n}", f"file {n} has {n * 7} lines")
    assert timeline.render().violations == ()
    timeline.compact()


def test_parallel_calls(meter: Meter) -> None:
    sample = meter.compare(
        lambda _: parallel(FEW * TIMES),
        lambda _: parallel(FEW),
        lambda: (None, None),
        rounds=ROUNDS,
    )
    meter.note(
        "parallel calls in one response",
        f"{FEW * TIMES:,}",
        sample,
        against=f"{FEW:,}",
        target=f"<= {GROWTH_MAX:g}",
    )
    assert sample.ratio <= GROWTH_MAX


def timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


@pytest.mark.parametrize("megabytes", [20, 50])
def test_an_oversized_prompt(figures: Figures, megabytes: int) -> None:
    huge = PROSE * (megabytes * 1_000_000 // len(PROSE))
    o200k()  # load the vocabulary outside of the measurement
    first: list[float] = []
    again: list[float] = []
    bare: list[float] = []
    for _ in range(ROUNDS):
        bare.append(timed(lambda: sha256(msgspec.json.encode(huge)).digest()))
        timeline = Timeline.open("oversized")
        timeline.user(huge)
        first.append(timed(timeline.render))
        again.append(timed(timeline.render))
        assert not timeline.render().fits
    for what, times in (("cannot fit: first", first), ("cannot fit: again", again)):
        sample = Sample(times, bare)
        limit = f"<= {OVERSIZED_SECONDS_MAX:g} s" if megabytes == 20 else ""
        figures.note(
            f"{what} render", f"a prompt of {megabytes} MB", spoken(sample.best),
            spoken(sample.p50), "", "JSON + sha256", spoken(Sample(bare).p50),
            f"{sample.ratio:.2f}", limit,
        )  # fmt: skip
    assert min(again) <= AGAIN_MAX * min(first)
    assert megabytes > 20 or min(first) <= OVERSIZED_SECONDS_MAX
