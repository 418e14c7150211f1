"""Facts: what the cross-checks need to know about one message, tool or system block, and what is wrong
with it.

What is wrong with a message does not depend on where the message stands, so verdicts are kept
without the place and survive when a conversation moves.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from render.policy._provider import Violation
from render.providers.anthropic.validator._rules import Rule

Json: TypeAlias = Mapping[str, Any]


@attrs.frozen(eq=False)
class Fault:
    """A broken rule inside one message, tool or system block."""

    rule: Rule
    at: str = ""
    """Place below the message, e.g. `content.1`."""
    field: str = ""
    """What the provider adds to the place, e.g. `tool_use.id`."""
    details: tuple[object, ...] = ()

    def below(self, place: str) -> Violation:
        """Say it of the thing at `place`."""
        full = joined(place, self.at)
        return violation(self.rule, full, *self.details, field=self.field)


def violation(rule: Rule, place: str, *details: object, field: str = "") -> Violation:
    """Put the words of `rule` together for one place."""
    text = rule.value % details if details else rule.value
    return Violation(rule.name.lower(), place, f"{joined(place, field)}: {text}")


def joined(place: str, below: str) -> str:
    """`place.below`, or the one that is not empty."""
    return f"{place}.{below}" if place and below else place or below


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
class Facts:
    """The verdict on one part of a request, and what it adds to the whole; collected while it is read.

    `source` is the very object that was looked at. Holding it is what makes its `id()` a safe key:
    no other object can get that id while the facts live.
    """

    source: object
    faults: list[Fault] = attrs.Factory(list[Fault])
    marks: list[Mark] = attrs.Factory(list[Mark])
    images: int = 0
    size: int = 0
    """Characters of text and attachments; never more than the bytes on the wire."""

    def fault(self, rule: Rule, at: str, *details: object, field: str = "") -> None:
        """Note a broken rule."""
        self.faults.append(Fault(rule, at, field, details))
