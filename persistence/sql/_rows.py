"""Rows of events: writing and reading them."""

import re
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Final, TypeAlias

from blocks import (
    CodecError,
    LogWindow,
    TimelineId,
    decode_event,
    kind_of,
)
from persistence._log import (
    Head,
    Mark,
    StoredEvent,
    chain_step,
    content_hash,
    damaged,
    events_of,
)
from persistence._store import Kinds, Skim
from persistence.sql._database import Rows

Row: TypeAlias = tuple[int, bytes]
"""A version and its payload."""

VERSION_MAX: Final = 2**62
PAGE_BYTES: Final = 4_000_000
"""A page ends with the event that brings the payloads to this many bytes."""
FIRST_ROWS: Final = 64
"""The number of events to read first; their size decides how many to read next."""

HEAD: Final = "SELECT version FROM heads WHERE timeline = ?"
TIP: Final = "SELECT seq, id FROM events WHERE timeline = ? ORDER BY seq DESC LIMIT 1"
RANGE: Final = (
    "SELECT seq, payload FROM events WHERE timeline = ? AND seq > ? AND seq <= ? ORDER BY seq"
)
PAGE: Final = """
SELECT seq, payload FROM events WHERE timeline = ? AND seq > ? AND seq <= ?
UNION ALL SELECT -first, NULL FROM trims WHERE timeline = ? AND first > ? + 1 ORDER BY 1
"""
"""`RANGE`, preceded by a row with a negative version if some of these events were removed."""
IDS: Final = "SELECT id FROM events WHERE timeline = ? AND seq > ? AND seq <= ? ORDER BY seq"
LINKS: Final = "SELECT seq, payload, link FROM events WHERE timeline = ? AND seq >= ? AND seq <= ? ORDER BY seq"
LOST: Final = """
SELECT version, chain FROM heads h WHERE timeline = ?
    AND NOT EXISTS (SELECT 1 FROM events WHERE timeline = ?)
"""
"""The head of a timeline that has lost its events; nothing if another process has just begun it."""
CHAIN: Final = "SELECT version, chain FROM heads WHERE timeline = ?"
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
"""The version at which the window begins."""
WINDOW: Final = f"""{_FOLD}
SELECT seq, payload, link, (SELECT seq FROM fold) AS fold, (SELECT ref FROM fold) AS cut,
       (SELECT version FROM heads WHERE timeline = ?) AS version,
       (SELECT chain FROM heads WHERE timeline = ?) AS chain
FROM events
WHERE timeline = ? AND seq >= (SELECT {_BEGIN})
ORDER BY seq
"""  # noqa: S608 -- constants
"""Reads the compaction in force, the head and the window in one query."""
WindowRow: TypeAlias = tuple[int, bytes, int, int | None, int | None, int | None, int | None]
SKIM: Final = f"""{_FOLD}
SELECT seq, payload, 'first' AS part, NULL AS fold FROM events WHERE timeline = ? AND seq <= ?
UNION ALL
SELECT seq, payload, 'window', (SELECT seq FROM fold) FROM events
WHERE timeline = ? AND seq >= (SELECT {_BEGIN})
  AND (kind IN ({{kinds}}) OR seq = (SELECT seq FROM fold))
UNION ALL
SELECT seq, payload, 'always', NULL FROM events WHERE timeline = ? AND kind IN ({{always}})
ORDER BY 1
"""  # noqa: S608 -- constants
"""The first events; the compaction in force and the window's events of some kinds, each with the version of the
compaction; all events of some kinds."""
LIST: Final = """
SELECT timeline, max(version), max(began) AS first, max(newest)
FROM (
    SELECT timeline, version, CAST(NULL AS double precision) AS began,
           CAST(NULL AS double precision) AS newest, CAST(NULL AS bigint) AS number FROM heads
    UNION ALL
    SELECT timeline, (SELECT max(seq) FROM events l WHERE l.timeline = f.timeline),
           coalesce((SELECT began_at FROM trims t WHERE t.timeline = f.timeline), ts),
           (SELECT ts FROM events l WHERE l.timeline = f.timeline ORDER BY seq DESC LIMIT 1), made
    FROM events f WHERE made IS NOT NULL
) AS each_one
GROUP BY timeline ORDER BY first, max(number), timeline
"""
"""Also timelines of which only the head is left, or only the events."""


def checked_rows(events: Sequence[StoredEvent]) -> None:
    """Refuse events that do not fit the columns.

    Raises:
        CodecError: a reference is not a version.
    """
    for event in events:
        if event.ref is not None and abs(event.ref) > VERSION_MAX:
            raise CodecError(
                f"event {event.id!r:.100} refers to {event.ref}, which is not a version"
            )


