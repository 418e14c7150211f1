"""Grok's chat history: one message per line, without times; reasoning comes before the items that it led to."""

import attrs

from blocks import text_of_parts
from blocks.formats import Json, objs, parts_of, string
from persistence.sessions._builder import Builder, Importer, LoggedResult
from persistence.sessions._source import Source


def _looks(source: Source) -> bool:
    """Whether these are lines of a Grok history."""
    return any(
        (line.get("type") == "assistant" and "model_id" in line)
        or (line.get("type") == "tool_result" and "tool_call_id" in line)
        or ("synthetic_reason" in line)
        for _, line in source.records
    )


def _read(builder: Builder) -> None:
    reader = _Reader(builder)
    for number, line in builder.source.records:
        reader.line(number, line)


GROK = Importer("grok", _looks, _read)


@attrs.define
class _Reader:
    builder: Builder
    _thoughts: list[Json] = attrs.field(factory=list[Json], init=False)
    """Reasoning for the next response."""

    def line(self, number: int, line: Json) -> None:
        parts = parts_of(line.get("content"))
        match line.get("type"):
            case "system" if not self.builder.started:
                self.builder.system = self.builder.system or text_of_parts(parts)
            case "system":
                self.builder.operator(parts, None, "system")
            case "user":
                self._thoughts = []
                if reason := string(line.get("synthetic_reason")):
                    self.builder.attach(parts, None, reason)
                else:
                    self.builder.user(parts, None)
            case "reasoning":
                self._thoughts.append(line)
            case "assistant":
                own, model = string(line.get("id")), string(line.get("model_id"))
                response = self.builder.respond(own, model)
                for thought in self._thoughts:
                    response.think(thought)
                self._thoughts = []
                response.say(text_of_parts(parts))
                for call in objs(line.get("tool_calls")):
                    name, arguments = call.get("name"), call.get("arguments")
                    self.builder.call(response, call.get("id"), name, arguments)
            case "tool_result":
                result = LoggedResult(parts=parts, line=number)
                self.builder.result(line.get("tool_call_id"), result, None)
            case _:
                pass  # searches that the provider ran
