"""Finds values that cannot be stored, and their places; it uses a loop, so no value is too deep for it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from blocks._block import OpaqueBlock

NESTING_MAX: Final = 200
"""Levels of lists and objects in a block: readers of JSON, ours and others', give up at some depth, and
it must not depend on how deep the caller's stack is."""
_INTEGER_MAX: Final = 10**4300
"""Python spells no longer integers, and reads none."""
_SHOWN_MAX: Final = 6
"""Names of a place that are spelled."""

_Trail: TypeAlias = "tuple[_Trail, object] | None"
"""How one gets to a value: the way to what holds it, and its name there."""


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
    """What a value holds, by name; None: it holds nothing."""
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
