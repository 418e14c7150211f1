"""The file of a store: which paths are valid, how several names of one file are recognized, and a copy of a moment."""

import errno
import glob
import os
import re
import stat
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import unquote

import attrs

from blocks import MisuseError, StoreError, StoreLockedError
from persistence._log import ArchivedRange, is_sound
from persistence._store import StoreLocation

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NAME_MAX: Final = 100
"""How many characters of a file's name are in the name of a temporary one."""
SHOWN = 200
"""How many characters of an invalid path or URL an error message quotes."""


def database_path(where: object) -> Path:
    """The absolute path without symbolic links, so that all names of a file lead to the same lock.

    Raises:
        MisuseError: it cannot be the path of a store.
        StoreError: the operating system denies access.
    """
    path = checked_path(where)
    with system_errors(path):
        _refuse_foreign_links(path)
        path = path.resolve()
        refuse_links(*(path.with_name(path.name + ending) for ending in BESIDE))
        if not path.parent.is_dir():
            raise MisuseError(f"folder {path.parent} for {path.name} does not exist; create it")
        status = path.stat() if path.exists() else None
    if status is None:
        return path
    if stat.S_ISDIR(status.st_mode):
        raise MisuseError(f"{path} is a folder; give the path of a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise MisuseError(
            f"{path} is not a regular file; give the path of a regular file, or of a new file"
        )
    return path


URL_MAX: Final = 2000
"""How many characters of a path are compared with the address of a server."""
LINKS_MAX: Final = 40
"""How many links are followed, one after the other; the operating system follows as many."""
BESIDE: Final = (".lock", ".wal", "-wal", "-shm", "-journal")
"""The endings of the files that are written beside a database."""
_EXPLICIT: Final = re.compile(r"\.{0,2}/[^/]")
"""How a text begins that can only be a path."""
_SERVER: Final = re.compile(
    r"""(?ix)  (?:.*[\s;?&])? (?:\w*password|passwd|pwd) \s* =  # password=...
            |  (?:.*[:/])? [^/:@\s]* : [^/@]+ @               # user:password@"""
)


def _refuse_foreign_links(path: Path) -> None:
    """Refuse a symbolic link that another user has made: it could lead to any file of ours.

    Raises:
        MisuseError: it is one.
    """
    owners = {os.geteuid(), 0}
    for _ in range(LINKS_MAX):
        if not path.is_symlink():
            return
        if (owner := path.lstat().st_uid) not in owners:
            raise MisuseError(
                f"{path} is a symbolic link that another user (id {owner}) has made; remove it, or give the path"
                " of the file that it leads to"
            )
        path = path.parent / path.readlink()


def refuse_links(*beside: Path) -> None:
    """Refuse symbolic links where a store writes files of its own.

    Raises:
        MisuseError: there is one.
    """
    for path in beside:
        if path.is_symlink():
            raise MisuseError(
                f"{path} is a symbolic link, and a store writes no file of its own through a link; find out who"
                " made it, and remove it"
            )


def checked_path(where: object) -> Path:
    """The path as given, without a check whether a store can be there.

    Raises:
        MisuseError: it is not a path.
    """
    if not isinstance(where, str | os.PathLike):
        raise MisuseError(f"{where!r:.{SHOWN}} is not a path; give the path of a file")
    text: object = os.fspath(cast("str | os.PathLike[str]", where))
    if not is_sound(text):
        raise MisuseError(f"{text!r:.{SHOWN}} cannot be a path; give the path of a file")
    if not _EXPLICIT.match(text) and _SERVER.match(text[:URL_MAX]):
        raise MisuseError(  # does not quote it
            "this is not a path, but looks like the address of a server with its password; write"
            " postgresql://user:password@host/database, or ./ in front of a path"
        )
    if not text.strip():
        raise MisuseError("the path of a store is empty; give the path of a file")
    if text.startswith(":memory:"):
        raise MisuseError(
            "':memory:' is not a file; give the path of a file; in a program, MemoryStore() is a store in memory"
        )
    return Path(text)


