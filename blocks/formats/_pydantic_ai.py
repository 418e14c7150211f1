"""Messages of Pydantic AI: a request has parts of the system, the user and the tools; a response has parts of the
model."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from blocks._block import Part, TextPart
from blocks.formats import _gemini
from blocks.formats._chat import usage_in
from blocks.formats._message import (
    Call,
    Content,
    Json,
    Message,
    ModelText,
    Response,
    Result,
    Thought,
    Verbatim,
    items,
    json_part,
    obj,
    objs,
    parts_of,
    raw_arguments,
    string,
    tool_input,
)

_ERRORS: Final = ("failed", "denied", "retried")
_SILENT: Final = frozenset(
    {
        "capability-load-delta",
        "instruction-baseline",
        "model-settings-delta",
        "tool-availability-delta",
    }
)
"""Kinds of request parts that only the framework uses."""
_CHAT_FIELDS: Final = frozenset({"content", "reasoning", "reasoning_content"})
"""Fields of Chat Completions in which servers return reasoning."""
_WEB: Final = frozenset({"web_fetch", "web_search"})
_ATTACHED: Final = {
    "phase": "phase",
    "namespace": "namespace",
    "thought_signature": _gemini.SIGNATURE,
}
"""Data that OpenAI or Google needs back with a text or a call, with the vendor's names for it."""


def read(message: Json) -> Iterator[Message]:
    """The messages in one of Pydantic AI's; nothing if it is not a message of this format."""
    match message.get("kind"):
        case "request":
            yield from _request(message)
        case "response":
            own = string(message.get("provider_response_id"))
            content = tuple(_model_content(objs(message.get("parts"))))
            yield Message(role="assistant", id=own, content=content)
        case _:
            pass


def _request(message: Json) -> Iterator[Message]:
    if instructions := string(message.get("instructions")):
        yield Message(role="system", instructions=instructions)
    for part in objs(message.get("parts")):
        content = part.get("content")
        match part.get("part_kind"):
            case "system-prompt":
                yield Message(role="system", content=parts_of(content), title="system")
            case "user-prompt":
                yield Message(role="user", content=parts_of(content))
            case "tool-return":
                failed = part.get("outcome") in _ERRORS
                yield Message(role="tool", content=(_result(part, failed=failed),))
            case "retry-prompt" if part.get("tool_name"):
                yield Message(role="tool", content=(_result(part, failed=True),))
            case "retry-prompt":
                yield Message(role="user", content=_result_parts(content))
            case "instruction-delta":
                yield Message(role="system", content=_result_parts(content), title="system")
            case "retry-feedback":
                yield Message(role="system", content=_result_parts(content))
            case str() as kind if kind in _SILENT:
                pass
            case _:
                yield Message(role="user", content=(*parts_of(part),))


def _result(part: Json, *, failed: bool) -> Result:
    call_id = string(part.get("tool_call_id"))
    return Result(call_id=call_id, parts=_result_parts(part.get("content")), is_error=failed)


def _result_parts(content: Any) -> tuple[Part, ...]:
    """The result of a tool, which may be any JSON: a text, a part, an object, or a list of these."""
    array = items(content) if isinstance(content, list) else [content]
    if not any(isinstance(item, str) or _is_part(item) for item in array):
        return (json_part(content),)
    parts = [item if isinstance(item, str) or _is_part(item) else json_part(item) for item in array]
    return tuple(
        part
        for item in parts
        for part in ((item,) if isinstance(item, TextPart) else parts_of(item))
    )


def _is_part(item: object) -> bool:
    fields = obj(item)
    return "kind" in fields and bool({"url", "data", "text", "content"} & fields.keys())


def _model_content(parts: Sequence[Json]) -> Iterator[Content]:
    """The content of a model's message; consecutive parts with one reasoning id are one reasoning item."""
    for own, group in groupby(parts, _reasoning_id):
        members = list(group)
        if own and (item := _reasoning(own, members)):
            yield Thought(value=item, source=own)
        else:
            yield from (content for part in members for content in _part_content(part))


