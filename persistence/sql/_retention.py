"""Removing events from a log, and what is left then, in a database of several processes.

The table `trims` has a row for each timeline whose oldest events were removed,
written in the transaction that removes them.  Its manifest, which is JSON, names the forgotten versions, the archive
files, and the marks of compactions in the archives.  An archive is written while the timeline is locked, before its
rows are removed, so a reader finds either the rows or the manifest that names the file.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import attrs
import msgspec

from blocks import (
    CodecError,
    DamagedStoreError,
    LogWindow,
    TimelineId,
    UnknownTimelineError,
    decode_event,
)
from persistence._file import moved_with
from persistence._log import (
    ArchivedRange,
    Head,
    LinkedRow,
    Mark,
    Removed,
    Rest,
    StoredEvent,
    Walk,
    chain_at,
    chain_start,
    chain_step,
    checked_fork,
    checked_fork_window,
    checked_marks,
    content_hash,
    damaged,
    events_of,
    extended,
    is_sound,
    xor,
)
from persistence._store import StoreProblem
from persistence.sql._database import Connection, Database, TakenError, count
from persistence.sql._rows import (
    CHAIN,
    HEAD,
    LINKS,
    PAGE_BYTES,
    RANGE,
    VERSION_MAX,
    Row,
    check_end,
    columns,
    without_gaps,
)

if TYPE_CHECKING:
    from persistence._archive import Change

STEP: Final = 64
"""Events to read at first, while their size is unknown."""


_NEW_LINK: Final = xor("link", "CAST(? AS bigint)")
COPY: Final = f"""
INSERT INTO events(timeline, seq, id, ts, kind, ref, payload, made, link)
SELECT ?, seq, id, ts, kind, ref, payload, CASE WHEN made IS NOT NULL THEN {{number}} END, {_NEW_LINK}
FROM events WHERE timeline = ? AND seq <= ?
"""  # noqa: S608 -- constants
ADD_HEAD: Final = "INSERT INTO heads(timeline, version, chain) VALUES (?, ?, ?)"
DROP_HEAD: Final = "DELETE FROM heads WHERE timeline = ?"
ADD_FIRST: Final = """
INSERT INTO events(timeline, seq, id, ts, kind, ref, payload, made, link)
VALUES (?, ?, ?, ?, ?, ?, ?, {number}, ?)
"""
"""Inserts the first row of a fork whose copied events are all in archives."""
SIZE: Final = """
SELECT count(*), coalesce(sum(length(payload)), 0) FROM events WHERE timeline = ? AND seq < ?
"""
MOVE_MADE: Final = """
UPDATE events SET made = (SELECT made FROM events WHERE timeline = ? AND seq = ?)
WHERE timeline = ? AND seq = ?
"""
DELETE: Final = "DELETE FROM events WHERE timeline = ? AND seq < ?"
REPLACE: Final = f"UPDATE events SET payload = ?, link = {_NEW_LINK} WHERE timeline = ? AND seq = ?"  # noqa: S608 -- constants
MARKS: Final = """
SELECT seq, kind, ref FROM events WHERE timeline = ? AND ref IS NOT NULL AND seq < ? ORDER BY seq
"""
BEGAN: Final = "SELECT ts FROM events WHERE timeline = ? AND seq = ?"
TRIM: Final = "SELECT timeline, began_at, manifest FROM trims WHERE timeline = ?"
TRIMS: Final = "SELECT timeline, began_at, manifest, first FROM trims ORDER BY timeline"
DROP_TRIM: Final = "DELETE FROM trims WHERE timeline = ?"
ADD_TRIM: Final = "INSERT INTO trims(timeline, first, began_at, manifest) VALUES (?, ?, ?, ?)"

_Result = TypeVar("_Result")


@attrs.frozen(kw_only=True)
class Trimmed:
    """Which part of a log is left, and the marks of its archived events."""

    rest: Rest = attrs.field(factory=Rest)
    marks: tuple[Mark, ...] = ()


class _Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    forgotten: int = 0
    archives: tuple[ArchivedRange, ...] = ()
    marks: tuple[Mark, ...] = ()
    anchor: int = 0


def trimmed_of(connection: Connection, timeline: TimelineId) -> Trimmed:
    """Which part of a timeline is left; the default if nothing was removed."""
    rows = connection.rows(TRIM, [timeline])
    return _read(connection, *rows[0]) if rows else Trimmed()


def all_trimmed(connection: Connection) -> dict[TimelineId, Rest]:
    """Which part is left of each timeline from which events were removed."""
    return {TimelineId(row[0]): _read(connection, *row[:3]).rest for row in connection.rows(TRIMS)}


def trim_problems(connection: Connection) -> Iterator[StoreProblem]:
    """Problems: rows whose columns contradict their manifest."""
    for *row, first in connection.rows(TRIMS):
        due = _read(connection, *row).rest.first
        if first != due:
            what = (
                f"table trims says that it begins at version {first}, and its manifest says {due}"
            )
            yield StoreProblem(timeline=row[0], what=what)


def _read(connection: Connection, timeline: str, began_at: float, manifest: bytes) -> Trimmed:
    try:
        record = msgspec.json.decode(manifest, type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(timeline, f"its retention record is invalid ({error})") from error
    rest = Rest(
        forgotten=record.forgotten,
        archives=moved_with(record.archives, connection.folder),
        began_at=began_at,
        anchor=record.anchor,
    )
    return Trimmed(rest=rest, marks=record.marks)


def _put(connection: Connection, timeline: TimelineId, trimmed: Trimmed) -> None:
    connection.run(DROP_TRIM, [timeline])
    rest = trimmed.rest
    if rest != Rest():
        manifest = _Manifest(
            forgotten=rest.forgotten,
            archives=rest.archives,
            marks=trimmed.marks,
            anchor=rest.anchor,
        )
        row = [timeline, rest.first, rest.began_at, msgspec.json.encode(manifest)]
        connection.run(ADD_TRIM, row)


def _head_of(connection: Connection, timeline: TimelineId, trimmed: Trimmed) -> Head:
    """The head of a timeline, with all marks but without the time of its last event."""
    [(version,)] = connection.rows(HEAD, [timeline]) or [(0,)]
    if not version:
        return Head()
    marks = (*trimmed.marks, *_marks_before(connection, timeline, VERSION_MAX))
    began_at = trimmed.rest.began_at
    if not trimmed.rest.removed:
        began_at = next((at for (at,) in connection.rows(BEGAN, [timeline, 1])), 0.0)
    return Head(version=version, created_at=began_at, marks=marks)


def _marks_before(connection: Connection, timeline: TimelineId, before: int) -> Iterator[Mark]:
    return (Mark(*row) for row in connection.rows(MARKS, [timeline, before]))


@attrs.frozen(kw_only=True)
class LockedTimeline:
    """A `HeldTimeline`, locked by a transaction: no other one removes events, forks it, or appends events that change
    its window.  A plain append takes no lock: its events come after the window's start, where nothing is removed."""

    database: Database
    connection: Connection
    timeline: TimelineId
    trimmed: Trimmed
    head: Head

    @classmethod
    def of(
        cls, database: Database, connection: Connection, timeline: TimelineId
    ) -> "LockedTimeline":
        """Wait for the lock on a timeline, and read its state."""
        database.hold(connection, timeline)
        trimmed = trimmed_of(connection, timeline)
        return cls(
            database=database,
            connection=connection,
            timeline=timeline,
            trimmed=trimmed,
            head=_head_of(connection, timeline, trimmed),
        )

    @property
    def rest(self) -> Rest:
        return self.trimmed.rest

    def rows(self, after: int, last: int) -> Sequence[Row]:
        return _rows_of(self.connection, self.timeline, self.rest, after, last)

    def chain(self, version: int) -> int:
        row = row_of(self.connection, self.timeline)
        return chain_at(self.timeline, self.rest, version, row) or 0

    def trim(self, before: int, rest: Rest) -> tuple[int, int]:
        connection, timeline = self.connection, self.timeline
        marks = (*self.trimmed.marks, *_marks_before(connection, timeline, before))
        there = tuple(mark for mark in marks if mark.version > rest.forgotten)
        _put(connection, timeline, Trimmed(rest=rest, marks=there))
        [(events, size)] = connection.rows(SIZE, [timeline, before])
        if events:
            connection.run(MOVE_MADE, [timeline, self.rest.first, timeline, before])
            connection.run(DELETE, [timeline, before])
        return events, int(size)

    def rewrite(self, rest: Rest, events: Mapping[int, StoredEvent]) -> None:
        if rest != self.rest:
            _put(self.connection, self.timeline, attrs.evolve(self.trimmed, rest=rest))
        for version, event in events.items():
            for _, old in self.connection.rows(RANGE, [self.timeline, version - 1, version]):
                change = content_hash(old) ^ content_hash(event.data)
                values = [event.data, change, change, self.timeline, version]
                self.connection.run(REPLACE, values)

    def remove(self) -> tuple[int, int]:
        self.connection.run(DROP_HEAD, [self.timeline])  # from now on, appends wait
        count(self.database, self.connection, self.timeline, -1)
        everything = [self.timeline, VERSION_MAX]
        [(events, size)] = self.connection.rows(SIZE, everything)
        self.connection.run(DROP_TRIM, [self.timeline])
        self.connection.run(DELETE, everything)
        return events, int(size)

    def all_rests(self) -> Iterable[Rest]:
        return all_trimmed(self.connection).values()


