"""The embedded store: one DuckDB file, one process, many threads."""

import glob
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final
from warnings import warn
from weakref import finalize

import attrs

from blocks import (
    DamagedStoreError,
    Event,
    ForgottenError,
    LogWindow,
    StoreError,
    TimelineId,
    VersionConflictError,
)
from persistence._file import (
    FileLocation,
    copied,
    copy_of_a_moment,
    database_path,
    identity,
    path_in,
    remove_unfinished,
    system_errors,
)
from persistence._log import (
    Attempts,
    Removed,
    Rest,
    StoredEvent,
    TimelineInfo,
    Watchers,
    checked_events,
    checked_fork,
    checked_fork_window,
    timeline_infos,
)
from persistence._store import EventStore, Kinds, Skim, StoreReport
from persistence.duckdb._dialect import DuckDBIndex
from persistence.duckdb._file import (
    FileLock,
    Marks,
    connect,
    cursor_of,
    errors,
    held_in,
    interrupts,
    log_path,
    loss,
    open_database,
    refuse_if_ours,
    write_anew,
)
from persistence.duckdb._reader import Reader
from persistence.duckdb._retention import FileTimeline
from persistence.duckdb._tables import NEW_FOLD, TRIMMED_NAMES, all_rests
from persistence.duckdb._writer import (
    Append,
    CursorPool,
    GroupCommit,
    Heads,
    StoredTimeline,
    Writer,
    all_heads,
)
from persistence.sql._store import RelationalStore

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from persistence._archive import Change
    from persistence.artifacts import KeyRing
    from persistence.artifacts._duckdb import DuckDBBackend


