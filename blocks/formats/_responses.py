"""Reads items of OpenAI's Responses API, from input, output and streams; each item becomes a message.

An item has an id, which becomes the source of its content, but it does not say to which response it belongs.
So consecutive items of the model count as one response.

A shell, patches and a computer are tools that the provider defines and the client runs. Their calls and results are
items of their own kinds, which are read and made here.
"""

from collections.abc import Iterator, Mapping, Sequence
from json import loads
from typing import Any, Final, cast

import attrs

from blocks._block import (
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
    ToolCall,
    text_of_parts,
)
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
    json_part,
    known_fields,
    obj,
    objs,
    parts_of,
    raw_arguments,
    string,
    tool_input,
)

CLIENT_TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "apply_patch_call": ("operation",),
    "computer_call": ("action", "actions"),
    "local_shell_call": ("action",),
    "shell_call": ("action",),
}
"""Calls of tools that the provider defines and the client runs, with the fields of their input."""
RESPONSES_SHAPE: Final = Shape(
    name="openai.responses",
    title="a response of OpenAI's Responses API",
    output="output",
    calls={
        "function_call": "function_call_output",
        "custom_tool_call": "custom_tool_call_output",
        **{kind: f"{kind}_output" for kind in CLIENT_TOOLS},
    },
    thinking=frozenset({"reasoning"}),
    seal="encrypted_content",
    mark="prompt_cache_breakpoint",
    stops={"max_output_tokens": "max_tokens", "content_filter": "refusal"},
)
_NO_ID: Final = "__fake_id__"
"""The id that the Agents SDK writes if a model of another API gave none."""


def read(item: Json) -> Iterator[Message]:
    """The item as a message; items that only the provider reads are kept verbatim."""
    own, kind = _id(item), string(item.get("type")) or "message"
    if kind == "message":
        content = item.get("content")
        match dialogue(item.get("role")):
            case "assistant":
                yield Message(role="assistant", content=tuple(message_content(item)))
            case "tool" | None:
                pass
            case role:
                title = string(item.get("role")) if role == "system" else ""
                yield Message(role=role, id=own, content=parts_of(content), title=title)
    elif kind in RESPONSES_SHAPE.calls.values():
        yield Message(role="tool", id=own, content=(result(item),))
    else:
        yield Message(role="assistant", content=(item_content(item),))


def _id(item: Json) -> str:
    own = string(item.get("id"))
    return "" if own == _NO_ID else own


def message_content(item: Json) -> Iterator[Content]:
    """The content of a model's message."""
    phase = {"phase": item["phase"]} if isinstance(item.get("phase"), str) else {}
    return texts(item.get("content"), phase, _id(item))


def item_content(item: Json) -> Content:
    """The content of a model's item other than a message."""
    own, kind = _id(item), string(item.get("type"))
    if kind in CLIENT_TOOLS:
        return _client_call(item, kind)
    if kind in RESPONSES_SHAPE.calls:
        raw = item.get("input")  # of a custom tool: text, even if it looks like JSON
        custom = {"type": "custom"} if isinstance(raw, str) else {}
        attached = known_fields({key: item.get(key) for key in ("caller", "namespace")})
        return Call(
            call_id=string(item.get("call_id")),
            name=string(item.get("name")),
            input=tool_input(item.get("arguments")) if raw is None else {"input": raw},
            provider={**custom, **attached, **raw_arguments(item.get("arguments"))},
            source=own,
        )
    if kind in RESPONSES_SHAPE.thinking:
        return Thought(value=item, source=own)
    return Verbatim(value=item, vendor=OPENAI, source=own)


def result(item: Json) -> Result:
    """The result of a tool; only patches have a flag for errors."""
    own, call_id, output = _id(item), string(item.get("call_id")), item.get("output")
    match item.get("type"):
        case "apply_patch_call_output":
            failed = item.get("status") == "failed"
            return Result(call_id=call_id, parts=parts_of(output), is_error=failed, source=own)
        case "computer_call_output":
            return Result(call_id=call_id, parts=_screenshot(obj(output)), source=own)
        case "local_shell_call_output":  # its id is that of the call
            return Result(call_id=call_id or own, parts=parts_of(output))
        case "shell_call_output":
            return Result(call_id=call_id, parts=_shell_parts(output), source=own)
        case _:
            return Result(call_id=call_id, parts=_output(output), source=own)


def _output(output: Any) -> tuple[Part, ...]:
    """The parts of an output; if none is a known kind, its JSON as text."""
    parts = parts_of(output)
    if parts and not any(isinstance(p, TextPart | ImagePart | DocumentPart) for p in parts):
        return (json_part(output),)
    return parts


# Tools that the provider defines and the client runs.


def _client_call(item: Json, kind: str) -> Call:
    fields = known_fields(item)
    inputs = {name: fields.pop(name) for name in CLIENT_TOOLS[kind] if name in fields}
    return Call(
        call_id=string(item.get("call_id")),
        name=kind.removesuffix("_call"),
        input=inputs if len(CLIENT_TOOLS[kind]) > 1 else obj(inputs.get(CLIENT_TOOLS[kind][0])),
        provider={name: value for name, value in fields.items() if name not in ("id", "call_id")},
        source=_id(item),
    )


