"""The envelope of a tool result: what is known about it besides its content.

It keeps a result useful after its content has left the prompt.  The prompt still shows the outcome and the key fields;
the durability says whether the content may be cleared; the determinism says whether reading the source again would
give the same content.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from blocks._content import Sensitivity

Outcome: TypeAlias = Literal["success", "failure", "partial"]
"""How a call ended."""
Durability: TypeAlias = Literal["ephemeral", "anchoring", "replayable", "non-replayable"]
"""How a result may be shortened when space is short."""
ToolKind: TypeAlias = Literal["read", "write", "command", "search", "web", "other"]
"""What a call does; the digest lists calls by this kind, and it decides whether two calls ask for the same."""

HASH_CHARACTERS: Final = 16
"""Hexadecimal digits of a SHA-256 that are kept; they suffice to detect a change."""


class Determinism(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a source when a tool read it, which shows later whether the source has changed."""

    content_hash: str = ""
    etag: str = ""
    mtime: float = 0.0
    """Seconds since the epoch."""
    version: str = ""

    @classmethod
    def of(cls, content: str | bytes) -> "Determinism":
        """The state of a source for which only its content is known."""
        data = content.encode(errors="surrogatepass") if isinstance(content, str) else content
        return cls.of_sha256(sha256(data).hexdigest())

    @classmethod
    def of_sha256(cls, digest: str, *, mtime: float = 0.0) -> "Determinism":
        """The same, given the hash of the content."""
        return cls(content_hash=digest[:HASH_CHARACTERS], mtime=mtime)

    def has_changed(self, current: "Determinism") -> bool:
        """Whether the source may have changed: decided by the strongest field that both states have.

        If they have no field in common, the source counts as changed.
        """
        for name in ("content_hash", "etag", "mtime", "version"):
            then, now = getattr(self, name), getattr(current, name)
            if then and now:
                return bool(then != now)
        return True


class Envelope(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about a tool result besides its content."""

    outcome: Outcome = "success"
    key_fields: dict[str, Any] = {}
    """Small facts that stay when the content is cleared: an exit status, a count, an id."""
    durability: Durability = "anchoring"
    """How the content may be shortened when space is short: `ephemeral` may be cleared; `anchoring` keeps a summary and
    its key fields; `replayable` may be cleared while its source is unchanged; `non-replayable` is moved to the
    artifact store or kept."""
    determinism: Determinism = Determinism()
    """The state of the source at the time of the call; see `Determinism.has_changed`."""
    sensitivity: Sensitivity = "internal"
    kind: ToolKind | None = None
    """What the call did, as the tool declared it; None: what its name suggests, see `tool_kind`."""
    target: str = ""
    """The argument that names the object of the call: a path, a query, an id; empty: found as for any tool, see
    `tool_target`."""
    started_at: float = 0.0
    ended_at: float = 0.0


# Fields of a JSON text, which stay in the prompt when the rest of a result is cleared.


_MISSING: Final = object()


def fields_in(text: str, paths: Iterable[str]) -> dict[str, Any]:
    """The values at these paths in a JSON text, by path; paths without a value are left out. Empty if it is not JSON.

    `order.id` is a field of a field, `items.0` the first item of a list; a key that itself contains dots is found, too.
    """
    wanted = tuple(paths)
    if not wanted:
        return {}
    try:
        value: object = msgspec.json.decode(text)
    except (
        ValueError,
        RecursionError,
    ):  # ValueError also covers a lone surrogate, which is not UTF-8
        return {}
    found = ((path, _at(value, path)) for path in wanted)
    return {path: there for path, there in found if there is not _MISSING}


def _at(value: object, path: str) -> object:
    there = _step(value, path)
    if there is _MISSING:
        there = value
        for key in path.split("."):
            there = _step(there, key)
    return there


def _step(value: object, key: str) -> object:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).get(key, _MISSING)
    if isinstance(value, list) and key.isdecimal():
        items = cast("list[object]", value)
        return items[int(key)] if int(key) < len(items) else _MISSING
    return _MISSING
