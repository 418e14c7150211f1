"""Gemini CLI chats: one document or, since 0.40, one message per line; calls contain their results."""

from typing import Any

from blocks import UsageRecorded, text_of_parts
from blocks.formats import Json, Result, count, messages_in, obj, objs, parts_of, string, tool_input
from persistence.sessions._builder import Builder, Returned, Stretch
from persistence.sessions._session import Session
from persistence.sessions._source import Importer, Record, Source, seconds

NAME = "gemini-cli"


def _looks(source: Source) -> bool:
    """Whether this is a chat of Gemini CLI."""
    return "projectHash" in source.records[0][1] or any(
        message.get("type") == "gemini" for _, message in source.messages
    )


def _read(source: Source) -> Session:
    """The session in `source`."""
    builder = Builder(source, NAME)
    builder.id = string(source.records[0][1].get("sessionId"))
    latest: dict[Any, Record] = {}  # a later line with the same id replaces an earlier one
    for place, record in enumerate(source.messages):
        latest[string(record[1].get("id")) or place] = record
    for number, message in latest.values():
        at = seconds(message.get("timestamp"))
        match message.get("type"):
            case "user":
                builder.user(parts_of(message.get("content")), at)
            case "gemini":
                _respond(builder, number, message, at)
            case _:
                pass  # `info` and `error` are only for display
    return builder.build()


GEMINI = Importer(NAME, _looks, _read)


def _respond(builder: Builder, number: int, message: Json, at: float | None) -> None:
    response = builder.respond(string(message.get("id")))
    response.model = string(message.get("model"))
    response.usage = _usage(response, obj(message.get("tokens")))
    response.say(text_of_parts(parts_of(message.get("content"))))
    calls = objs(message.get("toolCalls"))
    for call in calls:
        name = string(call.get("name"))
        builder.call(response, string(call.get("id")), name, tool_input(call.get("args")))
    builder.tick(at)
    for call in calls:
        if objs(call.get("result")):
            when = seconds(call.get("timestamp"))
            builder.result(string(call.get("id")), _returned(call, number), when)


def _returned(call: Json, line: int) -> Returned:
    contents = messages_in({"role": "user", "parts": objs(call.get("result"))}, "gemini")
    results = [c for message in contents for c in message.content if isinstance(c, Result)]
    parts = tuple(part for result in results for part in result.parts)
    is_error = call.get("status") == "error" or any(result.is_error for result in results)
    return Returned(parts=parts, is_error=is_error, line=line)


def _usage(response: Stretch, tokens: Json) -> UsageRecorded | None:
    """The usage; None if the log has only zeros, because it was unknown. The input includes cached tokens."""
    prompt = count(tokens.get("input"))
    if not prompt:
        return None
    output = count(tokens.get("output")) + count(tokens.get("thoughts"))
    return response.spent(prompt, count(tokens.get("cached")), output)
