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
    """Content by the hash of what it is; every read names who reads. Safe under threads.

    Raises, whatever is called after `close`:
        ClosedError: open the store again.
    """

    def put(self, content: bytes, about: ArtifactDescription) -> ArtifactId:
        """Keep `content` and return its id once it is durable.

        Putting the same again under the same description changes nothing; under another one, it is
        kept once more, on its own.

        Raises:
            MisuseError: `about` says what cannot be, or asks for encryption and there are no keys.
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
            AccessRefusedError: this requester does not get it; `reason` says why.
            MisuseError: `start` or `size` is below 0.
            DamagedStoreError: what is stored is not what was put.
        """
        ...

    def describe(self, artifact: str, requester: Requester) -> ArtifactMetadata:
        """What is said about an artifact, after the same checks as `read`.

        Raises:
            AccessRefusedError: this requester does not get it; `reason` says why.
        """
        ...

    def list(
        self, requester: Requester, timeline: TimelineId | None = None
    ) -> Sequence[ArtifactMetadata]:
        """All that this requester could read, oldest first; what they could not is left out."""
        ...

    def audit(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        """Who asked for what, and what became of it; oldest first. For the host, not for requesters."""
        ...

    def sweep(self) -> int:
        """Remove expired content; say how many descriptions went with it."""
        ...

    def close(self) -> None:
        """Release what the store holds. Idempotent."""
        ...


@runtime_checkable
class ForgetsArtifacts(Protocol):
    """An artifact store that can remove what has not expired."""

    def forget(
        self, timeline: TimelineId, artifact: str | None = None
    ) -> Sequence[ArtifactMetadata]:
        """Remove what was put for a timeline, or one artifact of it, whoever it belongs to; what that
        was.  The same content that was put for another timeline stays.  For the host."""
        ...
