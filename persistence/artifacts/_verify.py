"""Checks whether artifacts have their original content: reads, counts and, with the key, decrypts every piece."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias

import attrs

from blocks import DamagedStoreError, StoreError
from persistence._store import StoreProblem
from persistence.artifacts._crypt import TAG_BYTES, Cipher, KeyRing, cipher_for, pieces_of
from persistence.artifacts._store import Backend, Entry, decoded, decoded_record


@attrs.frozen
class Examination:
    """Checks the artifacts of a backend; changes nothing, and writes no audit records."""

    _backend: Backend
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
        if cipher and not cipher.vouches(entry.json, entry.seal):
            return "its metadata was altered"
        try:
            return self._content(entry, cipher)
        except (DamagedStoreError, StoreError) as error:
            return str(error)

    def _content(self, entry: Entry, cipher: Cipher | None) -> str:
        about, size, digest = entry.metadata, 0, sha256()
        is_sealed = bool(about.key)
        count = pieces_of(about)
        for number, piece in enumerate(self._backend.pieces(entry.slot, 0, count - 1)):
            plain = cipher.opened(number, piece) if cipher else piece
            if plain is None:
                return f"piece {number} was altered"
            size += len(plain)
            digest.update(plain)
        due = about.size + count * TAG_BYTES if is_sealed and not cipher else about.size
        if size != due:
            return f"{due} bytes were put, {size} are there"
        if (cipher or not is_sealed) and digest.hexdigest() != about.sha256:
            return "its content differs from what was stored"
        return ""

    def _is_still_there(self, entry: Entry) -> bool:
        """Whether the entry was not removed meanwhile."""
        there = self._backend.entries(entry.metadata.id)
        return any(each.slot == entry.slot for each in there)


# Checks whether the artifact tables of a database agree with each other, row by row, without reading contents.


COUNTED = {"put": 1, "expire": -1, "forget": -1}
"""How each action in the audit changes the number of entries."""


ArtifactRow: TypeAlias = tuple[str, str, bytes | str]
"""A row of the table `artifacts`: artifact, slot, entry."""


def examined(
    rows: Sequence[ArtifactRow], pieces: Mapping[str, int], records: Iterable[bytes | str]
) -> tuple[Sequence[Entry], Sequence[StoreProblem]]:
    """The readable entries, and the problems of all rows at one moment: those of `artifacts`, the number of pieces of each
    slot, and the JSON of each audit record.  A slot without an entry is the rest of an interrupted put; the next sweep
    removes it."""
    entries: list[Entry] = []
    problems: list[StoreProblem] = []
    for artifact, slot, data in rows:
        try:
            entry = decoded(data, "table artifacts")
        except DamagedStoreError as damage:
            problems.append(_of(artifact, str(damage)))
            continue
        for name, there, due in (
            ("artifact", artifact, entry.metadata.id),
            ("slot", slot, entry.slot),
        ):
            if there != due:
                what = f"column {name} has {there!r:.100}, the entry has {due!r:.100}"
                problems.append(_of(artifact, what))
        count, held = pieces_of(entry.metadata), pieces.get(entry.slot, 0)
        if held > count:
            what = f"{held} pieces are there, its content has {count}"
            problems.append(_of(artifact, what))
        entries.append(entry)
    return entries, [*problems, *_miscounted(rows, records)]


def _miscounted(
    rows: Sequence[ArtifactRow], records: Iterable[bytes | str]
) -> Iterator[StoreProblem]:
    """Artifacts with more or fewer entries than the audit says."""
    due = Counter[str]()
    for data in records:
        try:
            record = decoded_record(data, "table artifact_audit")
        except DamagedStoreError as damage:
            yield StoreProblem(what=str(damage))
            return
        due[record.artifact] += COUNTED.get(record.action, 0)
    held = Counter(artifact for artifact, _, _ in rows)
    for artifact in sorted(due.keys() | held.keys()):
        if due[artifact] != held[artifact]:
            what = f"it was put {due[artifact]} times and is there {held[artifact]} times"
            yield _of(artifact, what)


def _of(artifact: str, what: str) -> StoreProblem:
    return StoreProblem(artifact=artifact, what=f"artifact {artifact}: {what}")
