"""Reads contents, responses and streams of Gemini's API, with the names of its REST interface or of its Python SDK.

The signature of a thought must be sent back in the same part, so it is kept with the text or the call of this part.  A
part that has only a signature becomes a thought.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import attrs

from blocks._events import UsageRecorded
from blocks.formats._message import (
    Call,
    Content,
    Json,
    Message,
    ModelText,
    Response,
    Result,
    Shape,
    Thought,
    Verbatim,
    count,
    json_part,
    known_fields,
    obj,
    objs,
    part_of,
    parts_of,
    spent,
    string,
    tool_input,
)

VENDOR: Final = "gemini"
GEMINI_SHAPE: Final = Shape(
    name="gemini",
    title="a response of the Gemini API",
    output="candidates",
    calls={"functionCall": "functionResponse"},
    seal="thoughtSignature",
    stops={
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
    },
)
SIGNATURE: Final = GEMINI_SHAPE.seal
_HUMP: Final = re.compile(r"_([a-z])")
_MODEL: Final = frozenset({"model", "assistant"})
_USER: Final = frozenset({"user", "function", "tool", ""})


def gemini_field(fields: Json, name: str) -> Any:
    """A field by its REST name (`functionCall`), or by the name that the SDK gives it (`function_call`)."""
    value: object = fields.get(name)
    if value is None:
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
        value = fields.get(snake)
    return value


def _rest_names(fields: Json) -> Json:
    fields = known_fields(fields)
    return {_HUMP.sub(lambda match: match[1].upper(), name): fields[name] for name in fields}


def read(content: Json) -> Iterator[Message]:
    """The content as a message; nothing if it is not a content of this format."""
    parts, role = objs(content.get("parts")), string(content.get("role"))
    if "parts" not in content:
        return
    if role in _MODEL:
        yield Message(role="assistant", content=tuple(_model_content(parts)))
    elif role in _USER:
        yield Message(role="user", content=tuple(_user_content(parts)))


def _user_content(parts: list[Json]) -> Iterator[Content]:
    for part in parts:
        if fields := obj(gemini_field(part, "functionResponse")):
            yield result(fields)
        elif (content := part_of(part)) is not None:
            yield content


def result(fields: Json) -> Result:
    """The result of a function: `output` or `error` of its response, or all of it."""
    response = obj(fields.get("response"))
    value: object = response.get("output", response.get("error", response))
    texts = parts_of(value) if isinstance(value, str) else (json_part(value),) if value else ()
    pictures = parts_of(objs(fields.get("parts")))
    return Result(
        call_id=string(fields.get("id")), parts=(*texts, *pictures), is_error="error" in response
    )


def _model_content(parts: list[Json]) -> Iterator[Content]:
    for part in parts:
        if (content := content_of(part)) is not None:
            yield content


def content_of(part: Json) -> Content | None:
    """The content of one part of the model; None if it is empty."""
    sealed = string(gemini_field(part, SIGNATURE))
    seal: Json = {SIGNATURE: sealed} if sealed else {}
    text: object = part.get("text")
    if isinstance(text, str):
        if part.get("thought"):
            return Thought(value={"text": text, "thought": True, **seal})
        if text.strip():
            return ModelText(text=text, provider=seal)
        return Thought(value={"text": text, **seal}) if sealed else None
    if call := obj(gemini_field(part, "functionCall")):
        return Call(
            call_id=string(call.get("id")),
            name=string(call.get("name")),
            input=tool_input(call.get("args")),
            provider=seal,
        )
    # REST names for its fields and theirs; names further inside are the application's own data
    value = {
        name: _rest_names(cast("Json", value)) if isinstance(value, dict) else value
        for name, value in _rest_names(part).items()
    }
    if value.keys() <= {SIGNATURE, "thought"}:
        return Thought(value={"text": "", **seal}) if sealed else None
    return Verbatim(value=value, vendor=VENDOR)


def response(fields: Json) -> Response | None:
    """The response; None if it is not one. Without a candidate, its message is empty: the prompt was blocked."""
    candidates = objs(fields.get("candidates"))
    feedback = obj(gemini_field(fields, "promptFeedback"))
    if not (candidates or feedback or "candidates" in fields):
        return None
    first = candidates[0] if candidates else {}
    own = string(gemini_field(fields, "responseId"))
    parts = objs(obj(first.get("content")).get("parts"))
    stop = _stop(string(gemini_field(first, "finishReason")), parts)
    return Response(
        message=Message(role="assistant", id=own, content=tuple(_model_content(parts))),
        id=own,
        model=string(gemini_field(fields, "modelVersion")),
        usage=gemini_usage_in(obj(gemini_field(fields, "usageMetadata"))),
        is_cut_off=stop == "max_tokens",
        stop="refusal" if feedback and not candidates else stop,
    )


def _stop(reason: str, parts: Sequence[Json]) -> str:
    if reason == "STOP" and any(gemini_field(part, "functionCall") for part in parts):
        return "tool_use"
    return GEMINI_SHAPE.stops.get(reason, reason.lower())


def gemini_usage_in(usage: Json) -> UsageRecorded | None:
    """The usage; None: not reported. In this format, the prompt's tokens include those read from the cache, but the
    candidates' tokens do not include thoughts."""
    if not usage:
        return None
    prompt = count(gemini_field(usage, "promptTokenCount"))
    prompt += count(gemini_field(usage, "toolUsePromptTokenCount"))
    read_tokens = min(count(gemini_field(usage, "cachedContentTokenCount")), prompt)
    output = count(gemini_field(usage, "candidatesTokenCount")) + count(
        gemini_field(usage, "thoughtsTokenCount")
    )
    return spent(uncached=prompt - read_tokens, read=read_tokens, written=0, output=output)


# A streamed response.


@attrs.define
class GeminiStream:
    """Chunks with parts; consecutive texts of one kind are joined, unless they have a signature."""

    _head: Json = attrs.field(factory=dict[str, Any], init=False)
    _parts: list[Json] = attrs.field(factory=list[Json], init=False)
    _reason: str = attrs.field(default="", init=False)

    def add(self, event: Json) -> None:
        for name in ("responseId", "modelVersion", "usageMetadata", "promptFeedback"):
            if value := gemini_field(event, name):
                self._head[name] = value
        for candidate in objs(event.get("candidates"))[:1]:
            self._reason = string(gemini_field(candidate, "finishReason")) or self._reason
            for part in objs(obj(candidate.get("content")).get("parts")):
                self._part(known_fields(part))

    def _part(self, part: Json) -> None:
        last: Json = self._parts[-1] if self._parts else {}
        if _is_plain(part) and _is_plain(last) and part.get("thought") == last.get("thought"):
            self._parts[-1] = {**last, "text": string(last["text"]) + string(part["text"])}
        else:
            self._parts.append(part)

    def response(self) -> Json | None:
        if not (self._parts or self._head.get("usageMetadata") or self.is_over):
            return None
        content = {"role": "model", "parts": self._parts}
        candidates = [{"content": content, "finishReason": self._reason}] if self._parts else []
        return {**self._head, "candidates": candidates}

    @property
    def is_over(self) -> bool:
        return bool(self._reason) or "promptFeedback" in self._head


def _is_plain(part: Json) -> bool:
    """Whether the part is a text without other fields."""
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}
