"""The protocol of a place for artifacts: a few operations, and the one in memory. All rules are in `_artifacts`.

Each put fills a *slot* of its own, named by 16 random bytes and never written again: first its
pieces, then, in one step, the *entry* that makes it exist.  So no put and no sweep can harm another,
in this process or elsewhere, and what a killed put leaves behind is a slot without an entry.
"""

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Protocol

import attrs
import msgspec
from msgspec import Raw, Struct

from blocks import DamagedStoreError
from persistence.artifacts._store import ArtifactMetadata, AuditRecord

PIECE_BYTES = 2**20
"""Bytes in each stored piece of a slot; the last piece may be shorter."""


@attrs.frozen
class Entry:
    """A filled slot, and the metadata of its content."""

    slot: str
    metadata: ArtifactMetadata
    json: bytes
    """The metadata as the bytes that were written, which the seal covers."""
    seal: str = ""
    """Proof, made with the key, that the metadata is unchanged; empty if the content is not encrypted."""


class Backend(Protocol):
    """A place where artifacts are stored. When a method returns, its changes are durable."""

    lock: Lock
    """Held from checking whether an entry exists until adding it."""

    def fill(self, slot: str, pieces: Iterable[bytes]) -> None:
        """Write the pieces of a slot; all but the last have `PIECE_BYTES`."""
        ...

    def enter(self, entry: Entry, record: AuditRecord) -> None:
        """Add the entry of a filled slot, with an audit record."""
        ...

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        """The entries of one artifact, of all tenants; None: of all artifacts. In any order."""
        ...

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        """The pieces `first` to `last`; missing ones are left out."""
        ...

    def remove(self, entry: Entry, record: AuditRecord) -> None:
        """Write the audit record, then remove the entry, its content first."""
        ...

    def discard(self, slot: str) -> None:
        """Remove the content of a slot that was never entered."""
        ...

    def tidy(self, now: float) -> None:
        """After a sweep: release unused space, and remove content that interrupted puts left."""
        ...

    def record(self, record: AuditRecord) -> None:
        """Append a record to the audit."""
        ...

    def records(self) -> Sequence[AuditRecord]:
        """The whole audit, oldest first."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


class _StoredEntry(Struct, frozen=True, kw_only=True):
    """The JSON of an entry."""

    slot: str
    metadata: Raw
    seal: str = ""


def encoded(entry: Entry) -> bytes:
    """The entry as JSON."""
    return msgspec.json.encode(
        _StoredEntry(slot=entry.slot, metadata=Raw(entry.json), seal=entry.seal)
    )


def decoded(data: bytes | str, where: str) -> Entry:
    """The entry that `data` holds; `where` names its place in the error.

    Raises:
        DamagedStoreError: `data` is not an entry.
    """
    try:
        stored = msgspec.json.decode(data, type=_StoredEntry)
        json = bytes(stored.metadata)
        metadata = msgspec.json.decode(json, type=ArtifactMetadata)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedStoreError(
            f"{where}: invalid entry of an artifact ({error}); restore it from a backup"
        ) from error
    return Entry(stored.slot, metadata, json, stored.seal)


def decoded_record(data: bytes | str, where: str) -> AuditRecord:
    """The audit record that `data` holds; `where` names its place in the error.

    Raises:
        DamagedStoreError: `data` is not an audit record.
    """
    try:
        return msgspec.json.decode(data, type=AuditRecord)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedStoreError(
            f"{where}: invalid audit record ({error}); restore it from a backup"
        ) from error


@attrs.define(eq=False)
class MemoryBackend:
    """A `Backend` in memory. It keeps bytes, not objects, so that encoding and decoding are always exercised."""

    lock: Lock = attrs.field(factory=Lock, init=False, repr=False)
    _content: dict[str, tuple[bytes, ...]] = attrs.field(
        factory=dict[str, tuple[bytes, ...]], init=False, repr=False
    )
    _entries: dict[str, dict[str, bytes]] = attrs.field(
        factory=dict[str, dict[str, bytes]], init=False, repr=False
    )
    """By artifact, then by slot."""
    _records: list[bytes] = attrs.field(factory=list[bytes], init=False, repr=False)

    def fill(self, slot: str, pieces: Iterable[bytes]) -> None:
        self._content[slot] = tuple(pieces)

    def enter(self, entry: Entry, record: AuditRecord) -> None:
        self.record(record)
        self._entries.setdefault(entry.metadata.id, {})[entry.slot] = encoded(entry)

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        there = list(self._entries) if artifact is None else [artifact]
        found = [data for name in there for data in list(self._entries.get(name, {}).values())]
        return [decoded(data, "memory") for data in found]

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        return iter(self._content.get(slot, ())[first : last + 1])

    def remove(self, entry: Entry, record: AuditRecord) -> None:
        self.record(record)
        self._entries[entry.metadata.id].pop(entry.slot, None)
        self.discard(entry.slot)

    def discard(self, slot: str) -> None:
        self._content.pop(slot, None)

    def tidy(self, now: float) -> None:
        pass  # an interrupted put leaves nothing in memory

    def record(self, record: AuditRecord) -> None:
        self._records.append(msgspec.json.encode(record))

    def records(self) -> Sequence[AuditRecord]:
        return [decoded_record(data, "memory") for data in list(self._records)]

    def close(self) -> None:
        pass  # a `MemoryStore` uses the same backend again
