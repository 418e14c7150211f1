"""Selecting fields of a JSON text: those that stay when the rest of a result is cleared."""

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

_MISSING: Final = object()


def fields_in(text: str, paths: Iterable[str]) -> dict[str, Any]:
    """The values in a JSON text at these paths, by path; empty if it is not JSON.

    `order.id` is a field of a field, `items.0` the first item of a list; a key that contains dots is
    found by its full name.
    """
    wanted = tuple(paths)
    if not wanted:
        return {}
    try:
        value: object = msgspec.json.decode(text)
    except (
        ValueError,
        RecursionError,
    ):  # not msgspec.DecodeError alone: a lone surrogate is no UTF-8
        return {}
    found = ((path, _at(value, path)) for path in wanted)
    return {path: there for path, there in found if there is not _MISSING}


def _at(value: object, path: str) -> object:
    there = _step(value, path)
    if there is _MISSING:
        there = value
        for key in path.split("."):
            there = _step(there, key)
    return there


def _step(value: object, key: str) -> object:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).get(key, _MISSING)
    if isinstance(value, list) and key.isdecimal():
        items = cast("list[object]", value)
        return items[int(key)] if int(key) < len(items) else _MISSING
    return _MISSING