def changed(database: Database, timeline: TimelineId, change: "Change") -> Removed:
    """The result of a change of an existing timeline, in one transaction.

    Raises:
        UnknownTimelineError: no such timeline.
    """
    with database.writing() as connection:
        held = LockedTimeline.of(database, connection, timeline)
        if not held.head.version:
            raise UnknownTimelineError(timeline)
        return change(held)


def append_marks(
    database: Database, timeline: TimelineId, expected: int, stored: Sequence[StoredEvent]
) -> bool:
    """`Database.append` for events that may change the window.

    Raises:
        ForgottenError: the window would begin among forgotten events.
    """
    try:
        with database.writing() as connection:
            held = LockedTimeline.of(database, connection, timeline)
            if held.head.version == expected:
                checked_marks(timeline, held.head.after(stored), held.rest)
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

    def head(name: TimelineId) -> Head:
        rows = connection.rows(HEAD, [name]) if is_sound(name) else []
        return Head(version=rows[0][0] if rows else 0)

    sound = str(source) if is_sound(str(source)) else ""  # an unsound name is no timeline
    with database.writing() as connection:
        database.hold(connection, sound)
        checked_fork(source, target, at, head)
        trimmed = trimmed_of(connection, source)
        other = chain_start(source) ^ chain_start(target)
        if trimmed.rest.removed:
            start = _head_of(connection, source, trimmed).cut_to(at)
            checked_fork_window(source, at, start, trimmed.rest)
            marks = tuple(mark for mark in trimmed.marks if mark.version <= at)
            rest = attrs.evolve(trimmed.rest.cut_to(at), anchor=trimmed.rest.anchor ^ other)
            _put(connection, target, Trimmed(rest=rest, marks=marks))
        chain = (chain_at(source, trimmed.rest, at, row_of(connection, source)) or 0) ^ other
        number = database.number("events")
        count(database, connection, target, 1)
        if connection.run(COPY.replace("{number}", number), [target, other, other, source, at]):
            connection.run(ADD_HEAD, [target, at, chain])
            return database.insert(connection, target, at, [event])
        [link], chain = extended(chain, at, [event])
        connection.run(ADD_HEAD, [target, at + 1, chain])
        row = (target, at + 1, *columns(event), event.data, link)
        return connection.run(ADD_FIRST.replace("{number}", number), row) > 0


