"""Rows of events: writing and reading them."""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Final, TypeAlias
from zlib import crc32

from blocks import (
    CodecError,
    DamagedStoreError,
    LogWindow,
    Recorded,
    TimelineId,
    decode_event,
)
from persistence._log import Head, Mark, StoredEvent

Row: TypeAlias = tuple[int, bytes]
"""A version and its payload."""

VERSION_MAX: Final = 2**62
PAGE_BYTES: Final = 4_000_000
"""Of payloads in one page; it is full with the event that reaches it."""
FIRST_ROWS: Final = 64
"""Events that a page begins with; how large they are tells how many more it may ask for."""

HEAD: Final = "SELECT max(seq) FROM events WHERE timeline = ?"
RANGE: Final = (
    "SELECT seq, payload FROM events WHERE timeline = ? AND seq > ? AND seq <= ? ORDER BY seq"
)
PAGE: Final = """
SELECT seq, payload FROM events WHERE timeline = ? AND seq > ? AND seq <= ?
UNION ALL SELECT -first, NULL FROM trims WHERE timeline = ? AND first > ? + 1 ORDER BY 1
"""
"""The same, and before them a row with a version below 0 where older ones were removed."""
IDS: Final = "SELECT id FROM events WHERE timeline = ? AND seq > ? AND seq <= ? ORDER BY seq"
SUMS: Final = """
SELECT seq, payload, crc32 FROM events
WHERE timeline = ? AND seq > ? AND seq <= ? AND crc32 IS NOT NULL ORDER BY seq
"""
_FOLD: Final = """
WITH marks AS (
    SELECT seq, kind, ref FROM events WHERE timeline = ? AND ref IS NOT NULL
), fold AS (
    SELECT seq, ref FROM marks c
    WHERE kind = 'RangeCompacted' AND NOT EXISTS (
        SELECT 1 FROM marks x WHERE x.kind = 'RangeExpanded' AND x.ref = c.seq AND x.seq > c.seq)
    ORDER BY seq DESC LIMIT 1
)
"""
"""The compaction in force, found by the index on marks."""
_BEGIN: Final = "coalesce((SELECT CASE WHEN ref < seq THEN ref ELSE seq END FROM fold), 1)"
"""Where the window begins."""
WINDOW: Final = f"""{_FOLD}
SELECT seq, payload, (SELECT seq FROM fold) AS fold, (SELECT ref FROM fold) AS cut FROM events
WHERE timeline = ? AND seq >= (SELECT {_BEGIN})
ORDER BY seq
"""  # noqa: S608 -- constants
"""The window in one question: the compaction in force, and a range."""
SKIM: Final = f"""{_FOLD}
SELECT seq, payload, 1 AS is_first, NULL AS fold FROM events WHERE timeline = ? AND seq <= ?
UNION ALL
SELECT seq, payload, 0, (SELECT seq FROM fold) FROM events
WHERE timeline = ? AND seq >= (SELECT {_BEGIN})
  AND (kind IN ({{kinds}}) OR seq = (SELECT seq FROM fold))
ORDER BY 1
"""  # noqa: S608 -- constants
"""The first events; then, each beside the version of the compaction in force, that one and those of some kinds."""
LIST: Final = """
SELECT timeline, coalesce((SELECT began_at FROM trims t WHERE t.timeline = f.timeline), ts) AS began,
       (SELECT max(seq) FROM events l WHERE l.timeline = f.timeline),
       (SELECT ts FROM events l WHERE l.timeline = f.timeline ORDER BY seq DESC LIMIT 1)
FROM events f WHERE made IS NOT NULL ORDER BY began, f.made, f.timeline
"""


def checked_rows(events: Sequence[StoredEvent]) -> None:
    """Refuse what no column takes.

    Raises:
        CodecError: a reference is no version.
    """
    for event in events:
        if event.ref is not None and abs(event.ref) > VERSION_MAX:
            raise CodecError(f"event {event.id!r:.100} refers to {event.ref}, which is no version")


def columns(event: StoredEvent) -> tuple[str, float, str, int | None]:
    """Id, time, kind and reference, as in their columns; an invalid time is 0."""
    at = event.at if isfinite(event.at) else 0.0
    return column(event.id), at, column(event.kind), event.ref


def checksum(payload: bytes | str) -> int:
    """What lies beside a payload, so that a bit of it that flips is found."""
    return crc32(payload.encode() if isinstance(payload, str) else payload)


def column(text: str) -> str:
    """A text without NUL, which not every database takes; different texts stay different."""
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def window_of(
    timeline: TimelineId, rows: Sequence[tuple[int, bytes, int | None, int | None]]
) -> LogWindow:
    """The window that the answer to `WINDOW` holds.

    Raises:
        DamagedStoreError: an event is missing, or is none.
    """
    if not rows:
        return LogWindow(version=0)
    _, _, fold, cut = rows[0]
    marks = () if fold is None or cut is None else (Mark(fold, "RangeCompacted", cut),)
    head = Head(version=rows[-1][0], marks=marks)
    if fold is not None and fold > head.version:
        raise damaged(timeline, f"the compaction at version {fold} is not there")
    page = without_gaps(timeline, head.window_start() - 1, [(row[0], row[1]) for row in rows])
    return head.window(events_of(timeline, page))


def begins_late(rows: Sequence[tuple[int, bytes, int | None, int | None]]) -> bool:
    """Whether the window begins before the rows of the answer to `WINDOW`."""
    first, _, fold, cut = rows[0] if rows else (1, b"", None, None)
    return first > (1 if fold is None or cut is None else max(1, min(cut, fold)))


def without_gaps(timeline: TimelineId, after: int, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows, which must be those behind version `after`.

    Raises:
        DamagedStoreError: an event is missing.
    """
    for due, (seq, _) in enumerate(rows, after + 1):
        if seq != due:
            raise damaged(timeline, f"event {due} is not there, {seq} is in its place")
    return rows


def events_of(timeline: TimelineId, rows: Iterable[Row]) -> list[Recorded]:
    """The events of rows.

    Raises:
        DamagedStoreError: one is none.
    """
    found: list[Recorded] = []
    for seq, payload in rows:
        try:
            found.append((seq, decode_event(payload)))
        except CodecError as error:
            raise damaged(timeline, f"event {seq} is {error}") from error
    return found


def damaged(timeline: str, what: str) -> DamagedStoreError:
    return DamagedStoreError(
        f"timeline {timeline!r}: {what}; `foldline verify` lists all damage, restore the database"
        " from a backup"
    )
