"""Reads messages of OpenAI's Chat Completions and of compatible APIs."""

from collections.abc import Iterator
from typing import Any, Final

from blocks._content import TextPart
from blocks.formats._json import Json, items, obj, objs, string, tool_input, written
from blocks.formats._message import (
    Call,
    Content,
    Message,
    Response,
    Result,
    Said,
    Thought,
    Verbatim,
    dialogue,
)
from blocks.formats._parts import part_of, parts_of
from blocks.formats._usage import usage_in

OPENAI: Final = "openai"
REFUSAL: Final = "refusal"
REASONING: Final = ("reasoning_content", "reasoning")
"""Fields in which servers of open models return thinking."""
_NOTHING: Final[Json] = {}


def read(message: Json) -> Iterator[Message]:
    """The message as ours; nothing if it is not a message of this format."""
    own, content = string(message.get("id")), message.get("content")
    match dialogue(message.get("role")):
        case "assistant":
            yield Message(role="assistant", id=own, content=tuple(_spoken(message)))
        case "tool":
            call_id = string(message.get("tool_call_id"))
            returned = Result(call_id=call_id, parts=parts_of(content))
            yield Message(role="tool", id=own, content=(returned,))
        case "system" | "user" as role:
            title = string(message.get("role")) if role == "system" else ""
            yield Message(role=role, id=own, content=parts_of(content), title=title)
        case None:
            pass


def _spoken(message: Json) -> Iterator[Content]:
    """Reasoning, text and calls of an assistant's message."""
    for name in [name for name in REASONING if string(message.get(name))][:1]:
        yield Thought(value={"type": name, name: message[name]})
    yield from texts(message.get("content"))
    if refusal := string(message.get(REFUSAL)):
        yield from texts([{"type": REFUSAL, REFUSAL: refusal}])
    yield from calls(message)


def texts(content: Any, known: Json = _NOTHING, source: str = "") -> Iterator[Said | Verbatim]:
    """The text of a model's message, joined to one, and its other content; `known` is data that must be sent back with
    the text."""
    listed = items(content) if isinstance(content, list) else [content]
    parts = [{"text": part} if isinstance(part, str) else obj(part) for part in listed]
    text = "".join(string(part.get("text")) or string(part.get(REFUSAL)) for part in parts)
    if text.strip():
        refused = {REFUSAL: True} if any(part.get("type") == REFUSAL for part in parts) else {}
        yield Said(text=text, provider={**known, **refused}, source=source)
    for part in parts:
        yield from (found for found in said(part) if isinstance(found, Verbatim))


def said(item: Any) -> Iterator[Said | Verbatim]:
    """One item of an assistant's content; nothing if it is empty."""
    part = part_of(item)
    if isinstance(part, TextPart):
        yield Said(text=part.text)
    elif part is not None:
        yield Verbatim(value=obj(item), vendor=OPENAI)


def calls(message: Json) -> Iterator[Call]:
    """The tool calls in a message."""
    for call in objs(message.get("tool_calls")):
        yield _call(call)
    if legacy := obj(message.get("function_call")):
        yield _call({"function": legacy})  # at most one, without an id; so is its result


def _call(call: Json) -> Call:
    if custom := obj(call.get("custom")):  # raw text, even if it looks like JSON
        return Call(
            call_id=string(call.get("id")),
            name=string(custom.get("name")),
            input={"input": string(custom.get("input"))},
            provider={"type": "custom"},
        )
    function = obj(call.get("function"))
    return Call(
        call_id=string(call.get("id")),
        name=string(function.get("name")),
        input=tool_input(function.get("arguments")),
        provider=written(function.get("arguments")),
    )


def response(completion: Json) -> Response | None:
    """The response in a completion; None if it is not a completion."""
    choices = objs(completion.get("choices")) or [{}]
    message = obj(choices[0].get("message"))
    if not message and not completion.get("usage"):
        return None
    own, model = string(completion.get("id")), string(completion.get("model"))
    [read_message] = read({**message, "role": "assistant", "id": own})
    return Response(
        message=read_message,
        id=own,
        model=model,
        usage=usage_in(obj(completion.get("usage"))),
        is_cut_off=choices[0].get("finish_reason") in ("length", "content_filter"),
    )
