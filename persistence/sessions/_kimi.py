"""Kimi's wire log: the content appended to the context, step by step; a step is one response."""

import attrs

from blocks.formats import Json, obj, parts_of, string
from persistence.sessions._builder import Builder, Importer, LoggedResult, LogStretch
from persistence.sessions._source import Source, seconds

_USAGE = ("inputOther", "inputCacheRead", "output", "inputCacheCreation")


def _looks(source: Source) -> bool:
    return any(
        string(line.get("type")).startswith("context.append_") or "protocol_version" in line
        for _, line in source.records
    )


def _read(builder: Builder) -> None:
    records = builder.source.records
    events = [obj(line.get("event")) for _, line in records]
    ids = {
        string(event.get("uuid")): string(event.get("messageId"))
        for event in events
        if event.get("type") == "step.end"
    }
    reader = _Reader(builder, ids)
    for number, line in records:
        reader.line(number, line)


KIMI = Importer("kimi", _looks, _read)


@attrs.define
class _Reader:
    builder: Builder
    _ids: dict[str, str]
    """The provider's id of the response of each step, which the log has only at the end of the step."""
    _model: str = attrs.field(default="", init=False)
    _steps: dict[str, LogStretch] = attrs.field(factory=dict[str, LogStretch], init=False)

    def line(self, number: int, line: Json) -> None:
        at = seconds(line.get("time"))
        match line.get("type"):
            case "config.update":
                self.builder.system = self.builder.system or string(line.get("systemPrompt"))
            case "llm.request":
                self._model = string(line.get("model"))
                self.builder.tick(at)
            case "context.append_message":
                self._message(number, obj(line.get("message")), at)
            case "context.append_loop_event":
                self._event(number, obj(line.get("event")), at)
            case _:
                pass  # also compactions: the session keeps the whole history

    def _message(self, number: int, message: Json, at: float | None) -> None:
        parts = parts_of(message.get("content"))
        origin = obj(message.get("origin"))
        match message.get("role"):
            case "user" if string(origin.get("kind")) in {"", "user"}:
                self.builder.user(parts, at)
            case "user" | "system":
                name = string(origin.get("variant")) or string(origin.get("kind"))
                self.builder.attach(parts, at, name or "context")
            case "tool":
                result = LoggedResult(parts=parts, line=number)
                self.builder.result(message.get("toolCallId"), result, at)
            case _:
                pass

    def _event(self, number: int, event: Json, at: float | None) -> None:
        match event.get("type"):
            case "step.begin":
                self.builder.at_work = False
                self.builder.tick(at)
            case "content.part":
                step, part = self._step(event), obj(event.get("part"))
                if part.get("type") == "text":
                    step.say(string(part.get("text")))
                elif part.get("type") == "think":
                    thought = string(part.get("think"))
                    step.think({"type": "reasoning_content", "reasoning_content": thought})
                self.builder.tick(at)
            case "tool.call":
                call_id, name = event.get("toolCallId"), event.get("name")
                self.builder.call(self._step(event), call_id, name, event.get("args"))
                self.builder.tick(at)
            case "tool.result":
                result = obj(event.get("result"))
                is_error, parts = result.get("isError") is True, parts_of(result.get("output"))
                logged = LoggedResult(parts=parts, is_error=is_error, line=number)
                self.builder.result(event.get("toolCallId"), logged, at)
            case "step.end":
                self.builder.at_work = event.get("finishReason") == "tool_use"
                if response := self._steps.get(string(event.get("uuid"))):
                    response.use(obj(event.get("usage")), _USAGE)
            case _:
                pass

    def _step(self, event: Json) -> LogStretch:
        step = string(event.get("stepUuid"))
        if step not in self._steps:
            self._steps[step] = self.builder.respond(self._ids.get(step, ""), self._model)
        return self._steps[step]
