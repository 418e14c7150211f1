"""Retention in a DuckDB file: rows are deleted and updated while no thread appends, in one commit that is checkpointed
at once.

Their content may remain in free blocks of the file; `DuckDBStore.erase` writes a new file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from blocks import TimelineId, UnknownTimelineError
from persistence._log import Head, Kept, Removed, StoredEvent, chain_at, checked_trim, content_hash
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
from persistence.sql._retention import Change

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
NAMES: Final = "SELECT timeline, name FROM timelines SEMI JOIN trims USING (timeline)"

Statements: TypeAlias = "Callable[[DuckDBPyConnection], None]"


@attrs.define(eq=False)
class Retention:
    """Removes and rewrites events, one caller at a time; appends wait only during the last step."""

    writer: Writer
    reader: Reader
    _alone: Callable[[], AbstractContextManager[None]]
    turn: Lock = attrs.field(factory=Lock, init=False)
    """Held while events are removed."""

    def kept(self, timeline: TimelineId) -> Kept:
        """Which part of a timeline is left."""
        with self.reader.cursor() as cursor:
            return kept_of(cursor, self.writer.heads.known(timeline).number)

    def chain(self, timeline: TimelineId, version: int) -> int | None:
        """The chain after a version; None if it is not known."""
        with self.reader.cursor() as cursor:
            number = self.writer.heads.known(timeline).number
            return chain_at(timeline, kept_of(cursor, number), version, linked(cursor, number))

    def trimmed(self) -> Mapping[TimelineId, Kept]:
        """Which part is left of each timeline from which events were removed."""
        with self.reader.cursor() as cursor:
            left, names = all_kept(cursor), cursor.execute(NAMES).fetchall()
        return {TimelineId(name): left[number] for number, name in names if number in left}

    def changed(self, timeline: TimelineId, change: Change) -> Removed:
        """The result of a change of an existing timeline."""
        with self.turn:
            known, kept = self.existing(timeline), self.kept(timeline)
            began_at = kept.began_at
            if not began_at:
                with self.reader.cursor() as cursor:
                    [(began_at,)] = cursor.execute(BEGAN_AT, [known.number]).fetchall()
            head = attrs.evolve(known.head, created_at=float(began_at or 0))
            return change(_FileTimeline(self, known, head, kept))

    def existing(self, timeline: TimelineId) -> Known:
        known = self.writer.heads.known(timeline)
        if not known.head.version:
            raise UnknownTimelineError(timeline)
        return known

    def commit(self, change: Statements, removed: TimelineId | None = None) -> None:
        """Commit `change`, which may have removed a timeline, and checkpoint at once, so that deletes and updates are
        only briefly in the write-ahead log and are the last entries there."""
        with self._alone():
            with self.writer.changing() as cursor:
                cursor.execute("BEGIN")
                change(cursor)
                cursor.execute("COMMIT")
                if removed is not None:
                    self.writer.drop(removed)
            self.writer.fold()


@attrs.frozen
class _FileTimeline:
    """A `HeldTimeline` in a DuckDB file."""

    _retention: Retention
    _known: Known
    head: Head
    kept: Kept

    @property
    def timeline(self) -> TimelineId:
        return self._known.name

    def rows(self, after: int, last: int) -> Sequence[tuple[int, bytes]]:
        rows = self._retention.reader.rows(self._known, after + 1, last)
        return [(version, payload.encode()) for version, payload in rows]

    def chain(self, version: int) -> int:
        return self._retention.chain(self.timeline, version) or 0

    def trim(self, before: int, left: Kept) -> tuple[int, int]:
        number, events = self._known.number, max(before - self.kept.first, 0)
        size = self._size(before - 1) if events else 0

        def change(cursor: "DuckDBPyConnection") -> None:
            # Check again: an expansion may need these events by now.
            checked_trim(self.timeline, before, self._retention.existing(self.timeline).head)
            put_kept(cursor, number, left)
            for statement in TRIM:
                cursor.execute(statement, [number, before - 1])

        self._retention.commit(change)
        return events, size

    def rewrite(self, left: Kept, events: Mapping[int, StoredEvent]) -> None:
        def change(cursor: "DuckDBPyConnection") -> None:
            if left != self.kept:
                put_kept(cursor, self._known.number, left)
            for version, event in events.items():
                if version >= self.kept.first:
                    _replace(cursor, self._known.number, version, event)

        self._retention.commit(change)

    def remove(self) -> tuple[int, int]:
        version = 0
        size = self._size(self.head.version)

        def change(cursor: "DuckDBPyConnection") -> None:
            nonlocal version
            version = self._retention.existing(self.timeline).head.version
            for statement in REMOVE:
                cursor.execute(statement, [self._known.number])
            cursor.execute(ADD_TRIM, [0, 1, version, 0.0, "", "", 0])

        self._retention.commit(change, removed=self.timeline)
        return version - self.kept.removed, size

    def all_kept(self) -> Iterable[Kept]:
        with self._retention.reader.cursor() as cursor:
            return all_kept(cursor).values()

    def _size(self, last: int) -> int:
        with self._retention.reader.cursor() as cursor:
            [(size,)] = cursor.execute(SIZE, [self._known.number, last]).fetchall()
        return int(size)


def _replace(cursor: "DuckDBPyConnection", number: int, version: int, event: StoredEvent) -> None:
    [(_, old, _)] = linked(cursor, number)(version)
    change = content_hash(old) ^ content_hash(event.data)
    cursor.execute(DROP_PIECES, [number, version])
    cursor.execute(REPLACE, [payload_of(event.data), change, number, version])
    pieces = list(pieces_of(event.data)) if len(event.data) > LARGE else []
    if pieces:
        cursor.execute(ADD_PIECES, [number, version, list(range(len(pieces))), pieces])
