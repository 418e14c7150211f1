"""Reading foreign JSON, where a value of the wrong type gives an empty value, never an error; and message objects of any
framework as JSON, read by their methods and attributes, without importing the framework.
"""

import dataclasses
import inspect
from base64 import b64encode
from collections.abc import Mapping, Sequence
from enum import Enum
from json import dumps, loads
from typing import Any, Final, TypeAlias, cast

import msgspec

from blocks._codec import NESTING_MAX, clean_json
from blocks._errors import ArgumentError, CodecError, in_words

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


def known_fields(fields: Json) -> Json:
    """The fields that are not null."""
    return {name: value for name, value in fields.items() if value is not None}


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


# Objects as JSON.


_DUMPS: Final = ("to_dict", "model_dump")
_PLAIN: Final = str | int | float | bool | None


def dumped(value: object, wanted: str) -> Json:
    """The JSON of a message: a dict, or an object of an SDK or a framework, with any objects inside.

    Raises:
        ArgumentError: it has no fields; the message begins with `wanted`.
        CodecError: it has a value that cannot be stored; the message says where.
    """
    _refuse_awaitable(value, wanted)
    if isinstance(value, _PLAIN | bytes | type | Sequence):
        raise ArgumentError(f"{wanted}, not {in_words(value)}")
    found = plain(value)
    if not isinstance(found, dict):
        raise ArgumentError(f"{wanted}, not {in_words(value)}")
    return cast("Json", found)


def as_json(response: object, wanted: str = "expected a response") -> Json:
    """The JSON of an SDK's object (anything with `to_dict` or `model_dump`), or of a mapping.

    Raises:
        ArgumentError: it is neither; the message begins with `wanted`.
    """
    _refuse_awaitable(response, wanted)
    if isinstance(response, Mapping):
        return dict(cast("Mapping[str, Any]", response))
    if (found := _dumped(response)) is None:
        raise ArgumentError(f"{wanted}, not {in_words(response)}")
    return dict(found)


def _refuse_awaitable(value: object, wanted: str) -> None:
    if inspect.isawaitable(value):
        raise ArgumentError(f"{wanted}, not {in_words(value)}: await it first")


def plain(value: object) -> Any:
    """Any value as JSON.

    Raises:
        CodecError: it has a value that cannot be stored; the message says where.
    """
    try:
        data = _encoder.encode(value)
        # A null may have been a NaN; then, and if the value is nested deeply, it is converted step by step below.
        if b"null" not in data and data.count(b"[") + data.count(b"{") < NESTING_MAX:
            return msgspec.json.decode(data)
    # If the encoder fails, the steps below convert the value, or their error says where it is wrong.
    except (ValueError, TypeError, NotImplementedError, RecursionError):
        pass
    return clean_json(_json(value, 0))


def _hook(value: object) -> Any:
    own = _fields(value)
    if own is None:
        raise NotImplementedError(
            type(value).__name__
        )  # what msgspec expects from a hook for an unknown type
    return own


_encoder = msgspec.json.Encoder(enc_hook=_hook)


def _json(value: Any, depth: int) -> Any:
    if isinstance(value, Enum):  # first, because an Enum may also be a str
        return _json(value.value, depth + 1)
    if isinstance(value, _PLAIN) or depth > NESTING_MAX:
        return value
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value).items()
        return {
            key if isinstance(key, int) else str(key): _json(inner, depth + 1)
            for key, inner in fields
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_json(inner, depth + 1) for inner in cast("Sequence[Any]", value)]
    own = _fields(value)
    return str(value) if own is None else _json(own, depth)


def _fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of an object; None if it has none."""
    if isinstance(value, type):
        return None
    if (found := _dumped(value)) is not None:
        return found
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    own: object = getattr(value, "__dict__", None)
    if isinstance(own, dict) and own:
        known = cast("dict[str, Any]", own).items()
        return {name: inner for name, inner in known if not name.startswith("_")}
    return None


def _dumped(value: Any) -> Mapping[str, Any] | None:
    """What `to_dict` or `model_dump` of an object returns; None if it has neither."""
    for name in _DUMPS:
        dump = getattr(value, name, None)
        if callable(dump) and not isinstance(value, type):
            # An SDK's model warns about content that it does not know; such content is kept unchanged.
            is_sdk = name == "to_dict" and hasattr(value, "model_dump")
            found: object = dump(warnings=False) if is_sdk else dump()
            if isinstance(found, Mapping):
                return cast("Mapping[str, Any]", found)
    return None
