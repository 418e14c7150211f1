"""Artifacts in files of a local folder, or in objects at a URL.

audit.jsonl                                        in a folder: the audit, a line per record
audit/<artifact>/<time>-<opening>-<count>.json     at a URL: an object per record, so that the records of one can be listed
content/<slot>                                     the pieces, one after the other
entries/<artifact>/<slot>.json                     the entry, which appears after everything else is durable
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from io import FileIO
from itertools import chain, count
from pathlib import Path, PurePath
from typing import BinaryIO, Final

import attrs
import msgspec

from blocks import ClosedError, StoreError, artifact_ids_in
from persistence._bucket import Objects
from persistence._file import OWNER_ONLY, refuse_links, sync_folder, system_errors
from persistence.artifacts._crypt import in_pieces
from persistence.artifacts._store import (
    PIECE_BYTES,
    AuditRecord,
    Backend,
    Entry,
    decoded,
    decoded_records,
    encoded,
)

LEFTOVER_SECONDS = 24 * 3600.0
"""Content older than this without an entry belongs to an interrupted put."""


@attrs.define(eq=False)
class FolderBackend(Backend):
    """A `Backend` in the folder `root`, which is created if it does not exist and which several processes may share.
    Lines are only appended to the audit, and an entry appears by an atomic rename."""

    root: Path
    _audit: FileIO = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        with self._errors():
            for folder in (self.root, self.root / "content", self.root / "entries"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                sync_folder(folder.parent)
            refuse_links(*(self.root / name for name in ("audit.jsonl", "content", "entries")))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
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
        contents: list[tuple[bytes, str]] = []
        with self._errors():
            for path in list((self.root / "entries").glob(f"{artifact or '*'}/*.json")):
                with suppress(FileNotFoundError):  # a sweep has removed it
                    contents.append((path.read_bytes(), str(path)))
        return [decoded(data, where) for data, where in contents]

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
            contents = (p for p in (self.root / "content").iterdir() if p.name not in entered)
            for path in chain(contents, (self.root / "entries").glob("*/*.new")):
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

    def records(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        with self._errors():
            lines = (self.root / "audit.jsonl").read_bytes().splitlines()
        whole = [line for line in lines if _is_json(line)]
        return decoded_records(whole, str(self.root / "audit.jsonl"), artifact)

    def close(self) -> None:
        self._audit.close()

    def _content(self, slot: str) -> Path:
        return self.root / "content" / slot

    def _entry(self, entry: Entry) -> Path:
        return self.root / "entries" / entry.metadata.id / f"{entry.slot}.json"

    def _errors(self) -> AbstractContextManager[None]:
        return system_errors(self.root)


def _created(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, OWNER_ONLY), "wb")


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


AT_ONCE: Final = 16
"""Entries or audit records that are read at the same time."""
OTHERS: Final = "others"
"""The folder of audit records that name no artifact: lists, and reads of what cannot be an id."""


@attrs.define(eq=False)
class UrlBackend(Backend):
    """A `Backend` at a URL. Objects cannot be appended to, so each audit record is one, in the folder of its artifact; an
    entry is written last and in one piece. `opening` is part of the names of its audit records, so that they differ from
    those of other processes."""

    _objects: Objects
    _opening: str
    _numbers: Iterator[int] = attrs.field(factory=count, init=False)

    def fill(self, slot: str, pieces: Iterable[bytes]) -> None:
        self._objects.put(f"content/{slot}", pieces)

    def enter(self, entry: Entry, record: AuditRecord) -> None:
        self.record(record)
        self._objects.put(_name_of(entry), [encoded(entry)])

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        contents = self._read_all(f"entries/{artifact}" if artifact else "entries")
        return [decoded(data, path) for path, data in contents]

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        if first > last:
            return
        span = first * PIECE_BYTES, (last + 1) * PIECE_BYTES
        yield from in_pieces(self._objects.parts(f"content/{slot}", span) or (), PIECE_BYTES)

    def remove(self, entry: Entry, record: AuditRecord) -> None:
        self.record(record)
        self.discard(entry.slot)
        self._objects.delete(_name_of(entry))

    def discard(self, slot: str) -> None:
        self._objects.delete(f"content/{slot}")

    def tidy(self, now: float) -> None:
        entered = {PurePath(entry["path"]).stem for entry in self._objects.list("entries")}
        for each in self._objects.list("content"):
            changed_at = each["last_modified"].timestamp()
            if PurePath(each["path"]).name not in entered and changed_at < now - LEFTOVER_SECONDS:
                self._objects.delete(each["path"])

    def record(self, record: AuditRecord) -> None:
        name = f"{record.at:020.6f}-{self._opening}-{next(self._numbers):08}.json"
        data = msgspec.json.encode(record)
        self._objects.put(f"audit/{_folder_of(record.artifact)}/{name}", [data])

    def records(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        folder = "audit" if artifact is None else f"audit/{_folder_of(artifact)}"
        contents = sorted(self._read_all(folder), key=lambda each: PurePath(each[0]).name)
        return [record for p, data in contents for record in decoded_records([data], p, artifact)]

    def _read_all(self, folder: str) -> list[tuple[str, bytes]]:
        names = [each["path"] for each in self._objects.list(folder)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            contents = pool.map(self._objects.get, names)
            pairs = zip(names, contents, strict=True)
            return [(name, data) for name, data in pairs if data is not None]


def _name_of(entry: Entry) -> str:
    return f"entries/{entry.metadata.id}/{entry.slot}.json"


def _folder_of(artifact: str) -> str:
    return artifact if artifact_ids_in(artifact) == (artifact,) else OTHERS