def client_call(call: ToolCall, call_id: str) -> Json | None:
    """The item of a call of such a tool; None: it is none, or its input is hidden."""
    kind = string(call.provider.get("type"))
    if kind not in CLIENT_TOOLS:
        return None
    first, *more = CLIENT_TOOLS[kind]
    own = {"id": call_id} if kind == "local_shell_call" else {}  # the API wants one
    return {
        **call.provider,
        **own,
        "call_id": call_id,
        **(call.input if more else {first: call.input}),
    }


def client_result(
    call: ToolCall, call_id: str, parts: Sequence[Part], *, is_error: bool
) -> Json | None:
    """The item of the result of such a tool; None: it is none, or cannot have these parts."""
    kind = string(call.provider.get("type"))
    item = {"type": f"{kind}_output", "call_id": call_id}
    if isinstance(call.provider.get("caller"), dict):
        item["caller"] = call.provider["caller"]
    if kind == "computer_call":
        screenshot = _computer_output(parts)
        checks = call.provider.get("pending_safety_checks")
        safety = {"acknowledged_safety_checks": checks} if checks else {}  # the client went on
        return {**item, "output": screenshot, **safety} if screenshot else None
    if kind not in CLIENT_TOOLS or not all(isinstance(part, TextPart) for part in parts):
        return None
    text = text_of_parts(parts)
    if kind == "apply_patch_call":
        return {**item, "status": "failed" if is_error else "completed", "output": text}
    if kind == "local_shell_call":
        return {"type": item["type"], "id": call_id, "output": text}
    most = known_fields({"max_output_length": call.input.get("max_output_length")})
    return {**item, "output": _chunks(text) or [_chunk(text, is_error=is_error)], **most}


def _screenshot(output: Json) -> tuple[Part, ...]:
    """The picture of a computer; on the provider's server, it stays there."""
    if isinstance(url := output.get("image_url"), str):
        return parts_of({"type": "input_image", "image_url": url})
    return (ProviderPart(value=output),)


def _computer_output(parts: Sequence[Part]) -> Json:
    kind = "computer_screenshot"
    for part in parts:
        if isinstance(part, ImagePart):
            url = part.url or f"data:{part.media_type};base64,{part.data}"
            return {"type": kind, "image_url": url}
        if isinstance(part, ProviderPart) and part.value.get("type") == kind:
            return part.value
    return {}


def _shell_parts(output: Any) -> tuple[Part, ...]:
    """What a shell printed: plain if one command succeeded without errors, otherwise as JSON, with exit codes."""
    chunks = objs(output)
    if len(chunks) == 1:
        text = string(chunks[0].get("stdout"))
        if output == [_chunk(text, is_error=False)] and text.strip() and not _chunks(text):
            return (TextPart(text=text),)
    return (json_part(output),)


def _chunk(text: str, *, is_error: bool) -> Json:
    """The output of one command."""
    streams = {"stdout": "", "stderr": text} if is_error else {"stdout": text, "stderr": ""}
    return {**streams, "outcome": {"type": "exit", "exit_code": int(is_error)}}


def _chunks(text: str) -> list[Json]:
    """The outputs of several commands, given as JSON; empty: it is none."""
    if not text.startswith('[{"'):
        return []
    try:
        value: object = loads(text)
    except (ValueError, RecursionError):
        return []
    chunks = objs(value)
    is_whole = len(chunks) == len(cast("list[object]", value))
    are_outputs = all({"stdout", "outcome"} <= chunk.keys() for chunk in chunks)
    return chunks if is_whole and are_outputs else []


# A response.


def response(fields: Json) -> Response | None:
    """The response; None if it is not one."""
    if not isinstance(fields.get("output"), list):
        return None
    content: list[Content] = []
    by_server = _answered(fields["output"])
    for item in objs(fields["output"]):
        if item.get("call_id") in by_server:
            content.append(Verbatim(value=item, vendor=OPENAI, source=_id(item)))
        elif (
            item.get("status") == "incomplete" and string(item.get("type")) in RESPONSES_SHAPE.calls
        ):
            continue  # incomplete
        elif item.get("type", "message") != "message":
            content.append(item_content(item))
        elif item.get("role") in (None, "assistant"):  # a compaction repeats the user's messages
            content += message_content(item)
    own = string(fields.get("id"))
    return Response(
        message=Message(role="assistant", id=own, content=tuple(content)),
        id=own,
        model=string(fields.get("model")),
        usage=usage_in(obj(fields.get("usage"))),
        is_cut_off=fields.get("status") == "incomplete",
        stop=_stop(fields),
    )


def _answered(output: object) -> set[str]:
    """The ids of calls that a response contains with their results, because the server ran the tool."""
    results = RESPONSES_SHAPE.calls.values()
    return {string(item.get("call_id")) for item in objs(output) if item.get("type") in results}


def _stop(fields: Json) -> str:
    if fields.get("status") == "incomplete":
        reason = string(obj(fields.get("incomplete_details")).get("reason"))
        return RESPONSES_SHAPE.stops.get(reason, "end_turn")
    output = objs(fields["output"])
    by_server = _answered(output)
    calls = (item for item in output if string(item.get("type")) in RESPONSES_SHAPE.calls)
    if any(item.get("call_id") not in by_server for item in calls):
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
