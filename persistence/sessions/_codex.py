"""Codex rollouts: `response_item` lines have what the model saw; nearly all other lines are for the screen.

The log does not say where a response ends.  Assistant items without a tool output or user message
between them are one response.
"""

import re
from typing import Any

import attrs
from msgspec.structs import replace

from blocks import Part, text_of_parts
from blocks.formats import (
    Call,
    Content,
    Json,
    ModelText,
    Result,
    count,
    messages_in,
    obj,
    parts_of,
    string,
)
from persistence.sessions._builder import Builder, Importer, LoggedResult, LogStretch
from persistence.sessions._source import Source, seconds

_TYPES = frozenset({"session_meta", "response_item", "turn_context", "event_msg", "compacted"})
_USAGE = ("input_tokens", "cached_input_tokens", "output_tokens")
_EXIT = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})")
_METADATA = re.compile(r'"metadata":\{"exit_code":(-?\d{1,9})[^{}]*\}\}\s*\Z')
"""The end of an output of versions until the end of 2025, which is a JSON object."""
_HEADER_CHARS = 200
"""How many characters at the beginning of an output may contain its exit code."""


def _looks(source: Source) -> bool:
    return any(
        string(line.get("type")) in _TYPES and "payload" in line for _, line in source.records
    )


def _read(builder: Builder) -> None:
    reader = _Reader(builder)
    for number, line in builder.source.records:
        payload = obj(line.get("payload"))
        match line.get("type"):
            case "response_item":
                reader.item(number, payload, seconds(line.get("timestamp")))
            case "event_msg":
                reader.event(payload)
            case "turn_context":
                reader.model = string(payload.get("model")) or reader.model
            case "session_meta":
                reader.meta(payload)
            case _:
                pass  # `compacted` replaces the history; the session keeps the whole one


CODEX = Importer("codex", _looks, _read)


@attrs.define
class _Reader:
    builder: Builder
    model: str = attrs.field(default="", init=False)
    _open: LogStretch | None = attrs.field(default=None, init=False)
    """The current response, to which items are added."""
    _thoughts: list[Json] = attrs.field(factory=list[Json], init=False)
    """Reasoning for the next response."""
    _in_task: bool = attrs.field(default=False, init=False)
    _total: Json = attrs.field(factory=dict[str, Any], init=False)

    def meta(self, payload: Json) -> None:
        """Read the system prompt and what the session is. The line is repeated on each resume, and a fork has its own
        line before its parent's."""
        self.builder.id = self.builder.id or string(payload.get("id"))
        self.builder.folder = self.builder.folder or string(payload.get("cwd"))
        instructions = payload.get("base_instructions", payload.get("instructions"))
        text = string(obj(instructions).get("text")) or string(instructions)
        self.builder.system = self.builder.system or text

    def item(self, number: int, item: Json, at: float | None) -> None:
        match item.get("type"):
            case "message" if item.get("role") != "assistant":
                parts = parts_of(item.get("content"))
                if item.get("role") == "user":
                    self.builder.user(parts, at)
                else:
                    self.builder.operator(parts, at, string(item.get("role")))
                self._close()
            case "reasoning":
                if self._open:
                    self._open.think(item)
                else:
                    self._thoughts.append(item)
            case _:
                for message in messages_in(item, "openai.responses"):
                    for content in message.content:
                        self._add(number, content, at)

    def _add(self, number: int, content: Content, at: float | None) -> None:
        match content:
            case ModelText(text=text):
                self._response().say(text)
                self.builder.tick(at)
            case Call(call_id=call_id, name=name, input=arguments):
                self.builder.call(self._response(), call_id, name, arguments)
                self.builder.tick(at)
            case Result(call_id=call_id, parts=parts):
                self.builder.result(call_id, _result(parts, number), at)
                self._close()
            case _:
                pass  # searches of the provider, which kept calls and results

    def event(self, payload: Json) -> None:
        match payload.get("type"):
            case "token_count":
                self._tokens(obj(payload.get("info")))
            case "task_started":
                self._in_task, self.builder.at_work = True, False
            case "task_complete" | "turn_aborted":
                self._in_task = self.builder.at_work = False
            case _:
                pass  # only for display

    def _response(self) -> LogStretch:
        if self._open is None:
            self._open = self.builder.respond(model=self.model)
            self.builder.at_work = self._in_task
            for thought in self._thoughts:
                self._open.think(thought)
            self._thoughts = []
        return self._open

    def _close(self) -> None:
        self._open, self._thoughts = None, []

    def _tokens(self, info: Json) -> None:
        """Set the usage. Its line follows the outputs of the response, may be repeated, and is empty for a
        compaction."""
        self.builder.window = count(info.get("model_context_window")) or self.builder.window
        total, last = obj(info.get("total_token_usage")), obj(info.get("last_token_usage"))
        if total == self._total or not count(last.get("input_tokens")):
            return
        self._total = total
        latest = self.builder.latest
        usage = latest.spent(*(count(last.get(name)) for name in _USAGE))
        if latest.usage or not latest.id:  # its response is not by itself in the log
            model = latest.model or self.model
            name = f"{len(self.builder.aside)}"
            self.builder.aside[name] = replace(
                latest.usage or usage, model=model, at=self.builder.clock
            )
        latest.usage = usage if latest.id else None


def _result(parts: tuple[Part, ...], line: int) -> LoggedResult:
    text = text_of_parts(parts[:1])
    match = _METADATA.search(text[-_HEADER_CHARS:]) or _EXIT.search(text[:_HEADER_CHARS])
    return LoggedResult(parts=parts, exit_code=int(match[1]) if match else None, line=line)
