"""What artifacts are: the description of a content, who may request it, and the places where a store keeps
content. All rules are in `_artifacts`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from threading import Lock
from typing import Any, ClassVar, Final, Literal, TypeAlias

import attrs
import msgspec
from msgspec import Raw, Struct

from blocks import (
    ArtifactId,
    DamagedStoreError,
    MisuseError,
    Refusal,
    Sensitivity,
    TimelineId,
    TooLargeError,
    artifact_id_of_hash,
    checked_calls,
)
from persistence._log import DESCRIPTION_BYTES_MAX

Action: TypeAlias = Literal["put", "read", "describe", "list", "expire", "forget"]


class ArtifactDescription(Struct, frozen=True, kw_only=True):
    """What the caller says about content; stored unencrypted."""

    timeline: TimelineId
    """The timeline that the content comes from."""
    tenant: str = ""
    """The tenant that owns it; requesters of other tenants do not learn that it exists. Empty: no tenant."""
    expires_at: float = 0.0
    """The time from which it can no longer be read, in seconds since the epoch; 0: never."""
    sensitivity: Sensitivity = "internal"
    mime: str = "text/plain"
    path: str = ""
    """The logical path of the block that it comes from."""
    about: str = ""
    """A line that helps people and models decide whether to read it."""


class ArtifactMetadata(ArtifactDescription, frozen=True, kw_only=True):
    """A description, and what the store adds."""

    created_at: float
    size: int
    """Bytes of the content."""
    sha256: str
    key: str = ""
    """The id of the key that encrypts the content; empty: it is not encrypted."""

    @property
    def id(self) -> ArtifactId:
        """The artifact's id."""
        return artifact_id_of_hash(self.sha256)

    def is_expired(self, now: float) -> bool:
        """Whether it can no longer be read."""
        return bool(self.expires_at) and self.expires_at <= now


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One use of the store, without any content."""

    at: float
    action: Action
    artifact: str = ""
    """The id as requested; empty for a list."""
    tenant: str = ""
    """The tenant of the requester; for put, expire and forget, that of the artifact."""
    requester: str = ""
    """The id of the requester; empty for actions of the host: put, expire, forget."""
    timeline: str = ""
    """The timeline of the artifact for put, expire and forget; for a list, the requested one; else empty."""
    allowed: bool = True
    reason: Refusal | Literal[""] = ""
    """Why it was refused, else empty. `tenant` if the requester was told `unknown`."""


def _frozen(permissions: Iterable[str]) -> frozenset[str]:
    if isinstance(permissions, str):
        raise MisuseError(f"permissions={permissions!r}: expected a set of permissions, not a text")
    return frozenset(permissions)


@checked_calls
@attrs.frozen
class Requester:
    """Who makes a request, for which tenant, and with which permissions.

    `read` permits public and internal content, `read:confidential` and `read:restricted` the content of these
    sensitivities.  No permission includes another.

    Raises:
        ArgumentError: the id is missing, or a field does not exist.
        MisuseError: `permissions` is a text.
    """

    id: str = attrs.field(validator=attrs.validators.min_len(1))
    tenant: str = attrs.field(default="", kw_only=True)
    permissions: frozenset[str] = attrs.field(
        default=frozenset({"read"}), converter=_frozen, kw_only=True
    )


def checked_description(about: ArtifactDescription) -> ArtifactDescription:
    """The fields of `about` that a caller may set, checked.

    Raises:
        MisuseError: a field has an invalid value.
        TooLargeError: their JSON has more than 64,000 bytes.
    """
    try:
        raw: dict[str, Any] = msgspec.to_builtins(about)
        fields = {name: raw[name] for name in ArtifactDescription.__struct_fields__}
        size = len(msgspec.json.encode(fields))  # raises for a lone surrogate
        checked = msgspec.convert(fields, ArtifactDescription)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise MisuseError(f"invalid description of an artifact: {error}") from error
    if size > DESCRIPTION_BYTES_MAX:
        advice = "shorten the description; put long data into the content"
        raise TooLargeError("the description of an artifact", size, DESCRIPTION_BYTES_MAX, advice)
    if not isfinite(checked.expires_at) or checked.expires_at < 0:
        raise MisuseError(
            f"expires_at={checked.expires_at}: give seconds since the epoch, or 0 for never"
        )
    if not checked.timeline:
        raise MisuseError("an artifact needs the name of the timeline that it comes from")
    return checked


# The place for artifacts: a few operations, and the one in memory.
#
# Each put fills a *slot* of its own, named by 16 random bytes and never written again: first its
# pieces, then, in one step, the *entry* that makes it exist.  So no put and no sweep can harm another,
# in this process or elsewhere, and what a killed put leaves behind is a slot without an entry.


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


@attrs.define(eq=False)
class Backend(ABC):
    """A place where artifacts are stored. When a method returns, its changes are durable."""

    lock: Lock = attrs.field(factory=Lock, init=False, repr=False)
    """Held from checking whether an entry exists until adding it."""

    @abstractmethod
    def fill(self, slot: str, pieces: Iterable[bytes]) -> None:
        """Write the pieces of a slot; all but the last have `PIECE_BYTES`."""

    @abstractmethod
    def enter(self, entry: Entry, record: AuditRecord) -> None:
        """Add the entry of a filled slot, with an audit record."""

    @abstractmethod
    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        """The entries of one artifact, of all tenants; None: of all artifacts. In any order."""

    @abstractmethod
    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        """The pieces `first` to `last`; missing ones are left out."""

    @abstractmethod
    def remove(self, entry: Entry, record: AuditRecord) -> None:
        """Write the audit record, then remove the entry, its content first."""

    @abstractmethod
    def discard(self, slot: str) -> None:
        """Remove the content of a slot that was never entered."""

    @abstractmethod
    def tidy(self, now: float) -> None:
        """After a sweep: release unused space, and remove content that interrupted puts left."""

    @abstractmethod
    def record(self, record: AuditRecord) -> None:
        """Append a record to the audit."""

    @abstractmethod
    def records(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        """The audit of one artifact, by its id as requested; None: the whole. Oldest first."""

    def close(self) -> None:  # noqa: B027 -- most have none of their own
        """Release files and connections."""


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


def decoded_records(
    contents: Iterable[bytes | str], where: str, artifact: str | None
) -> Sequence[AuditRecord]:
    """The audit records in `contents`, of one artifact or of all.

    Raises:
        DamagedStoreError: one of them is not an audit record.
    """
    records = [decoded_record(data, where) for data in contents]
    return [record for record in records if artifact is None or record.artifact == artifact]


@attrs.define(eq=False)
class MemoryBackend(Backend):
    """A `Backend` in memory. It keeps bytes, not objects, so that encoding and decoding are always exercised."""

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
        contents = [data for name in there for data in list(self._entries.get(name, {}).values())]
        return [decoded(data, "memory") for data in contents]

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

    def records(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        return decoded_records(list(self._records), "memory", artifact)


ENTRIES: Final = "SELECT entry FROM artifacts"
ENTRIES_OF: Final = "SELECT entry FROM artifacts WHERE artifact = ?"
DROP_PIECES: Final = "DELETE FROM artifact_pieces WHERE slot = ?"
DROP_ENTRY: Final = "DELETE FROM artifacts WHERE slot = ?"
Statement: TypeAlias = tuple[str, Sequence[object]]
"""SQL, and its values."""


class TableBackend(Backend):
    """A `Backend` in three tables of a database, which a store closes."""

    RECORDS: ClassVar[str]
    """A query for all audit records, oldest first."""

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        query, values = (ENTRIES, []) if artifact is None else (ENTRIES_OF, [artifact])
        return [decoded(data, "table artifacts") for data in self._column(query, values)]

    def remove(self, entry: Entry, record: AuditRecord) -> None:
        drops = [(statement, (entry.slot,)) for statement in (DROP_PIECES, DROP_ENTRY)]
        self._write([self._audit(record), *drops])

    def discard(self, slot: str) -> None:
        self._write([(DROP_PIECES, (slot,))])

    def record(self, record: AuditRecord) -> None:
        self._write([self._audit(record)])

    def records(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        return decoded_records(self._column(self.RECORDS, []), "table artifact_audit", artifact)

    @abstractmethod
    def _audit(self, record: AuditRecord) -> Statement:
        """What adds a record to the audit."""

    @abstractmethod
    def _column(self, query: str, values: Sequence[object]) -> Sequence[bytes | str]:
        """The result of a query for one column."""

    @abstractmethod
    def _write(self, statements: Sequence[Statement]) -> None:
        """Run all statements in one transaction."""
