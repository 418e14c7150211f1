"""Foreign JSON: look at it once, and go on with a type."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

Json: TypeAlias = Mapping[str, Any]


def as_object(value: object) -> Json | None:
    """`value` when it is a JSON object."""
    return cast("Json", value) if isinstance(value, dict) else None


def as_array(value: object) -> Sequence[object] | None:
    """`value` when it is a JSON array."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else None


def as_string(value: object) -> str:
    """`value` when it is a string, else the empty one."""
    return value if isinstance(value, str) else ""
