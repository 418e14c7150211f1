"""A model's response, read: is it one, of this API, what did the model say, and what did it cost?"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from blocks import (
    BlockId,
    CodecError,
    MisuseError,
    TurnId,
    UsageRecorded,
    fault_in,
    in_words,
)
from blocks.formats import Answer, Json, anthropic_usage_in, response_in
from blocks.formats import answer_of as answered
from render.providers.anthropic._server_tools import REPLAYED

_OWN: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"}) | REPLAYED
_SENT: Final = frozenset({"tool_result", "image", "document", "search_result", "tool_reference"})
"""Kinds of content that only a request has."""
_FOREIGN: Final = {
    "choices": "a response of OpenAI's Chat Completions API",
    "output": "a response of OpenAI's Responses API",
    "candidates": "a response of the Gemini API",
}
_WANTED: Final = "record() takes a response of Anthropic's (the SDK's message, or its JSON)"
_TEXTS: Final = ("id", "model", "stop_reason")


def as_json(response: object) -> dict[str, Any]:
    """The JSON of an SDK object (anything with `to_dict` or `model_dump`), or of a mapping.

    Raises:
        MisuseError: it is neither.
    """
    if isinstance(response, Mapping):
        return dict(cast("Mapping[str, Any]", response))
    if inspect.isawaitable(response):
        raise MisuseError(f"{_WANTED}, not {in_words(response)}: await it first")
    for name in ("to_dict", "model_dump"):
        dump = getattr(response, name, None)
        if callable(dump) and not isinstance(response, type):
            # The SDK's models complain about content that they do not know; we keep it as it is.
            is_sdk = name == "to_dict" and hasattr(response, "model_dump")
            dumped: object = dump(warnings=False) if is_sdk else dump()
            if isinstance(dumped, dict):
                return cast("dict[str, Any]", dumped)
    raise MisuseError(f"{_WANTED}, not {in_words(response)}")


def message_of(response: object) -> dict[str, Any]:
    """An Anthropic message as JSON.

    Raises:
        MisuseError: it is none, is of another API, or holds what no log can show.
    """
    message = as_json(response)
    _refuse_foreign(message)
    for name in _TEXTS:
        value: object = message.get(name)
        if value is not None and not isinstance(value, str):
            raise MisuseError(f"record(): the response's {name} is a text, not {in_words(value)}")
    content: object = message.get("content")
    if not isinstance(content, list | tuple):
        raise MisuseError(f"{_WANTED}; its content is a list, not {in_words(content)}")
    items = [_content(item, n) for n, item in enumerate(cast("Sequence[object]", content))]
    usage: object = message.get("usage")
    usage = usage if usage is None else as_json(usage)
    for number, item in enumerate(items):
        _check_content(item, f"record(): content.{number}", message.get("type"))
    if not items and not usage:
        raise MisuseError("record(): the response is empty: it has neither content nor usage")
    return {**message, "content": items, "usage": usage}


def _refuse_foreign(message: Mapping[str, Any]) -> None:
    if message.get("type") == "error":
        said = _said(message.get("error"))
        raise MisuseError(f"record(): an error of the provider's, and no response: {said}")
    for name, whose in _FOREIGN.items():
        if name in message and "content" not in message:
            raise MisuseError(f"{_WANTED}, not {whose}")
    for name, right in (("type", "message"), ("role", "assistant")):
        value: object = message.get(name)
        if value not in (None, right):
            raise MisuseError(f"{_WANTED}: its {name} is {right!r}, not {in_words(value)}")


def _content(item: object, number: int) -> dict[str, Any]:
    try:
        return as_json(item)
    except MisuseError:
        raise MisuseError(
            f"record(): content.{number} is a content block, not {in_words(item)}"
        ) from None


def _check_content(content: Mapping[str, Any], where: str, message: object) -> None:
    """Refuse what would be in the log and never be shown.

    A kind that we do not know is kept in what calls itself a `message`: it is the provider's, of
    tomorrow; the request's notices tell that it is not sent back.
    """
    kind: object = content.get("type")
    if not isinstance(kind, str) or kind in _SENT or (kind not in _OWN and message != "message"):
        raise MisuseError(f"{where}: no content of a response has the type {in_words(kind)}")
    needed = {"text": ("text",), "thinking": ("thinking",), "tool_use": ("id", "name")}
    for name in needed.get(kind, ()):
        value: object = content.get(name)
        if not isinstance(value, str) or (kind == "tool_use" and not value.strip()):
            raise MisuseError(f"{where}: {kind}.{name} is a text, not {in_words(value)}")


def _said(error: object) -> object:
    found = cast("Json", error) if isinstance(error, dict) else {}
    return found.get("message", "without a message")


def answer_of(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of an Anthropic message (the SDK's object, or its JSON), and its usage.

    Raises:
        MisuseError: it is no such message.
        CodecError: it holds what cannot be stored; it says where.
    """
    message = message_of(response)
    contents: list[Json] = message["content"]
    for index, content in enumerate(contents):
        if fault := fault_in(content):
            raise CodecError(f"cannot record the response: in content.{index}, {fault}")
    read = response_in(message, "anthropic")
    if read is None:
        raise MisuseError(_WANTED)
    return answered(read, new_id, turn)


def usage_of(response: object) -> UsageRecorded | None:
    """What an Anthropic message says about its cost, if it says anything."""
    message = as_json(response)
    found: object = message.get("usage")
    if not found:
        return None
    read = anthropic_usage_in(as_json(found))
    return read and replace(
        read, model=str(message.get("model") or ""), response=str(message.get("id") or "")
    )
