"""Reads messages of Anthropic's API, as they are in requests, responses and streams."""

from collections.abc import Iterator
from typing import Any, Final

import attrs
import msgspec

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
    dialogue,
    items,
    known_fields,
    obj,
    objs,
    part_of,
    parts_of,
    raw_arguments,
    spent,
    string,
    tool_input,
)

ANTHROPIC_SHAPE: Final = Shape(
    name="anthropic",
    title="a response of Anthropic's",
    output="content",
    calls={"tool_use": "tool_result"},
    thinking=frozenset({"thinking", "redacted_thinking"}),
    seal="signature",
    mark="cache_control",
)
CUT_OFF: Final = frozenset({"max_tokens", "model_context_window_exceeded"})


def read(message: Json) -> Iterator[Message]:
    """The message as ours; nothing if it is not a message of this format."""
    content = message.get("content")
    own = string(message.get("id"))
    match dialogue(message.get("role")):
        case "assistant":
            yield Message(role="assistant", id=own, content=tuple(model_content(content)))
        case "system":
            yield Message(role="system", id=own, content=parts_of(content), title="system")
        case "user" | "tool":
            yield Message(role="user", id=own, content=tuple(_user_content(content)))
        case None:
            pass


def model_content(content: object) -> Iterator[Content]:
    """The content of an assistant's message."""
    for item in [content] if isinstance(content, str) else items(content):
        if (part := content_of(item)) is not None:
            yield part


def content_of(item: object) -> Content | None:
    """The content of one block of an assistant's message; None if it is empty."""
    if isinstance(item, str):
        return ModelText(text=item) if item.strip() else None
    block = obj(item)
    match block.get("type"):
        case "text":
            text = string(block.get("text"))
            return ModelText(text=text) if text.strip() else None
        case "tool_use":
            return Call(
                call_id=string(block.get("id")),
                name=string(block.get("name")),
                input=tool_input(block.get("input")),
                provider=raw_arguments(block.get("input")),
            )
        case "thinking" | "redacted_thinking":
            return Thought(value=block)
        case _:
            return Verbatim(value=block) if block else None


def _user_content(content: object) -> Iterator[Content]:
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
        message=Message(role="assistant", id=own, content=tuple(model_content(message["content"]))),
        id=own,
        model=string(message.get("model")),
        usage=anthropic_usage_in(obj(message.get("usage"))),
        is_cut_off=string(message.get("stop_reason")) in CUT_OFF,
        stop=string(message.get("stop_reason")),
    )


def anthropic_usage_in(usage: Json) -> UsageRecorded | None:
    """The usage in Anthropic's format, whose input count has only the tokens after the last cache mark."""
    if not usage:
        return None
    return spent(
        uncached=count(usage.get("input_tokens")),
        read=count(usage.get("cache_read_input_tokens")),
        written=count(usage.get("cache_creation_input_tokens")),
        output=count(usage.get("output_tokens")),
    )


# A streamed response.


@attrs.define
class AnthropicStream:
    """`message_start`, then blocks with their deltas, then `message_delta` and `message_stop`."""

    _message: Json = attrs.field(factory=dict[str, Any], init=False)
    _blocks: dict[int, Json] = attrs.field(factory=dict[int, Json], init=False)
    _inputs: dict[int, str] = attrs.field(factory=dict[int, str], init=False)
    _done: set[int] = attrs.field(factory=set[int], init=False)

    def add(self, event: Json) -> None:
        number = event.get("index")
        index = number if isinstance(number, int) else 0
        match event.get("type"):
            case "message_start":
                self._message = obj(event.get("message"))
            case "content_block_start":
                self._blocks[index] = dict(obj(event.get("content_block")))
            case "content_block_delta" if index in self._blocks:
                self._change(index, obj(event.get("delta")))
            case "content_block_stop":
                self._done.add(index)
            case "message_delta":
                usage = {**obj(self._message.get("usage")), **known_fields(obj(event.get("usage")))}
                self._message = {
                    **self._message,
                    **known_fields(obj(event.get("delta"))),
                    "usage": usage,
                }
            case _:
                pass

    def _change(self, index: int, delta: Json) -> None:
        block = self._blocks[index]
        for name in ("text", "thinking"):
            if name in delta:
                block[name] = string(block.get(name)) + string(delta[name])
        if "signature" in delta:
            block["signature"] = delta["signature"]
        if "partial_json" in delta:
            self._inputs[index] = self._inputs.get(index, "") + string(delta["partial_json"])
        if "citation" in delta:
            block["citations"] = [*objs(block.get("citations")), delta["citation"]]

    def response(self) -> Json | None:
        content: list[Json] = []
        for index, block in sorted(self._blocks.items()):
            if index in self._done or block.get("type") == "text":
                text = self._inputs.get(index)
                content.append(block if text is None else {**block, "input": _parsed(text)})
        message = {**self._message, "content": content}
        return message if content or message.get("usage") else None

    @property
    def is_over(self) -> bool:
        return bool(self._message.get("stop_reason"))


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else {}
    except ValueError:
        return text