def _reasoning_id(part: Json) -> str:
    """The id of the reasoning item (OpenAI's Responses API) to which a part belongs; empty: none."""
    own = string(part.get("id"))
    if part.get("part_kind") != "thinking" or part.get("provider_name") == "anthropic":
        return ""
    return "" if own in _CHAT_FIELDS else own


def _reasoning(own: str, parts: Sequence[Json]) -> Json | None:
    """The item as its provider sent it; None if it lacks what the provider needs back."""
    details = [obj(part.get("provider_details")) for part in parts]
    raw = [string(text) for each in details for text in items(each.get("raw_content"))]
    sealed = next((sign for part in parts if (sign := string(part.get("signature")))), "")
    if not sealed and not raw:
        return None
    texts = [text for part in parts if (text := string(part.get("content")))]
    summary = [{"type": "summary_text", "text": text} for text in texts]
    content = [{"type": "reasoning_text", "text": text} for text in raw]
    return {
        "type": "reasoning",
        "id": own,
        "summary": summary,
        **({"content": content} if content else {}),
        **({"encrypted_content": sealed} if sealed else {}),
    }


def _part_content(part: Json) -> Iterator[Content]:
    own = string(part.get("id"))
    match part.get("part_kind"):
        case "text":
            if (text := string(part.get("content"))).strip():
                yield ModelText(text=text, provider=_attached(part))
        case "thinking":
            yield Thought(value=_thinking(part, own))
        case "tool-call":
            yield Call(
                call_id=string(part.get("tool_call_id")),
                name=string(part.get("tool_name")),
                input=tool_input(part.get("args")),
                provider={**_attached(part), **raw_arguments(part.get("args"))},
            )
        case "builtin-tool-call" | "builtin-tool-return" if _is_of_the_web(part):
            yield Verbatim(value=_web(part), source=own)
        case _:
            kind = string(part.get("part_kind")) or "part"
            yield Verbatim(value={"type": kind, **part}, vendor="pydantic_ai", source=own)


def _is_of_the_web(part: Json) -> bool:
    return part.get("provider_name") == "anthropic" and part.get("tool_name") in _WEB


def _web(part: Json) -> Json:
    """A call of a tool that Anthropic runs itself, or its result, in Anthropic's format."""
    name, own = string(part.get("tool_name")), string(part.get("tool_call_id"))
    if part.get("part_kind") == "builtin-tool-call":
        arguments = tool_input(part.get("args"))
        return {"type": "server_tool_use", "id": own, "name": name, "input": arguments}
    return {"type": f"{name}_tool_result", "tool_use_id": own, "content": part.get("content")}


def _attached(part: Json) -> Json:
    details = obj(part.get("provider_details"))
    fields = {own: details.get(name) for name, own in _ATTACHED.items()}
    return {own: value for own, value in fields.items() if isinstance(value, str)}


def _thinking(part: Json, own: str) -> Json:
    """Thinking in the form in which its provider accepts it back; the part itself if it accepts none."""
    signature, text = string(part.get("signature")), string(part.get("content"))
    if own in _CHAT_FIELDS:
        return {"type": own, own: text}
    if seal := _attached(part).get(_gemini.SIGNATURE):
        return {"text": text, **({"thought": True} if text else {}), _gemini.SIGNATURE: seal}
    if part.get("provider_name") != "anthropic" or not signature:
        return {"type": "thinking-part", **part}
    if own == "redacted_thinking":
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": text, "signature": signature}


def response(message: Json) -> Response | None:
    """A model's response; None if it is not one."""
    if message.get("kind") != "response":
        return None
    [reply] = read(message)
    return Response(
        message=reply,
        id=reply.id,
        model=string(message.get("model_name")),
        usage=usage_in(obj(message.get("usage"))),
        is_cut_off=message.get("finish_reason") == "length",
    )
