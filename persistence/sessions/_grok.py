"""Grok's chat history: one message per line, without times; reasoning comes before the items that it led to."""

from blocks import text_of_parts
from blocks.formats import Json, objs, parts_of, string
from persistence.sessions._builder import Builder, Importer, LoggedResult
from persistence.sessions._source import Source


def _looks(source: Source) -> bool:
    return any(
        (line.get("type") == "assistant" and "model_id" in line)
        or (line.get("type") == "tool_result" and "tool_call_id" in line)
        or ("synthetic_reason" in line)
        for _, line in source.records
    )


def _read(builder: Builder) -> None:
    thoughts: list[Json] = []  # for the next response
    for number, line in builder.source.records:
        parts = parts_of(line.get("content"))
        match line.get("type"):
            case "system" if not builder.started:
                builder.system = builder.system or text_of_parts(parts)
            case "system":
                builder.operator(parts, None, "system")
            case "user":
                thoughts.clear()
                if reason := string(line.get("synthetic_reason")):
                    builder.attach(parts, None, reason)
                else:
                    builder.user(parts, None)
            case "reasoning":
                thoughts.append(line)
            case "assistant":
                response = builder.respond(string(line.get("id")), string(line.get("model_id")))
                for thought in thoughts:
                    response.think(thought)
                thoughts.clear()
                response.say(text_of_parts(parts))
                for call in objs(line.get("tool_calls")):
                    builder.call(response, call.get("id"), call.get("name"), call.get("arguments"))
            case "tool_result":
                result = LoggedResult(parts=parts, line=number)
                builder.result(line.get("tool_call_id"), result, None)
            case _:
                pass  # searches that the provider ran


GROK = Importer("grok", _looks, _read)
