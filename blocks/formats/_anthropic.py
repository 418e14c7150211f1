"""Reads messages of Anthropic's API, as they are in requests and responses."""

from collections.abc import Iterator
from typing import Final

from blocks.formats._json import Json, items, obj, string, tool_input
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
from blocks.formats._usage import anthropic_usage_in

CUT_OFF: Final = frozenset({"max_tokens", "model_context_window_exceeded"})


def read(message: Json) -> Iterator[Message]:
    """The message as ours; nothing if it is not a message of this format."""
    content = message.get("content")
    own = string(message.get("id"))
    match dialogue(message.get("role")):
        case "assistant":
            yield Message(role="assistant", id=own, content=tuple(spoken(content)))
        case "system":
            yield Message(role="system", id=own, content=parts_of(content), title="system")
        case "user" | "tool":
            yield Message(role="user", id=own, content=tuple(_heard(content)))
        case None:
            pass


def spoken(content: object) -> Iterator[Content]:
    """The content of an assistant's message."""
    for item in [content] if isinstance(content, str) else items(content):
        if (found := said(item)) is not None:
            yield found


def said(item: object) -> Content | None:
    """The content of one block of an assistant's message; None if it is empty."""
    if isinstance(item, str):
        return Said(text=item) if item.strip() else None
    block = obj(item)
    match block.get("type"):
        case "text":
            text = string(block.get("text"))
            return Said(text=text) if text.strip() else None
        case "tool_use":
            return Call(
                call_id=string(block.get("id")),
                name=string(block.get("name")),
                input=tool_input(block.get("input")),
            )
        case "thinking" | "redacted_thinking":
            return Thought(value=block)
        case _:
            return Verbatim(value=block) if block else None


def _heard(content: object) -> Iterator[Content]:
    for item in items(content) if isinstance(content, list) else [content]:
        block = obj(item)
        if block.get("type") == "tool_result":
            yield result(block)
        elif (part := part_of(item)) is not None:
            yield part


def result(block: Json) -> Result:
    """The result of a tool."""
    return Result(
        call_id=string(block.get("tool_use_id")),
        parts=parts_of(block.get("content")),
        is_error=block.get("is_error") is True,
    )


def response(message: Json) -> Response | None:
    """A response of the model; None if it is not one."""
    if message.get("role", "assistant") != "assistant" or "content" not in message:
        return None
    own = string(message.get("id"))
    return Response(
        message=Message(role="assistant", id=own, content=tuple(spoken(message["content"]))),
        id=own,
        model=string(message.get("model")),
        usage=anthropic_usage_in(obj(message.get("usage"))),
        is_cut_off=string(message.get("stop_reason")) in CUT_OFF,
    )
