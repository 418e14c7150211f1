"""Grok's chat history: one message per line, without times; reasoning comes before the items that it led to."""

import attrs

from blocks import text_of_parts
from blocks.formats import Json, objs, parts_of, string, tool_input
from persistence.sessions._builder import Builder, LoggedResult
from persistence.sessions._session import Session
from persistence.sessions._source import Importer, Source

NAME = "grok"


def _looks(source: Source) -> bool:
    """Whether these are lines of a Grok history."""
    return any(
        (line.get("type") == "assistant" and "model_id" in line)
        or (line.get("type") == "tool_result" and "tool_call_id" in line)
        or ("synthetic_reason" in line)
        for _, line in source.records
    )


def _read(source: Source) -> Session:
    """The session in `source`."""
    reader = _Reader(Builder(source, NAME))
    for number, line in source.records:
        reader.line(number, line)
    return reader.builder.build()


GROK = Importer(NAME, _looks, _read)


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
                response = self.builder.respond(string(line.get("id")))
                response.model = string(line.get("model_id"))
                for thought in self._thoughts:
                    response.think(thought)
                self._thoughts = []
                response.say(text_of_parts(parts_of(line.get("content"))))
                for call in objs(line.get("tool_calls")):
                    arguments = tool_input(call.get("arguments"))
                    self.builder.call(
                        response, string(call.get("id")), string(call.get("name")), arguments
                    )
            case "tool_result":
                result = LoggedResult(parts=parts, line=number)
                self.builder.result(string(line.get("tool_call_id")), result, None)
            case _:
                pass  # searches that the provider ran
