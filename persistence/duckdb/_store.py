"""The embedded store: one DuckDB file, one process, many threads."""

import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from warnings import warn
from weakref import finalize

from blocks import (
    ClosedError,
    DamagedStoreError,
    Event,
    ForgottenError,
    LogWindow,
    Recorded,
    TimelineId,
    VersionConflictError,
)
from persistence._file import database_path
from persistence._log import (
    Head,
    TimelineInfo,
    checked_bytes,
    checked_events,
    checked_fork,
    checked_page,
    timeline_infos,
)
from persistence._retention import checked_kept_fork
from persistence._store import EventStore, Skim, StoreReport, Watchers
from persistence.duckdb._append import Append
from persistence.duckdb._cursors import CursorPool
from persistence.duckdb._file_lock import FileLock, Marks, lock_path, lost
from persistence.duckdb._group_commit import GroupCommit
from persistence.duckdb._heads import Heads, Known, all_heads
from persistence.duckdb._index import DuckDBIndex
from persistence.duckdb._memory_release import Cache
from persistence.duckdb._reader import Reader
from persistence.duckdb._retaining_store import RetainingStore
from persistence.duckdb._retention import Retention
from persistence.duckdb._schema import audit_records, cursor_of, errors, open_database
from persistence.duckdb._skim import Skimmer
from persistence.duckdb._writer import Writer

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from persistence.artifacts import Artifacts, DuckDBBackend, KeyRing


