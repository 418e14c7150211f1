"""Reads logs from a DuckDB file: joins large events from their pieces, reads archives, and skips nothing."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import attrs

from blocks import CodecError, Recorded, TimelineId, kind_of
from persistence._archive import archived_within
from persistence._log import Rest, chain_at, damaged, events_of
from persistence._store import Kinds, Skim
from persistence.duckdb._file import interrupts, translated
from persistence.duckdb._tables import Row, linked, rest_of, whole
from persistence.duckdb._writer import CursorPool, StoredTimeline, Writer

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE_CHARACTERS: Final = 4_000_000
"""A page ends with the event that brings the payloads to this many characters."""
FIRST_ROWS: Final = 32
"""The number of events to read first; their size decides how many to read next."""
ROWS: Final = "SELECT seq, payload FROM events WHERE timeline = ? AND seq BETWEEN ? AND ?"
IDS: Final = """
SELECT coalesce(json_extract_string(payload, '$.id'), '') FROM events
WHERE timeline = ? AND seq BETWEEN ? AND ? ORDER BY seq
"""
BATCH: Final = 256
"""Timelines in one query of `skimmed`."""
SKIM: Final = """
WITH windows AS (SELECT unnest($1) AS timeline, unnest($2) AS cut, unnest($3) AS fold, unnest($4) AS last)
SELECT timeline, seq, payload FROM events JOIN windows USING (timeline)
WHERE timeline BETWEEN $5 AND $6 AND seq <= last
  AND (seq <= $7 OR seq = fold OR list_contains(if(seq >= cut, $8, $9), json_extract_string(payload, '$.event')))
