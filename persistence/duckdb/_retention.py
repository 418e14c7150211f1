"""Retention in a DuckDB file: removing or archiving the oldest events, replacing events, removing timelines.

The table `trims` says what is no longer in the other tables:

    first 1, no file        forgotten: events 1 to `last`
    first, last, file       archived: in this file, whose hash is `sha256`
    timeline 0              events of timelines that were removed, so that the number of acknowledged
                            events still adds up

Rows are deleted and updated while no thread appends, in one commit that is checkpointed at once.
Their content may remain in free blocks of the file; `erase` writes a new file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from blocks import Event, MisuseError, StoreError, TimelineId, UnknownTimelineError
from persistence._log import StoredEvent
from persistence._retention import (
    ArchivedRange,
    Kept,
    Removed,
    checked_rewrite,
    checked_trim,
    unused_archives,
)
from persistence.duckdb._append import payload_of
from persistence.duckdb._cursors import CursorPool
from persistence.duckdb._fresh_file import write_anew
from persistence.duckdb._heads import Known
from persistence.duckdb._large_events import is_large, pieces_of
from persistence.duckdb._reader import Reader
from persistence.duckdb._schema import FORMAT_WITH_TRIMS
from persistence.duckdb._trims import TrimRow, all_kept, kept_of
from persistence.duckdb._writer import Writer

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Alone: TypeAlias = Callable[[], AbstractContextManager[None]]

BEGAN_AT: Final = "SELECT arg_min(ts, seq) FROM events WHERE timeline = ?"
SIZE: Final = """
SELECT (SELECT coalesce(sum(strlen(payload)), 0) FROM events WHERE timeline = $1 AND seq <= $2)
     + (SELECT coalesce(sum(strlen(piece)), 0) FROM pieces WHERE timeline = $1 AND seq <= $2)