class DuckDBStore(RetainingStore, EventStore):
    """Timelines in the file `path`, which only this process may have open until `close`.  Its methods raise the errors
    of `EventStore`.

    Raises:
        StoreLockedError: another process, or another store of this process, has the file open.
        DamagedStoreError: the file is damaged, or lacks acknowledged events.
        MisuseError: there is no such folder, or the file is not a store.
    """

    can_remove = keeps_artifacts = True

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path = database_path(path)
        self._pid = os.getpid()
        self._closed = False
        self._backend: DuckDBBackend | None = None
        self._shelf_lock = Lock()
        self._watchers = Watchers()
        self._lock = FileLock.acquire(self.path)
        try:
            self._open()
        except BaseException:
            self._lock.abandon()
            raise
        parts = (self._writer.abandon, self._cursors.abandon, self._connection.close)
        self._dropped = finalize(self, _release, self.path, self._pid, parts, self._lock)
        # At exit, the system releases the file; its log stays complete.
        self._dropped.atexit = False

    def _open(self) -> None:
        is_new = not self.path.exists()
        with ExitStack() as undo:
            self._connection = open_database(self.path)
            undo.callback(self._connection.close)
            self._lock.holds()
            if is_new:
                self._lock.note(events=0, records=0)
            self._cursors = CursorPool(self._connection)
            with errors(self.path):
                heads = Heads(self._cursors)
                self._writer = Writer(self._connection, self.path, self._lock, heads)
            self._refuse_a_lost_tail()
            self._group = GroupCommit(self._writer.commit)
            self._cache = Cache(self._connection, self._group, self._cursors, self.path)
            self._reader = Reader(self.path, self._writer, self._cursors, self._cache)
            self._retention = Retention(
                self._writer, self._reader, self._cursors, self._group.alone
            )
            undo.pop_all()

    def _refuse_a_lost_tail(self) -> None:
        """Refuse a file that lacks acknowledged events: new events would get the versions of the lost ones."""
        acknowledged = self._lock.acknowledged()
        with errors(self.path), cursor_of(self._connection) as cursor:
            held = Marks(self._writer.events_total, audit_records(cursor))
        if what := lost(held, acknowledged):
            raise DamagedStoreError(
                f"{self.path} holds {what}: put {self.path.name}.wal back, or restore the file, or"
                f" delete {lock_path(self.path).name} to accept the loss"
            )
        self._lock.note(events=held.events, records=held.records)

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        stored = checked_events(timeline_id, events, expected_version)
        return self._append(Append(timeline=timeline_id, expected=expected_version, events=stored))

    def append_bytes(
        self, timeline_id: TimelineId, events: Sequence[bytes], *, expected_version: int
    ) -> int:
        stored = checked_bytes(timeline_id, events, expected_version)
        return self._append(Append(timeline=timeline_id, expected=expected_version, events=stored))

    def _append(self, append: Append) -> int:
        self._refuse_if_not_ours()
        self._group.submit(append)
        self._cache.written(sum(len(event.data) for event in append.events))
        if append.committed or self._is_there(append):
            self._watchers.grown(append.timeline)
            return append.expected + len(append.events)
        raise append.error or VersionConflictError(expected=append.expected, found=append.found)

    def _is_there(self, append: Append) -> bool:
        """Whether exactly these events are already stored at these versions: the append is a repetition, or an error
        occurred only after its commit."""
        if append.error and (self._closed or self._writer.is_suspect):
            return False
        ids = [event.id for event in append.events]
        first, last = append.expected + 1, append.expected + len(ids)
        known = self._known(append.timeline)
        return last <= known.head.version and self._reader.ids(known, first, last) == ids

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        known = self._known(timeline_id)
        head = known.head
        try:
            return head.window(self._reader.events(known, head.window_start(), head.version))
        except ForgottenError:
            if self._known(timeline_id) == known:
                raise
            return self.load_window(timeline_id)  # a compaction has moved the window meanwhile

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        checked_page(after, limit)
        known = self._known(timeline_id)
        return self._reader.page(known, after, min(after + limit, known.head.version))

    def read_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[tuple[int, bytes]]:
        checked_page(after, limit)
        known = self._known(timeline_id)
        rows = self._reader.rows(known, after, min(after + limit, known.head.version))
        return [(seq, data.encode()) for seq, data in rows]

    def head(self, timeline_id: TimelineId) -> int:
        return self._head(timeline_id).version

    def _head(self, timeline_id: TimelineId) -> Head:
        return self._known(timeline_id).head

    def _known(self, timeline_id: TimelineId) -> Known:
        self._refuse_if_not_ours()
        return self._reader.known(timeline_id)

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        append = Append(timeline=target, expected=0, events=checked_events(target, [event], 0))
        self._refuse_if_not_ours()
        with self._group.alone():
            self._refuse_if_not_ours()
            head = checked_fork(source, target, at, self._head)
            checked_kept_fork(source, at, head, self._retention.kept(source))
            self._writer.fork(source, at, append)
        if append.error:
            raise append.error
        self._watchers.grown(target)
        return at + 1

    def list(self) -> Sequence[TimelineInfo]:
        with self._reading() as cursor:
            return timeline_infos(all_heads(cursor))

    def skim(
        self, timelines: Sequence[TimelineId], first: int, kinds: Collection[str]
    ) -> Iterator[tuple[TimelineId, Skim]]:
        trimmed = self.trimmed()
        whole = Skimmer(self._reader, first, kinds).skimmed(
            [n for n in timelines if n not in trimmed]
        )
        return chain(whole, super().skim([n for n in timelines if n in trimmed], first, kinds))

    def watch(self, timeline_id: TimelineId, wake: Callable[[], None]) -> Callable[[], None]:
        return self._watchers.add(timeline_id, wake)

    @contextmanager
    def inspect(self) -> "Generator[tuple[DuckDBPyConnection, Marks]]":
        """A cursor to read the tables with, and the numbers acknowledged before."""
        self._refuse_if_not_ours()
        acknowledged = self._lock.acknowledged()
        with self._reading() as cursor:
            yield cursor, acknowledged
        self._cache.passed()

    def artifacts(
        self,
        *,
        keys: "KeyRing | None" = None,
        clock: Callable[[], float] = time.time,
        random: Callable[[int], bytes] = os.urandom,
    ) -> "Artifacts":
        """The artifacts in this file; creates their tables if the file has none."""
        from persistence.artifacts import Artifacts, DuckDBBackend

        self._refuse_if_not_ours()
        with self._shelf_lock:
            self._backend = self._backend or DuckDBBackend(
                self._reading, self._writing, self._lock.note_records
            )
        return Artifacts(self._backend, keys=keys, clock=clock, random=random)

    def block_index(self) -> DuckDBIndex:
        """The index for search; see `persistence.BlockIndex`."""
        return DuckDBIndex(self.inspect)

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        """Read everything, and report what is damaged or inconsistent; see `persistence.verify`."""
        from persistence.duckdb._verify import verify_tables

        with self.inspect() as (cursor, acknowledged):
            return verify_tables(cursor, self.path, acknowledged, keys)

    @contextmanager
    def _reading(self) -> "Generator[DuckDBPyConnection]":
        self._refuse_if_not_ours()
        with self._reader.cursor() as cursor:
            yield cursor

    @contextmanager
    def _writing(self) -> "Generator[DuckDBPyConnection]":
        """A cursor to write artifacts with; nothing is appended meanwhile."""
        self._refuse_if_not_ours()
        with self._group.alone(), self._reading() as cursor:
            self._writer.make_log()
            yield cursor
        self._cache.passed()

    def close(self) -> None:
        if self._closed or os.getpid() != self._pid:
            return
        with self._group.alone():
            if self._closed:
                return
            self._closed = True
            self._dropped.detach()
            with ExitStack() as last:  # later steps run even if an earlier one is interrupted
                last.callback(self._lock.release)
                last.callback(self._connection.close)
                last.callback(self._writer.close)
                self._cursors.close()
        self._watchers.closed()

    def _refuse_if_not_ours(self) -> None:
        if os.getpid() != self._pid:
            raise ClosedError(
                f"{self.path} was opened by process {self._pid} and this is a child forked from"
                " it; open stores after the fork, and only one process a file"
            )
        if self._closed:
            raise ClosedError(f"{self.path} is closed; open the store again")
        if self._writer.is_suspect:
            with self._group.alone_at_once() as is_alone:
                if is_alone:
                    self._writer.refresh()


def _release(path: Path, pid: int, parts: Sequence[Callable[[], None]], lock: FileLock) -> None:
    """Release the file of a store that was dropped without `close`; its write-ahead log stays as it is."""
    if os.getpid() != pid:
        return
    with ExitStack() as last:
        last.callback(warn, f"unclosed store {path}; call close()", ResourceWarning)
        last.callback(lock.release)
        for part in reversed(parts):
            last.callback(part)