DUCKDB: Final = b"DUCK"
"""Bytes 8 to 11 of every DuckDB file."""
SQLITE: Final = b"SQLite format 3\0"
"""The first bytes of every SQLite file."""


Kind: TypeAlias = Literal["duckdb", "sqlite", ""]
"""The kind of database in a file; empty: neither of both, or there is no file that can be read."""


OPEN_AS: Final[dict[Kind, Callable[[Path], bool]]] = {}
"""By kind: whether this process has a file open as a database of this kind. Such a file must not be read, because
closing it would drop the locks of the database."""


def kind_at(path: Path) -> Kind:
    """What a file contains, whether or not this process has it open."""
    for kind, is_open in OPEN_AS.items():
        if is_open(path):
            return kind
    return kind_in(path)


def kind_in(path: Path) -> Kind:
    """What a file contains that is not open as DuckDB in this process."""
    try:
        path = path.resolve()
        if path.with_name(f"{path.name}-shm").exists():  # open as SQLite, perhaps in this process
            return "sqlite"
        if not path.is_file():  # a pipe would make its reader wait
            return ""
        with path.open("rb") as file:
            start = file.read(len(SQLITE))
    except (OSError, RuntimeError, ValueError):  # who opens it raises the right error
        return ""
    if start == SQLITE:
        return "sqlite"
    return "duckdb" if start[8:12] == DUCKDB else ""


def path_in(where: "str | os.PathLike[str]", scheme: str) -> Path:
    """The path in a URL of this scheme, or the given path itself.

    Raises:
        MisuseError: it names no path.
    """
    if not isinstance(where, str) or not where.lower().startswith(f"{scheme}://"):
        return checked_path(where)
    path = where[len(scheme) + 3 :]
    if not path.startswith("/") or "?" in path or "#" in path:
        raise MisuseError(
            f"{where!r:.{SHOWN}} does not name a file; write {scheme}:///path, or {scheme}:////path for an"
            " absolute path, without options"
        )
    return checked_path(unquote(path[1:]))


@contextmanager
def system_errors(path: Path) -> Generator[None]:
    """Raise a `StoreError` in place of an error of the operating system about the file `path`."""
    try:
        yield
    except PermissionError as error:
        raise StoreError(
            f"{error.filename or path}: permission denied; let this user read and write the file"
            " and its folder, or choose another file"
        ) from error
    except (OSError, RuntimeError) as error:  # RuntimeError: symbolic links that form a cycle
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise StoreError(
                f"{error.filename2 or path}: {error.strerror}; free disk space and repeat the call"
            ) from error
        reason = getattr(error, "strerror", None) or "its symbolic links form a cycle"
        name = f"{path!s:.{SHOWN}}"
        raise StoreError(f"{name} cannot be used: {reason}; choose another file") from error


OWNER_ONLY: Final = 0o600
"""The mode of a file that only its owner may read and write."""


def permissions(database: Path) -> int:
    """The permissions of the files beside a database: those of the database, or, before it exists, its owner's alone.
    A log holds what anybody has said."""
    try:
        return stat.S_IMODE(database.stat().st_mode) & 0o666
    except OSError:
        return OWNER_ONLY


def create_beside(file: Path, database: Path) -> None:
    """Create an empty file with these permissions, unless there is one; a database would create it with those that the
    process gives to any file. If it cannot be created, the database says why."""
    with suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, permissions(database)))


@contextmanager
def private_folder(path: Path) -> Generator[Path]:
    """A folder beside a file that nobody else can look into, for a file that is to replace it."""
    from tempfile import TemporaryDirectory  # here, because it takes long to import

    with TemporaryDirectory(
        prefix=f"{path.name[:NAME_MAX]}.", suffix=".new", dir=path.parent
    ) as name:
        yield Path(name)


