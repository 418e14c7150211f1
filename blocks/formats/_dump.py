"""Message objects of any framework as JSON, read by their methods and attributes, without importing the framework."""

import dataclasses
import inspect
from base64 import b64encode
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, cast

import msgspec

from blocks._codec import clean_json
from blocks._errors import ArgumentError
from blocks._faults import NESTING_MAX
from blocks._nearest import in_words
from blocks.formats._json import Json

_DUMPS: Final = ("to_dict", "model_dump")
_PLAIN: Final = str | int | float | bool | None


def dumped(value: object, what: str) -> Json:
    """The JSON of a message: of a dict, of an SDK's or a framework's object, whatever is inside of it.

    Raises:
        ArgumentError: it is nothing that has fields; `what` says what it should have been.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    _refuse_awaitable(value, f"{what} is wanted")
    if isinstance(value, _PLAIN | bytes | type | Sequence):
        raise ArgumentError(f"{what} is wanted, not {in_words(value)}")
    found = plain(value)
    if not isinstance(found, dict):
        raise ArgumentError(f"{what} is wanted, not {in_words(value)}")
    return cast("Json", found)


def as_json(response: object, wanted: str = "a response is wanted") -> Json:
    """The JSON of an SDK's object (anything with `to_dict` or `model_dump`), or of a mapping.

    Raises:
        ArgumentError: it is neither; `wanted` says what it should have been.
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
    """Any content as JSON.

    Raises:
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    try:
        data = _encoder.encode(value)
        # A null may be a NaN, and what is deep or odd is looked at one by one.
        if b"null" not in data and data.count(b"[") + data.count(b"{") < NESTING_MAX:
            return msgspec.json.decode(data)
    # What no encoder takes, or takes only in part, is looked at one by one, which says where it is.
    except (ValueError, TypeError, NotImplementedError, RecursionError):
        pass
    return clean_json(_json(value, 0))


def _hook(value: object) -> Any:
    own = _fields(value)
    if own is None:
        raise NotImplementedError(
            type(value).__name__
        )  # how a hook tells msgspec that it does not know one
    return own


_encoder = msgspec.json.Encoder(enc_hook=_hook)


def _json(value: Any, depth: int) -> Any:
    if isinstance(value, Enum):  # also one that is a text
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
    """What an object says of itself, or has; None: nothing."""
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
    """What an object says of itself; None: nothing."""
    for name in _DUMPS:
        dump = getattr(value, name, None)
        if callable(dump) and not isinstance(value, type):
            # An SDK's models complain about content that they do not know; it is kept as it is.
            is_sdk = name == "to_dict" and hasattr(value, "model_dump")
            found: object = dump(warnings=False) if is_sdk else dump()
            if isinstance(found, Mapping):
                return cast("Mapping[str, Any]", found)
    return None
