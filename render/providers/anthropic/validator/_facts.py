"""Facts about one message, tool or system block: its faults, and what the checks of the whole request need."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from render.providers._facts import PartFacts

Json: TypeAlias = Mapping[str, Any]
Ttl: TypeAlias = Literal["5m", "1h"]


@attrs.frozen(eq=False)
class Mark:
    """A cache mark and its place."""

    at: str
    ttl: Ttl


@attrs.frozen(eq=False)
class Ref:
    """The id of a tool use or a tool result, and its place."""

    id: str
    at: str
    late: bool = False
    """For a result: whether other content precedes it in its message."""
    offset: int = 0
    """Index of its message among the joined ones."""


@attrs.define(eq=False)
class Facts(PartFacts):
    """The faults of one part of a request, and its contribution to totals."""

    marks: list[Mark] = attrs.Factory(list[Mark])
    images: int = 0
    size: int = 0
    """Characters of text and attachments; never more than the bytes that are sent."""
