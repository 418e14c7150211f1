"""Events whose ids are derived from a name, and helpers for the contract tests."""

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TypeVar

from blocks import (
    Block,
    BlockAppended,
    BlockId,
    Digest,
    Event,
    EventId,
    FoldlineError,
    RangeCompacted,
    RangeExpanded,
    RangeSummary,
    Recorded,
    StructuredSummary,
    TimelineForked,
    TimelineId,
    TurnId,
    UserPrompt,
)
from persistence._store import EventStore

T = TimelineId("my talk")
U = TimelineId("another talk")
TURN = TurnId("t1")


def prompt(name: str, *, at: float = 0.0) -> BlockAppended:
    """An event whose ids and text are derived from its name."""
    block = UserPrompt(id=BlockId(f"block {name}"), turn=TURN, text=f"text {name}")
    return BlockAppended(id=EventId(name), at=at, block=block)


def many(count: int, first: int = 1) -> list[Event]:
    return [prompt(str(n), at=float(n)) for n in range(first, first + count)]


def holding(block: Block) -> BlockAppended:
    return BlockAppended(id=EventId("e"), at=0.0, block=block)


def compacted(name: str, *, cut: int, start: int = 1) -> RangeCompacted:
    summary = RangeSummary(
        id=BlockId(f"summary {name}"),
        turn=TURN,
        start=start,
        cut=cut,
        summary=StructuredSummary(task="the task", facts=("one", "two")),
        digest=Digest(blocks=cut - start),
    )
    return RangeCompacted(id=EventId(name), at=1.0, start=start, cut=cut, summary=summary)


def expanded(name: str, compaction: int) -> RangeExpanded:
    return RangeExpanded(id=EventId(name), at=2.0, compaction=compaction)


def forked(parent: TimelineId, version: int) -> TimelineForked:
    return TimelineForked(id=EventId("fork"), at=9.0, parent=parent, version=version)


def versions(recorded: Sequence[Recorded]) -> list[int]:
    return [version for version, _ in recorded]


@contextmanager
def refused(error: type[FoldlineError], saying: str = "") -> Generator[None]:
    """The code inside must raise `error` with a message that matches the regular expression `saying`."""
    text = None
    try:
        yield
    except error as caught:
        text = str(caught)
    assert text is not None, f"{error.__name__} is not raised"
    assert re.search(saying, text), f"{text!r} does not say {saying!r}"


_C = TypeVar("_C")


def where_it_can(
    promise: Callable[[_C, EventStore], None],
) -> Callable[[_C, EventStore], None]:
    """A test that runs only for stores that can remove events."""

    @wraps(promise)
    def test(self: _C, store: EventStore) -> None:
        if store.can_remove:
            promise(self, store)

    return test


def where_they_can(contract: type[_C]) -> type[_C]:
    """A class of such tests."""
    for name, promise in [*vars(contract).items()]:
        if name.startswith("test_"):
            setattr(contract, name, where_it_can(promise))
    return contract
