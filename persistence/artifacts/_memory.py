"""Artifacts in memory, for tests and experiments."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock

import attrs
import msgspec

from persistence.artifacts._artifacts import Artifacts
from persistence.artifacts._backend import Entry, decoded, decoded_record, encoded
from persistence.artifacts._crypt import KeyRing
from persistence.artifacts._types import AuditRecord


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


class MemoryArtifacts(Artifacts):
    """An artifact store in memory, which ends with the process."""

    def __init__(
        self,
        *,
        keys: KeyRing | None = None,
        clock: Callable[[], float] = time.time,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        super().__init__(MemoryBackend(), keys=keys, clock=clock, random=random)
