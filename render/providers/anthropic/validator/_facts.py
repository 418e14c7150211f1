"""Facts: what the cross-checks need to know about one message, tool or system block, and what is wrong
with it."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from render.providers._facts import PartFacts

Json: TypeAlias = Mapping[str, Any]
Ttl: TypeAlias = Literal["5m", "1h"]


@attrs.frozen(eq=False)
class Mark:
    """A cache mark and where it stands."""

    at: str
    ttl: Ttl


@attrs.frozen(eq=False)
class Ref:
    """The id of a tool use or a tool result, and where it stands."""

    id: str
    at: str
    late: bool = False
    """A result with something else before it in its message."""
    offset: int = 0
    """Which of several joined messages it stands in."""


@attrs.define(eq=False)
class Facts(PartFacts):
    """The verdict on one part of a request, and what it adds to the whole."""

    marks: list[Mark] = attrs.Factory(list[Mark])
    images: int = 0
    size: int = 0
    """Characters of text and attachments; never more than the bytes on the wire."""
