"""Reads messages of OpenAI's Chat Completions and of compatible APIs, as they are in requests, responses and streams."""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from blocks._block import TextPart
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
    obj,
    objs,
    part_of,
    parts_of,
    raw_arguments,
    spent,
    string,
    tool_input,
)

CHAT_SHAPE: Final = Shape(
    name="openai.chat",
    title="a response of OpenAI's Chat Completions API",
    output="choices",
    calls={"function": "tool", "custom": "tool"},
    thinking=frozenset({"reasoning_content", "reasoning"}),
    mark="prompt_cache_breakpoint",
    stops={
        "stop": "end_turn",
        "tool_calls": "end_turn",
        "function_call": "end_turn",
        "length": "max_tokens",
        "content_filter": "refusal",
    },
)
OPENAI: Final = "openai"
REFUSAL: Final = "refusal"
REASONING: Final = ("reasoning_content", "reasoning")
"""Fields in which servers of open models return thinking."""
_DETAILS: Final = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_READ: Final = ("cached_tokens", "cache_read", "cache_read_tokens")
_WRITTEN: Final = ("cache_write_tokens", "cache_creation", "cache_creation_tokens")
_LIVES: Final = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
"""LangChain's fields for Anthropic's caches; if these are present, `cache_creation` is 0."""
_TIERS: Final = ("", "priority_", "flex_")
"""LangChain's prefixes of field names, for OpenAI's service tiers."""
_NOTHING: Final[Json] = {}


def read(message: Json) -> Iterator[Message]:
    """The message as ours; nothing if it is not a message of this format."""
    own, content = string(message.get("id")), message.get("content")
    match dialogue(message.get("role")):
        case "assistant":
            yield Message(role="assistant", id=own, content=tuple(_model_content(message)))
        case "tool":
            result = Result(call_id=string(message.get("tool_call_id")), parts=parts_of(content))
            yield Message(role="tool", id=own, content=(result,))
        case "system" | "user" as role:
            title = string(message.get("role")) if role == "system" else ""
            yield Message(role=role, id=own, content=parts_of(content), title=title)
        case None:
            pass


def _model_content(message: Json) -> Iterator[Content]:
    """Reasoning, text and calls of an assistant's message."""
    for name in [name for name in REASONING if string(message.get(name))][:1]:
        yield Thought(value={"type": name, name: message[name]})
    yield from texts(message.get("content"))
    if refusal := string(message.get(REFUSAL)):
        yield from texts([{"type": REFUSAL, REFUSAL: refusal}])
    yield from calls(message)


def texts(content: Any, provider: Json = _NOTHING, source: str = "") -> Iterator[Content]:
    """The text of a model's message, joined to one, and its other content; `provider` is data that must be sent back with
    the text."""
    entries = items(content) if isinstance(content, list) else [content]
    parts = [{"text": part} if isinstance(part, str) else obj(part) for part in entries]
    text = "".join(string(part.get("text")) or string(part.get(REFUSAL)) for part in parts)
    if text.strip():
        refused = {REFUSAL: True} if any(part.get("type") == REFUSAL for part in parts) else {}
        yield ModelText(text=text, provider={**provider, **refused}, source=source)
    for part in parts:
        yield from (each for each in content_of(part) if isinstance(each, Verbatim))


def content_of(item: Any) -> Iterator[ModelText | Verbatim]:
    """One item of an assistant's content; nothing if it is empty."""
    part = part_of(item)
    if isinstance(part, TextPart):
        yield ModelText(text=part.text)
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
        provider=raw_arguments(function.get("arguments")),
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
        stop=_stop(message, string(choices[0].get("finish_reason"))),
    )


def _stop(message: Json, reason: str) -> str:
    """Why the model stopped; some servers say `stop` even with calls."""
    stop = CHAT_SHAPE.stops.get(reason, reason)
    if stop == "end_turn" and message.get("tool_calls"):
        return "tool_use"
    return "refusal" if message.get("refusal") else stop


def usage_in(usage: Json) -> UsageRecorded | None:
    """The usage in formats whose input count includes cached tokens: OpenAI's and those of frameworks."""
    if not usage:
        return None
    details = next((inner for name in _DETAILS if (inner := obj(usage.get(name)))), _NOTHING)
    prompt = _first(usage, ("prompt_tokens", "input_tokens"))
    reads = _first(details, _tiered(_READ)) or _first(
        usage, ("cache_read_tokens", "prompt_cache_hit_tokens")
    )
    writes = _first(details, _tiered(_WRITTEN)) or _first(usage, _WRITTEN)
    writes = writes or sum(count(details.get(name)) for name in _LIVES)
    reads = min(reads, prompt)
    writes = min(writes, prompt - reads)
    return spent(
        uncached=prompt - reads - writes,
        read=reads,
        written=writes,
        output=_first(usage, ("completion_tokens", "output_tokens")),
    )


def _first(fields: Json, names: tuple[str, ...]) -> int:
    return next((number for name in names if (number := count(fields.get(name)))), 0)


def _tiered(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{tier}{name}" for name in names for tier in _TIERS)


# A streamed response.


@attrs.define
class ChatStream:
    """Chunks with a delta each; the last one may have the usage and no choice."""

    _head: Json = attrs.field(factory=dict[str, Any], init=False)
    _texts: dict[str, str] = attrs.field(factory=dict[str, str], init=False)
    _calls: dict[int, Json] = attrs.field(factory=dict[int, Json], init=False)
    _reason: str = attrs.field(default="", init=False)

    def add(self, event: Json) -> None:
        # An event of `client.chat.completions.stream` has the chunk inside it.
        event = obj(event.get("chunk")) or event
        if event.get("type") and "choices" not in event:
            return  # further events of that, which repeat what the chunks say
        head = {name: event[name] for name in ("id", "model", "usage") if event.get(name)}
        self._head = {**self._head, **head}
        for choice in objs(event.get("choices"))[:1]:
            self._reason = string(choice.get("finish_reason")) or self._reason
            delta = obj(choice.get("delta"))
            for name in ("content", "refusal", "reasoning_content", "reasoning"):
                if text := string(delta.get(name)):
                    self._texts[name] = self._texts.get(name, "") + text
            for call in objs(delta.get("tool_calls")):
                self._call(call)

    def _call(self, call: Json) -> None:
        number = call.get("index")
        index = number if isinstance(number, int) else len(self._calls)
        whole = self._calls.setdefault(index, {"id": "", "function": {"name": "", "arguments": ""}})
        function, more = obj(whole["function"]), obj(call.get("function"))
        whole["id"] = whole["id"] or string(call.get("id"))
        function["name"] = string(function.get("name")) or string(more.get("name"))
        function["arguments"] += string(more.get("arguments"))

    def response(self) -> Json | None:
        calls = [self._calls[index] for index in sorted(self._calls)]
        if not self._reason:  # interrupted, so the last call may be incomplete
            calls = calls[:-1]
        if not (self._texts or calls or self._head.get("usage")):
            return None
        message: Json = {"role": "assistant", **self._texts, "tool_calls": calls}
        return {**self._head, "choices": [{"message": message, "finish_reason": self._reason}]}

    @property
    def is_over(self) -> bool:
        return bool(self._reason)
