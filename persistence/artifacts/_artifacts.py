"""The artifact store: it applies all rules, wherever the content is stored. Opening it, and copying into another one.

The access rules are checked in this order, and the first that fails decides:

    unknown      it was never put
    tenant       it was put, but not for the requester's tenant; the requester is told `unknown`
    permission   the requester lacks the permission for its sensitivity
    expired      it has expired, whether it has been swept or not
    key          it is encrypted, and its key is missing or wrong

Several timelines of one tenant may have put the same content.  It lasts until the latest of their expiries, and
the strictest sensitivity in force applies: if one timeline calls it restricted, requesters who may only read
internal content do not get it.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

import attrs
import msgspec

from blocks import (
    ENCRYPTED,
    AccessRefusedError,
    ArtifactId,
    ClosedError,
    DamagedStoreError,
    MisuseError,
    Refusal,
    Sensitivity,
    TimelineId,
    artifact_id,
    artifact_ids_in,
    clean_json,
)
from persistence._bucket import WAIT_SECONDS, Objects
from persistence._store import PROBLEMS_MAX, StoreReport
from persistence.artifacts._crypt import (
    SLOT_BYTES,
    Cipher,
    KeyRing,
    as_pieces,
    cipher_for,
    pieces_of,
    plain_bytes,
)
from persistence.artifacts._files import FolderBackend, UrlBackend
from persistence.artifacts._store import (
    Action,
    ArtifactDescription,
    ArtifactMetadata,
    AuditRecord,
    Backend,
    Entry,
    MemoryBackend,
    Requester,
    checked_description,
)
from persistence.artifacts._verify import Examination

NAME_CHARACTERS_MAX = 100
"""How many characters of an invalid artifact id the audit keeps."""


@attrs.define(eq=False)
class ArtifactStore:
    """Content, addressed by its hash; every read names its requester. Thread-safe.

    Raises, in every method after `close`:
        ClosedError: open the store again.
    """

    backend: Backend
    _keys: KeyRing | None = attrs.field(default=None, kw_only=True, alias="keys", repr=False)
    _clock: Callable[[], float] = attrs.field(default=time.time, kw_only=True, alias="clock")
    _random: Callable[[int], bytes] = attrs.field(default=os.urandom, kw_only=True, alias="random")
    _closed: bool = attrs.field(default=False, init=False)

    # ------------------------------------------------------------ put

    def put(self, content: bytes, about: ArtifactDescription) -> ArtifactId:
        """Store `content` and return its id once it is durable.

        Putting the same content with the same description again changes nothing; with another description, it is
        stored once more.

        Raises:
            MisuseError: `about` is not valid, or requires encryption and there are no keys.
        """
        description = self._accepted(about)
        artifact = artifact_id(content)
        if not self._has(artifact, description):
            self._store([content], description)
        return artifact

    def put_stream(self, pieces: Iterable[bytes], about: ArtifactDescription) -> ArtifactId:
        """`put` for content that is too large for memory.

        Raises:
            MisuseError: as `put`.
        """
        return self._store(pieces, self._accepted(about))

    def _accepted(self, about: ArtifactDescription) -> ArtifactDescription:
        self._refuse_if_closed()
        description = checked_description(about)
        if description.sensitivity in ENCRYPTED and self._keys is None:
            raise MisuseError(
                f"{description.sensitivity} content is encrypted and this store has no keys; open"
                ' it with keys=Keys({"k1": secrets.token_bytes(32)}, current="k1")'
            )
        return description

    def _store(self, pieces: Iterable[bytes], description: ArtifactDescription) -> ArtifactId:
        slot = self._random(SLOT_BYTES).hex()
        is_secret = description.sensitivity in ENCRYPTED
        key_id = self._keys.current if self._keys and is_secret else ""
        cipher = self._cipher(key_id, slot, description.tenant)
        size, digest = 0, sha256()

        def counted() -> Iterator[bytes]:
            nonlocal size
            for piece in pieces:
                size += len(piece)
                digest.update(piece)
                yield piece

        try:
            self.backend.fill(slot, as_pieces(counted(), cipher))
        except BaseException:
            self.backend.discard(slot)
            raise
        metadata = ArtifactMetadata(
            **msgspec.structs.asdict(description),
            created_at=self._clock(),
            size=size,
            sha256=digest.hexdigest(),
            key=key_id,
        )
        json = msgspec.json.encode(metadata)
        entry = Entry(slot, metadata, json, cipher.seal(json) if cipher else "")
        with self.backend.lock:
            if self._has(metadata.id, description):
                self.backend.discard(slot)
            else:
                self.enter(entry)
        return metadata.id

    def enter(self, entry: Entry) -> None:
        """Add the entry of a filled slot, with an audit record."""
        self.backend.enter(entry, self._by_host("put", entry.metadata))

    def _has(self, artifact: ArtifactId, description: ArtifactDescription) -> bool:
        """Whether the same content was put with the same description, has not expired and can be decrypted."""
        now, fields = self._clock(), msgspec.structs.asdict(description).items()
        return any(
            fields <= msgspec.structs.asdict(entry.metadata).items()
            and not entry.metadata.is_expired(now)
            and self._opens(entry)
            for entry in self.backend.entries(artifact)
        )

    # ------------------------------------------------------------ read

    def read(
        self, artifact: str, requester: Requester, *, start: int = 0, size: int | None = None
    ) -> bytes:
        """The content, or `size` bytes of it from `start` on; like a slice, this may be fewer at its end.

        Raises:
            AccessRefusedError: the requester may not read it; `reason` says why.
            MisuseError: `start` or `size` is below 0.
            DamagedStoreError: the stored content is not what was put.
        """
        if start < 0 or (size is not None and size < 0):
            raise MisuseError(f"start={start}, size={size}: start and size must be at least 0")
        entry = self._granted("read", artifact, requester)
        total = entry.metadata.size
        return self._content(entry, start, total if size is None else min(start + size, total))

    def describe(self, artifact: str, requester: Requester) -> ArtifactMetadata:
        """The metadata of an artifact, after the same checks as `read`.

        Raises:
            AccessRefusedError: the requester may not read it; `reason` says why.
        """
        return self._granted("describe", artifact, requester).metadata

    def list(
        self, requester: Requester, timeline: TimelineId | None = None
    ) -> Sequence[ArtifactMetadata]:
        """All artifacts that the requester may read, of one timeline or of all, oldest first."""
        self._refuse_if_closed()
        by_id: dict[ArtifactId, list[Entry]] = {}
        for entry in self.backend.entries():
            by_id.setdefault(entry.metadata.id, []).append(entry)
        self._record("list", "", requester, timeline=timeline or "")
        answers = [self._readable(entries, requester) for entries in by_id.values()]
        readable = [e.metadata for a in answers if not isinstance(a, str) for e in a]
        wanted = [m for m in readable if timeline is None or m.timeline == timeline]
        return sorted(wanted, key=lambda metadata: (metadata.created_at, metadata.id))

    def _granted(self, action: Action, artifact: str, requester: Requester) -> Entry:
        """The entry that the requester may read. The audit record is written before the content is returned, or when
        the request is refused."""
        self._refuse_if_closed()
        is_id = artifact_ids_in(artifact) == (artifact,)
        answer = self._readable(self.backend.entries(artifact) if is_id else (), requester)
        name = artifact if is_id else clean_json(artifact[:NAME_CHARACTERS_MAX])
        if isinstance(answer, str):
            self._record(action, name, requester, reason=answer)
            raise refused(name, answer)
        self._record(action, name, requester)
        return answer[0]

    def _readable(
        self, entries: Sequence[Entry], requester: Requester
    ) -> Sequence[Entry] | Refusal:
        """The entries of one artifact that the requester may read and that can be decrypted, or the reason for
        refusing."""
        allowed = granted(entries, requester, self._clock())
        if isinstance(allowed, str):
            return allowed
        opened = [entry for entry in allowed if self._opens(entry)]
        strictest = allowed[0].metadata.sensitivity
        return opened if opened and opened[0].metadata.sensitivity == strictest else "key"

    def _content(self, entry: Entry, start: int, stop: int) -> bytes:
        metadata, size = entry.metadata, max(stop - start, 0)
        content = b"".join(self._parts(entry, start, stop)) if size else b""
        if len(content) != size:
            raise _damaged(metadata, f"{size - len(content)} bytes are missing")
        if size == metadata.size and sha256(content).hexdigest() != metadata.sha256:
            raise _damaged(metadata, "its content differs from what was stored")
        return content

    def _parts(self, entry: Entry, start: int, stop: int) -> Iterator[bytes]:
        """What the pieces of a content have of its bytes from `start` up to `stop`."""
        metadata = entry.metadata
        cipher = self._cipher(metadata.key, entry.slot, metadata.tenant)
        unit = plain_bytes(is_encrypted=cipher is not None)
        first, last = start // unit, (stop - 1) // unit
        for number, piece in enumerate(self.backend.pieces(entry.slot, first, last), first):
            plain = cipher.opened(number, piece) if cipher else piece
            if plain is None:
                raise _damaged(metadata, f"piece {number} was altered")
            at = number * unit
            yield plain[max(start - at, 0) : stop - at]

    # ------------------------------------------------------------ keys

    def _cipher(self, key_id: str, slot: str, tenant: str) -> Cipher | None:
        """The cipher of a slot; None if it is not encrypted."""
        if not key_id:
            return None
        key = self._keys.key(key_id) if self._keys else None
        if key is None:
            raise MisuseError(f"key {key_id!r} is not in the key ring")
        return cipher_for(key, slot, tenant)

    def _opens(self, entry: Entry) -> bool:
        """Whether the entry can be used: its key is available and its seal is valid, or it needs no encryption."""
        metadata = entry.metadata
        if not metadata.key:
            return metadata.sensitivity not in ENCRYPTED
        key = self._keys.key(metadata.key) if self._keys else None
        if key is None:
            return False
        return cipher_for(key, entry.slot, metadata.tenant).vouches(entry.json, entry.seal)

    # ------------------------------------------------------------ audit, retention, close

    def audit(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        """Who requested what, and whether it was allowed; of one artifact or of all, oldest first. For the host
        only."""
        self._refuse_if_closed()
        return self.backend.records(artifact)

    def verify(self, *, keys: KeyRing | None = None) -> StoreReport:
        """Read everything, and report what is damaged or inconsistent; see `persistence.verify`."""
        self._refuse_if_closed()
        examination = Examination(self.backend, keys or self._keys)
        entries, damage = examination.entries()
        problems = islice(chain(damage, examination.problems(entries)), PROBLEMS_MAX)
        return StoreReport(artifacts=len(entries), problems=tuple(problems))

    def sweep(self) -> int:
        """Remove expired content; return how many entries were removed."""
        self._refuse_if_closed()
        now = self._clock()
        expired = [entry for entry in self.backend.entries() if entry.metadata.is_expired(now)]
        for entry in expired:
            self.backend.remove(entry, self._by_host("expire", entry.metadata))
        self.backend.tidy(now)
        return len(expired)

    def forget(
        self, timeline: TimelineId, artifact: str | None = None
    ) -> Sequence[ArtifactMetadata]:
        """Remove what was put for a timeline, or one artifact of it, of all tenants; return the metadata of what was
        removed.  The same content put for another timeline stays.  For the host only."""
        self._refuse_if_closed()
        is_one = artifact is None or artifact_ids_in(artifact) == (artifact,)
        entries = self.backend.entries(artifact) if is_one else ()
        own = [entry for entry in entries if entry.metadata.timeline == timeline]
        for entry in own:
            self.backend.remove(entry, self._by_host("forget", entry.metadata))
        if own:
            self.backend.tidy(self._clock())
        return [entry.metadata for entry in own]

    def _record(
        self,
        action: Action,
        artifact: str,
        requester: Requester,
        *,
        timeline: str = "",
        reason: "Refusal | None" = None,
    ) -> None:
        self.backend.record(
            AuditRecord(
                at=self._clock(),
                action=action,
                artifact=artifact,
                tenant=clean_json(requester.tenant),
                requester=clean_json(requester.id),
                timeline=clean_json(timeline),
                allowed=reason is None,
                reason=reason or "",
            )
        )

    def _by_host(self, action: Action, metadata: ArtifactMetadata) -> AuditRecord:
        return AuditRecord(
            at=self._clock(),
            action=action,
            artifact=metadata.id,
            tenant=metadata.tenant,
            timeline=metadata.timeline,
        )

    def close(self) -> None:
        """Release files and connections. Idempotent."""
        if not self._closed:
            self._closed = True
            self.backend.close()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ClosedError("this artifact store is closed; open it again")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _damaged(metadata: ArtifactMetadata, what: str) -> DamagedStoreError:
    return DamagedStoreError(
        f"artifact {metadata.id!r}: {what}; restore it from a backup, or get the content from its"
        " source again"
    )


class MemoryArtifacts(ArtifactStore):
    """An artifact store in memory, which ends with the process."""

    def __init__(
        self,
        *,
        keys: KeyRing | None = None,
        clock: Callable[[], float] = time.time,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        super().__init__(MemoryBackend(), keys=keys, clock=clock, random=random)


def open_artifacts(
    where: str | Path,
    *,
    keys: KeyRing | None = None,
    clock: Callable[[], float] = time.time,
    random: Callable[[int], bytes] = os.urandom,
    wait_seconds: float = WAIT_SECONDS,
) -> ArtifactStore:
    """The artifact store in a folder, or at a URL such as `s3://bucket/artifacts`. A request is repeated for
    `wait_seconds` while the server does not answer.

    Raises:
        MisuseError: it is not a URL of a bucket, the bucket does not exist, or the library is not installed.
        StoreError: the folder cannot be created; or permission is denied, or the server does not answer.
    """
    place = str(where)
    backend: Backend
    if "://" not in place:
        backend = FolderBackend(Path(place).absolute())
    elif place.startswith("file://"):
        backend = FolderBackend(Path(unquote(urlsplit(place).path)))
    else:
        backend = UrlBackend(Objects.at(place, wait_seconds), random(4).hex())
    return ArtifactStore(backend, keys=keys, clock=clock, random=random)


# The access rules.


PERMISSIONS: dict[Sensitivity, str] = {
    "public": "read",
    "internal": "read",
    "confidential": "read:confidential",
    "restricted": "read:restricted",
}
"""The permission that reading each sensitivity needs; the least strict first."""


_RANKS: dict[str, int] = {each: rank for rank, each in enumerate(reversed(PERMISSIONS))}
"""A rank for each sensitivity; the strictest has the lowest."""

_ADVICE: dict[Refusal, str] = {
    "unknown": "this store holds no such artifact for this requester",
    "permission": "the requester lacks the permission for its sensitivity",
    "expired": "its time is over; get the content from its source again",
    "key": "its key is not in the key ring, or does not fit; open the store with the right keys",
}


def granted(entries: Sequence[Entry], requester: Requester, now: float) -> list[Entry] | Refusal:
    """The entries of one artifact that the requester may read and that have not expired, strictest first; or the reason
    for refusing."""
    if not entries:
        return "unknown"
    own = [entry for entry in entries if entry.metadata.tenant == requester.tenant]
    if not own:
        return "tenant"
    in_force = [entry for entry in own if not entry.metadata.is_expired(now)]
    ranked = sorted(in_force or own, key=_rank)
    if PERMISSIONS[ranked[0].metadata.sensitivity] not in requester.permissions:
        return "permission"
    return ranked if in_force else "expired"


def _rank(entry: Entry) -> tuple[int, float, str]:
    """A sort key: strictest first; of equally strict entries the oldest, so that answers do not change."""
    return _RANKS[entry.metadata.sensitivity], entry.metadata.created_at, entry.slot


def refused(artifact: str, reason: Refusal) -> AccessRefusedError:
    """The error for a requester, which does not reveal that another tenant has the content."""
    answer: Refusal = "unknown" if reason == "tenant" else reason
    return AccessRefusedError(artifact, answer, _ADVICE[answer])


# Copying.


def copy_artifacts(
    source: ArtifactStore,
    target: ArtifactStore,
    is_wanted: Callable[[ArtifactMetadata], bool],
    on_damage: Callable[[str], None],
    artifact: str | None = None,
) -> int:
    """Copy the undamaged artifacts that `is_wanted` accepts, of all or only `artifact`, and return how many were new.

    `on_damage` receives a sentence for each damaged one.  A copy keeps its slot, because its encryption depends on it,
    and because a repeated copy recognizes it by its slot.
    """
    examination = Examination(source.backend)
    entries, problems = examination.entries(artifact)
    for problem in problems:
        on_damage(problem.what)
    wanted = [entry for entry in entries if is_wanted(entry.metadata)]
    there = {entry.slot for entry in target.backend.entries(artifact)} if wanted else set[str]()
    count = 0
    for entry in (entry for entry in wanted if entry.slot not in there):
        if damage := examination.wrong(entry):
            on_damage(f"artifact {entry.metadata.id}: {damage}")
            continue
        target.backend.discard(entry.slot)  # what an interrupted copy left
        pieces = source.backend.pieces(entry.slot, 0, pieces_of(entry.metadata) - 1)
        target.backend.fill(entry.slot, pieces)
        target.enter(entry)
        count += 1
    return count
