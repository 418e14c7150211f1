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
from persistence._place import identity, system_errors

RECORD = "pid {:>10}\nevents {:>20}\nrecords {:>20}\n"
"""Of fixed width, so that one write replaces it whole."""


@attrs.frozen
class Marks:
    """What was acknowledged and therefore has to be there; 0 when nothing is known."""

    events: int = 0
    records: int = 0
    """Of the audit of artifacts, which is only ever appended to: every put leaves one."""


def lost(held: Marks, acknowledged: Marks) -> str:
    """What is missing; empty if all is there."""
    for what, here, known in (
        ("events", held.events, acknowledged.events),
        ("artifact records", held.records, acknowledged.records),
    ):
        if here < known:
            return f"{here} {what} but {known} were acknowledged"
    return ""


@attrs.define(eq=False)
class FileLock:
    """Held from `acquire` to `release`, by one process."""

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
            StoreLockedError: somebody else holds it.
            StoreError: the system does not let us lock.
        """
        try:
            return cls._taken(database)
        except StoreLockedError:
            if not _held:
                raise
        gc.collect()  # a store that was dropped may wait to be collected
        return cls._taken(database)

    @classmethod
    def _taken(cls, database: Path) -> "FileLock":
        with _registry:
            refuse_if_ours(database)
            lock = cls._locked(database)
            try:
                _held.add(lock)
                lock.holds()
                lock.note()  # from here on with our pid
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
                file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b")
                undo.callback(file.close)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise _locked(database) from error
                if identity(path) == _identity_of(file):  # or who held it took it away meanwhile
                    lock = cls(database, path, file, is_new, _marks_in(_text(file)))
                    undo.pop_all()
                    return lock

    def holds(self) -> None:
        """Remember which file it is, whatever it is called; once more when it was just made."""
        self._identity = identity(self.database)

    def is_of(self, file: tuple[int, int]) -> bool:
        """Whether this is the lock of a file, by any of its names."""
        return self._identity == file

    def acknowledged(self) -> Marks:
        """The high-water marks."""
        return self._marks

    def note(self, *, events: int | None = None, records: int | None = None) -> None:
        """Set the marks. Not synced: after a power cut an older mark is merely less strict.

        Nor does what was committed fail because there is no room to note it.
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
        """Set the mark of the audit of artifacts."""
        self.note(records=records)

    def abandon(self) -> None:
        """Release after the database could not be opened; leaves no file behind that it made."""
        if self._is_new:
            self.path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Let go; a second time, nothing happens."""
        with _registry:
            _held.discard(self)
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()

    def forget(self) -> None:
        """In a forked child: let go of the inherited handle, without unlocking the parent's."""
        self._file.close()


_held: WeakSet[FileLock] = WeakSet()
_registry = RLock()
"""Not a mere lock: a store may be collected, and release its lock, in a thread that has this one."""


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


def refuse_if_ours(database: Path) -> None:
    """Before the file is touched: to open and close it would drop the database's own lock."""
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
    """The error that says who and what to do."""
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
