"""Reads items of OpenAI's Responses API, from input, output and streams; each item becomes a message.

An item has an id, which becomes the source of its content, but it does not say to which response it belongs.
So consecutive items of the model count as one response.
"""

from collections.abc import Iterator
from typing import Any, Final

import attrs
import msgspec

from blocks._block import DocumentPart, ImagePart, Part, TextPart
from blocks.formats._chat import OPENAI, texts, usage_in
from blocks.formats._message import (
    Call,
    Content,
    Json,
    Message,
    Response,
    Result,
    Shape,
    Thought,
    Verbatim,
    dialogue,
    obj,
    objs,
    parts_of,
    string,
    tool_input,
    written,
)

RESPONSES_SHAPE: Final = Shape(
    name="openai.responses",
    title="a response of OpenAI's Responses API",
    output="output",
    calls={
        "function_call": "function_call_output",
        "custom_tool_call": "custom_tool_call_output",
    },
    thinking=frozenset({"reasoning"}),
    seal="encrypted_content",
    mark="prompt_cache_breakpoint",
    stops={"max_output_tokens": "max_tokens", "content_filter": "refusal"},
)
_INPUT: Final = frozenset({"item_reference"})
_NO_ID: Final = "__fake_id__"
"""The id that the Agents SDK writes if a model of another API gave none."""


def read(item: Json) -> Iterator[Message]:
    """The item as a message; items that only the provider reads are kept verbatim."""
    own, kind = _id(item), string(item.get("type")) or "message"
    if kind == "message":
        yield from _message(item, own)
    elif kind in RESPONSES_SHAPE.calls.values():
        yield Message(role="tool", id=own, content=(result(item),))
    elif kind not in _INPUT:
        yield Message(role="assistant", content=(spoken(item),))


def _id(item: Json) -> str:
    own = string(item.get("id"))
    return "" if own == _NO_ID else own


def _message(item: Json, own: str) -> Iterator[Message]:
    content = item.get("content")
    match dialogue(item.get("role")):
        case "assistant":
            yield Message(role="assistant", content=tuple(said_in(item)))
        case "tool" | None:
            pass
        case role:
            title = string(item.get("role")) if role == "system" else ""
            yield Message(role=role, id=own, content=parts_of(content), title=title)


def said_in(item: Json) -> Iterator[Content]:
    """The content of a model's message."""
    phase = {"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}
    return texts(item.get("content"), phase, _id(item))


def spoken(item: Json) -> Content:
    """The content of a model's item other than a message."""
    own, kind = _id(item), string(item.get("type"))
    if kind in RESPONSES_SHAPE.calls:
        return Call(
            call_id=string(item.get("call_id")),
            name=string(item.get("name")),
            input=_call_input(item),
            provider=_attached(item),
            source=own,
        )
    if kind in RESPONSES_SHAPE.thinking:
        return Thought(value=item, source=own)
    return Verbatim(value=item, vendor=OPENAI, source=own)


def _call_input(item: Json) -> Json:
    """The input of a call; for a custom tool this is raw text, even if it looks like JSON."""
    raw = item.get("input")
    return tool_input(item.get("arguments")) if raw is None else {"input": raw}


def _attached(item: Json) -> Json:
    """Data that the provider needs back with a call."""
    space = item.get("namespace")
    known = {"namespace": space} if isinstance(space, str) else {}
    custom = {"type": "custom"} if isinstance(item.get("input"), str) else {}
    return {**custom, **known, **written(item.get("arguments"))}


def result(item: Json) -> Result:
    """The result of a tool; this API has no flag for errors."""
    own = _id(item)
    return Result(
        call_id=string(item.get("call_id")), parts=_output(item.get("output")), source=own
    )


def _output(output: Any) -> tuple[Part, ...]:
    """The parts of an output; if none is a known kind, its JSON as text."""
    parts = parts_of(output)
    if parts and not any(isinstance(p, TextPart | ImagePart | DocumentPart) for p in parts):
        return (TextPart(text=msgspec.json.encode(output).decode()),)
    return parts


def response(found: Json) -> Response | None:
    """The response; None if it is not one."""
    if not isinstance(found.get("output"), list):
        return None
    content: list[Content] = []
    for item in objs(found["output"]):
        if item.get("status") == "incomplete" and string(item.get("type")) in RESPONSES_SHAPE.calls:
            continue  # incomplete
        if item.get("type", "message") != "message":
            content.append(spoken(item))
        elif item.get("role") in (None, "assistant"):  # a compaction repeats the user's messages
            content += said_in(item)
    own = string(found.get("id"))
    return Response(
        message=Message(role="assistant", id=own, content=tuple(content)),
        id=own,
        model=string(found.get("model")),
        usage=usage_in(obj(found.get("usage"))),
        is_cut_off=found.get("status") == "incomplete",
        stop=_stop(found),
    )


def _stop(found: Json) -> str:
    if found.get("status") == "incomplete":
        reason = string(obj(found.get("incomplete_details")).get("reason"))
        return RESPONSES_SHAPE.stops.get(reason, "end_turn")
    output = objs(found["output"])
    if any(string(item.get("type")) in RESPONSES_SHAPE.calls for item in output):
        return "tool_use"
    parts = (part for item in output for part in objs(item.get("content")))
    return "refusal" if any(part.get("type") == "refusal" for part in parts) else "end_turn"


# A streamed response.


@attrs.define
class ResponsesStream:
    """Items with an event when each is done; the last event has the whole response."""

    _head: Json = attrs.field(factory=dict[str, Any], init=False)
    _texts: dict[tuple[int, int], str] = attrs.field(factory=dict[tuple[int, int], str], init=False)
    _items: dict[int, Json] = attrs.field(factory=dict[int, Json], init=False)
    _done: set[int] = attrs.field(factory=set[int], init=False)
    is_over: bool = attrs.field(default=False, init=False)

    def add(self, event: Json) -> None:
        index = _whole_number(event.get("output_index"))
        match event.get("type"):
            case "response.completed" | "response.incomplete":
                self._head, self.is_over = obj(event.get("response")), True
            case "response.created" | "response.in_progress" | "response.failed":
                self._head = obj(event.get("response"))
            case "response.output_item.added":
                self._items[index] = obj(event.get("item"))
            case "response.output_item.done":
                self._items[index] = obj(event.get("item"))
                self._done.add(index)
            case "response.output_text.delta" | "response.refusal.delta":
                place = index, _whole_number(event.get("content_index"))
                self._texts[place] = self._texts.get(place, "") + string(event.get("delta"))
            case _:
                pass

    def response(self) -> Json | None:
        if self.is_over:
            return self._head
        items = (self._item(index) for index in sorted(self._items))
        output = [item for item in items if item]
        if not (output or self._head.get("usage")):
            return None
        return {**self._head, "output": output, "status": "completed"}

    def _item(self, index: int) -> Json:
        """An item if it is complete; of an incomplete message, the text received so far; else empty."""
        item = self._items[index]
        if index in self._done:
            return item
        texts = [text for place, text in sorted(self._texts.items()) if place[0] == index]
        if item.get("type") != "message" or not texts:
            return {}
        return {**item, "content": [{"type": "output_text", "text": text} for text in texts]}


def _whole_number(value: Any) -> int:
    return value if isinstance(value, int) else 0
