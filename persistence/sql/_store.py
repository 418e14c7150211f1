"""Stores in relational databases: what all share, and the store of databases that many processes share.

In such a database, no part of a log is cached in memory.  Conflicts are decided by the key (timeline, version): in one
statement, an append inserts all its events after the version that it expects, or nothing.  If it inserted nothing, the
events at these versions show whether it repeats an append that succeeded.  So a broken connection does no harm: the
append is sent again.
"""

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING
from warnings import warn
from weakref import finalize

from blocks import (
    ClosedError,
    Event,
    LogWindow,
    OutcomeUnknownError,
    StoreError,
    TimelineExistsError,
    TimelineId,
    UnknownTimelineError,
    VersionConflictError,
)
from persistence._log import (
    Attempts,
    OwnStore,
    Removed,
    Rest,
    StoredEvent,
    TimelineInfo,
    Watchers,
    chain_at,
    checked_events,
    is_sound,
)
from persistence._store import EventStore, Kinds, Skim, StoreReport
from persistence.sql import _rows
from persistence.sql._database import (
    Answer,
    Connection,
    Database,
    LostError,
    PassingError,
    Patience,
    Rows,
    TakenError,
)
from persistence.sql._index import SQLIndex
from persistence.sql._retention import (
    all_trimmed,
    altered,
    append_marks,
    archived_page,
    archived_window,
    changed,
    fork,
    row_of,
    trimmed_of,
)

if TYPE_CHECKING:
    from persistence._archive import Change, HeldTimeline
    from persistence.artifacts import ArtifactStore, KeyRing
    from persistence.artifacts._sql import SQLBackend
    from persistence.artifacts._store import TableBackend


class RelationalStore(OwnStore, EventStore):
    """What the stores in DuckDB, SQLite and PostgreSQL have in common."""

    _place: object
    """What is open: the file, or the name of the database."""
    _pid: int
    _closed: bool

    def _refuse_if_not_ours(self) -> None:
        if os.getpid() != self._pid:
            raise ClosedError(
                f"{self._place} was opened by process {self._pid} and this is a child forked from it; open stores"
                " after the fork, a DuckDB file in one process only"
            )
        if self._closed:
            raise ClosedError(f"{self._place} is closed; open the store again")

    def artifacts(
        self,
        *,
        keys: "KeyRing | None" = None,
        clock: Callable[[], float] = time.time,
        random: Callable[[int], bytes] = os.urandom,
    ) -> "ArtifactStore":
        """The artifacts in this database, beside the log."""
        from persistence.artifacts import ArtifactStore

        return ArtifactStore(self._backend(clock), keys=keys, clock=clock, random=random)

    @abstractmethod
    def _backend(self, clock: Callable[[], float]) -> "TableBackend":
        """What keeps the artifacts; creates their tables if there are none."""

    def skim(
        self,
        timelines: Sequence[TimelineId],
        first: int,
        kinds: Collection[str],
        always: Collection[str] = (),
    ) -> Iterator[tuple[TimelineId, Skim]]:
        trimmed = self.trimmed()
        whole = self._skimmed([n for n in timelines if n not in trimmed], first, (kinds, always))
        rest = super().skim([n for n in timelines if n in trimmed], first, kinds, always)
        return chain(whole, rest)

    @abstractmethod
    def _skimmed(
        self, timelines: Sequence[TimelineId], first: int, kinds: Kinds
    ) -> Iterator[tuple[TimelineId, Skim]]:
        """As `skim`, of timelines from which nothing was removed."""


