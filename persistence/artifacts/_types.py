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
    """What the caller says about content; stored unencrypted."""

    timeline: TimelineId
    """The timeline that the content comes from."""
    tenant: str = ""
    """The tenant that owns it; requesters of other tenants do not learn that it exists. Empty: no tenant."""
    expires_at: float = 0.0
    """The time from which it can no longer be read, in seconds since the epoch; 0: never."""
    sensitivity: Sensitivity = "internal"
    mime: str = "text/plain"
    path: str = ""
    """The logical path of the block that it comes from."""
    about: str = ""
    """A line that helps people and models decide whether to read it."""


class ArtifactMetadata(ArtifactDescription, frozen=True, kw_only=True):
    """A description, and what the store adds."""

    created_at: float
    size: int
    """Bytes of the content."""
    sha256: str
    key: str = ""
    """The id of the key that encrypts the content; empty: it is not encrypted."""

    @property
    def id(self) -> ArtifactId:
        """The artifact's id."""
        return artifact_id_of_hash(self.sha256)

    def is_expired(self, now: float) -> bool:
        """Whether it can no longer be read."""
        return bool(self.expires_at) and self.expires_at <= now


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One use of the store, without any content."""

    at: float
    action: Action
    artifact: str = ""
    """The id as requested; empty for a list."""
    tenant: str = ""
    """The tenant of the requester; for put, expire and forget, that of the artifact."""
    requester: str = ""
    """The id of the requester; empty for actions of the host: put, expire, forget."""
    timeline: str = ""
    """The timeline of the artifact for put, expire and forget; for a list, the requested one; else empty."""
    allowed: bool = True
    reason: Refusal | Literal[""] = ""
    """Why it was refused, else empty. `tenant` if the requester was told `unknown`."""


def _frozen(permissions: Iterable[str]) -> frozenset[str]:
    if isinstance(permissions, str):
        raise MisuseError(f"permissions={permissions!r}: give a set of permissions, not a text")
    return frozenset(permissions)


@checked_calls()
@attrs.frozen
class Requester:
    """Who makes a request, for which tenant, and with which permissions.

    `read` permits public and internal content, `read:confidential` and `read:restricted` the content of these
    sensitivities.  No permission includes another.

    Raises:
        ArgumentError: the id is missing, or a field does not exist.
        MisuseError: `permissions` is a text.
    """

    id: str = attrs.field(validator=attrs.validators.min_len(1))
    tenant: str = attrs.field(default="", kw_only=True)
    permissions: frozenset[str] = attrs.field(
        default=frozenset({"read"}), converter=_frozen, kw_only=True
    )


def checked_description(about: ArtifactDescription) -> ArtifactDescription:
    """The fields of `about` that a caller may set, checked.

    Raises:
        MisuseError: a field has an invalid value.
        TooLargeError: their JSON has more than 64,000 bytes.
    """
    try:
        given: dict[str, Any] = msgspec.to_builtins(about)
        fields = {name: given[name] for name in ArtifactDescription.__struct_fields__}
        size = len(msgspec.json.encode(fields))  # raises for a lone surrogate
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
