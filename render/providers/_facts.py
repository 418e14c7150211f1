"""Facts about the parts of a request: what is wrong with each, kept for as long as the part is the same.

What is wrong with a message does not depend on where the message stands, so verdicts are kept without the
place and survive when a conversation moves.  Keeping them by identity is sound under two conditions: an
object once checked is never mutated (an encoder replaces messages, it does not edit them), and no other
object gets its id (the facts hold the object).
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from itertools import compress, count
from operator import is_not
from typing import Any, Generic, TypeVar, cast

import attrs

from render.policy._provider import Violation


@attrs.frozen(eq=False)
class Fault:
    """A broken rule inside one part of a request."""

    rule: Enum
    """Its name, in lower case, is the stable name of the rule; its value is what the provider answers."""
    at: str = ""
    """Place below the part, e.g. `content.1`."""
    field: str = ""
    """What the provider adds to the place, e.g. `tool_use.id`."""
    details: tuple[object, ...] = ()

    def below(self, place: str) -> Violation:
        """Say it of the thing at `place`."""
        full = joined(place, self.at)
        return violation(self.rule, full, *self.details, field=self.field)


def violation(rule: Enum, place: str, *details: object, field: str = "") -> Violation:
    """Put the words of `rule` together for one place."""
    words = str(rule.value)
    text = words % details if details else words
    return Violation(rule.name.lower(), place, f"{joined(place, field)}: {text}")


def joined(place: str, below: str) -> str:
    """`place.below`, or the one that is not empty."""
    return f"{place}.{below}" if place and below else place or below


@attrs.define(eq=False)
class PartFacts:
    """The verdict on one part of a request; collected while it is read.

    `source` is the very object that was looked at. Holding it is what makes its `id()` a safe key:
    no other object can get that id while the facts live.
    """

    source: object
    faults: list[Fault] = attrs.Factory(list[Fault])

    def fault(self, rule: Enum, at: str, *details: object, field: str = "") -> None:
        """Note a broken rule."""
        self.faults.append(Fault(rule, at, field, details))


F = TypeVar("F", bound=PartFacts)


def scanned(facts: F, shape: Enum, scan: Callable[[Mapping[str, Any], F], None]) -> F:
    """The facts, with what `scan` notes of their source, which has to be an object; `shape`: the rule that it
    breaks if it is none."""
    source = facts.source
    if isinstance(source, dict):
        scan(cast("Mapping[str, Any]", source), facts)
    else:
        facts.fault(shape, "", "an object")
    return facts


@attrs.define(eq=False)
class Verdicts(Generic[F]):
    """Facts by identity of their object, for the objects of the latest request."""

    look: Callable[[object], F]
    things: Sequence[object] = ()
    facts: Sequence[F] = ()

    def on(self, things: Sequence[object]) -> Sequence[F]:
        """Facts about each of `things`; whatever is not among them is forgotten.

        Nearly all of them stand where they stood, so only the others are looked up.
        """
        moved = list(compress(count(), map(is_not, things, self.things)))
        gone = [*map(self.facts.__getitem__, moved), *self.facts[len(things) :]]
        known = {id(facts.source): facts for facts in gone}
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
