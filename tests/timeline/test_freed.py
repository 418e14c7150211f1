"""What a timeline no longer shows is freed at once, without the garbage collector.

Objects in a reference cycle wait for a full collection, which stops the process for tens of milliseconds.
"""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from hypothesis import given

from benchmarks.material import SYSTEM, TOOLS, Writer
from blocks import RangeCompacted
from render import PROVIDERS
from tests._builders import LOOSE, open_timeline
from tests._table import for_each
from tests.strategies import Play, Step, settings, steps

OURS = {"blocks", "persistence", "render", "timeline"}


@contextmanager
def waiting() -> Iterator[Counter[str]]:
    """Counts our objects, by type, that became garbage meanwhile and only the collector can free."""
    found = Counter[str]()
    gc.freeze()  # everything that exists so far, garbage too, is not looked at
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = (type(each) for each in gc.garbage)
        found.update(k.__qualname__ for k in kinds if k.__module__.split(".")[0] in OURS)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.unfreeze()


@for_each("provider", sorted(PROVIDERS))
def test_a_long_run_leaves_nothing_to_the_collector(provider: str) -> None:
    model = attrs.evolve(LOOSE, provider=provider)
    timeline, writer = open_timeline(model=model, window=12_000), Writer(seed=1)
    timeline.append(*writer.blocks(10))
    compactions = 0
    with waiting() as found:
        for _ in range(60):
            timeline.append(*writer.round())
            rendered = timeline.render(system=SYSTEM, tools=TOOLS)
            compactions += any(isinstance(e, RangeCompacted) for e in rendered.decisions)
    assert compactions > 1
    assert not found


@given(steps(), settings())
def test_whatever_is_done_leaves_nothing_to_the_collector(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    play = Play(options)
    with waiting() as found:
        play.run([*all_steps, ("render",)])
    assert not found
