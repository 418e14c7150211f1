"""Foreign JSON, read without trust: what is not of the asked type is empty, never an error."""

from json import dumps
from typing import Any, TypeAlias, cast

import msgspec

Json: TypeAlias = dict[str, Any]


def obj(value: Any) -> Json:
    """`value` if it is an object."""
    return cast("Json", value) if isinstance(value, dict) else {}


def objs(value: Any) -> list[Json]:
    """The objects in `value` if it is a list."""
    return [cast("Json", item) for item in items(value) if isinstance(item, dict)]


def items(value: Any) -> list[Any]:
    """`value` if it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def string(value: Any) -> str:
    """`value` if it is text."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """`value` if it is a number that can count tokens."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(value, 0)
    return 0


def tool_input(value: Any) -> Json:
    """A tool's input as an object; APIs with JSON in text leave it to us to parse it."""
    parsed = value
    if isinstance(value, str):
        try:
            parsed = msgspec.json.decode(value)
        except (ValueError, RecursionError):
            parsed = value
    if isinstance(parsed, dict):
        return cast("Json", parsed)
    if value is None or value == "":
        return {}
    return {"input": value if isinstance(value, str) else msgspec.json.encode(value).decode()}


def written(arguments: Any) -> Json:
    """For what a provider wants back of a call: its arguments as the model wrote them, if they cannot be told
    from what they say."""
    if not isinstance(arguments, str):
        return {}
    plain = dumps(tool_input(arguments), ensure_ascii=False, separators=(",", ":"))
    return {} if arguments == plain else {"arguments": arguments}
