"""Joins the events of a streamed response.

Only complete content counts, if the stream ends early: the text received so far, and calls whose arguments are
complete.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import attrs
import msgspec

from blocks._errors import ArgumentError
from blocks.formats._dump import dumped
from blocks.formats._formats import Format, checked_format
from blocks.formats._gemini import gemini_field
from blocks.formats._json import Json, obj, objs, string


class Stream(Protocol):
    """A response that is being received."""

    def add(self, event: Json) -> None:
        """Handle the next event."""
        ...

    def response(self) -> Json | None:
        """The JSON of the response as far as it was received; None if nothing was."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the end of the response was received."""
        ...


def stream_of(name: Format, call: str) -> Stream:
    """A new stream of a format.

    Raises:
        ArgumentError: there is no such format, or it has no stream of events.
    """
    made = _STREAMS.get(checked_format(name, call))
    if made is None:
        raise ArgumentError(
            f"{call}: {name!r} has no stream of events; record its whole response with record()"
        )
    return made()


def event_of(event: object) -> Json:
    """One event as JSON.

    Raises:
        ArgumentError: it has no fields.
    """
    return dumped(event, "recording(): an event of the stream")


@attrs.define
class _Anthropic:
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
                usage = {**obj(self._message.get("usage")), **_known(obj(event.get("usage")))}
                self._message = {
                    **self._message,
                    **_known(obj(event.get("delta"))),
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
        content = [self._whole(index) for index in sorted(self._blocks) if self._is_whole(index)]
        found = {**self._message, "content": content}
        return found if content or found.get("usage") else None

    @property
    def is_over(self) -> bool:
        return bool(self._message.get("stop_reason"))

    def _is_whole(self, index: int) -> bool:
        return index in self._done or self._blocks[index].get("type") == "text"

    def _whole(self, index: int) -> Json:
        block = self._blocks[index]
        return {**block, "input": _parsed(self._inputs[index])} if index in self._inputs else block


@attrs.define
class _Chat:
    """Chunks with a delta each; the last one may have the usage and no choice."""

    _head: Json = attrs.field(factory=dict[str, Any], init=False)
    _texts: dict[str, str] = attrs.field(factory=dict[str, str], init=False)
    _calls: dict[int, Json] = attrs.field(factory=dict[int, Json], init=False)
    _reason: str = attrs.field(default="", init=False)

    def add(self, event: Json) -> None:
        known = {name: event[name] for name in ("id", "model", "usage") if event.get(name)}
        self._head = {**self._head, **known}
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
        known = self._calls.setdefault(index, {"id": "", "function": {"name": "", "arguments": ""}})
        function, more = obj(known["function"]), obj(call.get("function"))
        known["id"] = known["id"] or string(call.get("id"))
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


@attrs.define
class _Responses:
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


@attrs.define
class _Gemini:
    """Chunks with parts; consecutive texts of one kind are joined, unless they have a signature."""

    _head: Json = attrs.field(factory=dict[str, Any], init=False)
    _parts: list[Json] = attrs.field(factory=list[Json], init=False)
    _reason: str = attrs.field(default="", init=False)

    def add(self, event: Json) -> None:
        for name in ("responseId", "modelVersion", "usageMetadata", "promptFeedback"):
            if known := gemini_field(event, name):
                self._head[name] = known
        for candidate in objs(event.get("candidates"))[:1]:
            self._reason = string(gemini_field(candidate, "finishReason")) or self._reason
            for part in objs(obj(candidate.get("content")).get("parts")):
                self._part(_known(part))

    def _part(self, part: Json) -> None:
        last: Json = self._parts[-1] if self._parts else {}
        if _is_plain(part) and _is_plain(last) and part.get("thought") == last.get("thought"):
            self._parts[-1] = {**last, "text": string(last["text"]) + string(part["text"])}
        else:
            self._parts.append(part)

    def response(self) -> Json | None:
        if not (self._parts or self._head.get("usageMetadata") or self.is_over):
            return None
        content = {"role": "model", "parts": self._parts}
        candidates = [{"content": content, "finishReason": self._reason}] if self._parts else []
        return {**self._head, "candidates": candidates}

    @property
    def is_over(self) -> bool:
        return bool(self._reason) or "promptFeedback" in self._head


def _is_plain(part: Json) -> bool:
    """Whether the part is a text without other fields."""
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}


_STREAMS: Final[Mapping[str, type[Stream]]] = {
    "anthropic": _Anthropic,
    "openai.chat": _Chat,
    "openai.responses": _Responses,
    "gemini": _Gemini,
}


def _known(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _whole_number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else {}
    except ValueError:
        return text