def columns(event: StoredEvent) -> tuple[str, float, str, int | None]:
    """Id, time, kind and reference as they are in the columns; a time that is not finite is 0."""
    at = event.at if isfinite(event.at) else 0.0
    return column(event.id), at, column(event.kind), event.ref


def column(text: str) -> str:
    """A text with NUL escaped, because not every database accepts NUL; different texts stay different."""
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def text_in(column: str) -> str:
    """The text that `column` has escaped."""
    return _ESCAPED.sub(lambda match: "\0" if match[1] == "0" else match[1], column)


_ESCAPED: Final = re.compile(r"\\(.)")


def window_of(timeline: TimelineId, rows: Sequence[WindowRow]) -> LogWindow:
    """The window in the result of `WINDOW`, which has rows.

    Raises:
        DamagedStoreError: an event is missing or cannot be read.
    """
    *_, fold, cut, version, chain = rows[0]
    marks = () if fold is None or cut is None else (Mark(fold, "RangeCompacted", cut),)
    head = Head(version=rows[-1][0], marks=marks)
    if fold is not None and fold > head.version:
        raise damaged(timeline, f"the compaction at version {fold} is missing")
    page = without_gaps(timeline, head.window_start() - 1, [(row[0], row[1]) for row in rows])
    events = events_of(timeline, page)
    ends = () if version is None or chain is None else ((version, chain),)
    check_end(timeline, ends, [row[:3] for row in rows[-2:]])
    return head.window(events)


def check_end(
    timeline: TimelineId,
    ends: Sequence[tuple[int, int]],
    newest: Sequence[tuple[int, bytes, int]],
) -> None:
    """Check that a log ends as its head says; `newest` are its last two rows, with their links.

    Raises:
        DamagedStoreError: it does not.
    """
    seq, payload, link = newest[-1] if newest else (0, b"", 0)
    [(version, chain)] = ends or [(0, 0)]
    if seq != version:
        raise damaged(timeline, wrong_end(seq, version))
    due = link ^ content_hash(payload)
    if len(newest) > 1:
        _, before, its_link = newest[-2]
        due = its_link ^ content_hash(before) ^ chain_step(seq, decode_event(payload).id)
    if not chain == due == link ^ content_hash(payload):
        raise damaged(
            timeline, f"events {max(seq - 1, 1)} and {seq} are not those that were written"
        )


def wrong_end(seq: int, version: int) -> str:
    """What is wrong with a log whose newest event is `seq`, if its head says `version`."""
    if not version:
        return "it has events, but no row in table heads: it was renamed, or the row is lost"
    if seq < version:
        return f"events {seq + 1} to {version}, which were written, are missing"
    return f"it has an event {seq}, but its head says that {version} is its newest"


def begins_late(rows: Sequence[WindowRow]) -> bool:
    """Whether the window begins before the first row in the result of `WINDOW`."""
    first, _, _, fold, cut, *_ = rows[0] if rows else (1, b"", 0, None, None)
    return first > (1 if fold is None or cut is None else max(1, min(cut, fold)))


def without_gaps(timeline: TimelineId, after: int, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows, checked to follow version `after` without a gap.

    Raises:
        DamagedStoreError: an event is missing.
    """
    for due, (seq, _) in enumerate(rows, after + 1):
        if seq != due:
            raise damaged(timeline, f"event {due} is missing; event {seq} is in its place")
    return rows


def skimmed(
    ask: Callable[[str, Sequence[object]], Rows],
    timelines: Sequence[TimelineId],
    first: int,
    kinds: Kinds,
) -> Iterator[tuple[TimelineId, Skim]]:
    """Small parts of timelines, with one query by `ask` for each."""
    values = [[column(kind) for kind in each] for each in kinds]
    marks = [", ".join(["?"] * len(each)) or "NULL" for each in values]
    statement = SKIM.format(kinds=marks[0], always=marks[1])
    for name in timelines:
        first_of = [name, name, min(first, VERSION_MAX)]
        parts = dict[str, list[Row]](first=[], window=[], always=[])
        fold: int | None = None
        for seq, payload, part, compaction in ask(
            statement, [*first_of, name, *values[0], name, *values[1]]
        ):
            parts[part].append((seq, payload))
            fold = fold or compaction
        events = events_of(name, parts["window"])
        yield (
            name,
            Skim(
                first=events_of(name, parts["first"]),
                compaction=next((each for each in events if each[0] == fold), None),
                window=[each for each in events if kind_of(each[1]) in kinds[0]],
                always=events_of(name, parts["always"]),
            ),
        )
