"""Retention in a DuckDB file: rows are deleted and updated while no thread appends, in one commit that is checkpointed
at once.

Their content may remain in free blocks of the file; `DuckDBStore.erase` writes a new file.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final

import attrs

from blocks import TimelineId, UnknownTimelineError
from persistence._log import Head, Rest, StoredEvent, checked_trim, content_hash
from persistence.duckdb._reader import Reader
from persistence.duckdb._tables import (
    ADD_TRIM,
    LARGE,
    all_rests,
    linked,
    pieces_of,
    put_rest,
    rest_of,
)
from persistence.duckdb._writer import StoredTimeline, Writer, payload_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BEGAN_AT: Final = "SELECT arg_min(ts, seq) FROM events WHERE timeline = ?"
SIZE: Final = """
SELECT (SELECT coalesce(sum(strlen(payload)), 0) FROM events WHERE timeline = $1 AND seq <= $2)
     + (SELECT coalesce(sum(strlen(piece)), 0) FROM pieces WHERE timeline = $1 AND seq <= $2)
"""
TRIM: Final = (
    "DELETE FROM events WHERE timeline = ? AND seq <= ?",
    "DELETE FROM pieces WHERE timeline = ? AND seq <= ?",
)
REMOVE: Final = tuple(
    f"DELETE FROM {table} WHERE timeline = ?"  # noqa: S608 -- constants
    for table in ("events", "pieces", "marks", "trims", "heads", "timelines")
)
REPLACE: Final = "UPDATE events SET payload = ?, link = xor(link, ?) WHERE timeline = ? AND seq = ?"
DROP_PIECES: Final = "DELETE FROM pieces WHERE timeline = ? AND seq = ?"
ADD_PIECES: Final = "INSERT INTO pieces SELECT ?, ?, unnest(?), unnest(?)"


@attrs.frozen
class FileTimeline:
    """A `HeldTimeline` in a DuckDB file; appends wait only during the last step of a change."""

    _writer: Writer
    _reader: Reader
    _alone: Callable[[], AbstractContextManager[None]]
    _stored: StoredTimeline
    head: Head
    rest: Rest

    @classmethod
    def of(
        cls,
        writer: Writer,
        reader: Reader,
        alone: Callable[[], AbstractContextManager[None]],
        timeline: TimelineId,
    ) -> "FileTimeline":
        """An existing timeline, from which nobody else removes events meanwhile.

        Raises:
            UnknownTimelineError: no such timeline.
        """
        stored = _existing(writer, timeline)
        with reader.cursor() as cursor:
            rest = rest_of(cursor, stored.number)
            began_at = rest.began_at
            if not began_at:
                [(began_at,)] = cursor.execute(BEGAN_AT, [stored.number]).fetchall()
        head = attrs.evolve(stored.head, created_at=float(began_at or 0))
        return cls(writer, reader, alone, stored, head, rest)

    @property
    def timeline(self) -> TimelineId:
        return self._stored.name

    def rows(self, after: int, last: int) -> Sequence[tuple[int, bytes]]:
        rows = self._reader.rows(self._stored, after + 1, last)
        return [(version, payload.encode()) for version, payload in rows]

    def chain(self, version: int) -> int:
        return self._reader.chain(self._stored, version) or 0

    def trim(self, before: int, rest: Rest) -> tuple[int, int]:
        number, events = self._stored.number, max(before - self.rest.first, 0)
        size = self._size(before - 1) if events else 0
        with self._changing() as cursor:
            # Check again: an expansion may need these events by now.
            checked_trim(self.timeline, before, _existing(self._writer, self.timeline).head)
            put_rest(cursor, number, rest)
            for statement in TRIM:
                cursor.execute(statement, [number, before - 1])
        return events, size

    def rewrite(self, rest: Rest, events: Mapping[int, StoredEvent]) -> None:
        with self._changing() as cursor:
            if rest != self.rest:
                put_rest(cursor, self._stored.number, rest)
            for version, event in events.items():
                if version >= self.rest.first:
                    _replace(cursor, self._stored.number, version, event)

    def remove(self) -> tuple[int, int]:
        size = self._size(self.head.version)
        with self._changing(removed=True) as cursor:
            version = _existing(self._writer, self.timeline).head.version
            for statement in REMOVE:
                cursor.execute(statement, [self._stored.number])
            cursor.execute(ADD_TRIM, [0, 1, version, 0.0, "", "", 0])
        return version - self.rest.removed, size

    def all_rests(self) -> Iterable[Rest]:
        with self._reader.cursor() as cursor:
            return all_rests(cursor).values()

    def _size(self, last: int) -> int:
        with self._reader.cursor() as cursor:
            [(size,)] = cursor.execute(SIZE, [self._stored.number, last]).fetchall()
        return int(size)

    @contextmanager
    def _changing(self, *, removed: bool = False) -> "Generator[DuckDBPyConnection]":
        """A cursor whose changes are committed, and checkpointed at once, so that deletes and updates are only briefly in
        the write-ahead log and are the last entries there; `removed`: the whole timeline is gone then."""
        with self._alone():
            with self._writer.changing() as cursor:
                cursor.execute("BEGIN")
                yield cursor
                cursor.execute("COMMIT")
                if removed:
                    self._writer.drop(self.timeline)
            self._writer.fold()


def _existing(writer: Writer, timeline: TimelineId) -> StoredTimeline:
    stored = writer.heads.timeline(timeline)
    if not stored.head.version:
        raise UnknownTimelineError(timeline)
    return stored


def _replace(cursor: "DuckDBPyConnection", number: int, version: int, event: StoredEvent) -> None:
    [(_, old, _)] = linked(cursor, number)(version)
    change = content_hash(old) ^ content_hash(event.data)
    cursor.execute(DROP_PIECES, [number, version])
    cursor.execute(REPLACE, [payload_of(event.data), change, number, version])
    pieces = list(pieces_of(event.data)) if len(event.data) > LARGE else []
    if pieces:
        cursor.execute(ADD_PIECES, [number, version, list(range(len(pieces))), pieces])
