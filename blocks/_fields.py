"""Selects fields of a JSON text, which stay in the prompt when the rest of a result is cleared."""

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

_MISSING: Final = object()


def fields_in(text: str, paths: Iterable[str]) -> dict[str, Any]:
    """The values at these paths in a JSON text, by path; paths without a value are left out. Empty if it is not JSON.

    `order.id` is a field of a field, `items.0` the first item of a list; a key that itself contains dots is found, too.
    """
    wanted = tuple(paths)
    if not wanted:
        return {}
    try:
        value: object = msgspec.json.decode(text)
    except (
        ValueError,
        RecursionError,
    ):  # ValueError also covers a lone surrogate, which is not UTF-8
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
