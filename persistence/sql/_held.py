"""A timeline locked by a transaction: no other one removes events, forks it, or appends events that change its window.

A plain append takes no lock and does not wait: its events come after the window's start, where nothing is removed.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from blocks import TimelineId
from persistence._log import Head, StoredEvent, checked_fork, is_sound
from persistence._retention import checked_kept_fork, checked_marks
from persistence.sql._database import Connection, Database, TakenError
from persistence.sql._rows import HEAD, checksum, columns
from persistence.sql._trims import Trimmed, head_of, put_trimmed, trimmed_of

COPY: Final = """
INSERT INTO events(timeline, seq, id, ts, kind, ref, payload, made, crc32)
SELECT ?, seq, id, ts, kind, ref, payload, CASE WHEN made IS NOT NULL THEN {number} END, crc32
FROM events WHERE timeline = ? AND seq <= ?
"""
ADD: Final = """
INSERT INTO events(timeline, seq, id, ts, kind, ref, payload, made, crc32)
VALUES (?, ?, ?, ?, ?, ?, ?, {number}, ?)
"""
"""Inserts the first row of a fork whose copied events are all in archives."""


@attrs.frozen(kw_only=True)
class Held:
    """The state of a timeline, which no other removal or compaction changes until the transaction ends."""

    connection: Connection
    timeline: TimelineId
    trimmed: Trimmed
    head: Head

    @classmethod
    def by(cls, database: Database, connection: Connection, timeline: TimelineId) -> "Held":
        """Wait for the lock on a timeline, and read its state."""
        database.hold(connection, timeline)
        trimmed = trimmed_of(connection, timeline)
        head = head_of(connection, timeline, trimmed)
        return cls(connection=connection, timeline=timeline, trimmed=trimmed, head=head)


def append_plain(
    database: Database, timeline: TimelineId, expected: int, stored: Sequence[StoredEvent]
) -> bool:
    """`Database.append` for events that do not change the window; waits for no lock."""
    return database.append(timeline, expected, stored)


def append_marks(
    database: Database, timeline: TimelineId, expected: int, stored: Sequence[StoredEvent]
) -> bool:
    """`Database.append` for events that may change the window.

    Raises:
        ForgottenError: the window would begin among forgotten events.
    """
    try:
        with database.writing() as connection:
            held = Held.by(database, connection, timeline)
            if held.head.version == expected:
                checked_marks(timeline, held.head.after(stored), held.trimmed.kept)
            return database.insert(connection, timeline, expected, stored)
    except TakenError:
        return False


def fork(
    database: Database, source: TimelineId, target: TimelineId, event: StoredEvent, at: int
) -> bool:
    """Fork a timeline, in one transaction: copy what is left of it up to version `at`; archives are shared.

    Raises:
        UnknownTimelineError, MisuseError, TimelineExistsError, ForgottenError: as `EventStore.fork`.
        TakenError: another process has just created the target.
    """

    sound = str(source) if is_sound(str(source)) else ""  # an unsound name is no timeline

    def head(name: TimelineId) -> Head:
        rows = connection.rows(HEAD, [name]) if is_sound(name) else [(0,)]
        return Head(version=rows[0][0] or 0)

    with database.writing() as connection:
        database.hold(connection, sound)
        checked_fork(source, target, at, head)
        trimmed = trimmed_of(connection, source)
        if trimmed.kept.removed:
            known = head_of(connection, source, trimmed).cut_to(at)
            checked_kept_fork(source, at, known, trimmed.kept)
            put_trimmed(connection, target, trimmed.cut_to(at))
        number = database.number("events")
        if connection.run(COPY.replace("{number}", number), [target, source, at]):
            return database.insert(connection, target, at, [event])
        given = (target, at + 1, *columns(event), event.data, checksum(event.data))
        return connection.run(ADD.replace("{number}", number), given) > 0