def row_of(connection: Connection, timeline: TimelineId) -> Callable[[int], Sequence[LinkedRow]]:
    """A function that reads the row of a version."""
    return lambda version: [*connection.rows(LINKS, [timeline, version, version])]


def pass_row(walk: Walk, seq: int, payload: bytes, link: int | None) -> bool:
    """Pass a row; return whether its link is right."""
    try:
        addition = chain_step(seq, decode_event(payload).id)
    except CodecError:
        walk.lose()
        return False
    return walk.passes(addition, None if link is None else link ^ content_hash(payload))


def altered(connection: Connection, timeline: TimelineId, after: int, last: int) -> Iterator[int]:
    """Versions greater than `after`, up to `last`, of rows whose link is wrong."""
    from persistence._archive import archive_problems

    rest = trimmed_of(connection, timeline).rest
    # One row more, so that damage of the row `after` is not taken for that of the next.
    begin = max(after - 1, rest.removed)
    walk = Walk.of(timeline, rest)
    if begin > rest.removed:
        chain = chain_at(timeline, rest, begin, row_of(connection, timeline))
        walk = Walk(() if chain is None else (chain,))
    else:
        deque(archive_problems(timeline, rest, walk), maxlen=0)
    for seq, payload, link in connection.rows(LINKS, [timeline, begin + 1, last]):
        if not pass_row(walk, seq, payload, link) and seq > after:
            yield seq


