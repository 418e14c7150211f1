"""Messages of Pydantic AI: a request has parts of the system's, the user's and the tools'; a response has the
model's."""

from collections.abc import Iterator
from typing import Any

import msgspec

from blocks._content import TextPart
from blocks.formats._json import Json, items, obj, objs, string, tool_input
from blocks.formats._message import (
    Call,
    Content,
    Message,
    Response,
    Result,
    Said,
    Thought,
    Verbatim,
)
from blocks.formats._parts import parts_of
from blocks.formats._usage import usage_in


def read(message: Json) -> Iterator[Message]:
    """The messages that one of Pydantic AI's stands for; nothing, if it is none."""
    match message.get("kind"):
        case "request":
            yield from _request(message)
        case "response":
            own = string(message.get("provider_response_id"))
            content = (found for part in objs(message.get("parts")) for found in _spoken(part))
            yield Message(role="assistant", id=own, content=tuple(content))
        case _:
            pass


def _request(message: Json) -> Iterator[Message]:
    if said := string(message.get("instructions")):
        yield Message(role="system", instructions=said)
    for part in objs(message.get("parts")):
        content = part.get("content")
        match part.get("part_kind"):
            case "system-prompt":
                yield Message(role="system", content=parts_of(content))
            case "user-prompt":
                yield Message(role="user", content=parts_of(content))
            case "tool-return":
                yield Message(role="tool", content=(_result(part, failed=_has_failed(part)),))
            case "retry-prompt" if part.get("tool_name"):
                yield Message(role="tool", content=(_result(part, failed=True),))
            case "retry-prompt":
                yield Message(role="user", content=_returned(content))
            case _:
                yield Message(role="user", content=(*parts_of(part),))


def _has_failed(part: Json) -> bool:
    return part.get("outcome") in ("failed", "denied")


def _result(part: Json, *, failed: bool) -> Result:
    call_id = string(part.get("tool_call_id"))
    return Result(call_id=call_id, parts=_returned(part.get("content")), is_error=failed)


def _returned(content: Any) -> Any:
    """What a tool returned, which may be any JSON: a text, parts, or an object."""
    found = items(content) if isinstance(content, list) else [content]
    if all(isinstance(item, str) or _is_part(item) for item in found):
        return parts_of(content)
    return (TextPart(text=msgspec.json.encode(content).decode()),)


def _is_part(item: object) -> bool:
    fields = obj(item)
    return "kind" in fields and bool({"url", "data", "text", "content"} & fields.keys())


def _spoken(part: Json) -> Iterator[Content]:
    own = string(part.get("id"))
    match part.get("part_kind"):
        case "text":
            if (text := string(part.get("content"))).strip():
                yield Said(text=text)
        case "thinking":
            yield Thought(value=_thinking(part))
        case "tool-call":
            yield Call(
                call_id=string(part.get("tool_call_id")),
                name=string(part.get("tool_name")),
                input=tool_input(part.get("args")),
            )
        case _:
            kind = string(part.get("part_kind")) or "part"
            yield Verbatim(value={"type": kind, **part}, vendor="pydantic_ai", source=own)


def _thinking(part: Json) -> Json:
    """A thinking block of Anthropic's as that provider sends it; of others, the part."""
    if part.get("provider_name") != "anthropic":
        return {"type": "thinking-part", **part}
    signature, text = string(part.get("signature")), string(part.get("content"))
    if part.get("id") == "redacted_thinking":
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": text, "signature": signature}


def response(message: Json) -> Response | None:
    """A model's response; None: it is none."""
    if message.get("kind") != "response":
        return None
    [found] = read(message)
    return Response(
        message=found,
        id=found.id,
        model=string(message.get("model_name")),
        usage=usage_in(obj(message.get("usage"))),
        is_cut_off=message.get("finish_reason") == "length",
    )
