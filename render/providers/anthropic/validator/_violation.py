"""A violation, and the fault it is made of: the same thing before its place in the request is known.

What is wrong with a message does not depend on where the message stands, so verdicts are kept
without the place and survive when a conversation moves.
"""

import attrs

from render.policy._provider import Violation
from render.providers.anthropic.validator._rules import Rule


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
