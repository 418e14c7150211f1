"""Items of OpenAI's Responses API, as input and output have them; each is read as a message.

An item has an id of its own, and that is the source of what it holds; it does not say to which response it
belonged, so that what the model said in a row counts as one.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from blocks._content import DocumentPart, ImagePart, Part, TextPart
from blocks.formats._chat import OPENAI, texts
from blocks.formats._json import Json, obj, objs, string, tool_input, written
from blocks.formats._message import (
    Call,
    Content,
    Message,
    Response,
    Result,
    Thought,
    Verbatim,
    dialogue,
)
from blocks.formats._parts import parts_of
from blocks.formats._usage import usage_in

_CALLS: Final = frozenset({"function_call", "custom_tool_call"})
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_INPUT: Final = frozenset({"item_reference"})
_NO_ID: Final = "__fake_id__"
"""What the Agents SDK writes where a model of another API gave no id."""


def read(item: Json) -> Iterator[Message]:
    """The item as a message; an item that only the provider reads is kept unchanged."""
    own, kind = _id(item), string(item.get("type")) or "message"
    if kind == "message":
        yield from _message(item, own)
    elif kind in _OUTPUTS:
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
            yield Message(role=role, id=own, content=parts_of(content))


def said_in(item: Json) -> Iterator[Content]:
    """What a message of the model's says."""
    phase = {"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}
    return texts(item.get("content"), phase, _id(item))


def spoken(item: Json) -> Content:
    """An item of the model's that is no message."""
    own, kind = _id(item), string(item.get("type"))
    if kind in _CALLS:
        return Call(
            call_id=string(item.get("call_id")),
            name=string(item.get("name")),
            input=_call_input(item),
            provider=_attached(item),
            source=own,
        )
    if kind == "reasoning":
        return Thought(value=item, source=own)
    return Verbatim(value=item, vendor=OPENAI, source=own)


def _call_input(item: Json) -> Json:
    """What a call asks with; the input of a custom tool is raw text, even where it looks like JSON."""
    raw = item.get("input")
    return tool_input(item.get("arguments")) if raw is None else {"input": raw}


def _attached(item: Json) -> Json:
    """What the provider wants back of a call."""
    space = item.get("namespace")
    known = {"namespace": space} if isinstance(space, str) else {}
    custom = {"type": "custom"} if isinstance(item.get("input"), str) else {}
    return {**custom, **known, **written(item.get("arguments"))}


def result(item: Json) -> Result:
    """What a tool returned; the API has no flag for an error."""
    own = _id(item)
    return Result(
        call_id=string(item.get("call_id")), parts=_output(item.get("output")), source=own
    )


def _output(output: Any) -> tuple[Part, ...]:
    """A text, or parts; what some programs return instead, as its JSON."""
    parts = parts_of(output)
    if parts and not any(isinstance(p, TextPart | ImagePart | DocumentPart) for p in parts):
        return (TextPart(text=msgspec.json.encode(output).decode()),)
    return parts


def response(found: Json) -> Response | None:
    """A response; None: it is not one."""
    if not isinstance(found.get("output"), list):
        return None
    content: list[Content] = []
    for item in objs(found["output"]):
        if item.get("status") == "incomplete" and string(item.get("type")) in _CALLS:
            continue  # cut off anywhere
        if item.get("type", "message") != "message":
            content.append(spoken(item))
        elif item.get("role") in (None, "assistant"):  # a compaction repeats what the user said
            content += said_in(item)
    own = string(found.get("id"))
    return Response(
        message=Message(role="assistant", id=own, content=tuple(content)),
        id=own,
        model=string(found.get("model")),
        usage=usage_in(obj(found.get("usage"))),
        is_cut_off=found.get("status") == "incomplete",
    )
