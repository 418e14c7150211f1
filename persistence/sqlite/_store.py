"""The store for several processes on one machine: one SQLite file, no server; `sqlite:///path`."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import attrs

from blocks import MisuseError
from persistence._file import (
    FileLocation,
    copied,
    copy_of_a_moment,
    database_path,
    path_in,
    system_errors,
)
from persistence._store import StoreProblem, StoreReport
from persistence.sql._database import Patience
from persistence.sql._store import SQLStore
from persistence.sqlite._database import open_database

if TYPE_CHECKING:
    from persistence.artifacts import KeyRing

WAIT_SECONDS: Final = 30.0
WAL_HEADER_BYTES: Final = 32
SAVE: Final = (
    "restore both from a backup, or let `foldline repair` save what comes before that into a new"
    " store, before anything else opens the file"
)


class SQLiteStore(SQLStore):
    """Timelines in the file `path`, which several processes may have open.  Its methods raise the errors of
    `EventStore`.

    An append waits up to `wait_seconds` while other processes write.

    Raises:
        DamagedStoreError: the file is damaged.
        MisuseError: there is no such folder, or the file is not a store.
        StoreError: the file has the format of another version, or the operating system denies access.
    """

    def __init__(
        self, path: "str | os.PathLike[str]", *, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self.path = database_path(path)
        super().__init__(open_database(self.path, wait_seconds), Patience())


@attrs.frozen
class SQLiteLocation(FileLocation):
    """An SQLite file, with the write-ahead log beside it while it is open."""

    def open(self) -> SQLiteStore:
        return SQLiteStore(self.path)

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        from persistence.sqlite._salvage import lost_commits

        if not self.exists():
            raise MisuseError(f"there is no file {self.path} to verify")
        if not lost_commits(database_path(self.path)):
            with self.open() as store:
                return store.verify(keys=keys)
        with TemporaryDirectory() as folder:  # opening the file would remove its log
            copy = self._copy(Path(folder))
            loss = lost_commits(copy)
            with SQLiteStore(copy) as store:
                report = store.verify(keys=keys)
        problem = StoreProblem(what=f"{loss}; {SAVE}")
        return attrs.evolve(report, problems=(problem, *report.problems))

    def readable_copy(self, folder: Path) -> "tuple[SQLiteLocation, str]":
        from persistence.sqlite._salvage import lost_commits, salvaged

        copy = self._copy(folder)
        cut = lost_commits(copy)
        whole, holes = salvaged(copy, folder)
        return SQLiteLocation(whole), "; ".join(filter(None, (cut, holes)))

    def moment(self, folder: Path) -> "SQLiteLocation":
        path = database_path(self.path)
        return SQLiteLocation(copy_of_a_moment(path, ("-wal", ""), folder, _folded))

    def _copy(self, folder: Path) -> Path:
        path = database_path(self.path)
        with system_errors(path):
            return copied(path, ("", "-wal"), folder)

    def remove(self) -> None:
        """Remove the file, unless its write-ahead log exists, which means that another process has it open."""
        if not self.path.with_name(self.path.name + "-wal").exists():
            self.path.unlink(missing_ok=True)


def _folded(path: Path) -> tuple[int, int, bytes]:
    """Values that change at a checkpoint: size and time of the file, and the header of the write-ahead log."""
    status, wal = path.stat(), path.with_name(f"{path.name}-wal")
    try:
        with wal.open("rb") as file:
            start = file.read(WAL_HEADER_BYTES)
    except FileNotFoundError:
        start = b""
    return status.st_size, status.st_mtime_ns, start


def locate(where: "str | os.PathLike[str]") -> SQLiteLocation:
    """The location of an `sqlite://` URL.

    Raises:
        MisuseError: it names no file.
    """
    return SQLiteLocation(path_in(where, "sqlite"))
