"""Reads messages of LangChain: objects, their dumps, or the result of `message_to_dict`.

The content of an assistant's message may have blocks of its provider (see `as_sent`).  Its calls are always
in a field of their own, and may be repeated in the content.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec.structs import replace

from blocks.formats import _anthropic, _chat, _gemini, _responses
from blocks.formats._chat import usage_in
from blocks.formats._message import (
    Call,
    Content,
    Json,
    Message,
    Response,
    Result,
    Thought,
    dialogue,
    items,
    kind_of,
    obj,
    objs,
    parts_of,
    string,
    tool_input,
)

_CALLS: Final = frozenset({"tool_use", "tool_call", "function_call", "custom_tool_call"})
"""Kinds of content that repeat a call of `tool_calls`."""
_GOOGLE: Final = "google_genai"
_SEALS: Final = "__gemini_function_call_thought_signatures__"
"""The field with the signatures of Gemini's calls, by their ids."""
_THINKING: Final = _anthropic.ANTHROPIC_SHAPE.thinking | _responses.RESPONSES_SHAPE.thinking
_CUT_OFF: Final = frozenset({"length", "max_tokens", "MAX_TOKENS", "incomplete"})


def read(message: Json) -> Iterator[Message]:
    """The message as ours; nothing if it is not a message of this format."""
    if "data" in message:
        message = {**obj(message.get("data")), "type": message.get("type")}
    own = string(message.get("id"))
    match dialogue(message.get("type")) or dialogue(message.get("role")):
        case "assistant":
            yield Message(role="assistant", id=own, content=tuple(_model_content(message)))
        case "tool":
            yield Message(role="tool", id=own, content=(_result(message),))
        case "system" | "user" as role:
            title = "system" if role == "system" else ""
            yield Message(role=role, id=own, content=parts_of(message.get("content")), title=title)
        case None:
            pass


def _result(message: Json) -> Result:
    return Result(
        call_id=string(message.get("tool_call_id")),
        parts=parts_of(message.get("content")),
        is_error=message.get("status") == "error",
    )


def _model_content(message: Json) -> Iterator[Content]:
    """The content in order; calls that are not in the content come last."""
    calls = [*_calls(message, "tool_calls"), *_calls(message, "invalid_tool_calls")]
    by_id = {call.call_id: call for call in calls}
    vendor = string(obj(message.get("response_metadata")).get("model_provider"))
    for item in as_sent(message):
        if kind_of(obj(item)) not in _CALLS:
            block = obj(item)
            if vendor == _GOOGLE:
                yield from _gemini_content(item)
            elif kind_of(block) in _THINKING:
                yield Thought(value=block, source=string(block.get("id")))
            elif block.get("type") == "message":
                yield from _responses.message_content(block)
            elif vendor != "anthropic":
                yield from _chat.content_of(item)
            elif (content := _anthropic.content_of(item)) is not None:
                yield content
        elif (call := _repeated_call(item, by_id, is_alone=not calls)) is not None:
            calls = [other for other in calls if other.call_id != call.call_id]
            yield call
    yield from calls


def _gemini_content(item: Any) -> Iterator[Content]:
    """Content of Gemini: LangChain gives a part's signature to its block."""
    block = obj(item) or {"type": "text", "text": item}
    seal = string(block.get("signature")) or string(obj(block.get("extras")).get("signature"))
    part: Json = {_gemini.SIGNATURE: seal} if seal else {}
    if (kind := block.get("type")) == "text":
        part |= {"text": block.get("text")}
    elif kind in ("thinking", "reasoning"):
        text = string(block.get("thinking")) or string(block.get("reasoning"))
        part |= {"text": text, "thought": True}
    else:
        yield from parts_of(block)
        return
    if (content := _gemini.content_of(part)) is not None:
        yield content


def _calls(message: Json, name: str) -> Iterator[Call]:
    """The calls in a field; if LangChain could not parse the arguments of a call, their text is its input."""
    seals = obj(obj(message.get("additional_kwargs")).get(_SEALS))
    for call in objs(message.get(name)):
        if "function" in call:  # as in Chat Completions
            yield from _chat.calls({"tool_calls": [call]})
            continue
        call_id = string(call.get("id"))
        seal = seals.get(call_id)
        yield Call(
            call_id=call_id,
            name=string(call.get("name")),
            input=tool_input(call.get("args")),
            provider={_gemini.SIGNATURE: seal} if seal else {},
        )


