"""A DuckDB file: how it is created, opened, recognised and replaced, and the lock on it.

The database locks its file too, but its message cannot say what to do, and its kind of lock is
lost if the same process opens and closes the file again.  Ours is an `flock` on `<file>.lock`,
which stays there. It stores the *high-water marks*, the numbers of events and of artifact records
acknowledged so far.  A log that lost its tail (a deleted write-ahead log, an older copy) is recognized because it
has fewer.  Within a process, a file is identified by its device and inode, whatever its name is;
between processes, the database's own lock stops access through a hard link.
"""

import fcntl
import gc
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import attrs

from blocks import DamagedStoreError, FoldlineError, MisuseError, StoreError, StoreLockedError
from persistence._file import (
    OPEN_AS,
    OWNER_ONLY,
    create_beside,
    identity,
    kind_in,
    permissions,
    private_folder,
    refuse_unfolded_log,
    sync_folder,
    system_errors,
)
from persistence.duckdb._dialect import CURRENT, MARK, VIEWS
from persistence.duckdb._tables import COUNT, FOLD, FORMAT, TABLES, removed_events

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

OPTIONS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # faster for one-row commits; windows are small
    "storage_compatibility_version": "v1.5.0",  # versions 1.5 and 2.0 read each other's files
    "default_block_size": 65536,  # a short conversation fits a small file
    "checkpoint_threshold": "1TB",  # `Writer.fold` does it
    "temp_directory": "",  # never spill rows that are not yet in the file to disk, see `Cache`
    # Release the memory of large events; the defaults release only what exceeds 128 MB and 512 MB.
    "allocator_flush_threshold": "4MB",
    "allocator_bulk_deallocation_flush_threshold": "4MB",
}


ROWS_AT_ONCE = 2048
"""Rows in a row group. A checkpoint rewrites the last row group; with DuckDB's default of 122,880 rows that would
be up to 490 MB of pieces. Only an attached database can have another size."""
STORE = "foldline_store"
AUDIT = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'artifact_audit'"


