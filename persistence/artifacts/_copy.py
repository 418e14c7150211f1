"""Copies artifacts from one store of them into another, as they lie there: nothing is decrypted."""

from collections.abc import Container, Iterator

from blocks import ArtifactId, DamagedStoreError, TimelineId
from persistence.artifacts._artifacts import Artifacts
from persistence.artifacts._backend import PIECE_BYTES, Backend, Entry
from persistence.artifacts._crypt import TAG_BYTES
from persistence.artifacts._pieces import Span


def copy_artifacts(
    source: Artifacts,
    target: Artifacts,
    timelines: Container[TimelineId],
    named: Container[ArtifactId],
) -> int:
    """Copy what was put by one of `timelines` or is one of `named`; return how many were new.

    Each keeps its slot, which its encryption is bound to, and by which a repeat knows it.

    Raises:
        DamagedStoreError: content is missing; the artifacts before it are copied.
    """
    wanted = [
        entry
        for entry in source.backend.entries()
        if entry.metadata.timeline in timelines or entry.metadata.id in named
    ]
    there = {entry.slot for entry in target.backend.entries()} if wanted else set[str]()
    new = [entry for entry in wanted if entry.slot not in there]
    for entry in new:
        target.backend.discard(entry.slot)  # what a copy that was killed has left
        target.backend.fill(entry.slot, _pieces(source.backend, entry))
        target.enter(entry)
    return len(new)


def _pieces(backend: Backend, entry: Entry) -> Iterator[bytes]:
    """All pieces of a slot.

    Raises:
        DamagedStoreError: they are not all there.
    """
    metadata, found = entry.metadata, 0
    tag = TAG_BYTES if metadata.key else 0
    span = Span.of(metadata.size, 0, None, PIECE_BYTES - tag)
    for piece in backend.pieces(entry.slot, span.first, span.last) if span.size else ():
        found += len(piece) - tag
        yield piece
    if found != metadata.size:
        raise DamagedStoreError(
            f"artifact {metadata.id!r}: {metadata.size - found} bytes are missing; restore it from a"
            " backup"
        )
