"""A pending append to a DuckDB file, and the rows that it writes."""

from collections.abc import Iterator
from typing import TypeAlias

import attrs

from blocks import TimelineId
from persistence._log import StoredEvent
from persistence.duckdb._large_events import is_large, pieces_of, stand_in

EventRow: TypeAlias = tuple[int, int, float, str]
PieceRow: TypeAlias = tuple[int, int, int, str]
MarkRow: TypeAlias = tuple[int, int, str, int]


@attrs.define(eq=False, kw_only=True)
class Append:
    """An append that waits for its commit, and the result of the commit."""

    timeline: TimelineId
    expected: int
    events: list[StoredEvent]
    found: int = 0
    """The version of the timeline that the writer found."""
    committed: bool = False
    error: Exception | None = None

    @property
    def has_large(self) -> bool:
        """Whether some events are so large that they are stored in pieces."""
        return any(is_large(event.data) for event in self.events)


def event_rows(append: Append, number: int) -> list[EventRow]:
    return [
        (number, seq, event.at, payload_of(event.data))
        for seq, event in enumerate(append.events, append.expected + 1)
    ]


def payload_of(data: bytes) -> str:
    """The payload column of an event's row: its JSON, or the stand-in for a large event."""
    return stand_in(data) if is_large(data) else data.decode()


def piece_rows(append: Append, number: int) -> Iterator[PieceRow]:
    for seq, event in enumerate(append.events, append.expected + 1):
        if is_large(event.data):
            for place, piece in enumerate(pieces_of(event.data)):
                yield number, seq, place, piece


def mark_rows(append: Append, number: int) -> list[MarkRow]:
    return [
        (number, seq, event.kind, event.ref)
        for seq, event in enumerate(append.events, append.expected + 1)
        if event.ref is not None
    ]
