"""Reading a response of the Gemini API: its blocks, its usage, and why the model stopped."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from blocks import (
    Block,
    BlockId,
    CallId,
    MisuseError,
    ToolCall,
    TurnId,
    UsageRecorded,
    in_short,
    in_words,
)
from blocks.formats import Answer, dumped, gemini_field, gemini_usage_in, response_in
from blocks.formats import answer_of as answered
from render.providers._rules import fields
from render.view._provider_blocks import Json

WANTED: Final = "record(): a response of the Gemini API (the SDK's object, or its JSON)"
_FOREIGN: Final = {
    "choices": "a response of OpenAI's Chat Completions API",
    "output": "a response of OpenAI's Responses API",
    "content": "a response of Anthropic's",
}
_STOPS: Final = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
    **dict.fromkeys(
        (
            *("BLOCKLIST", "ESCALATION", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
            *("IMAGE_SAFETY", "LANGUAGE", "MODEL_ARMOR", "PROHIBITED_CONTENT", "RECITATION"),
            *("SAFETY", "SPII"),
        ),
        "refusal",
    ),
}


def response_of(response: object) -> tuple[Json, Json]:
    """A response as JSON, and its candidate; an empty object if it has none.

    Raises:
        MisuseError: it is not a response, or is one of another API.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    found = dumped(response, WANTED)
    for name, whose in _FOREIGN.items():
        if name in found and "candidates" not in found:
            raise MisuseError(f"{WANTED} is wanted, not {whose}")
    if error := fields(found.get("error")):
        said = error.get("message") or "without a message"
        raise MisuseError(
            f"record(): an error of the provider's, and no response: {in_short(str(said))}"
        )
    candidates: object = found.get("candidates") or []
    if not isinstance(candidates, list):
        raise MisuseError(f"{WANTED} has a list of candidates, not {in_words(candidates)}")
    listed = cast("Sequence[object]", candidates)
    if len(listed) > 1:
        raise MisuseError(
            f"record(): {len(listed)} candidates; a log takes one: record the one taken"
        )
    has_more = gemini_field(found, "promptFeedback") or gemini_field(found, "usageMetadata")
    if not listed and not has_more:
        raise MisuseError("record(): the response is empty: it has neither candidates nor usage")
    return found, dict(fields(listed[0])) if listed else {}


def answer_of(response: object, new_id: Callable[[], BlockId], turn: TurnId) -> Answer:
    """The blocks of a response, and its usage; calls without an id get one.

    Raises:
        MisuseError: it is no such response.
        CodecError: it holds a value that cannot be stored; the error says where.
    """
    found, candidate = response_of(response)
    for number, part in enumerate(_parts(candidate)):
        call = fields(gemini_field(part, "functionCall"))
        if call and not str(call.get("name") or "").strip():
            raise MisuseError(f"record(): parts.{number}: a call has a name")
    read = response_in({"candidates": [], **found}, "gemini")
    if read is None:
        raise MisuseError(f"{WANTED} is wanted")
    answer = answered(read, new_id, turn)
    blocks = tuple(_identified(block) for block in answer.blocks)
    return Answer(id=answer.id, blocks=blocks, usage=answer.usage)


def _parts(candidate: Json) -> Sequence[Json]:
    parts: object = fields(candidate.get("content")).get("parts")
    listed = cast("Sequence[object]", parts) if isinstance(parts, list) else ()
    return [dict(cast("Mapping[str, Any]", part)) for part in listed if isinstance(part, dict)]


def _identified(block: Block) -> Block:
    if isinstance(block, ToolCall) and not block.call_id:
        return replace(block, call_id=CallId(f"call_{block.id}"))
    return block


def usage_of(response: object) -> UsageRecorded | None:
    """The usage that a response reports; None if it reports none."""
    found = dumped(response, WANTED)
    read = gemini_usage_in(dict(fields(gemini_field(found, "usageMetadata"))))
    model, own = (str(gemini_field(found, n) or "") for n in ("modelVersion", "responseId"))
    return read and replace(read, model=model, response=own)


def stop_of(response: object) -> str:
    """Why the model stopped, in the terms of the Messages API; a reason without such a term is returned in
    lower case."""
    found, candidate = response_of(response)
    if not candidate:
        return "refusal" if gemini_field(found, "promptFeedback") else ""
    reason = str(gemini_field(candidate, "finishReason") or "")
    if reason == "STOP" and any(gemini_field(part, "functionCall") for part in _parts(candidate)):
        return "tool_use"
    return _STOPS.get(reason, reason.lower())
