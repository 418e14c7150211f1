"""The lock beside a database file, and what it remembers: who holds it, how much is durable.

The database locks its file too, but its message cannot say what to do, and its kind of lock is
lost when the same process opens and closes the file once more.  Ours is an `flock` on `<file>.lock`,
which stays there: it holds the *high-water mark*, the number of events acknowledged so far.  A log
that lost its tail (a deleted write-ahead log, an older copy) is told by holding fewer.
"""

import fcntl
import os
from pathlib import Path
from weakref import WeakSet

import attrs

from blocks import MisuseError, StoreLockedError

RECORD = "pid {:>10}\nevents {:>20}\n"
"""Of fixed width, so that one write replaces it whole."""


@attrs.define(eq=False)
class FileLock:
    """Held from `acquire` to `release`, by one process."""

    path: Path
    _file: int
    _is_new: bool

    @classmethod
    def acquire(cls, database: Path) -> "FileLock":
        """
        Raises:
            StoreLockedError: somebody else holds it.
            MisuseError: there is no such folder.
        """
        if not database.parent.is_dir():
            raise MisuseError(f"no folder {database.parent} to keep {database.name} in; create it")
        path = lock_path(database)
        is_new = not path.exists()
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file)
            raise _locked(database) from error
        lock = cls(path, file, is_new)
        _held.add(lock)
        lock.note(lock.acknowledged())  # from here on with our pid
        return lock

    def acknowledged(self) -> int:
        """The high-water mark; 0 when nothing is known."""
        return _field(self.path, "events")

    def note(self, events: int) -> None:
        """Raise the mark. Not synced: after a power cut an older mark is merely less strict."""
        os.pwrite(self._file, RECORD.format(os.getpid(), events).encode(), 0)

    def abandon(self) -> None:
        """Release after the database could not be opened; leaves no file behind that it made."""
        if self._is_new:
            self.path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        _held.discard(self)
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)

    def forget(self) -> None:
        """In a forked child: let go of the inherited handle, without unlocking the parent's."""
        os.close(self._file)


_held: WeakSet[FileLock] = WeakSet()


def _forget_all() -> None:
    for lock in _held:
        lock.forget()
    _held.clear()


os.register_at_fork(after_in_child=_forget_all)


def lock_path(database: Path) -> Path:
    return database.with_name(database.name + ".lock")


def _locked(database: Path) -> StoreLockedError:
    pid = _field(lock_path(database), "pid")
    if pid == os.getpid():
        return StoreLockedError(
            f"{database} is already open in this process; share that store between threads"
        )
    return locked_by(database, f"process {pid}" if pid else "another process")


def locked_by(database: Path, holder: str) -> StoreLockedError:
    """The error that says who and what to do."""
    return StoreLockedError(
        f"{database} is held by {holder}; close it there, read a copy of the file,"
        " or use the PostgreSQL store to share timelines between processes"
    )


def _field(path: Path, name: str) -> int:
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return 0
