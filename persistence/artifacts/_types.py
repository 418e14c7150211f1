"""The description of an artifact, the requester of one, and the audit record."""

from collections.abc import Iterable
from math import isfinite
from typing import Any, Literal, TypeAlias

import attrs
import msgspec
from msgspec import Struct

from blocks import (
    ArtifactId,
    MisuseError,
    Refusal,
    Sensitivity,
    TimelineId,
    TooLargeError,
    artifact_id_of_hash,
    checked_calls,
)
from persistence._limits import DESCRIPTION_BYTES_MAX

Action: TypeAlias = Literal["put", "read", "describe", "list", "expire", "forget"]


class ArtifactDescription(Struct, frozen=True, kw_only=True):
    """What the caller says about a content; none of it is encrypted."""

    timeline: TimelineId
    """Where the content was taken from."""
    tenant: str = ""
    """Whose it is; nobody else's requester gets to know of it. Empty: it belongs to no tenant."""
    expires_at: float = 0.0
    """In seconds since the epoch, when it stops being handed out; 0: never."""
    sensitivity: Sensitivity = "internal"
    mime: str = "text/plain"
    path: str = ""
    """The logical path of the block that it came from."""
    about: str = ""
    """A line for people and models that decide whether to read it."""


class ArtifactMetadata(ArtifactDescription, frozen=True, kw_only=True):
    """A description with what the store adds."""

    created_at: float
    size: int
    """Of the content, in bytes."""
    sha256: str
    key: str = ""
    """The id of the key that the content is encrypted with; empty: it lies there as it is."""

    @property
    def id(self) -> ArtifactId:
        """By which it is read."""
        return artifact_id_of_hash(self.sha256)

    def is_expired(self, now: float) -> bool:
        """Whether its time is over."""
        return bool(self.expires_at) and self.expires_at <= now


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One use of the store; never holds any content."""

    at: float
    action: Action
    artifact: str = ""
    """As it was asked for; empty for a list."""
    tenant: str = ""
    """Of the requester; of the artifact, when it was put or has expired."""
    requester: str = ""
    """Empty for what the host itself does: put, expire, forget."""
    timeline: str = ""
    """Of what was put or has expired, or whose list was asked for."""
    allowed: bool = True
    reason: Refusal | Literal[""] = ""
    """Why it was refused. Says `tenant` where the requester was told `unknown`."""


def _frozen(permissions: Iterable[str]) -> frozenset[str]:
    if isinstance(permissions, str):
        raise MisuseError(f"permissions={permissions!r}: give a set of permissions, not a text")
    return frozenset(permissions)


@checked_calls()
@attrs.frozen
class Requester:
    """Who asks, for which tenant, and what they may read.

    `read` opens what is public and internal, `read:confidential` and `read:restricted` what their
    names say.  No permission implies another.

    Raises:
        ArgumentError: no id, or no such field.
        MisuseError: the permissions are a text.
    """

    id: str = attrs.field(validator=attrs.validators.min_len(1))
    tenant: str = attrs.field(default="", kw_only=True)
    permissions: frozenset[str] = attrs.field(
        default=frozenset({"read"}), converter=_frozen, kw_only=True
    )


def checked_description(about: ArtifactDescription) -> ArtifactDescription:
    """`about` without what the store decides by itself.

    Raises:
        MisuseError: a field holds what it cannot.
        TooLargeError: all of them have more than 64,000 bytes.
    """
    try:
        given: dict[str, Any] = msgspec.to_builtins(about)
        fields = {name: given[name] for name in ArtifactDescription.__struct_fields__}
        size = len(msgspec.json.encode(fields))  # which no lone surrogate survives
        checked = msgspec.convert(fields, ArtifactDescription)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise MisuseError(f"this cannot be said about an artifact: {error}") from error
    if size > DESCRIPTION_BYTES_MAX:
        advice = "say less about it; what is long belongs into the content"
        raise TooLargeError("the description of an artifact", size, DESCRIPTION_BYTES_MAX, advice)
    if not isfinite(checked.expires_at) or checked.expires_at < 0:
        raise MisuseError(f"expires_at={checked.expires_at}: seconds since the epoch, or 0: never")
    if not checked.timeline:
        raise MisuseError("an artifact needs the timeline that it was taken from")
    return checked
