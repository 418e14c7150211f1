"""What the rules of all providers are made of: checks of one place each, and what they find.

A rule is a member of a provider's `Rule`: its name in lower case is its stable public name, its value the provider's
error message, with `%s` for details. The messages change without notice, so nothing may depend on them; they only help
to search for an error. A check says what is right at a place of a request, and which rule is broken otherwise. The
tables of a provider say which checks each kind of its content has to pass.

The input may be any data, so every check tests the type of what it reads, and none recurses without a limit.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks.formats import string
from render.policy._context import Violation

Json: TypeAlias = Mapping[str, Any]


@attrs.define(eq=False)
class Findings:
    """What the checks of one request have found: violations, and sums that a provider limits."""

    violations: list[Violation] = attrs.Factory(list[Violation])
    images: int = 0
    """Images and files."""
    marks: list[tuple[str, str]] = attrs.Factory(list[tuple[str, str]])
    """Cache marks: their places and times to live."""
    size: int = 0
    """Characters of text and attachments; never more than the bytes that are sent."""
    references: list[tuple[str, str]] = attrs.Factory(list[tuple[str, str]])
    """References to tools: their places and names."""

    def object_at(
        self, value: object, place: str, rule: Enum, word: str = "an object"
    ) -> Json | None:
        """The object at a place; if it is none, None and the violation of `rule`, which names what was expected."""
        if isinstance(value, dict):
            return cast("Json", value)
        self.add(rule, place, word)
        return None

    def objects_in(
        self, value: object, place: str, rule: Enum, word: str = "an object"
    ) -> Iterator[tuple[Json, str]]:
        """The objects of a list that stands at a place, each with its own place; any other item breaks `rule`."""
        for item, at in placed(value, place):
            if (fields := self.object_at(item, at, rule, word)) is not None:
                yield fields, at

    def add(self, rule: Enum, place: str, *details: object, field: str = "") -> None:
        """Record that `rule` is broken at `place`.

        `details` are filled into the message; `field` is what the provider appends to the place, e.g. `tool_use.id`.
        """
        text = str(rule.value) % details if details else str(rule.value)
        message = f"{joined(place, field)}: {text}"
        self.violations.append(Violation(rule.name.lower(), place, message))

    @property
    def refusal(self) -> str:
        """Why a part by itself is refused, by the first violation but for fields that may only be new; empty if it is not."""
        real = (each for each in self.violations if not each.may_be_new)
        return next((each.message.removeprefix(f"{each.place}: ") for each in real), "")


Check: TypeAlias = Callable[[Json, str, Findings], None]
"""Checks an object that stands at a place of the request."""
Checks: TypeAlias = Mapping[str, Sequence[Check]]
"""The checks for each kind of content; other kinds are not allowed."""
Shapes: TypeAlias = Mapping[str, tuple[tuple[type[object], ...], str]]
"""The types of fields, and the words for them."""
LISTS: Final = (list, tuple, NoneType)
"""The types of a list that may be missing."""


def field(
    path: str,
    is_right: type[object] | Callable[[Any], object],
    rule: Enum,
    *details: object,
    label: str | None = None,
) -> Check:
    """The check of one field, which `path` names last, as in `tool_use.id`: its type, or a predicate.

    `label` is what the message names instead, if that is not the path.
    """
    name = path.rpartition(".")[2]

    def check(thing: Json, place: str, findings: Findings) -> None:
        value = thing.get(name)
        if not (isinstance(value, is_right) if isinstance(is_right, type) else is_right(value)):
            findings.add(rule, place, *details, field=path if label is None else label)

    return check


def text(path: str, rule: Enum, *details: object) -> Check:
    """The check of a field that is a string, whose size counts."""
    name = path.rpartition(".")[2]
    is_text = field(path, str, rule, *details)

    def check(thing: Json, place: str, findings: Findings) -> None:
        findings.size += len(string(thing.get(name)))
        is_text(thing, place, findings)

    return check


def is_readable(
    request: object, shapes: Shapes, rule: Enum, findings: Findings, word: str = "an object"
) -> bool:
    """Check the fields without whose shapes the server cannot read the request."""
    if not isinstance(request, Mapping):
        findings.add(rule, "request", word)
        return False
    for name, (types, words) in shapes.items():
        if not isinstance(cast("Json", request).get(name), types):
            findings.add(rule, name, words)
    return not findings.violations


def check_names(names: Iterable[tuple[str, str]], rule: Enum, findings: Findings) -> None:
    """Check that no two tools have the same name; `names` are places and names, empty for a tool without one."""
    seen: set[str] = set()
    for place, name in names:
        if name in seen:
            findings.add(rule, place, *([name] if "%s" in str(rule.value) else ()))
        seen.update([name] if name else ())


# What is right.


def is_filled(value: object) -> bool:
    """Whether it is a string that is not empty."""
    return isinstance(value, str) and value != ""


def is_number(value: object) -> bool:
    """Whether it is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def matches(pattern: str) -> Callable[[object], bool]:
    """A predicate: whether a value is a string of this pattern."""
    whole = re.compile(pattern).fullmatch
    return lambda value: isinstance(value, str) and whole(value) is not None


# Reading what may have any type.


def items(value: object) -> Sequence[object]:
    """A list in a request; empty if it is not a list."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def placed(value: object, place: str) -> list[tuple[object, str]]:
    """The items of a list that stands at a place, each with its own place; none if it is not a list."""
    return [(item, f"{place}.{n}") for n, item in enumerate(items(value))]


def joined(place: str, below: str) -> str:
    """`place.below`; if one is empty, the other."""
    return f"{place}.{below}" if place and below else place or below
