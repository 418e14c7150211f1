"""Reads logs from a DuckDB file: turns rows into events, joins large events, and skips nothing."""

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from blocks import CodecError, DamagedStoreError, Event, Recorded, TimelineId, decode_event
from persistence._archive import archived_rows
from persistence.duckdb._cursors import CursorPool
from persistence.duckdb._heads import Known
from persistence.duckdb._large_events import Row, fetching, whole
from persistence.duckdb._memory_release import Cache
from persistence.duckdb._schema import interrupts, translated
from persistence.duckdb._trims import kept_of
from persistence.duckdb._writer import Writer

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE_CHARACTERS = 4_000_000
"""A page ends with the event that brings the payloads to this many characters."""
FIRST_ROWS = 32
"""The number of events to read first; their size decides how many to read next."""
WINDOW = "SELECT seq, payload FROM events WHERE timeline = ? AND seq BETWEEN ? AND ?"
IDS = """
SELECT coalesce(json_extract_string(payload, '$.id'), '') FROM events
WHERE timeline = ? AND seq BETWEEN ? AND ? ORDER BY seq
"""


@attrs.define(eq=False)
class Reader:
    """Reads events, with cursors of the pool."""

    _path: Path
    _writer: Writer
    _cursors: CursorPool
    _cache: Cache

    def known(self, timeline: TimelineId) -> Known:
        """The number and the head of a timeline."""
        with self._asking():
            return self._writer.heads.known(timeline)

    def all_known(self, timelines: Collection[TimelineId]) -> Collection[Known]:
        """The numbers and heads of several timelines."""
        with self._asking():
            return self._writer.heads.load(timelines).values()

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

    def events(self, timeline: Known, first: int, last: int) -> list[Recorded]:
        """The events `first` to `last`.

        Raises:
            DamagedStoreError: some of them are missing.
        """
        return self.decoded(timeline, self._rows(timeline, first, last))

    def decoded(self, timeline: Known, rows: Sequence[Row]) -> list[Recorded]:
        """The events of these rows."""
        return [
            (seq, self._decoded(timeline, seq, payload))
            for seq, payload in self._whole(timeline, rows)
        ]

    def page(self, timeline: Known, after: int, last: int) -> list[Recorded]:
        """The events after version `after`, up to `last` or to the end of a page."""
        rows = self.rows(timeline, after, last)
        return [(seq, self._decoded(timeline, seq, payload)) for seq, payload in rows]

    def rows(self, timeline: Known, after: int, last: int) -> list[Row]:
        """Versions and JSON of these events."""
        found: list[Row] = []
        size, step = 0, FIRST_ROWS
        while after < last and size < PAGE_CHARACTERS:  # the size of the next events is unknown
            rows = self._rows(timeline, after + 1, min(after + step, last))
            for seq, payload in self._whole(timeline, rows):
                found.append((seq, payload))
                after, size = seq, size + len(payload)
                if size >= PAGE_CHARACTERS:
                    break
            step = max(1, min(PAGE_CHARACTERS - size, size) * len(found) // max(size, 1))
        return found

    def ids(self, timeline: Known, first: int, last: int) -> list[str]:
        """The ids of events `first` to `last`."""
        with self.cursor() as cursor:
            return [
                id_ for (id_,) in cursor.execute(IDS, [timeline.number, first, last]).fetchall()
            ]

    def _rows(self, timeline: Known, first: int, last: int) -> list[Row]:
        if last < first:
            return []
        with self.cursor() as cursor:
            rows = cursor.execute(WINDOW, [timeline.number, first, last]).fetchall()
        # Rows come in the order of their commits, so a sort has nothing to do.
        rows.sort(key=_seq)
        if [seq for seq, _ in rows] == list(range(first, last + 1)):
            return rows
        rows = [*self._archived(timeline, first, last), *rows]
        if [seq for seq, _ in rows] != list(range(first, last + 1)):
            raise self._damaged(timeline, f"events {first} to {last} are not all there")
        return rows

    def _archived(self, timeline: Known, first: int, last: int) -> Iterator[Row]:
        """The rows that were moved into archive files."""
        with self.cursor() as cursor:
            kept = kept_of(cursor, timeline.number)
        kept.refuse_forgotten(timeline.name, first)
        for archive in kept.within(first, last):
            yield from archived_rows(archive, first, min(last, kept.removed))

    def stored(self, timeline: Known, first: int, last: int) -> Iterator[Row]:
        """Versions and JSON of the events `first` to `last`; a page at a time is in memory."""
        for start in range(first, last + 1, FIRST_ROWS):
            upto = min(start + FIRST_ROWS - 1, last)
            yield from self._whole(timeline, self._rows(timeline, start, upto))

    def _whole(self, timeline: Known, rows: Sequence[Row]) -> Iterator[Row]:
        """The rows, with large events put together from their pieces."""
        if not rows:
            return
        size = 0
        try:
            with self.cursor() as cursor:
                for row in whole(rows, fetching(cursor, timeline.number)):
                    size += len(row[1])
                    yield row
        except CodecError as error:
            raise self._damaged(timeline, str(error)) from error
        finally:
            self._cache.passed(size)

    def _decoded(self, timeline: Known, seq: int, payload: str) -> Event:
        try:
            return decode_event(payload)
        except CodecError as error:
            raise self._damaged(timeline, f"event {seq} is {error}") from error

    def _damaged(self, timeline: Known, what: str) -> DamagedStoreError:
        return DamagedStoreError(
            f"{self._path}, timeline {timeline.name!r}: {what}; `foldline verify` lists all damage,"
            " restore the file from a backup"
        )


def _seq(row: Row) -> int:
    return row[0]