def open_database(path: Path) -> "DuckDBPyConnection":
    """Open the database at `path`; create it if it does not exist."""
    if not path.exists():
        _create(path)
    connection = connect(path)  # each user of it has its own cursor
    # Otherwise a forked child would write to the file of its parent when it exits; `Writer.close` checkpoints.
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")
    with errors(path):
        try:
            with cursor_of(connection) as cursor:
                _renew_views(cursor, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _renew_views(cursor: "DuckDBPyConnection", path: Path) -> None:
    """Create the views of this version, if the file has those of another."""
    if cursor.execute(CURRENT).fetchall() == [(MARK,)]:
        return
    create_beside(log_path(path), path)
    for statement in ("BEGIN", *VIEWS, "COMMIT", "CHECKPOINT"):
        cursor.execute(statement)


def _create(path: Path) -> None:
    """Create the file under another name and rename it at the end, so that an incomplete file is never opened."""
    import duckdb

    if (wal := log_path(path)).exists():
        raise DamagedStoreError(
            f"{wal} exists, but {path.name} does not; restore {path.name}, or move {wal.name} away"
        )
    with system_errors(path), private_folder(path) as folder:
        new = folder / path.name
        with errors(path), duckdb.connect(str(new), config=OPTIONS) as connection:
            for statement in (*TABLES, *VIEWS):
                connection.execute(statement)
            connection.execute("INSERT INTO foldline VALUES (?)", [FORMAT])
            connection.execute("CHECKPOINT")
        new.chmod(OWNER_ONLY)
        new.replace(path)
        sync_folder(path.parent)


def log_path(path: Path) -> Path:
    """The write-ahead log of a database file."""
    return path.with_name(f"{path.name}.wal")


def check_magic(path: Path) -> None:
    """Check that a file is a DuckDB database.

    Raises:
        MisuseError: it is not one.
        StoreError: the operating system denies reading.
    """
    kind = kind_in(path)
    if kind == "sqlite":
        raise MisuseError(f"{path} is an SQLite database; write sqlite:///{path}")
    if not kind:
        with system_errors(path), path.open("rb") as file:
            what = "is not a DuckDB database" if file.read(1) else "is empty, not a DuckDB database"
        raise MisuseError(f"{path} {what}; choose another file")


def connect(path: Path, access_mode: str = "READ_WRITE") -> "DuckDBPyConnection":
    """A connection to an existing store; only one process may have it open, see `FileLock`."""
    import duckdb

    check_magic(path)
    with errors(path):
        connection = duckdb.connect(config=OPTIONS)
        try:
            connection.execute(_attach(path, access_mode))
            refuse_unfolded_log(path)
            with cursor_of(connection) as cursor:
                _check_format(cursor, path)
        except BaseException:
            connection.close()
            raise
        return connection


def reattach(connection: "DuckDBPyConnection", path: Path) -> None:
    """Attach the database anew after a fatal error; cursors of the connection stay usable."""
    connection.execute(f"DETACH DATABASE IF EXISTS {STORE}")
    connection.execute(_attach(path))


def cursor_of(connection: "DuckDBPyConnection") -> "DuckDBPyConnection":
    """A new cursor of a connection that uses the tables of the store."""
    cursor = connection.cursor()
    cursor.execute(f"USE {STORE}")
    return cursor


def _attach(path: Path, access_mode: str = "READ_WRITE", alias: str = STORE) -> str:
    name = str(path).replace("'", "''")
    return f"ATTACH '{name}' AS {alias} ({access_mode}, ROW_GROUP_SIZE {ROWS_AT_ONCE})"


def _check_format(cursor: "DuckDBPyConnection", path: Path) -> None:
    import duckdb

    try:
        number = cursor.execute("SELECT max(format) FROM foldline").fetchall()[0][0]
    except duckdb.CatalogException as error:
        raise MisuseError(
            f"{path} is a database of another application; choose another file"
        ) from error
    if number is None:
        raise DamagedStoreError(f"{path} has no format number; restore it from a backup")
    if number != FORMAT:
        raise StoreError(
            f"{path} has format {number}, this version reads {FORMAT}; open it with the version of"
            " foldline that wrote it"
        )


@contextmanager
def errors(path: Path) -> Generator[None]:
    """Raise our errors instead of the database's."""
    import duckdb

    try:
        with interrupts():
            yield
    except duckdb.Error as error:
        raise translated(error, path) from error


@contextmanager
def interrupts() -> Generator[None]:
    """Raise `KeyboardInterrupt` for an interrupt (Ctrl-C) during a query, which DuckDB reports as a `RuntimeError`."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise


def translated(error: Exception, path: Path) -> FoldlineError:
    """Our error for one of the database's. Only the first line is quoted: the rest may contain stored content."""
    text = str(error).partition("\n")[0][:300]
    if "Could not set lock" in text:
        holder = text.partition("held in ")[2].partition(". See also")[0]
        return locked_by(path, holder or "another process")
    if "Could not write file" in text:
        return StoreError(
            f"{path} could not be written ({text}); free disk space and repeat the call: no"
            " acknowledged event is lost"
        )
    if "replaying WAL" in text or ("WAL" in text and "Corrupt" in text):
        return DamagedStoreError(f"{path}.wal is damaged ({text}); {_rescue(path, text)}")
    if any(
        sign in text for sign in ("Corrupt", "not a valid DuckDB", "enough bytes", "deserialize")
    ):
        return DamagedStoreError(
            f"{path} is damaged ({text}); restore it from a backup, together with"
            f" {path.name}.wal and {path.name}.lock if the backup has them"
        )
    if text.startswith(("Catalog Error", "Binder Error")):
        return DamagedStoreError(
            f"{path} lacks tables or columns of a store ({text}); restore it from a backup"
        )
    return StoreError(f"{path}: {text}; repeat the call")


def _rescue(path: Path, text: str) -> str:
    """What to do to save the events before the damage, without changing the damaged files."""
    if "byte position" in text:
        return (
            "`foldline repair` saves the events before the damage into a new store; by hand: copy"
            f" {path.name} and {path.name}.wal into another folder, truncate the .wal there at the byte"
            " position named, and open that copy"
        )
    return (
        f"restore it from a backup, or let `foldline repair` save {path.name} without it into a new"
        " store, which then lacks only the newest events"
    )


_FRESH: Final = "foldline_fresh"


def write_anew(connection: "DuckDBPyConnection", path: Path) -> None:
    """Replace the database file by a compacted copy, so that no removed data is left in it; the caller ensures that no
    cursor is in use.  If the process is killed meanwhile, either the old or the new file is there, complete.

    Raises:
        StoreError: the write-ahead log could not be checkpointed, or the operating system denies writing.
    """
    wal = log_path(path)
    with system_errors(path), private_folder(path) as folder:
        fresh = folder / path.name
        connection.execute(f"CHECKPOINT {STORE}")
        if wal.exists() and wal.stat().st_size:  # the database would replay it into the copy
            raise StoreError(f"{wal} could not be checkpointed into {path.name}; repeat the call")
        try:
            _copy(connection, fresh)
            fresh.chmod(permissions(path))
            connection.execute(f"DETACH {STORE}")
            fresh.replace(path)
            sync_folder(path.parent)
        finally:
            reattach(connection, path)


def _copy(connection: "DuckDBPyConnection", fresh: Path) -> None:
    connection.execute(_attach(fresh, alias=_FRESH))
    try:
        connection.execute(f"COPY FROM DATABASE {STORE} TO {_FRESH}")
        connection.execute(f"CHECKPOINT {_FRESH}")
    finally:
        connection.execute(f"DETACH {_FRESH}")
    with fresh.open("rb") as file:
        os.fsync(file.fileno())


RECORD = "pid {:>10}\nevents {:>20}\nrecords {:>20}\n"
"""The content of a lock file. Its length is fixed, so that one write replaces all of it."""


@attrs.frozen
class Marks:
    """How many events and artifact records were acknowledged, so that the file must have them; 0: unknown.

    Both are in the lock file; the events also in the file itself, as of the last time the log was folded into it.
    """

    events: int = 0
    records: int = 0
    """Records in the audit of artifacts. Every put adds one, and none is ever removed."""


def held_in(cursor: "DuckDBPyConnection") -> Marks:
    """How many there are."""
    [(events,)] = cursor.execute(COUNT).fetchall()
    records = 0
    if cursor.execute(AUDIT).fetchall() != [(0,)]:  # else nobody has put an artifact yet
        [(records,)] = cursor.execute("SELECT count(*) FROM artifact_audit").fetchall()
    return Marks(events + removed_events(cursor), records)


def loss(cursor: "DuckDBPyConnection", held: Marks, acknowledged: Marks | None) -> str:
    """What is missing of an open file, in words; empty if nothing is. Without a lock file, `acknowledged` is None."""
    rows = cursor.execute(FOLD).fetchall()
    if len(rows) != 1:
        return f"{len(rows)} rows in table fold, and should have 1"
    [(events, _, is_whole)] = rows
    if not is_whole and (acknowledged is None or acknowledged.events < events):
        return "no write-ahead log, although there was one beside it"
    acknowledged = acknowledged or Marks()
    acknowledged = attrs.evolve(acknowledged, events=max(events, acknowledged.events))
    for what, here, due in (
        ("events", held.events, acknowledged.events),
        ("artifact records", held.records, acknowledged.records),
    ):
        if here < due:
            return f"{here} {what} but {due} were acknowledged"
    return ""


@attrs.define(eq=False)
class FileLock:
    """The lock on a database file; one process holds it from `acquire` to `release`."""

    database: Path
    path: Path
    _file: FileIO
    _is_new: bool
    acknowledged: Marks | None
    """The acknowledged numbers; None: there was no lock file, and nothing was noted since."""
    _identity: tuple[int, int] | None = attrs.field(default=None, init=False)

    @classmethod
    def acquire(cls, database: Path) -> "FileLock":
        """
        Raises:
            StoreLockedError: another process, or another store of this process, holds it.
            StoreError: the operating system denies locking.
        """
        try:
            return cls._take(database)
        except StoreLockedError:
            if not _held:
                raise
        gc.collect()  # the lock may belong to a dropped store that was not yet collected
        return cls._take(database)

    @classmethod
    def _take(cls, database: Path) -> "FileLock":
        with _registry:
            refuse_if_ours(database)
            lock = cls._locked(database)
            try:
                _held.add(lock)
                lock.holds()
                lock.note()  # write our process id into the lock file
            except BaseException:
                lock.release()
                raise
            return lock

    @classmethod
    def _locked(cls, database: Path) -> "FileLock":
        path = lock_path(database)
        while True:
            is_new = not path.exists()
            with system_errors(path), ExitStack() as undo:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                file = FileIO(os.open(path, flags, permissions(database)), "r+b")
                undo.callback(file.close)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise _locked(database) from error
                status = os.fstat(file.fileno())
                if identity(path) == (status.st_dev, status.st_ino):  # else its holder removed it
                    text = os.pread(file.fileno(), 1000, 0).decode("ascii", errors="replace")
                    marks = Marks(_field(text, "events"), _field(text, "records"))
                    lock = cls(database, path, file, is_new, None if is_new else marks)
                    undo.pop_all()
                    return lock

    def holds(self) -> None:
        """Remember the identity of the database file; call this again after the file was created or replaced."""
        self._identity = identity(self.database)

    def is_of(self, file: tuple[int, int]) -> bool:
        """Whether this lock belongs to the file with this device and inode, under any of its names."""
        return self._identity == file

    def note(self, **changed: int) -> None:
        """Set the acknowledged numbers that have `changed`: `events`, `records`.

        The write is not synced: after a power failure an older number only makes the check less strict.  A failed
        write raises nothing, because the events themselves are already committed.
        """
        marks = attrs.evolve(self.acknowledged or Marks(), **changed)
        if self.acknowledged or changed:
            self.acknowledged = marks
        text = RECORD.format(os.getpid(), marks.events, marks.records)
        with suppress(OSError):
            os.pwrite(self._file.fileno(), text.encode(), 0)

    def abandon(self) -> None:
        """Release the lock after the database could not be opened; remove the lock file if this lock created it."""
        if self._is_new:
            self.path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Release the lock; idempotent."""
        with _registry:
            _held.discard(self)
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()

    def forget(self) -> None:
        """Close the inherited file handle in a forked child, without releasing the lock of the parent."""
        self._file.close()


_held: WeakSet[FileLock] = WeakSet()
_registry = RLock()
"""Reentrant, because the garbage collector may run inside it and release the lock of a dropped store."""


def _after_fork() -> None:
    global _registry  # noqa: PLW0603 -- another thread of the parent may have held it
    _registry = RLock()
    for lock in _held:
        lock.forget()
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)


def lock_path(database: Path) -> Path:
    return database.with_name(database.name + ".lock")


def is_ours(database: Path) -> bool:
    """Whether this process has the file open."""
    file = identity(database)
    return file is not None and any(lock.is_of(file) for lock in list(_held))


OPEN_AS["duckdb"] = is_ours


def refuse_if_ours(database: Path) -> None:
    """Raise if this process has the file open. Call this before opening the file in any other way: closing it
    would release the lock that the database holds on it."""
    file = identity(database)
    for lock in list(_held):
        if file is not None and lock.is_of(file):
            raise _open_here(database, lock.database)


def _locked(database: Path) -> StoreLockedError:
    pid = 0
    with suppress(OSError):
        pid = _field(lock_path(database).read_text(encoding="ascii", errors="replace"), "pid")
    if pid == os.getpid():
        return _open_here(database, database)
    return locked_by(database, f"process {pid}" if pid else "another process")


def _open_here(database: Path, name: Path) -> StoreLockedError:
    alias = "" if name == database else f", as {name}"
    return StoreLockedError(
        f"{database} is already open in this process{alias}; share one store between threads: create"
        " it once, DuckDBStore(path), and pass it to every Timeline.open as store="
    )


def locked_by(database: Path, holder: str) -> StoreLockedError:
    """The error for a file that `holder` has open."""
    return StoreLockedError(
        f"{database} is open in {holder}; close it there; to read it meanwhile:"
        " `foldline list`, `show` and the other commands that only read, or `persistence.look`"
    )


def _field(text: str, name: str) -> int:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return 0
