"""Makes logs of any length: a long history that a compaction has folded, and a window after it."""

from collections.abc import Sequence
from functools import cache

import msgspec

from benchmarks.material import STARTED_AT, SYSTEM, TOOLS, Writer, appended
from blocks import Block, BlockAppended, Event, EventId, RangeCompacted, TimelineId
from persistence import EventStore
from render import (
    Context,
    Policy,
    TokenCounter,
    View,
    apply_range,
    extractive,
    fold,
    provider_of,
    range_before_tail,
)
from timeline import model_named
from timeline.tokens import O200kCounter

NAME = TimelineId("measured")
REPEATED = 1_000
"""The number of blocks after which a history repeats itself; it is only written, never read."""
PAGE = 5_000


def context(limit: int, now: float, counter: TokenCounter | None = None) -> Context:
    """A context with a realistic system prompt and tools."""
    model = model_named("claude-sonnet-5-5")
    return Context(
        policy=Policy(),
        model=model,
        provider=provider_of(model),
        counter=counter or O200kCounter(),
        now=now,
        limit=limit,
        system=({"type": "text", "text": SYSTEM},),
        tools=tuple(TOOLS),
    )


@cache
def _repeated() -> tuple[Block, ...]:
    return tuple(Writer(seed=7).blocks(REPEATED)[:REPEATED])


@cache
def _compaction() -> RangeCompacted:
    """A real compaction, of a view of 60,000 tokens."""
    view = fold(View(), enumerate(appended(Writer(seed=3).blocks(500)), 1))
    now = context(60_000, STARTED_AT)
    fold_range = range_before_tail(view, now, "forced")
    assert fold_range
    event = apply_range(view, fold_range, extractive(fold_range), now).decisions[-1]
    assert isinstance(event, RangeCompacted)
    return event


def history(count: int) -> list[BlockAppended]:
    """The events of `count` blocks."""
    blocks = _repeated()
    return list(appended([blocks[n % REPEATED] for n in range(count)]))


def fill(store: EventStore, folded: int, window: int, seed: int = 1) -> int:
    """Write `folded` blocks, the compaction that folded them, and `window` blocks after it."""
    return fold_and_go_on(store, put(store, history(folded)) if folded else 0, window, seed)


def fold_and_go_on(store: EventStore, version: int, window: int, seed: int = 1) -> int:
    """Write the compaction that folds everything up to `version`, and `window` blocks after it."""
    if version:
        changes = {"start": 1, "cut": version + 1, "id": EventId("compaction")}
        version = put(store, [msgspec.structs.replace(_compaction(), **changes)], version)
    blocks = Writer(seed=seed).blocks(window)
    return put(store, list(appended(blocks, version + 1)), version)


def put(store: EventStore, events: Sequence[Event], version: int = 0) -> int:
    """Append events, one page per commit."""
    for start in range(0, len(events), PAGE):
        page = events[start : start + PAGE]
        version = store.append(NAME, page, expected_version=version)
    return version
