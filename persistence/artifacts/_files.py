"""Artifacts in files: in a local folder, or at a URL that `fsspec` can reach.

audit.jsonl, audit/<time>-<opening>-<count>.json   the audit: a line per record in a folder, an object per record at a URL
content/<slot>                                     the pieces, one after the other
entries/<artifact>/<slot>.json                     the entry, which appears after everything else is durable
"""

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from importlib import import_module
from io import FileIO
from itertools import count
from pathlib import Path
from threading import Lock
from typing import IO, Any, BinaryIO, Protocol, cast

import attrs
import msgspec

from blocks import ClosedError, MisuseError, StoreError, lacking
from persistence._file import OWNER_ONLY, sync_folder, system_errors
from persistence.artifacts._store import (
    PIECE_BYTES,
    AuditRecord,
    Entry,
    decoded,
    decoded_record,
    encoded,
)

LEFTOVER_SECONDS = 24 * 3600.0
"""Content older than this without an entry belongs to an interrupted put."""


@attrs.define(eq=False)
class FolderBackend:
    """A `Backend` in the folder `root`, which is created if it does not exist and which several processes may share.
    Lines are only appended to the audit, and an entry appears by an atomic rename."""

    root: Path
    lock: Lock = attrs.field(factory=Lock, init=False, repr=False)
    _audit: FileIO = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        with self._errors():
            for folder in (self.root, self.root / "content", self.root / "entries"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                sync_folder(folder.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._audit = FileIO(os.open(self.root / "audit.jsonl", flags, OWNER_ONLY), "ab")
            sync_folder(self.root)

    def fill(self, slot: str, pieces: Iterable[bytes]) -> None:
        path = self._content(slot)
        with self._errors():
            file = _created(path)
        with file:
            for piece in pieces:  # errors of the caller's iterator stay unchanged
                with self._errors():
                    file.write(piece)
                    file.flush()
            with self._errors():
                os.fsync(file.fileno())
                sync_folder(path.parent)

    def enter(self, entry: Entry, record: AuditRecord) -> None:
        self.record(record)
        path = self._entry(entry)
        new = path.with_suffix(".new")
        with self._errors():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            sync_folder(path.parent.parent)
            with _created(new) as file:
                file.write(encoded(entry))
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
            sync_folder(path.parent)

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        with self._errors():
            paths = list((self.root / "entries").glob(f"{artifact or '*'}/*.json"))
            found = [(path, _read(path)) for path in paths]
        return [decoded(data, str(path)) for path, data in found if data is not None]

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        path = self._content(slot)
        if not path.exists():
            return
        with self._errors(), path.open("rb") as file:
            file.seek(first * PIECE_BYTES)
            for _ in range(first, last + 1):
                yield file.read(PIECE_BYTES)

    def remove(self, entry: Entry, record: AuditRecord) -> None:
        self.record(record)
        self.discard(entry.slot)
        path = self._entry(entry)
        with self._errors():
            path.unlink(missing_ok=True)
            sync_folder(path.parent)

    def discard(self, slot: str) -> None:
        path = self._content(slot)
        with self._errors():
            path.unlink(missing_ok=True)
            sync_folder(path.parent)

    def tidy(self, now: float) -> None:
        entered = {entry.slot for entry in self.entries()}
        with self._errors():
            for path in (self.root / "content").iterdir():
                if path.name not in entered and _is_old(path, now):
                    path.unlink(missing_ok=True)
            for path in (self.root / "entries").glob("*/*.new"):
                if _is_old(path, now):
                    path.unlink(missing_ok=True)

    def record(self, record: AuditRecord) -> None:
        """Append a record in one write, between two line breaks, so that an incomplete record after a crash is a line
        of its own."""
        line = b"\n" + msgspec.json.encode(record) + b"\n"
        with self._errors():
            if self._audit.closed:
                raise ClosedError("this artifact store is closed; open it again")
            if self._audit.write(line) < len(line):
                raise StoreError(f"{self.root} is full; free space and repeat the call")
            os.fsync(self._audit.fileno())

    def records(self) -> Sequence[AuditRecord]:
        with self._errors():
            lines = (self.root / "audit.jsonl").read_bytes().splitlines()
        whole = [line for line in lines if _is_json(line)]
        return [decoded_record(line, str(self.root / "audit.jsonl")) for line in whole]

    def close(self) -> None:
        self._audit.close()

    def _content(self, slot: str) -> Path:
        return self.root / "content" / slot

    def _entry(self, entry: Entry) -> Path:
        return self.root / "entries" / entry.metadata.id / f"{entry.slot}.json"

    def _errors(self) -> AbstractContextManager[None]:
        return system_errors(self.root)


def _created(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, OWNER_ONLY), "wb")


def _read(path: Path) -> bytes | None:
    """The content of a file; None if a sweep has removed it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _is_old(path: Path, now: float) -> bool:
    try:
        return path.stat().st_mtime < now - LEFTOVER_SECONDS
    except FileNotFoundError:
        return False


def _is_json(line: bytes) -> bool:
    """Whether a line is a complete record; incomplete ones were never acknowledged."""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


class FileSystem(Protocol):
    """The methods of `fsspec.AbstractFileSystem` that are used here."""

    def open(self, path: str, mode: str) -> IO[bytes]: ...
    def pipe_file(self, path: str, value: bytes) -> None: ...
    def cat_file(self, path: str, start: int | None = None, end: int | None = None) -> bytes: ...
    def find(self, path: str) -> list[str]: ...
    def rm_file(self, path: str) -> None: ...
    def modified(self, path: str) -> datetime: ...
    def makedirs(self, path: str, *, exist_ok: bool) -> None: ...
    def invalidate_cache(self) -> None: ...


@attrs.define(eq=False)
class UrlBackend:
    """A `Backend` in the folder `root` of a file system, such as an object store. Objects cannot be appended to, so each
    audit record is one; an entry is written last and in one piece. `opening` is part of the names of its audit records, so that
    they differ from those of other processes."""

    _files: FileSystem = attrs.field(repr=False)
    _root: str = attrs.field(repr=False)
    _opening: str
    lock: Lock = attrs.field(factory=Lock, init=False, repr=False)
    _numbers: Iterator[int] = attrs.field(factory=count, init=False)

    def fill(self, slot: str, pieces: Iterable[bytes]) -> None:
        with self._errors():
            file = self._files.open(self._content(slot), "wb")
        try:
            for piece in pieces:  # errors of the caller's iterator stay unchanged
                with self._errors():
                    file.write(piece)
        finally:
            with self._errors():
                file.close()

    def enter(self, entry: Entry, record: AuditRecord) -> None:
        self.record(record)
        with self._errors():
            self._files.pipe_file(self._entry(entry), encoded(entry))

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        folder = f"entries/{artifact}" if artifact else "entries"
        return [decoded(data, path) for path, data in self._read_all(folder)]

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        path = self._content(slot)
        for number in range(first, last + 1):
            start = number * PIECE_BYTES
            if (piece := self._read(path, start, start + PIECE_BYTES)) is not None:
                yield piece

    def remove(self, entry: Entry, record: AuditRecord) -> None:
        self.record(record)
        self.discard(entry.slot)
        self._delete(self._entry(entry))

    def discard(self, slot: str) -> None:
        self._delete(self._content(slot))

    def tidy(self, now: float) -> None:
        entered = {entry.slot for entry in self.entries()}
        for path in self._find("content"):
            if path.rpartition("/")[2] not in entered and self._is_old(path, now):
                self._delete(path)

    def record(self, record: AuditRecord) -> None:
        name = f"{record.at:020.6f}-{self._opening}-{next(self._numbers):08}.json"
        with self._errors():
            self._files.pipe_file(f"{self._root}/audit/{name}", msgspec.json.encode(record))

    def records(self) -> Sequence[AuditRecord]:
        return [decoded_record(data, path) for path, data in self._read_all("audit")]

    def close(self) -> None:
        pass  # fsspec shares its connections

    def _content(self, slot: str) -> str:
        return f"{self._root}/content/{slot}"

    def _entry(self, entry: Entry) -> str:
        return f"{self._root}/entries/{entry.metadata.id}/{entry.slot}.json"

    def _find(self, folder: str) -> list[str]:
        """The files in a folder and below, by name; none if there is no such folder."""
        with self._errors():
            self._files.invalidate_cache()  # other processes write here, too
            return sorted(self._files.find(f"{self._root}/{folder}"))

    def _read_all(self, folder: str) -> list[tuple[str, bytes]]:
        found = [(path, self._read(path)) for path in self._find(folder)]
        return [(path, data) for path, data in found if data is not None]

    def _read(self, path: str, start: int | None = None, end: int | None = None) -> bytes | None:
        """The content of a file, or part of it; None if there is no such file, for example after a sweep."""
        with self._errors():
            try:
                return self._files.cat_file(path, start, end)
            except FileNotFoundError:
                return None

    def _delete(self, path: str) -> None:
        with self._errors():
            try:
                self._files.rm_file(path)
            except FileNotFoundError:
                return

    def _is_old(self, path: str, now: float) -> bool:
        try:
            return self._files.modified(path).timestamp() < now - LEFTOVER_SECONDS
        except (NotImplementedError, FileNotFoundError):  # not every file system has times
            return False

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"artifacts in {self._root}: {error}; repeat the call") from error


def reached(url: str) -> tuple[FileSystem, str]:
    """The file system of a URL, and the path on it.

    Raises:
        MisuseError: no installed library can reach it.
    """
    try:
        core: Any = import_module("fsspec.core")  # fsspec has no types
    except ImportError as error:
        raise lacking(f"{url.partition('://')[0]}://", "artifacts") from error
    try:
        files, root = cast("tuple[FileSystem, str]", core.url_to_fs(url))
    except (ImportError, ValueError) as error:
        scheme, _, rest = url.partition("://")
        if "@" in rest:  # such errors quote the URL, which may contain a password
            raise MisuseError(
                f"the {scheme}:// URL (which contains a user name) cannot be opened; install its driver, or correct the URL"
            ) from None
        raise MisuseError(f"{url} cannot be opened: {error}") from error
    root = root.rstrip("/")
    for folder in ("audit", "content", "entries"):
        files.makedirs(f"{root}/{folder}", exist_ok=True)
    return files, root
