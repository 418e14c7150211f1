"""Measures the warm call: the next request after one more round, in a timeline that has rendered before.

The whole call appends the round (in memory), folds it, decides, renders and validates.
"""

from collections.abc import Callable

import pytest

from benchmarks.figures import Meter
from benchmarks.logs import NAME, fill
from benchmarks.material import STARTED_AT, SYSTEM, TOOLS, Writer
from persistence import MemoryStore
from timeline import Timeline

RENDER_SECONDS_MAX = 0.003
CALL_SECONDS_MAX = 0.001
RATIO_MAX = 1.2
ROUNDS = 100
GROWTH = ROUNDS * 3 // 2
"""The blocks by which a window grows until half-way."""


class Warm:
    """A timeline that has rendered before, and more rounds for it."""

    def __init__(self, folded: int, window: int) -> None:
        store = MemoryStore()
        version = fill(store, folded, window)
        self._writer, self._now = Writer(seed=99), STARTED_AT + version
        self.timeline = Timeline.open(
            NAME, store=store, window=2_000_000, counter="o200k", clock=self._clock
        )
        self.tokens = self.render()

    def _clock(self) -> float:
        self._now += 1.0  # keeps the cache warm between two calls
        return self._now

    def render(self, _: object = None) -> int:
        """Render the next request."""
        return self.timeline.render(system=SYSTEM, tools=TOOLS).tokens

    def grow(self) -> None:
        """Append one more round."""
        self.timeline.append(*self._writer.round())

    def call(self, _: object = None) -> int:
        """Append one more round and render the next request."""
        self.grow()
        return self.render()


def grown(*timelines: Warm) -> Callable[[], tuple[None, None]]:
    def prepare() -> tuple[None, None]:
        for each in timelines:
            each.grow()
        return None, None

    return prepare


def test_render_does_not_feel_what_was_folded(meter: Meter) -> None:
    little, much = Warm(1_000, 2_000 - GROWTH), Warm(100_000, 2_000 - GROWTH)
    sample = meter.compare(much.render, little.render, grown(little, much), rounds=ROUNDS)
    size = f"2,000 blocks, {much.tokens // 1000}k tokens and more"
    meter.note(
        "warm render, 100,000 blocks folded before",
        size,
        sample,
        against="1,000 folded",
        target=f"<= 3 ms, <= {RATIO_MAX}",
    )
    assert sample.ratio <= RATIO_MAX
    assert sample.best <= RENDER_SECONDS_MAX


@pytest.mark.parametrize(("blocks", "target"), [(400, "<= 1 ms"), (2_000, "")])
def test_a_whole_call(meter: Meter, blocks: int, target: str) -> None:
    warm = Warm(1_000, blocks - GROWTH)
    size = f"{blocks:,} blocks, {warm.tokens // 1000}k tokens and more"
    sample = meter.time(warm.call, rounds=ROUNDS)
    meter.note("whole call", size, sample, target=target)
    assert not target or sample.best <= CALL_SECONDS_MAX
