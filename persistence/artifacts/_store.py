"""The protocol of every artifact store, tested by `tests/persistence/artifacts/contract.py`."""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from blocks import ArtifactId, TimelineId
from persistence.artifacts._types import (
    ArtifactDescription,
    ArtifactMetadata,
    AuditRecord,
    Requester,
)


class ArtifactStore(Protocol):
    """Content, addressed by its hash; every read names its requester. Thread-safe.

    Raises, in every method after `close`:
        ClosedError: open the store again.
    """

    def put(self, content: bytes, about: ArtifactDescription) -> ArtifactId:
        """Store `content` and return its id once it is durable.

        Putting the same content with the same description again changes nothing; with another description, it is
        stored once more.

        Raises:
            MisuseError: `about` is not valid, or requires encryption and there are no keys.
        """
        ...

    def put_stream(self, pieces: Iterable[bytes], about: ArtifactDescription) -> ArtifactId:
        """`put` for content that is too large for memory.

        Raises:
            MisuseError: as `put`.
        """
        ...

    def read(
        self,
        artifact: str,
        requester: Requester,
        *,
        start: int = 0,
        size: int | None = None,
    ) -> bytes:
        """The content, or `size` bytes of it from `start` on; like a slice, this may be fewer at its end.

        Raises:
            AccessRefusedError: the requester may not read it; `reason` says why.
            MisuseError: `start` or `size` is below 0.
            DamagedStoreError: the stored content is not what was put.
        """
        ...

    def describe(self, artifact: str, requester: Requester) -> ArtifactMetadata:
        """The metadata of an artifact, after the same checks as `read`.

        Raises:
            AccessRefusedError: the requester may not read it; `reason` says why.
        """
        ...

    def list(
        self, requester: Requester, timeline: TimelineId | None = None
    ) -> Sequence[ArtifactMetadata]:
        """All artifacts that the requester may read, of one timeline or of all, oldest first."""
        ...

    def audit(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        """Who requested what, and whether it was allowed; of one artifact or of all, oldest first. For the host
        only."""
        ...

    def sweep(self) -> int:
        """Remove expired content; return how many entries were removed."""
        ...

    def close(self) -> None:
        """Release files and connections. Idempotent."""
        ...


@runtime_checkable
class ForgetsArtifacts(Protocol):
    """An artifact store that can remove content before it expires."""

    def forget(
        self, timeline: TimelineId, artifact: str | None = None
    ) -> Sequence[ArtifactMetadata]:
        """Remove what was put for a timeline, or one artifact of it, of all tenants; return the metadata of what was
        removed.  The same content put for another timeline stays.  For the host only."""
        ...