"""
TRIM: Final = (
    "DELETE FROM events WHERE timeline = ? AND seq <= ?",
    "DELETE FROM pieces WHERE timeline = ? AND seq <= ?",
)
REMOVE: Final = ("events", "pieces", "marks", "trims", "timelines")
REPLACE: Final = "UPDATE events SET payload = ? WHERE timeline = ? AND seq = ?"
DROP_PIECES: Final = "DELETE FROM pieces WHERE timeline = ? AND seq = ?"
ADD_PIECES: Final = "INSERT INTO pieces SELECT ?, ?, unnest(?), unnest(?)"
NAMES: Final = "SELECT timeline, name FROM timelines SEMI JOIN trims USING (timeline)"
NEEDS_FORMAT: Final = """
INSERT INTO foldline SELECT $1 WHERE (SELECT max(format) FROM foldline) < $1
"""
"""Makes versions of the program that know only older formats refuse the file."""
DROP_TRIMS: Final = "DELETE FROM trims WHERE timeline = ?"
ADD_TRIM: Final = "INSERT INTO trims VALUES (?, ?, ?, ?, ?, ?)"


@attrs.define(eq=False)
class Retention:
    """Removes and rewrites events, one caller at a time; appends wait only during the last step."""

    _writer: Writer
    _reader: Reader
    _cursors: CursorPool
    _alone: Alone
    _turn: Lock = attrs.field(factory=Lock, init=False)

    def kept(self, timeline: TimelineId) -> Kept:
        """Which part of a timeline is left."""
        with self._reader.cursor() as cursor:
            return kept_of(cursor, self._writer.heads.known(timeline).number)

    def trimmed(self) -> Mapping[TimelineId, Kept]:
        """Which part is left of each timeline from which events were removed."""
        with self._reader.cursor() as cursor:
            left, names = all_kept(cursor), cursor.execute(NAMES).fetchall()
        return {TimelineId(name): left[number] for number, name in names if number in left}

    def trim(
        self, timeline: TimelineId, before: int, archive: "str | PathLike[str] | None"
    ) -> Removed:
        """Remove or archive the events older than version `before`."""
        from persistence._archive import write_archive

        with self._turn:
            known, kept = self._checked(timeline, before), self.kept(timeline)
            first, number = kept.first, known.number
            began_at = kept.began_at or self._began_at(number)
            if archive is None:
                after = kept.forgetting(before, began_at)
            elif before > first:
                rows = self._reader.stored(known, first, before - 1)
                after = kept.archiving(write_archive(archive, timeline, rows), began_at)
            else:
                return Removed()
            events = max(before - first, 0)
            size = self._size(number, before - 1) if events else 0

            def change(cursor: "DuckDBPyConnection") -> None:
                # Check again: an expansion may need these events by now.
                self._checked(timeline, before)
                put_kept(cursor, number, after)
                for statement in TRIM:
                    cursor.execute(statement, [number, before - 1])

            with self._alone():
                self._commit(change)
            return Removed(events=events, size=size, unused=self._unused(kept))

    def rewrite(self, timeline: TimelineId, events: Mapping[int, Event]) -> Removed:
        """Replace the events of these versions."""
        from persistence._archive import rewritten

        with self._turn:
            known = self._existing(timeline)
            number, kept = known.number, self.kept(timeline)
            new = {v: self._replacement(known, kept, v, e) for v, e in events.items()}
            after = rewritten(kept, timeline, {v: e.data.decode() for v, e in new.items()})

            def change(cursor: "DuckDBPyConnection") -> None:
                if after != kept:
                    put_kept(cursor, number, after)
                for version, event in new.items():
                    if version >= kept.first:
                        _replace(cursor, number, version, event)

            with self._alone():
                self._commit(change)
            size = sum(len(event.data) for event in new.values())
            return Removed(events=len(new), size=size, unused=self._unused(kept))

    def remove(self, timeline: TimelineId) -> Removed:
        """Remove a timeline."""
        with self._turn, self._alone():
            known, kept = self._existing(timeline), self.kept(timeline)
            number, version = known.number, known.head.version
            size = self._size(number, version)

            def change(cursor: "DuckDBPyConnection") -> None:
                for table in REMOVE:
                    cursor.execute(f"DELETE FROM {table} WHERE timeline = ?", [number])  # noqa: S608 -- ours
                cursor.execute(ADD_TRIM, [0, 1, version, 0.0, "", ""])

            self._commit(change, removed=timeline)
            return Removed(events=version - kept.removed, size=size, unused=self._unused(kept))

    def erase(self, connection: "DuckDBPyConnection", path: Path) -> None:
        """Replace the file by a copy without the removed content.

        Raises:
            StoreError: a cursor was still in use after a short wait.
        """

        def write() -> None:
            with self._writer.changing():
                try:
                    write_anew(connection, path)
                finally:
                    self._writer.moved()

        with self._turn, self._alone():
            if not self._cursors.alone(write):
                raise StoreError(f"somebody reads {path}; repeat the call when nobody does")

    def _commit(
        self, change: "Callable[[DuckDBPyConnection], None]", removed: TimelineId | None = None
    ) -> None:
        """Commit `change`, which may have removed a timeline, and checkpoint at once, so that deletes and updates are
        only briefly in the write-ahead log and are the last entries there."""
        with self._writer.changing() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(NEEDS_FORMAT, [FORMAT_WITH_TRIMS])
            change(cursor)
            cursor.execute("COMMIT")
            if removed is not None:
                self._writer.heads.drop(removed)
        with suppress(StoreError), self._writer.changing() as cursor:  # already durable
            cursor.execute("CHECKPOINT")

    def _checked(self, timeline: TimelineId, before: int) -> Known:
        known = self._writer.heads.known(timeline)
        checked_trim(timeline, before, known.head)
        return known

    def _existing(self, timeline: TimelineId) -> Known:
        known = self._writer.heads.known(timeline)
        if not known.head.version:
            raise UnknownTimelineError(timeline)
        return known

    def _began_at(self, number: int) -> float:
        with self._reader.cursor() as cursor:
            [(began_at,)] = cursor.execute(BEGAN_AT, [number]).fetchall()
        return float(began_at)

    def _replacement(self, known: Known, kept: Kept, version: int, event: Event) -> StoredEvent:
        if not 1 <= version <= known.head.version:
            raise MisuseError(f"timeline {known.name!r} has no version {version}")
        kept.refuse_forgotten(known.name, version)
        [(_, old)] = self._reader.events(known, version, version)
        return checked_rewrite(version, old, event)

    def _size(self, number: int, last: int) -> int:
        with self._reader.cursor() as cursor:
            [(size,)] = cursor.execute(SIZE, [number, last]).fetchall()
        return int(size)

    def _unused(self, before: Kept) -> tuple[str, ...]:
        if not before.archives:
            return ()
        with self._reader.cursor() as cursor:
            return unused_archives(before, all_kept(cursor).values())


def put_kept(cursor: "DuckDBPyConnection", number: int, kept: Kept) -> None:
    """Store which part of a timeline is left."""
    cursor.execute(DROP_TRIMS, [number])
    for row in _trim_rows(number, kept):
        cursor.execute(ADD_TRIM, row)


def _trim_rows(number: int, kept: Kept) -> Iterator[TrimRow]:
    if kept.forgotten:
        yield number, 1, kept.forgotten, kept.began_at, "", ""
    for archive in kept.archives:
        yield _archive_row(number, kept, archive)


def _archive_row(number: int, kept: Kept, archive: ArchivedRange) -> TrimRow:
    return number, archive.first, archive.last, kept.began_at, archive.file, archive.sha256


def _replace(cursor: "DuckDBPyConnection", number: int, version: int, event: StoredEvent) -> None:
    cursor.execute(DROP_PIECES, [number, version])
    cursor.execute(REPLACE, [payload_of(event.data), number, version])
    pieces: Sequence[str] = list(pieces_of(event.data)) if is_large(event.data) else ()
    if pieces:
        cursor.execute(ADD_PIECES, [number, version, list(range(len(pieces))), pieces])
