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
    """The caller's description of content; no part of it is encrypted."""

    timeline: TimelineId
    """The timeline from which the content comes."""
    tenant: str = ""
    """The tenant that owns it; requesters of other tenants do not learn that it exists. Empty: no tenant."""
    expires_at: float = 0.0
    """The time from which reads are refused, in seconds since the epoch; 0: never."""
    sensitivity: Sensitivity = "internal"
    mime: str = "text/plain"
    path: str = ""
    """The logical path of its block."""
    about: str = ""
    """One line that helps people and models to decide whether to read it."""


class ArtifactMetadata(ArtifactDescription, frozen=True, kw_only=True):
    """A description with the fields that the store adds."""

    created_at: float
    size: int
    """Size of the content, in bytes."""
    sha256: str
    key: str = ""
    """The id of the key with which the content is encrypted; empty: it is not encrypted."""

    @property
    def id(self) -> ArtifactId:
        """The id by which it is read."""
        return artifact_id_of_hash(self.sha256)

    def is_expired(self, now: float) -> bool:
        """Whether it has expired."""
        return bool(self.expires_at) and self.expires_at <= now


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An audit record of one use of the store, without content."""

    at: float
    action: Action
    artifact: str = ""
    """The artifact's id as it was requested; empty for a list."""
    tenant: str = ""
    """The requester's tenant; for a put or an expiry, the artifact's tenant."""
    requester: str = ""
    """Empty for actions of the host program: put, expire, forget."""
    timeline: str = ""
    """The timeline of the artifact that was put or has expired, or whose list was requested."""
    allowed: bool = True
    reason: Refusal | Literal[""] = ""
    """Why it was refused; `tenant` if the requester was told `unknown`."""


def _frozen(permissions: Iterable[str]) -> frozenset[str]:
    if isinstance(permissions, str):
        raise MisuseError(f"permissions={permissions!r}: give a set of permissions, not a text")
    return frozenset(permissions)


@checked_calls()
@attrs.frozen
class Requester:
    """The requester of an artifact: its id, tenant and permissions.

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