ORDER BY timeline, seq
"""
_Item = TypeVar("_Item")


@attrs.define(eq=False)
class Reader:
    """Reads events, with cursors of the pool.

    Raises, from every method:
        DamagedStoreError: an event is missing or cannot be read.
        StoreError: the file could not be read.
    """

    _path: Path
    _writer: Writer
    _cursors: CursorPool
    _passed: Callable[[int], None]
    """Counts the bytes that were read."""

    def timeline(self, name: TimelineId) -> StoredTimeline:
        """The number and the head of a timeline."""
        with self._asking():
            return self._writer.heads.timeline(name)

    def chained(self, timeline: TimelineId) -> StoredTimeline:
        """The same; the end of its log was checked once since the file was opened."""
        with self._asking():
            return self._writer.heads.chained(timeline)

    @contextmanager
    def cursor(self) -> "Generator[DuckDBPyConnection]":
        """A cursor for reading."""
        with self._asking(), self._cursors.borrow() as cursor:
            yield cursor

    @contextmanager
    def _asking(self) -> Generator[None]:
        """Raise our error instead of the database's, and have the heads read anew from the file."""
        import duckdb

        try:
            with interrupts():
                yield
        except duckdb.Error as error:
            self._writer.is_suspect = True
            raise translated(error, self._path) from error

    def events(self, timeline: StoredTimeline, first: int, last: int) -> list[Recorded]:
        """The events `first` to `last`."""
        return events_of(timeline.name, self.rows(timeline, first, last))

    def rows(self, timeline: StoredTimeline, first: int, last: int) -> Iterator[Row]:
        """Versions and JSON of the events `first` to `last`."""
        return self._whole(timeline, self._stored(timeline, first, last))

    def rest(self, timeline: StoredTimeline) -> Rest:
        """Which part of a timeline is left."""
        with self.cursor() as cursor:
            return rest_of(cursor, timeline.number)

    def chain(self, timeline: StoredTimeline, version: int) -> int | None:
        """The chain after a version; None if it is not known."""
        with self.cursor() as cursor:
            rest, row = rest_of(cursor, timeline.number), linked(cursor, timeline.number)
            return chain_at(timeline.name, rest, version, row)

    def page(self, timeline: StoredTimeline, after: int, last: int) -> list[Row]:
        """Versions and JSON of the events after version `after`, up to `last` or to the end of a page."""
        rows: list[Row] = []
        size, step = 0, FIRST_ROWS
        while after < last and size < PAGE_CHARACTERS:  # the size of the next events is unknown
            for seq, payload in self.rows(timeline, after + 1, min(after + step, last)):
                rows.append((seq, payload))
                after, size = seq, size + len(payload)
                if size >= PAGE_CHARACTERS:
                    break
            step = max(1, min(PAGE_CHARACTERS - size, size) * len(rows) // max(size, 1))
        return rows

    def ids(self, timeline: StoredTimeline, first: int, last: int) -> list[str]:
        """The ids of events `first` to `last`."""
        with self.cursor() as cursor:
            rows = cursor.execute(IDS, [timeline.number, first, last]).fetchall()
        return [id_ for (id_,) in rows]

    def _stored(self, timeline: StoredTimeline, first: int, last: int) -> list[Row]:
        if last < first:
            return []
        with self.cursor() as cursor:
            rows = cursor.execute(ROWS, [timeline.number, first, last]).fetchall()
        # Rows come in the order of their commits, so a sort has nothing to do.
        rows.sort(key=lambda row: row[0])
        if [seq for seq, _ in rows] == list(range(first, last + 1)):
            return rows
        rest = self.rest(timeline)
        rest.refuse_forgotten(timeline.name, first)
        rows = [*archived_within(rest, first, last), *rows]
        if [seq for seq, _ in rows] != list(range(first, last + 1)):
            raise damaged(timeline.name, f"some of the events {first} to {last} are missing")
        return rows

    def _whole(self, timeline: StoredTimeline, rows: Sequence[Row]) -> Iterator[Row]:
        """The rows, with large events put together from their pieces."""
        if not rows:
            return
        size = 0
        try:
            with self.cursor() as cursor:
                for row in whole(rows, cursor, timeline.number):
                    size += len(row[1])
                    yield row
        except CodecError as error:
            raise damaged(timeline.name, str(error)) from error
        finally:
            self._passed(size)

    def skimmed(
        self, timelines: Sequence[TimelineId], first: int, kinds: Kinds
    ) -> Iterator[tuple[TimelineId, Skim]]:
        """Small parts of timelines, ordered by their number in the file, with one query for each batch of neighbours."""
        wanted, always = kinds
        stored: list[StoredTimeline] = []
        for names in _batches(timelines):
            with self._asking():
                stored += self._writer.heads.load(names).values()
        for batch in _batches(sorted(stored, key=lambda each: each.number)):
            there = [each for each in batch if each.head.version]
            rows = self._skimmed_rows(there, first, ({*wanted, *always}, always))
            for each in batch:
                events = events_of(each.name, self._whole(each, rows.get(each.number, ())))
                start, fold = each.head.window_start(), _fold(each)
                window = (event for event in events if event[0] >= start)
                yield (
                    each.name,
                    Skim(
                        first=[event for event in events if event[0] <= first],
                        compaction=next((event for event in events if event[0] == fold), None),
                        window=[event for event in window if kind_of(event[1]) in wanted],
                        always=[event for event in events if kind_of(event[1]) in always],
                    ),
                )

    def _skimmed_rows(
        self, timelines: Sequence[StoredTimeline], first: int, kinds: Kinds
    ) -> dict[int, list[Row]]:
        """`kinds`: all, and those of what is before the window."""
        if not timelines:
            return {}
        numbers = [each.number for each in timelines]
        values = [
            numbers,
            [each.head.window_start() for each in timelines],
            [_fold(each) for each in timelines],
            [each.head.version for each in timelines],
            min(numbers),
            max(numbers),
            first,
            *map(list, kinds),
        ]
        rows: dict[int, list[Row]] = {}
        with self.cursor() as cursor:
            for number, seq, payload in cursor.execute(SKIM, values).fetchall():
                rows.setdefault(number, []).append((seq, payload))
        return rows


def _batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _fold(timeline: StoredTimeline) -> int:
    """The version of the compaction in force; 0 if there is none."""
    mark = timeline.head.in_force()
    return mark.version if mark else 0