class DuckDBStore(RelationalStore):
    """Timelines in the file `path`, which only this process may have open until `close`.  Its methods raise the errors
    of `EventStore`.

    Raises:
        StoreLockedError: another process, or another store of this process, has the file open.
        DamagedStoreError: the file is damaged, or lacks acknowledged events.
        MisuseError: there is no such folder, or the file is not a store.
    """

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path = self._place = database_path(path)
        self._pid = os.getpid()
        self._closed = False
        self._artifacts: DuckDBBackend | None = None
        self._artifacts_lock = Lock()
        self._removing = Lock()  # held while events are removed
        self._watchers = Watchers()
        self._attempts = Attempts()
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
        remove_unfinished(self.path)
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
            self._cache = Cache(
                self._connection, self._group, self._cursors, self._writer, self.path
            )
            self._reader = Reader(self.path, self._writer, self._cursors, self._cache.passed)
            undo.pop_all()

    def _refuse_a_lost_tail(self) -> None:
        """Refuse a file that lacks acknowledged events: new events would get the versions of the lost ones."""
        acknowledged = self._lock.acknowledged
        with errors(self.path), cursor_of(self._connection) as cursor:
            held = held_in(cursor)
            what = loss(cursor, held, acknowledged)
        if what:
            raise DamagedStoreError(
                f"{self.path} has {what}: restore {self.path.name}.wal or the file, or let"
                " `foldline repair` save what is there into a new store"
            )
        self._lock.note(events=held.events, records=held.records)

    def _append(self, timeline: TimelineId, stored: list[StoredEvent], expected: int) -> int:
        append = Append(timeline=timeline, expected=expected, events=stored)
        self._refuse_if_not_ours()
        self._group.submit(append)
        self._cache.written(sum(len(event.data) for event in stored))
        if append.committed or self._is_there(append):
            self._watchers.grown(timeline)
            return expected + len(stored)
        raise append.error or VersionConflictError(expected=expected, found=append.current)

    def _is_there(self, append: Append) -> bool:
        """Whether exactly these events are already stored at these versions: the append is a repetition, or an error
        occurred only after its commit."""
        if append.error and (self._closed or self._writer.is_suspect):
            return False
        ids = [event.id for event in append.events]
        first, last = append.expected + 1, append.expected + len(ids)
        timeline = self._timeline(append.timeline)
        return last <= timeline.head.version and self._reader.ids(timeline, first, last) == ids

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        self._refuse_if_not_ours()
        timeline = self._reader.chained(timeline_id)
        head = timeline.head
        try:
            return head.window(self._reader.events(timeline, head.window_start(), head.version))
        except ForgottenError:
            if self._timeline(timeline_id).head == head:
                raise
            return self.load_window(timeline_id)  # a compaction has moved the window meanwhile

    def _bytes(self, timeline: TimelineId, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        stored = self._timeline(timeline)
        page = self._reader.page(stored, after, min(after + limit, stored.head.version))
        return [(seq, payload.encode()) for seq, payload in page]

    def head(self, timeline_id: TimelineId) -> int:
        return self._timeline(timeline_id).head.version

    def tip(self, timeline_id: TimelineId) -> tuple[int, str]:
        timeline = self._timeline(timeline_id)
        version, last = timeline.head.version, timeline.head.last
        if version and not last:  # not appended by this store
            [last] = self._reader.ids(timeline, version, version)
        return version, last

    def _timeline(self, timeline_id: TimelineId) -> StoredTimeline:
        self._refuse_if_not_ours()
        return self._writer.heads.held(timeline_id) or self._reader.timeline(timeline_id)

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        append = Append(timeline=target, expected=0, events=checked_events(target, [event], 0))
        self._refuse_if_not_ours()
        with self._group.alone():
            self._refuse_if_not_ours()
            head = checked_fork(source, target, at, lambda name: self._timeline(name).head)
            checked_fork_window(source, at, head, self.kept(source))
            self._writer.fork(source, at, append)
        if append.error:
            raise append.error
        self._watchers.grown(target)
        return at + 1

    def list(self) -> Sequence[TimelineInfo]:
        with self._reading() as cursor:
            return timeline_infos(all_heads(cursor))

    def _skimmed(
        self, timelines: Sequence[TimelineId], first: int, kinds: Kinds
    ) -> Iterator[tuple[TimelineId, Skim]]:
        self._refuse_if_not_ours()
        return self._reader.skimmed(timelines, first, kinds)

    def kept(self, timeline_id: TimelineId) -> Rest:
        return self._reader.rest(self._timeline(timeline_id))

    def trimmed(self) -> Mapping[TimelineId, Rest]:
        with self._reading() as cursor:
            rests, names = all_rests(cursor), cursor.execute(TRIMMED_NAMES).fetchall()
        return {TimelineId(name): rests[number] for number, name in names if number in rests}

    def _changed(self, timeline: TimelineId, change: "Change") -> Removed:
        self._refuse_if_not_ours()
        with self._removing:
            return change(FileTimeline.of(self._writer, self._reader, self._group.alone, timeline))

    def chain(self, timeline_id: TimelineId, version: int) -> int | None:
        return self._reader.chain(self._timeline(timeline_id), version)

    def erase(self) -> tuple[str, ...]:

        def write() -> None:
            with self._writer.changing():
                try:
                    write_anew(self._connection, self.path)
                finally:
                    self._writer.moved()

        self._refuse_if_not_ours()
        with self._removing, self._group.alone():
            if not self._cursors.alone(write, waits=True):
                raise StoreError(
                    f"{self.path} is being read; repeat the call when all reads have ended"
                )
        return ()

    @contextmanager
    def inspect(self) -> "Generator[tuple[DuckDBPyConnection, Marks | None]]":
        """A cursor to read the tables with, and the numbers acknowledged before."""
        self._refuse_if_not_ours()
        acknowledged = self._lock.acknowledged
        with self._reading() as cursor:
            yield cursor, acknowledged
        self._cache.passed()

    def _backend(self, clock: Callable[[], float]) -> "DuckDBBackend":
        del clock
        from persistence.artifacts._duckdb import DuckDBBackend

        self._refuse_if_not_ours()
        with self._artifacts_lock:
            if self._artifacts is None:
                backend = DuckDBBackend(
                    self._reading, self._writing, lambda records: self._lock.note(records=records)
                )
                backend.prepare()
                self._artifacts = backend
        return self._artifacts

    def block_index(self) -> DuckDBIndex:
        return DuckDBIndex(self.inspect)

    def is_at(self, path: Path) -> bool:
        """Whether this store is open and has the file at this path, whatever its name was when it was opened."""
        file = identity(path)
        return not self._closed and file is not None and self._lock.is_of(file)

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
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
        self._cache.written(LARGE)

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
        super()._refuse_if_not_ours()
        if self._writer.is_suspect:
            with self._group.alone_at_once() as is_alone:
                if is_alone:
                    self._writer.refresh()


# DuckDB would cache blocks of the file until they fill most of the machine's memory.  A permanent `memory_limit` is no
# solution: if a checkpoint does not get enough memory, the database is unusable until it is opened again.  So the limit
# is lowered only for a moment in which nothing is read or written.

ENOUGH: Final = 4_000_000
"""Bytes read or written after which the database's cache is emptied."""
LOW: Final = "SET GLOBAL memory_limit = '8MB'"
AGAIN: Final = "RESET GLOBAL memory_limit"
LARGE: Final = 256_000
"""Bytes of an append after which the size of the write-ahead log is checked."""
LOG_BYTES_MAX: Final = 8_000_000
"""Bytes of a write-ahead log that is then folded at once; otherwise the writer does so at twice this size, in a commit for
which all other appends wait."""


@attrs.define(eq=False)
class Cache:
    """Counts the bytes read and written, and empties the database's cache. Without a lock: rough counts suffice."""

    _connection: "DuckDBPyConnection"
    _group: GroupCommit[Append]
    _cursors: CursorPool
    _writer: Writer
    _path: Path
    _passed: int = attrs.field(default=0, init=False)

    def passed(self, size: int = ENOUGH) -> None:
        """Count `size` bytes read or written, of an unknown size as many as are enough; the caller must not hold a cursor
        or be committing."""
        self._passed += size
        if self._passed < ENOUGH:
            return
        with self._group.alone_at_once() as is_alone:
            if is_alone and self._cursors.alone(self._drop, waits=False):
                self._passed = 0

    def written(self, size: int) -> None:
        """Count an append of `size` bytes. If a large one leaves a long write-ahead log, checkpoint it now, so that
        later small appends do not have to wait for that."""
        if size >= LARGE and self._log_bytes() >= LOG_BYTES_MAX:
            with self._group.alone_at_once() as is_alone:
                if is_alone:
                    self._writer.fold()
        self.passed(size)

    def _log_bytes(self) -> int:
        try:
            return log_path(self._path).stat().st_size
        except OSError:  # there is no log
            return 0

    @interrupts()
    def _drop(self) -> None:
        import duckdb

        try:
            with suppress(duckdb.OutOfMemoryException):  # DuckDB has released what it could
                self._connection.execute(LOW)
        finally:
            self._connection.execute(AGAIN)


def _release(path: Path, pid: int, parts: Sequence[Callable[[], None]], lock: FileLock) -> None:
    """Release the file of a store that was dropped without `close`; its write-ahead log stays as it is."""
    if os.getpid() != pid:
        return
    with ExitStack() as last:
        last.callback(warn, f"unclosed store {path}; call close()", ResourceWarning)
        last.callback(lock.release)
        for part in reversed(parts):
            last.callback(part)


@attrs.frozen
class DuckDBLocation(FileLocation):
    """A DuckDB file, with its write-ahead log and its lock file."""

    opens_once = True

    def open(self) -> DuckDBStore:
        return DuckDBStore(self.path)

    def is_open_as(self, store: EventStore) -> bool:
        return isinstance(store, DuckDBStore) and store.is_at(self.path)

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        from persistence.duckdb._verify import verify_file

        return verify_file(database_path(self.path), keys)

    def readable_copy(self, folder: Path) -> "tuple[DuckDBLocation, str]":
        """Leaves out the unreadable part of the write-ahead log.  Where it cannot be locked, as on read-only media, the copy
        is that of a moment."""
        path = database_path(self.path)
        copy, can_lock = folder / path.name, self.is_writable()
        lock = FileLock.acquire(path if can_lock else self.moment(folder).path)
        try:
            if can_lock:
                with system_errors(path):
                    copied(path, ("", ".wal"), folder)
            acknowledged = lock.acknowledged
        finally:
            lock.abandon()
        cut, missing = _cut(copy, acknowledged)
        parts = (cut, missing and f"the copy holds {missing}")
        return DuckDBLocation(copy), "; ".join(filter(None, parts))

    def moment(self, folder: Path) -> "DuckDBLocation":
        path = database_path(self.path)
        refuse_if_ours(path)
        # In this order, so that the copied log has all events that the copied lock file counts as acknowledged, and
        # the copied database has all that the copied log refers to.
        copy = copy_of_a_moment(path, (".lock", ".wal", ""), folder, _folded)
        return DuckDBLocation(copy)

    def remove(self) -> None:
        for ending in ("", ".wal", ".lock"):
            path = self.path.with_name(self.path.name + ending)
            if path.exists():  # its folder may be none
                path.unlink()


HEADERS: Final = 3 * 4096
"""Bytes at the start of a DuckDB file that contain its headers; these say which blocks are in use."""


def _folded(path: Path) -> tuple[bytes, list[str]]:
    """The headers, which a checkpoint writes last; and the names of logs that exist only during a checkpoint."""
    with path.open("rb") as file:
        start = file.read(HEADERS)
    others = path.parent.glob(f"{glob.escape(path.name)}.*wal*")
    return start, sorted(other.name for other in others if other.name != f"{path.name}.wal")


def locate(where: "str | os.PathLike[str]") -> DuckDBLocation:
    """The location of a path or of a `duckdb://` URL.

    Raises:
        MisuseError: it names no path.
    """
    return DuckDBLocation(path_in(where, "duckdb"))


_POSITION: Final = re.compile(r"byte position (\d+)")


def _cut(copy: Path, acknowledged: Marks | None) -> tuple[str, str]:
    """Truncate the write-ahead log of the copy if the copy cannot be opened otherwise; return what was cut off, and what
    else is missing."""
    wal = log_path(copy)
    try:
        return "", _accepted(copy, acknowledged)
    except DamagedStoreError as damage:
        size = wal.stat().st_size if wal.exists() else 0
        position = _POSITION.search(str(damage))
        keep = int(position[1]) if position else 0
        if f"{wal.name} is damaged" not in str(damage) or keep >= size:
            raise
    if keep:
        os.truncate(wal, keep)
    else:
        wal.unlink()
    cut = f"{size - keep} of {size} bytes of {wal.name} cannot be read"
    return cut, _accepted(copy, acknowledged)


def _accepted(copy: Path, acknowledged: Marks | None) -> str:
    """Let a copy be opened although something is missing; return what is."""
    connection = connect(copy)
    try:
        with errors(copy), cursor_of(connection) as cursor:
            missing = loss(cursor, held_in(cursor), acknowledged)
            for statement in NEW_FOLD:
                cursor.execute(statement)
            return missing
    finally:
        connection.close()
