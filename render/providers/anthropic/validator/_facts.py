"""Facts: what the cross-checks need to know about one message, tool or system block."""

from typing import Any, Literal, TypeAlias

import attrs

from render.providers.anthropic.validator._rules import Rule
from render.providers.anthropic.validator._violation import Fault

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


@attrs.frozen(eq=False, kw_only=True)
class Facts:
    """The verdict on one part of a request, and what it adds to the whole.

    `source` is the very object that was looked at. Holding it is what makes its `id()` a safe key:
    no other object can get that id while the facts live.
    """

    source: object
    faults: tuple[Fault, ...] = ()
    marks: tuple[Mark, ...] = ()
    images: int = 0
    size: int = 0
    """Characters of text and attachments; never more than the bytes on the wire."""


@attrs.define(eq=False)
class Scan:
    """Collects the facts while one part is read."""

    faults: list[Fault] = attrs.Factory(list[Fault])
    marks: list[Mark] = attrs.Factory(list[Mark])
    images: int = 0
    size: int = 0

    def fault(self, rule: Rule, at: str, *details: object, field: str = "") -> None:
        """Note a broken rule."""
        self.faults.append(Fault(rule, at, field, details))

    def collected(self) -> dict[str, Any]:
        """The fields of `Facts`, frozen."""
        return {
            "faults": tuple(self.faults),
            "marks": tuple(self.marks),
            "images": self.images,
            "size": self.size,
        }