def _repeated_call(item: Json, calls: Mapping[str, Call], *, is_alone: bool) -> Call | None:
    """The call that a block of the content repeats, with data of its provider; None if there is no such call."""
    is_item = string(item.get("type")) in _responses.RESPONSES_SHAPE.calls
    content = _responses.item_content(item) if is_item else _anthropic.content_of(item)
    call = calls.get(string(item.get("call_id" if is_item else "id")))
    if call is None:
        return content if is_alone and isinstance(content, Call) else None
    if not (is_item and isinstance(content, Call)):
        return call
    is_edited = content.input != call.input and item.get("type") == "function_call"
    return replace(content, input=call.input, provider={}) if is_edited else content


def response(message: Json) -> Response | None:
    """An assistant's message as a response; None if it is not one."""
    reply = next(read(message), None)
    if reply is None or reply.role != "assistant":
        return None
    message = obj(message.get("data")) or message
    metadata = obj(message.get("response_metadata"))
    names = ("finish_reason", "stop_reason", "status")
    reason = next((own for name in names if (own := string(metadata.get(name)))), "")
    return Response(
        message=reply,
        id=reply.id,
        model=string(metadata.get("model_name")) or string(metadata.get("model")),
        usage=usage_in(obj(message.get("usage_metadata"))),
        is_cut_off=reason in _CUT_OFF and not _runs(reply, message),
    )


def _runs(reply: Message, message: Json) -> bool:
    """Whether LangChain runs the last call even though the response was cut off, so that a result will follow."""
    last = reply.content[-1] if reply.content else None
    return isinstance(last, Call) and last in _calls(message, "tool_calls")


# The provider's form of an assistant's content.
#
# Its blocks are those of the provider, with index numbers of a stream; or LangChain's own, if the model's
# `output_version` is "v1".  With OpenAI's Responses API, each text has the id of its item, so one item may be several
# blocks.


_STREAMED: Final = frozenset({"index", "partial_json"})
"""Fields that remain in a block after streaming."""
_TEXTS: Final = frozenset({"text", "output_text", "refusal"})
_ITEM: Final = "msg"
"""The beginning of the ids of messages in the Responses API."""


def as_sent(message: Json) -> Iterator[Any]:
    """Texts and blocks in the form of the provider; blocks of one item are joined."""
    content = message.get("content")
    before = obj(obj(message.get("additional_kwargs")).get("reasoning"))  # "v0"
    entries = items(content) if isinstance(content, list) else [content]
    blocks = [_plain(item) for item in ([before, *entries] if before else entries)]
    for (kind, own), run in groupby(blocks, _item_of):
        members = list(run)
        if kind == "message":
            yield {**members[0], "type": kind, "id": own, "content": members}
        elif kind == "reasoning":
            yield _reasoning(members)
        else:
            yield from members


def _plain(item: Any) -> Any:
    """A block without fields that its provider does not know."""
    block = obj(item)
    if not block:
        return item
    if block.get("type") == "non_standard":
        return _plain(obj(block.get("value")))
    if "partial_json" in block and not block.get("input"):
        block = {**block, "input": tool_input(block["partial_json"])}
    own = {
        name: value for name, value in block.items() if name not in _STREAMED and value is not None
    }
    if summary := objs(block.get("summary")):
        own["summary"] = [{n: v for n, v in part.items() if n not in _STREAMED} for part in summary]
    if "reasoning" in block and (signature := obj(block.get("extras")).get("signature")):
        text = string(block.get("reasoning"))
        return {"type": "thinking", "thinking": text, "signature": signature}
    return own


def _item_of(item: Any) -> tuple[str, str]:
    """Kind and id of the item to which a block belongs; empty if the block is an item itself."""
    block = obj(item)
    own, kind = string(block.get("id")), string(block.get("type"))
    if kind in _TEXTS and own.startswith(_ITEM):
        return "message", own
    return ("reasoning", own) if kind == "reasoning" and "summary" not in block else ("", "")


def _reasoning(blocks: Sequence[Json]) -> Json:
    """The reasoning item of these blocks, each of which has a part of its summary."""
    texts = [block["reasoning"] for block in blocks if "reasoning" in block]
    fields = {**blocks[0], **obj(blocks[0].get("extras"))}
    own = {name: value for name, value in fields.items() if name not in ("reasoning", "extras")}
    return {**own, "summary": [{"type": "summary_text", "text": text} for text in texts]}
