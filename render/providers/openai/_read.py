"""What both APIs have in common in what they answer: how it is read, what it cost, how calls are written."""

import inspect
from collections.abc import Mapping, Sequence
from json import dumps, loads
from typing import Any, cast

from blocks import (
    BlockId,
    CallId,
    CodecError,
    EventId,
    MisuseError,
    ToolCall,
    TurnId,
    UsageRecorded,
    clean_json,
    fault_in,
    in_words,
)
from render.providers.openai._kinds import CUSTOM, CUSTOM_INPUT
from render.view._provider_blocks import Json


def as_json(response: object, wanted: str) -> Json:
    """The JSON of an SDK object (anything with `to_dict` or `model_dump`), or of a mapping.

    Raises:
        MisuseError: it is neither.
    """
    if isinstance(response, Mapping):
        return dict(cast("Mapping[str, Any]", response))
    if inspect.isawaitable(response):
        raise MisuseError(f"{wanted}, not {in_words(response)}: await it first")
    for name in ("to_dict", "model_dump"):
        dump = getattr(response, name, None)
        if callable(dump) and not isinstance(response, type):
            # The SDK's models complain about content that they do not know; we keep it as it is.
            is_sdk = name == "to_dict" and hasattr(response, "model_dump")
            dumped: object = dump(warnings=False) if is_sdk else dump()
            if isinstance(dumped, dict):
                return cast("Json", dumped)
    raise MisuseError(f"{wanted}, not {in_words(response)}")


def call_of(call: Json, known: Json, block: BlockId, turn: TurnId, response: str) -> ToolCall:
    """A call of a function or of a custom tool; `call`: its `call_id`, `name`, and `arguments` or `input`;
    `known`: what else the provider wants back."""
    name, call_id = str(call["name"]), CallId(str(call["call_id"]))
    text: object = call.get("input")
    if isinstance(text, str):
        given: Json = {CUSTOM_INPUT: text}
        known = {"type": CUSTOM, **known}
    else:
        written: object = call.get("arguments")
        given = read_arguments(written)
        if isinstance(written, str) and written != _plain(given):
            known = {**known, "arguments": written}
    return ToolCall(
        id=block,
        turn=turn,
        response=response,
        call_id=call_id,
        name=name,
        input=given,
        provider=known,
    )


def read_arguments(written: object) -> Json:
    """Arguments as the model wrote them, or as some servers give them, parsed; what is no object, or
    cannot be stored as one, becomes one with a text."""
    value: object = written if written is not None else {}
    if isinstance(written, str):
        value = _parsed(written) if written.strip() else {}
    cleaned: object = clean_json(value)
    return cast("Json", cleaned) if isinstance(cleaned, dict) else {CUSTOM_INPUT: cleaned}


def _parsed(written: str) -> object:
    """A text as JSON; itself where it is none, as when a model was cut off."""
    try:
        value: object = loads(written)
    except (ValueError, RecursionError):
        return written
    return written if fault_in(value) else value


def _plain(given: Json) -> str:
    """What would be sent anyway."""
    return dumps(given, ensure_ascii=False, separators=(",", ":"))


def usage_in(answer: Json, wanted: str) -> UsageRecorded | None:
    """What an answer says about its cost; what it counts as input includes what came from the cache, and
    what went there: `UsageRecorded` does not."""
    if not answer.get("usage"):
        return None
    found = as_json(answer["usage"], wanted)
    read = _number(_details(found), "cached_tokens")
    written = _number(_details(found), "cache_write_tokens")
    total = _number(found, "input_tokens") or _number(found, "prompt_tokens")
    return UsageRecorded(
        id=EventId(""),
        at=0.0,
        model=str(answer.get("model") or ""),
        response=str(answer.get("id") or ""),
        uncached=max(total - read - written, 0),
        cache_read=read,
        cache_write=written,
        output=_number(found, "output_tokens") or _number(found, "completion_tokens"),
        estimated=0,
    )


def _details(usage: Json) -> Json:
    for name in ("input_tokens_details", "prompt_tokens_details"):
        found: object = usage.get(name)
        if found is not None and not isinstance(found, Mapping):
            found = as_json(found, name)
        if isinstance(found, Mapping):
            return dict(cast("Mapping[str, Any]", found))
    return {}


def _number(found: Json, name: str) -> int:
    value = found.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def checked_text(content: Json, name: str, where: str) -> str:
    """A text that has to be there.

    Raises:
        MisuseError: it is not.
    """
    value: object = content.get(name)
    if not isinstance(value, str):
        raise MisuseError(f"{where}: {name} is a text, not {in_words(value)}")
    return value


def checked_contents(contents: Sequence[Json], where: str) -> None:
    """Whether all of it can be stored.

    Raises:
        CodecError: it cannot; it says where.
    """
    for index, content in enumerate(contents):
        if fault := fault_in(content):
            raise CodecError(f"cannot record the response: in {where}.{index}, {fault}")
