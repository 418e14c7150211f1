"""The protocol of a place for artifacts: a few operations. All rules are in `_artifacts`.

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
from persistence.artifacts._types import ArtifactMetadata, AuditRecord

PIECE_BYTES = 2**20
"""Of a slot's pieces as they lie there; the last one may be shorter."""


@attrs.frozen
class Entry:
    """A slot that is filled, and what is in it."""

    slot: str
    metadata: ArtifactMetadata
    said: bytes
    """The metadata as it was written, which is what the seal vouches for."""
    seal: str = ""
    """Proof by the key that nobody changed the metadata; empty for what is not encrypted."""


class Backend(Protocol):
    """One place. Whatever returns is durable."""

    lock: Lock
    """Held between looking whether an entry is there and adding it."""

    def fill(self, slot: str, pieces: Iterable[bytes]) -> None:
        """Write the pieces of a slot; all but the last have `PIECE_BYTES`."""
        ...

    def enter(self, entry: Entry, record: AuditRecord) -> None:
        """Make a filled slot exist, and say so on record."""
        ...

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        """The entries of one artifact, whosever they are, or of all; in any order."""
        ...

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        """The pieces `first` to `last`; fewer if they are not there."""
        ...

    def remove(self, entry: Entry, record: AuditRecord) -> None:
        """Put on record that an entry goes, then remove it, and first of all its content."""
        ...

    def discard(self, slot: str) -> None:
        """Remove the content of a slot that was never entered."""
        ...

    def tidy(self, now: float) -> None:
        """After a sweep: give room back, and remove what killed puts have left behind."""
        ...

    def record(self, record: AuditRecord) -> None:
        """Append to the audit."""
        ...

    def records(self) -> Sequence[AuditRecord]:
        """The whole audit, oldest first."""
        ...

    def close(self) -> None:
        """Release what is held."""
        ...


class _Written(Struct, frozen=True, kw_only=True):
    """An entry on a disk."""

    slot: str
    metadata: Raw
    seal: str = ""


def encoded(entry: Entry) -> bytes:
    """The entry as JSON."""
    return msgspec.json.encode(_Written(slot=entry.slot, metadata=Raw(entry.said), seal=entry.seal))


def decoded(data: bytes | str, where: str) -> Entry:
    """
    Raises:
        DamagedStoreError: `data` is no entry.
    """
    try:
        written = msgspec.json.decode(data, type=_Written)
        said = bytes(written.metadata)
        metadata = msgspec.json.decode(said, type=ArtifactMetadata)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedStoreError(
            f"{where}: an entry that is none ({error}); restore it from a backup"
        ) from error
    return Entry(written.slot, metadata, said, written.seal)


def decoded_record(data: bytes | str, where: str) -> AuditRecord:
    """
    Raises:
        DamagedStoreError: `data` is no record.
    """
    try:
        return msgspec.json.decode(data, type=AuditRecord)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedStoreError(
            f"{where}: an audit record that is none ({error}); restore it from a backup"
        ) from error