# The rows are always read first.  If they begin later than expected, the rows and what was removed are read here
# together, in one snapshot, which contains a removal as a whole or not at all.


def archived_page(
    database: Database, timeline: TimelineId, after: int, limit: int
) -> Sequence[Row]:
    """The result of `read_bytes`, if some of it may be in archives.

    Raises:
        ForgottenError: the first of these events was forgotten.
        DamagedStoreError: an event is missing.
    """

    def page(connection: Connection, trimmed: Trimmed) -> Sequence[Row]:
        trimmed.rest.refuse_forgotten(timeline, after + 1)
        events, size, last = list[Row](), 0, after + limit
        while size < PAGE_BYTES and (begin := after + len(events)) < last:
            rows = _rows_of(connection, timeline, trimmed.rest, begin, min(begin + STEP, last))
            if not rows:
                break
            events += rows
            size += sum(len(payload) for _, payload in rows)
        return events

    return _steady(database, timeline, page)


def archived_window(database: Database, timeline: TimelineId) -> LogWindow:
    """The window, if it may begin in an archive.

    Raises:
        ForgottenError: it begins among forgotten events.
        DamagedStoreError: an event is missing.
    """

    def window(connection: Connection, trimmed: Trimmed) -> LogWindow:
        head = _head_of(connection, timeline, trimmed)
        after = head.window_start() - 1
        trimmed.rest.refuse_forgotten(timeline, after + 1)
        rows = _rows_of(connection, timeline, trimmed.rest, after, VERSION_MAX)
        events = events_of(timeline, rows)
        ends = connection.rows(CHAIN, [timeline])
        newest = connection.rows(LINKS, [timeline, max(head.version - 1, 1), VERSION_MAX])
        check_end(timeline, ends, newest)
        return head.window(events)

    return _steady(database, timeline, window)


def _steady(
    database: Database, timeline: TimelineId, read: Callable[[Connection, Trimmed], _Result]
) -> _Result:
    """The result of `read`, repeated if an archive file was replaced meanwhile."""
    trimmed = Trimmed()
    while True:
        try:
            with database.snapshot() as connection:
                trimmed = trimmed_of(connection, timeline)
                return read(connection, trimmed)
        except DamagedStoreError:
            with database.lent() as connection:
                if trimmed_of(connection, timeline) == trimmed:
                    raise


def _rows_of(
    connection: Connection, timeline: TimelineId, rest: Rest, after: int, last: int
) -> Sequence[Row]:
    from persistence._archive import archived_within

    archived = archived_within(rest, after + 1, last)
    rows: list[Row] = [(version, text.encode()) for version, text in archived]
    if last >= rest.first:
        rows += connection.rows(RANGE, [timeline, max(after, rest.removed), last])
    return without_gaps(timeline, after, rows)
