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
    """Content stored under its hash; every read names a requester. Thread-safe.

    Raises, in every method after `close`:
        ClosedError: open the store again.
    """

    def put(self, content: bytes, about: ArtifactDescription) -> ArtifactId:
        """Store `content` and return its id once it is durable.

        Putting the same content again with the same description changes nothing; with another
        description, it is stored once more, independently.

        Raises:
            MisuseError: `about` is not valid, or requires encryption and there are no keys.
        """
        ...

    def put_stream(self, pieces: Iterable[bytes], about: ArtifactDescription) -> ArtifactId:
        """`put` for content that is never whole in memory.

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
        """The content, or `size` bytes of it from `start` on, as a slice would give them.

        Raises:
            AccessRefusedError: this requester may not read it; `reason` says why.
            MisuseError: `start` or `size` is below 0.
            DamagedStoreError: the stored content is not the original one.
        """
        ...

    def describe(self, artifact: str, requester: Requester) -> ArtifactMetadata:
        """The description of an artifact, after the same checks as `read`.

        Raises:
            AccessRefusedError: this requester does not get it; `reason` says why.
        """
        ...

    def list(
        self, requester: Requester, timeline: TimelineId | None = None
    ) -> Sequence[ArtifactMetadata]:
        """All artifacts that this requester may read, oldest first."""
        ...

    def audit(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        """The audit records, oldest first. For the host program, not for requesters."""
        ...

    def sweep(self) -> int:
        """Remove expired content; return how many descriptions were removed."""
        ...

    def close(self) -> None:
        """Release the store's resources. Idempotent."""
        ...


@runtime_checkable
class ForgetsArtifacts(Protocol):
    """An artifact store that can remove artifacts before they expire."""

    def forget(
        self, timeline: TimelineId, artifact: str | None = None
    ) -> Sequence[ArtifactMetadata]:
        """Remove the artifacts of a timeline, or one of them, of any tenant; return what was removed. The same content
        put for another timeline stays. For the host program."""
        ...
