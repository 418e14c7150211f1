"""Messages of LangChain: objects, their dumps, or what `message_to_dict` makes of them.

An assistant's content may hold the blocks of its provider; its calls stand beside it, whatever the provider.
"""

from collections.abc import Iterator
from typing import Any, Final

from blocks.formats import _anthropic, _chat
from blocks.formats._json import Json, items, obj, objs, string, tool_input
from blocks.formats._message import Call, Content, Message, Response, Result, Thought, dialogue
from blocks.formats._parts import kind_of, parts_of
from blocks.formats._usage import usage_in

_CALLS: Final = frozenset({"tool_use", "tool_call", "function_call", "custom_tool_call"})
"""Content that says again what is in `tool_calls`."""
_THINKING: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})


def read(message: Json) -> Iterator[Message]:
    """The message; nothing, if it is none."""
    message = (
        {**obj(message.get("data")), "type": message.get("type")} if "data" in message else message
    )
    own = string(message.get("id"))
    kind = message.get("type")
    match dialogue(kind) or dialogue(message.get("role")):
        case "assistant":
            yield Message(role="assistant", id=own, content=tuple(_spoken(message)))
        case "tool":
            yield Message(role="tool", id=own, content=(_result(message),))
        case "system" | "user" as role:
            yield Message(role=role, id=own, content=parts_of(message.get("content")))
        case None:
            pass


def _result(message: Json) -> Result:
    return Result(
        call_id=string(message.get("tool_call_id")),
        parts=parts_of(message.get("content")),
        is_error=message.get("status") == "error",
    )


def _spoken(message: Json) -> Iterator[Content]:
    content, asked = message.get("content"), list(_calls(message))
    for item in items(content) if isinstance(content, list) else [content]:
        kind = kind_of(obj(item))
        if kind in _THINKING:
            yield Thought(value=obj(item))
        elif kind not in _CALLS:
            yield from _chat.said(item)
        elif not asked and (found := _anthropic.said(item)) is not None:
            yield found
    yield from asked


def _calls(message: Json) -> Iterator[Call]:
    """The calls; of one whose arguments LangChain could not read, the text."""
    for call in (*objs(message.get("tool_calls")), *objs(message.get("invalid_tool_calls"))):
        if "function" in call:  # as Chat Completions has it
            yield from _chat.calls({"tool_calls": [call]})
            continue
        yield Call(
            call_id=string(call.get("id")),
            name=string(call.get("name")),
            input=tool_input(call.get("args")),
        )


def response(message: Json) -> Response | None:
    """An assistant's message as a response; None: it is none."""
    found = next(read(message), None)
    if found is None or found.role != "assistant":
        return None
    message = obj(message.get("data")) or message
    known = obj(message.get("response_metadata"))
    return Response(
        message=found,
        id=found.id,
        model=string(known.get("model_name")) or string(known.get("model")),
        usage=usage_in(obj(message.get("usage_metadata"))),
        is_cut_off=_stopped(known) in ("length", "max_tokens", "MAX_TOKENS"),
    )


def _stopped(known: Json) -> Any:
    return known.get("finish_reason") or known.get("stop_reason")
