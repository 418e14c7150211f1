"""Retention in a DuckDB file: rows are deleted and updated while no thread appends, in one commit that is checkpointed
at once.

Their content may remain in free blocks of the file; `DuckDBStore.erase` writes a new file.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final

import attrs

from blocks import TimelineId, UnknownTimelineError
from persistence._log import Head, Kept, StoredEvent, checked_trim, content_hash
from persistence.duckdb._reader import Reader
from persistence.duckdb._tables import (
    ADD_TRIM,
    LARGE,
    all_kept,
    kept_of,
    linked,
    pieces_of,
    put_kept,
)
from persistence.duckdb._writer import Known, Writer, payload_of

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
    _known: Known
    head: Head
    kept: Kept

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
        known = _existing(writer, timeline)
        with reader.cursor() as cursor:
            kept = kept_of(cursor, known.number)
            began_at = kept.began_at
            if not began_at:
                [(began_at,)] = cursor.execute(BEGAN_AT, [known.number]).fetchall()
        head = attrs.evolve(known.head, created_at=float(began_at or 0))
        return cls(writer, reader, alone, known, head, kept)

    @property
    def timeline(self) -> TimelineId:
        return self._known.name

    def rows(self, after: int, last: int) -> Sequence[tuple[int, bytes]]:
        rows = self._reader.rows(self._known, after + 1, last)
        return [(version, payload.encode()) for version, payload in rows]

    def chain(self, version: int) -> int:
        return self._reader.chain(self._known, version) or 0

    def trim(self, before: int, left: Kept) -> tuple[int, int]:
        number, events = self._known.number, max(before - self.kept.first, 0)
        size = self._size(before - 1) if events else 0
        with self._changing() as cursor:
            # Check again: an expansion may need these events by now.
            checked_trim(self.timeline, before, _existing(self._writer, self.timeline).head)
            put_kept(cursor, number, left)
            for statement in TRIM:
                cursor.execute(statement, [number, before - 1])
        return events, size

    def rewrite(self, left: Kept, events: Mapping[int, StoredEvent]) -> None:
        with self._changing() as cursor:
            if left != self.kept:
                put_kept(cursor, self._known.number, left)
            for version, event in events.items():
                if version >= self.kept.first:
                    _replace(cursor, self._known.number, version, event)

    def remove(self) -> tuple[int, int]:
        size = self._size(self.head.version)
        with self._changing(removed=True) as cursor:
            version = _existing(self._writer, self.timeline).head.version
            for statement in REMOVE:
                cursor.execute(statement, [self._known.number])
            cursor.execute(ADD_TRIM, [0, 1, version, 0.0, "", "", 0])
        return version - self.kept.removed, size

    def all_kept(self) -> Iterable[Kept]:
        with self._reader.cursor() as cursor:
            return all_kept(cursor).values()

    def _size(self, last: int) -> int:
        with self._reader.cursor() as cursor:
            [(size,)] = cursor.execute(SIZE, [self._known.number, last]).fetchall()
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


def _existing(writer: Writer, timeline: TimelineId) -> Known:
    known = writer.heads.known(timeline)
    if not known.head.version:
        raise UnknownTimelineError(timeline)
    return known


def _replace(cursor: "DuckDBPyConnection", number: int, version: int, event: StoredEvent) -> None:
    [(_, old, _)] = linked(cursor, number)(version)
    change = content_hash(old) ^ content_hash(event.data)
    cursor.execute(DROP_PIECES, [number, version])
    cursor.execute(REPLACE, [payload_of(event.data), change, number, version])
    pieces = list(pieces_of(event.data)) if len(event.data) > LARGE else []
    if pieces:
        cursor.execute(ADD_PIECES, [number, version, list(range(len(pieces))), pieces])
