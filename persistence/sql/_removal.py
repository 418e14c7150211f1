"""Removes events from a database, each time in one transaction.

An archive is written while the timeline is locked, before its rows are removed, so a reader finds either the rows or
the manifest that names the file.  While a whole timeline is removed, with the rows against which an append is
checked, appends to it are locked out.
"""

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Final, TypeAlias

import attrs

from blocks import Event, MisuseError, TimelineId, UnknownTimelineError
from persistence._log import StoredEvent, is_sound
from persistence._retention import Kept, Removed, checked_rewrite, checked_trim, unused_archives
from persistence.sql._database import Connection, Database, LostError
from persistence.sql._held import Held
from persistence.sql._past import STEP, rows_of
from persistence.sql._rows import VERSION_MAX, checksum, damaged, events_of
from persistence.sql._trims import DROP, Trimmed, all_trimmed, marks_of, put_trimmed

Change: TypeAlias = Callable[[Held], Removed]
Settled: TypeAlias = Callable[[Callable[[], Removed]], Removed]
"""Repeats a write until its outcome is known."""

SIZE: Final = """
SELECT count(*), coalesce(sum(length(payload)), 0) FROM events WHERE timeline = ? AND seq < ?
"""
OLD_MARKS: Final = """
SELECT seq, kind, ref FROM events WHERE timeline = ? AND ref IS NOT NULL AND seq < ? ORDER BY seq
"""
MOVE_MADE: Final = """
UPDATE events SET made = (SELECT made FROM events WHERE timeline = ? AND seq = ?)
WHERE timeline = ? AND seq = ?
"""
TRIM: Final = "DELETE FROM events WHERE timeline = ? AND seq < ?"
REPLACE: Final = "UPDATE events SET payload = ?, crc32 = ? WHERE timeline = ? AND seq = ?"


@attrs.frozen
class Removal:
    """Removes and rewrites events."""

    _database: Database
    _settled: Settled

    def trim(
        self, timeline: TimelineId, before: int, archive: "str | PathLike[str] | None"
    ) -> Removed:
        """Remove or archive the events older than version `before`."""

        def change(held: Held) -> Removed:
            checked_trim(timeline, before, held.head)
            kept, began_at = held.trimmed.kept, held.head.created_at
            if archive is None:
                return _trimmed(held, before, kept.forgetting(before, began_at))
            if before > kept.first:
                return _trimmed(held, before, _archiving(held, before, archive))
            return Removed()

        return self._changed(timeline, change)

    def rewrite(self, timeline: TimelineId, events: Mapping[int, Event]) -> Removed:
        """Replace the events of these versions."""
        from persistence._archive import rewritten

        def change(held: Held) -> Removed:
            kept = held.trimmed.kept
            new = {version: _replacement(held, version, event) for version, event in events.items()}
            payloads = {version: event.data.decode() for version, event in new.items()}
            after = rewritten(kept, timeline, payloads)
            if after != kept:
                put_trimmed(held.connection, timeline, attrs.evolve(held.trimmed, kept=after))
            for version, event in new.items():
                given = [event.data, checksum(event.data), timeline, version]
                held.connection.run(REPLACE, given)
            size = sum(len(event.data) for event in new.values())
            return Removed(events=len(new), size=size, unused=_unused(held))

        return self._changed(timeline, change)

    def remove(self, timeline: TimelineId) -> Removed:
        """Remove a timeline."""

        def change(held: Held) -> Removed:
            self._database.stop_appends(held.connection)
            everything = [timeline, VERSION_MAX]
            [(events, size)] = held.connection.rows(SIZE, everything)
            held.connection.run(DROP, [timeline])
            held.connection.run(TRIM, everything)
            return Removed(events=events, size=int(size), unused=_unused(held))

        return self._changed(timeline, change)

    def _changed(self, timeline: TimelineId, change: Change) -> Removed:
        """The result of a change in one transaction.  If the connection breaks during the commit, the change is
        repeated; if it had succeeded, the repetition changes nothing, and the first result counts."""
        if not is_sound(timeline):
            raise UnknownTimelineError(timeline)
        name, lost, answers = TimelineId(timeline), False, list[Removed]()

        def once() -> Removed:
            nonlocal lost
            try:
                with self._database.writing() as connection:
                    answers.append(change(_existing(self._database, connection, name)))
            except LostError:
                lost = True
                raise
            except UnknownTimelineError:
                if not (lost and answers):
                    raise
            return answers[0 if lost else -1]

        return self._settled(once)


def _existing(database: Database, connection: Connection, timeline: TimelineId) -> Held:
    held = Held.by(database, connection, timeline)
    if not held.head.version:
        raise UnknownTimelineError(timeline)
    return held


def _trimmed(held: Held, before: int, after: Kept) -> Removed:
    """Remove the rows older than `before`; `after` is what is then left of the log."""
    connection, timeline = held.connection, held.timeline
    first = held.trimmed.kept.first
    old = marks_of(connection.rows(OLD_MARKS, [timeline, before]))
    marks = (mark for mark in (*held.trimmed.marks, *old) if mark.version > after.forgotten)
    put_trimmed(connection, timeline, Trimmed(kept=after, marks=tuple(marks)))
    [(events, size)] = connection.rows(SIZE, [timeline, before])
    if events:
        connection.run(MOVE_MADE, [timeline, first, timeline, before])
        connection.run(TRIM, [timeline, before])
    return Removed(events=events, size=int(size), unused=_unused(held))


def _archiving(held: Held, before: int, folder: "str | PathLike[str]") -> Kept:
    """Write the rows into an archive file; return what is then left of the log."""
    from persistence._archive import write_archive

    def rows() -> Iterator[tuple[int, str]]:
        for after in range(kept.removed, before - 1, STEP):
            last = min(after + STEP, before - 1)
            for version, payload in rows_of(held.connection, held.timeline, kept, after, last):
                try:
                    yield version, payload.decode()
                except UnicodeDecodeError as error:
                    raise damaged(held.timeline, f"event {version} is no text ({error})") from error

    kept = held.trimmed.kept
    written = write_archive(folder, held.timeline, rows())
    return kept.archiving(written, held.head.created_at)


def _replacement(held: Held, version: int, event: Event) -> StoredEvent:
    kept, timeline = held.trimmed.kept, held.timeline
    if not 1 <= version <= held.head.version:
        raise MisuseError(f"timeline {timeline!r} has no version {version}")
    kept.refuse_forgotten(timeline, version)
    rows = rows_of(held.connection, timeline, kept, version - 1, version)
    if not rows:
        raise damaged(timeline, f"event {version} is not there")
    [(_, old)] = events_of(timeline, rows)
    return checked_rewrite(version, old, event)


def _unused(held: Held) -> tuple[str, ...]:
    """The archive files of the timeline to which no log refers any more."""
    kept = held.trimmed.kept
    if not kept.archives:
        return ()
    return unused_archives(kept, all_trimmed(held.connection).values())
