"""Finds values that cannot be stored, and their places; it uses a loop, so no value is too deep for it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from blocks._block import OpaqueBlock

NESTING_MAX: Final = 200
"""Levels of lists and objects that a block may have. JSON readers fail at some depth, and the limit must not depend on
the depth of the caller's stack."""
_INTEGER_MAX: Final = 10**4300
"""Python neither prints nor parses integers from this size on."""
_SHOWN_MAX: Final = 6
"""Names of a place that a message shows."""

_Trail: TypeAlias = "tuple[_Trail, object] | None"
"""The way to a value: the way to its container, and its name there; None: the outermost value."""


def fault_in(value: object) -> str | None:
    """The first part of a value that cannot be stored: its place (`input.a.0`), and what is wrong with it; None:
    everything can be stored."""
    stack: list[tuple[object, int, _Trail]] = [(value, 0, None)]
    while stack:
        item, depth, trail = stack.pop()
        if isinstance(item, int) and abs(item) >= _INTEGER_MAX:
            return f"{_spelled(trail)} is an integer of more than 4300 digits"
        children = _children(item)
        if children is None:
            continue
        if depth >= NESTING_MAX:
            return f"{_spelled(trail)} is nested deeper than {NESTING_MAX} levels"
        for name, inner in children:
            if isinstance(name, int) and abs(name) >= _INTEGER_MAX:
                return f"{_spelled(trail)} has a key of more than 4300 digits"
            stack.append((inner, depth + 1, (trail, name)))
    return None


def _children(item: object) -> Iterator[tuple[object, Any]] | None:
    """The values inside a value, with their names or positions; None: it is not a container."""
    match item:
        case Struct():
            return ((name, getattr(item, name)) for name in item.__struct_fields__)
        case OpaqueBlock():
            return iter(item.fields.items())
        case Mapping():
            return iter(cast("Mapping[object, Any]", item).items())
        case list() | tuple():
            return enumerate(cast("list[Any]", item))
        case _:
            return None


def _spelled(trail: _Trail) -> str:
    names: list[str] = []
    while trail is not None:
        trail, name = trail
        names.append(str(name))
    names.reverse()
    shown = ".".join(names[:_SHOWN_MAX]) or "it"
    return f"{shown}.…" if len(names) > _SHOWN_MAX else shown
