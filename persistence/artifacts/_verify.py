"""Checks whether artifacts have their original content: reads, counts and, with the key, decrypts every piece."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Protocol

import attrs

from blocks import DamagedStoreError, StoreError
from persistence._store import StoreProblem
from persistence.artifacts._backend import PIECE_BYTES, Entry
from persistence.artifacts._crypt import TAG_BYTES, Cipher, KeyRing, cipher_for
from persistence.artifacts._types import ArtifactMetadata


class Readable(Protocol):
    """The methods of a backend that are used here."""

    def entries(self, artifact: str | None = None) -> Sequence[Entry]: ...
    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]: ...


def pieces_of(about: ArtifactMetadata) -> int:
    """The number of pieces in which a content is stored."""
    return -(-about.size // (PIECE_BYTES - TAG_BYTES if about.key else PIECE_BYTES))


@attrs.frozen
class Examination:
    """Checks the artifacts of a backend; changes nothing, and writes no audit records."""

    _backend: Readable
    _keys: KeyRing | None = None

    def entries(self, artifact: str | None = None) -> tuple[Sequence[Entry], list[StoreProblem]]:
        """The entries of one artifact or of all; or none, and the problem that prevents reading them."""
        try:
            return self._backend.entries(artifact), []
        except DamagedStoreError as error:
            return (), [StoreProblem(what=str(error))]

    def problems(self, entries: Iterable[Entry]) -> Iterator[StoreProblem]:
        """The problems of these entries."""
        for entry in entries:
            what = self.wrong(entry)
            if what and self._is_still_there(entry):
                about = entry.metadata
                what = f"artifact {about.id}: {what}"
                yield StoreProblem(artifact=about.id, timeline=about.timeline, what=what)

    def wrong(self, entry: Entry) -> str:
        """What is wrong with an entry; empty if nothing is. Encrypted content is only checked with its key."""
        key_id = entry.metadata.key
        key = self._keys.key(key_id) if key_id and self._keys else None
        cipher = cipher_for(key, entry.slot, entry.metadata.tenant) if key else None
        if cipher and not cipher.vouches(entry.said, entry.seal):
            return "what is said about it was altered"
        try:
            return self._content(entry, cipher)
        except (DamagedStoreError, StoreError) as error:
            return str(error)

    def _content(self, entry: Entry, cipher: Cipher | None) -> str:
        about, size, found = entry.metadata, 0, sha256()
        is_sealed = bool(about.key)
        count = pieces_of(about)
        for number, piece in enumerate(self._backend.pieces(entry.slot, 0, count - 1)):
            plain = cipher.opened(number, piece) if cipher else piece
            if plain is None:
                return f"piece {number} was altered"
            size += len(plain)
            found.update(plain)
        due = about.size + count * TAG_BYTES if is_sealed and not cipher else about.size
        if size != due:
            return f"{due} bytes were put, {size} are there"
        if (cipher or not is_sealed) and found.hexdigest() != about.sha256:
            return "its content is not what was put"
        return ""

    def _is_still_there(self, entry: Entry) -> bool:
        """Whether the entry was not removed meanwhile."""
        there = self._backend.entries(entry.metadata.id)
        return any(each.slot == entry.slot for each in there)