def remove_unfinished(path: Path) -> None:
    """Remove what a killed process left in a `private_folder`; only who holds the lock on the file may do this."""
    import shutil  # as above

    for folder in path.parent.glob(f"{glob.escape(path.name[:NAME_MAX])}.????????.new"):
        with suppress(OSError):  # not a folder, or not ours
            if all(file.name.startswith(path.name) for file in folder.iterdir()):
                shutil.rmtree(folder)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that files created, renamed or removed in it are durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode, which are the same for all names of a file; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def refuse_unfolded_log(path: Path) -> None:
    """Refuse to open a file whose newest events are in the write-ahead log of another name.

    The log is `<name>.wal`, after the name by which the file was last opened.

    Raises:
        MisuseError: another hard link to the file in this folder has a log.
    """
    with system_errors(path):
        if not path.exists() or path.stat().st_nlink == 1:
            return
        names = [Path(e.path) for e in os.scandir(path.parent) if e.inode() == path.stat().st_ino]
    for other in names:
        if other != path and other.with_name(other.name + ".wal").exists():
            raise MisuseError(
                f"{path} and {other} are the same file, and its newest events are in {other.name}.wal:"
                f" open {other} and close it first"
            )


# Copies a database file and its write-ahead log in a consistent state while other processes write to them.
#
# Writers append to the write-ahead log and, from time to time, checkpoint it into the file.  A copy is consistent
# unless a checkpoint happened meanwhile; then the copy is made again.  Its last commit may be incomplete, but such a
# commit was not yet acknowledged.


TRIES: Final = 50
PAUSE_SECONDS: Final = 0.05


def copy_of_a_moment(
    path: Path, endings: Sequence[str], folder: Path, folded: Callable[[Path], object]
) -> Path:
    """Copy a database as `copied` does, in a consistent state; return the path of the copy.

    `folded` reads a value from `path` that changes whenever the log is checkpointed into the file.

    Raises:
        StoreLockedError: in each of `TRIES` attempts a checkpoint happened during the copy.
        StoreError: the operating system denies reading.
    """
    for _ in range(TRIES):
        with system_errors(path):
            before = folded(path)
            copy = copied(path, endings, folder)
            if folded(path) == before:
                return copy
        time.sleep(PAUSE_SECONDS)  # until the other process's checkpoint has passed
    raise StoreLockedError(
        f"another process rewrote {path} during each of {TRIES} attempts to copy it; repeat the call"
    )


def copied(path: Path, endings: Sequence[str], folder: Path) -> Path:
    """Copy the files with the name `path` plus one of `endings`, in this order, into `folder`; return the path of the
    copy.  Files that do not exist are left out."""
    import shutil  # as above

    with suppress(FileExistsError):
        (folder / ORIGIN).symlink_to(path.parent)
    for ending in endings:
        copy = folder / (path.name + ending)
        try:
            shutil.copyfile(path.with_name(copy.name), copy)
        except FileNotFoundError:  # a checkpoint may remove the log at any time
            copy.unlink(missing_ok=True)
    return folder / path.name


ORIGIN: Final = ".foldline-copied-from"
"""A link in the folder of a copy, to the folder of the store: its archives are not copied."""


def moved_with(
    archives: Sequence[ArchivedRange], folder: Callable[[], Path | None]
) -> tuple[ArchivedRange, ...]:
    """The archives; those that are not at their recorded places any more where they were moved with a store in this
    folder: beside it, or in a folder there of the same name. Whoever reads one compares its hash."""

    def placed(archive: ArchivedRange) -> ArchivedRange:
        recorded = Path(archive.file)
        if "://" in archive.file or recorded.exists() or (here := folder()) is None:
            return archive
        here = (here / ORIGIN).resolve() if (here / ORIGIN).is_symlink() else here
        there = (here / recorded.parent.name / recorded.name, here / recorded.name)
        return next((attrs.evolve(archive, file=str(p)) for p in there if p.exists()), archive)

    return tuple(map(placed, archives))


@attrs.frozen
class FileLocation(StoreLocation):
    """A database file."""

    path: Path

    def exists(self) -> bool:
        with system_errors(self.path):
            return self.path.exists()

    def is_writable(self) -> bool:
        path = database_path(self.path)
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)

    def __str__(self) -> str:
        return str(self.path)
