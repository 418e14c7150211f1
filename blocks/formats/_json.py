"""Reading foreign JSON: a value of the wrong type gives an empty value, never an error."""

from json import dumps, loads
from typing import Any, TypeAlias, cast

import msgspec

from blocks._codec import clean_json
from blocks._errors import CodecError

Json: TypeAlias = dict[str, Any]


def obj(value: Any) -> Json:
    """`value` if it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def objs(value: Any) -> list[Json]:
    """The objects in `value` if it is a list, else none."""
    return [cast("Json", item) for item in items(value) if isinstance(item, dict)]


def items(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def string(value: Any) -> str:
    """`value` if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """`value` if it is a whole number, at least 0; else 0."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(value, 0)
    return 0


def tool_input(value: Any) -> Json:
    """A tool's input as an object; some APIs give it as text that must be parsed.

    If it is not an object, or cannot be stored, the result is an object with the text that the model wrote.
    """
    parsed = _parsed(value) if isinstance(value, str) else value
    if isinstance(parsed, dict):
        return cast("Json", parsed)
    if value is None or parsed == "":
        return {}
    return {"input": value if isinstance(value, str) else msgspec.json.encode(value).decode()}


def _parsed(text: str) -> object:
    if not text.strip():
        return ""
    try:
        return clean_json(loads(text))
    except (ValueError, RecursionError, CodecError):
        return text


def written(arguments: Any) -> Json:
    """Data that must be sent back with a call: the arguments as the model wrote them, if they cannot be derived from
    the parsed input; else empty."""
    if not isinstance(arguments, str):
        return {}
    return {} if arguments == spelled(tool_input(arguments)) else {"arguments": arguments}


def spelled(given: Json) -> str:
    """Arguments as text, if the model's own text is not known."""
    return dumps(given, ensure_ascii=False, separators=(",", ":"))