class SQLStore(RelationalStore):
    """An `EventStore` in a database; closing the store closes the database."""

    def __init__(
        self, database: Database, patience: Patience, watchers: Watchers | None = None
    ) -> None:
        self._database, self._place = database, database.name
        self._patience = patience
        self._pid = os.getpid()
        self._closed = False
        self._artifacts_lock = Lock()
        self._watchers = watchers or Watchers()
        self._attempts = Attempts()
        self._dropped = finalize(self, _release, database, self._watchers, self._pid)
        self._dropped.atexit = False

    def _append(self, timeline: TimelineId, stored: list[StoredEvent], expected: int) -> int:
        _rows.checked_rows(stored)
        has_marks = any(event.ref is not None for event in stored)

        def write(_: int) -> bool:
            if expected >= _rows.VERSION_MAX:
                return False
            if has_marks:
                return append_marks(self._database, timeline, expected, stored)
            return self._database.append(timeline, expected, stored)

        if not self._settled(write) and not self._is_there(timeline, expected, stored):
            raise VersionConflictError(expected=expected, found=self.head(timeline))
        self._watchers.grown(timeline)
        return expected + len(stored)

    def _is_there(self, timeline: TimelineId, after: int, stored: Sequence[StoredEvent]) -> bool:
        """Whether exactly these events are already stored at these versions."""
        after = min(after, _rows.VERSION_MAX)
        rows = self._rows(_rows.IDS, [timeline, after, after + len(stored)])
        return [id_ for (id_,) in rows] == [_rows.column(event.id) for event in stored]

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        rows = self._rows(_rows.WINDOW, [timeline_id] * 4)
        if _rows.begins_late(rows):
            return self._patience.repeated(partial(archived_window, self._database, timeline_id))
        if rows:
            return _rows.window_of(timeline_id, rows)
        if ends := self._rows(_rows.LOST, [timeline_id, timeline_id]):
            _rows.check_end(timeline_id, ends, ())
        return LogWindow(version=0)

    def _bytes(self, timeline: TimelineId, after: int, limit: int) -> Sequence[_rows.Row]:
        after, events = min(after, _rows.VERSION_MAX), list[tuple[int, bytes]]()
        last, size, step = after + limit, 0, min(limit, _rows.FIRST_ROWS)
        while step and size < _rows.PAGE_BYTES:  # the size of the next events is unknown
            begin = after + len(events)
            rows = self._rows(_rows.PAGE, [timeline, begin, begin + step, timeline, begin])
            if rows and rows[0][0] < 0:
                page = partial(archived_page, self._database, timeline, after, limit)
                return self._patience.repeated(page)
            size += sum(len(payload) for _, payload in rows)
            events += [(seq, d.encode() if isinstance(d, str) else d) for seq, d in rows]
            room = (_rows.PAGE_BYTES - size) * len(events) // max(size, 1)
            step = min(4 * step, last - after - len(events), room) if len(rows) == step else 0
        return _rows.without_gaps(timeline, after, events)

    def head(self, timeline_id: TimelineId) -> int:
        return next((head for (head,) in self._rows(_rows.HEAD, [timeline_id]) if head), 0)

    def tip(self, timeline_id: TimelineId) -> tuple[int, str]:
        rows = self._rows(_rows.TIP, [timeline_id])
        return (rows[0][0], _rows.text_in(rows[0][1])) if rows else (0, "")

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        stored = checked_events(target, [event], 0)
        _rows.checked_rows(stored)

        def copy(lost: int) -> bool:
            try:
                return fork(self._database, source, target, stored[0], at)
            except (TakenError, TimelineExistsError):
                if not lost or not self._is_there(target, at, stored):
                    raise TimelineExistsError(target, found=self.head(target)) from None
                return True

        self._settled(copy)
        self._watchers.grown(target)
        return at + 1

    def list(self) -> Sequence[TimelineInfo]:
        return [
            TimelineInfo(
                id=TimelineId(name),
                version=version,
                created_at=first or 0.0,
                updated_at=last or 0.0,
            )
            for name, version, first, last in self._rows(_rows.LIST)
        ]

    def _skimmed(
        self, timelines: Sequence[TimelineId], first: int, kinds: Kinds
    ) -> Iterator[tuple[TimelineId, Skim]]:
        self._refuse_if_not_ours()
        return _rows.skimmed(self._rows, timelines, first, kinds)

    def kept(self, timeline_id: TimelineId) -> Rest:
        if not is_sound(timeline_id):
            self._refuse_if_not_ours()
            return Rest()
        return self._query(lambda connection: trimmed_of(connection, TimelineId(timeline_id)).rest)

    def trimmed(self) -> Mapping[TimelineId, Rest]:
        return self._query(all_trimmed)

    def _changed(self, timeline: TimelineId, change: "Change") -> Removed:
        """If the connection breaks during the commit, the change is repeated; if it had succeeded, the repetition
        changes nothing, and the first result counts."""
        answers = list[Removed]()

        def noted(held: "HeldTimeline") -> Removed:
            answers.append(change(held))
            return answers[-1]

        def write(lost: int) -> Removed:
            try:
                changed(self._database, timeline, noted)
            except UnknownTimelineError:
                if not (lost and answers):
                    raise
            return answers[0 if lost else -1]

        self._refuse_if_not_ours()
        if not is_sound(timeline):
            raise UnknownTimelineError(timeline)
        return self._settled(write)

    def erase(self) -> tuple[str, ...]:
        self._refuse_if_not_ours()
        return self._database.erase()

    def _rows(self, statement: str, values: Sequence[object] = ()) -> Rows:
        if not all(is_sound(each) for each in values if isinstance(each, str)):
            self._refuse_if_not_ours()
            return []  # such a name names no timeline
        return self._query(lambda connection: connection.rows(statement, values))

    def _query(self, ask: Callable[[Connection], Answer]) -> Answer:
        """The result of `ask` with a connection, repeated while it fails in passing."""

        def once() -> Answer:
            with self._database.lent() as connection:
                return ask(connection)

        self._refuse_if_not_ours()
        return self._patience.repeated(once)

    def _settled(self, write: Callable[[int], Answer]) -> Answer:
        """The result of `write`, repeated until its outcome is known. It is given the number of earlier attempts that
        may have succeeded, because the connection broke.

        Raises:
            OutcomeUnknownError: the outcome stayed unknown.
        """
        lost = 0

        def once() -> Answer:
            nonlocal lost
            try:
                return write(lost)
            except LostError:
                lost += 1
                raise

        self._refuse_if_not_ours()
        try:
            return self._patience.repeated(once)
        except StoreError as error:
            if lost and isinstance(error.__cause__, PassingError):
                raise OutcomeUnknownError(str(error)) from error
            raise

    def altered(self, timeline_id: TimelineId, after: int, last: int) -> Sequence[int]:
        return self._query(lambda connection: [*altered(connection, timeline_id, after, last)])

    def chain(self, timeline_id: TimelineId, version: int) -> int | None:
        def chain(connection: Connection) -> int | None:
            rest = trimmed_of(connection, timeline_id).rest
            return chain_at(timeline_id, rest, version, row_of(connection, timeline_id))

        if not is_sound(timeline_id):
            self._refuse_if_not_ours()
            return None
        return self._query(chain)

    def _backend(self, clock: Callable[[], float]) -> "SQLBackend":
        from persistence.artifacts._sql import SQLBackend

        self._refuse_if_not_ours()
        refuse, patience = self._refuse_if_not_ours, self._patience
        return SQLBackend(self._database, patience, refuse, clock, lock=self._artifacts_lock)

    def block_index(self) -> SQLIndex:
        self._refuse_if_not_ours()
        return SQLIndex(self._rows, self._database.dialect)

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        from persistence.sql._verify import verify_tables

        return verify_tables(self._database, self._backend(time.time), keys)

    def close(self) -> None:
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._dropped.detach()
        self._watchers.closed()
        self._database.close()


def _release(database: Database, watchers: Watchers, pid: int) -> None:
    """Close the database of a store that was dropped without `close`, and warn."""
    if os.getpid() == pid:
        watchers.closed()
        database.close()
        warn(f"unclosed store {database.name}; call close()", ResourceWarning, stacklevel=1)
