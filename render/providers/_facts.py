"""Facts about the parts of a request: the broken rules of each part, cached by the part's identity.

The faults of a message do not depend on its position, so they are kept without it and stay valid when the
conversation changes. Caching by identity is safe because a checked object is never mutated (an encoder
replaces messages), and because the facts hold the object, so no other object gets its id.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from itertools import compress, count
from operator import is_not
from typing import Any, Final, Generic, TypeVar, cast

import attrs

from render.policy._provider import Violation


@attrs.frozen(eq=False)
class Fault:
    """A broken rule inside one part of a request."""

    rule: Enum
    """The rule: its name in lower case is the stable public name, its value is the provider's error
    message."""
    at: str = ""
    """Path within the part, e.g. `content.1`."""
    field: str = ""
    """What the provider appends to the path, e.g. `tool_use.id`."""
    details: tuple[object, ...] = ()

    def below(self, place: str) -> Violation:
        """The violation for a part at `place`."""
        full = joined(place, self.at)
        return violation(self.rule, full, *self.details, field=self.field)


def violation(rule: Enum, place: str, *details: object, field: str = "") -> Violation:
    """The violation of `rule` at one place, with its message filled in."""
    words = str(rule.value)
    text = words % details if details else words
    return Violation(rule.name.lower(), place, f"{joined(place, field)}: {text}")


def joined(place: str, below: str) -> str:
    """`place.below`; if one is empty, the other."""
    return f"{place}.{below}" if place and below else place or below


@attrs.define(eq=False)
class PartFacts:
    """The faults of one part of a request, collected while it is read.

    `source` is the checked object. The reference makes its `id()` a safe key: no other object can get that
    id while the facts exist.
    """

    source: object
    faults: list[Fault] = attrs.Factory(list[Fault])

    def fault(self, rule: Enum, at: str, *details: object, field: str = "") -> None:
        """Record a broken rule."""
        self.faults.append(Fault(rule, at, field, details))


F = TypeVar("F", bound=PartFacts)
LEFT_MAX: Final = 16
"""Number of kept facts about things that are no longer in the request."""


def scanned(facts: F, shape: Enum, scan: Callable[[Mapping[str, Any], F], None]) -> F:
    """The facts after `scan` has read their source; if the source is not an object, the fault `shape`."""
    source = facts.source
    if isinstance(source, dict):
        scan(cast("Mapping[str, Any]", source), facts)
    else:
        facts.fault(shape, "", "an object")
    return facts


@attrs.define(eq=False)
class Verdicts(Generic[F]):
    """Facts by the identity of their object, for the parts of the latest request."""

    look: Callable[[object], F]
    things: Sequence[object] = ()
    facts: Sequence[F] = ()
    _left: deque[F] = attrs.field(factory=lambda: deque[F](maxlen=LEFT_MAX), init=False)
    """Facts about things that were replaced, because most of them come back: a message has another object while it
    carries a cache mark."""

    def on(self, things: Sequence[object]) -> Sequence[F]:
        """Facts about each of `things`; of the facts about other things, only the newest are kept.

        Nearly all things are at the same index as before, so only the others are looked up.
        """
        moved = list(compress(count(), map(is_not, things, self.things)))
        if not moved and len(things) == len(self.things):
            return self.facts
        gone = [*map(self.facts.__getitem__, moved), *self.facts[len(things) :]]
        known = {id(facts.source): facts for facts in (*self._left, *gone)}
        self._left.extend(gone)
        facts = list(self.facts[: len(things)])
        for index in moved:
            facts[index] = known.get(id(things[index])) or self.look(things[index])
        facts += [known.get(id(thing)) or self.look(thing) for thing in things[len(facts) :]]
        self.things, self.facts = things, facts
        return facts


def fields(value: object) -> Mapping[str, Any]:
    """An object in a request; empty if it is not an object."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> Sequence[object]:
    """A list in a request; empty if it is not a list."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
