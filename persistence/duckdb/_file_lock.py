"""The lock of a database file, which also stores who holds it and how much is durable.

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
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path
from threading import RLock
from weakref import WeakSet

import attrs

from blocks import StoreLockedError
from persistence._file import OPEN_AS, identity, permissions, system_errors

RECORD = "pid {:>10}\nevents {:>20}\nrecords {:>20}\n"
"""The content of a lock file. Its length is fixed, so that one write replaces all of it."""


@attrs.frozen
class Marks:
    """How many events and artifact records were acknowledged, so that the file must have them; 0: unknown."""

    events: int = 0
    records: int = 0
    """Records in the audit of artifacts. Every put adds one, and none is ever removed."""


def lost(held: Marks, acknowledged: Marks) -> str:
    """What is missing, in words; empty if nothing is."""
    for what, here, known in (
        ("events", held.events, acknowledged.events),
        ("artifact records", held.records, acknowledged.records),
    ):
        if here < known:
            return f"{here} {what} but {known} were acknowledged"
    return ""


@attrs.define(eq=False)
class FileLock:
    """The lock on a database file; one process holds it from `acquire` to `release`."""

    database: Path
    path: Path
    _file: FileIO
    _is_new: bool
    _marks: Marks
    _identity: tuple[int, int] | None = attrs.field(default=None, init=False)

    @classmethod
    def acquire(cls, database: Path) -> "FileLock":
        """
        Raises:
            StoreLockedError: another process, or another store of this process, holds it.
            StoreError: the operating system denies locking.
        """
        try:
            return cls._taken(database)
        except StoreLockedError:
            if not _held:
                raise
        gc.collect()  # the lock may belong to a dropped store that was not yet collected
        return cls._taken(database)

    @classmethod
    def _taken(cls, database: Path) -> "FileLock":
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
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                file = FileIO(os.open(path, flags, permissions(database)), "r+b")
                undo.callback(file.close)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise _locked(database) from error
                if identity(path) == _identity_of(file):  # else the former holder removed it
                    lock = cls(database, path, file, is_new, _marks_in(_text(file)))
                    undo.pop_all()
                    return lock

    def holds(self) -> None:
        """Remember the identity of the database file; call this again after the file was created or replaced."""
        self._identity = identity(self.database)

    def is_of(self, file: tuple[int, int]) -> bool:
        """Whether this lock belongs to the file with this device and inode, under any of its names."""
        return self._identity == file

    def acknowledged(self) -> Marks:
        """The acknowledged numbers."""
        return self._marks

    def note(self, *, events: int | None = None, records: int | None = None) -> None:
        """Set the acknowledged numbers; None leaves a number unchanged.

        The write is not synced: after a power failure an older number only makes the check less strict.  A failed
        write raises nothing, because the events themselves are already committed.
        """
        marks = self._marks
        self._marks = Marks(
            marks.events if events is None else events,
            marks.records if records is None else records,
        )
        text = RECORD.format(os.getpid(), self._marks.events, self._marks.records)
        with suppress(OSError):
            os.pwrite(self._file.fileno(), text.encode(), 0)

    def note_records(self, records: int) -> None:
        """Set the acknowledged number of artifact records."""
        self.note(records=records)

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


def _identity_of(file: FileIO) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino


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
    known = "" if name == database else f", as {name}"
    return StoreLockedError(
        f"{database} is already open in this process{known}; share that store between threads: make"
        " it once, DuckDBStore(path), and give it to every Timeline.open as store="
    )


def locked_by(database: Path, holder: str) -> StoreLockedError:
    """The error for a file that `holder` has open."""
    return StoreLockedError(
        f"{database} is held by {holder}; close it there; to look at what it holds by now:"
        " `foldline list`, `show` and the other commands that only read, or `persistence.look`"
    )


def _text(file: FileIO) -> str:
    return os.pread(file.fileno(), 1000, 0).decode("ascii", errors="replace")


def _marks_in(text: str) -> Marks:
    return Marks(_field(text, "events"), _field(text, "records"))


def _field(text: str, name: str) -> int:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return 0
