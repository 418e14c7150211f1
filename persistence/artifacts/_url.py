"""Artifacts at a URL that `fsspec` can reach: an object store, or its memory.

audit/<time>-<opening>-<count>.json   one object per record, because objects cannot be appended to
content/<slot>                        the pieces, one after the other
entries/<artifact>/<slot>.json        the entry, written last and in one piece
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from itertools import count
from threading import Lock
from typing import IO, Any, Protocol, cast

import attrs
import msgspec

from blocks import MisuseError, StoreError
from persistence.artifacts._backend import PIECE_BYTES, Entry, decoded, decoded_record, encoded
from persistence.artifacts._crypt import needs_extra
from persistence.artifacts._folder import LEFTOVER_SECONDS
from persistence.artifacts._types import AuditRecord


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
    """A `Backend` in the folder `root` of a file system; `opening` is part of the names of its audit records, so that
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
        except (NotImplementedError, FileNotFoundError):
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
        raise needs_extra(f"{url.partition('://')[0]}://") from error
    try:
        files, root = cast("tuple[FileSystem, str]", core.url_to_fs(url))
    except (ImportError, ValueError) as error:
        scheme, _, rest = url.partition("://")
        if "@" in rest:  # such errors quote the URL, which may contain a password
            raise MisuseError(
                f"{scheme}:// with a user in it cannot be reached; install its driver, or correct it"
            ) from None
        raise MisuseError(f"{url} cannot be reached: {error}") from error
    root = root.rstrip("/")
    for folder in ("audit", "content", "entries"):
        files.makedirs(f"{root}/{folder}", exist_ok=True)
    return files, root
