"""Gemini CLI chats: one document or, since 0.40, one message per line; calls contain their results. And what
`gemini --output-format stream-json` prints: one text, call or result per line.

Newer versions write each result once more as the message of the user that brought it to the model, and lines that
change what is before them: `$set` (fields of the chat, all messages at its beginning and when it is compressed) and
`$rewindTo` (`chatRecordingService.ts` of the program).
"""

from itertools import groupby
from typing import Any

from blocks import TextPart, UsageRecorded, text_of_parts
from blocks.formats import Json, Result, count, messages_in, obj, objs, parts_of, string
from persistence.sessions._builder import Builder, Importer, LoggedResult, LogStretch
from persistence.sessions._messages import add_results
from persistence.sessions._source import Record, Source, seconds


def _looks(source: Source) -> bool:
    return "projectHash" in source.records[0][1] or any(
        message.get("type") == "gemini" or _is_of_stream(message) for _, message in source.messages
    )


def _read(builder: Builder) -> None:
    source = builder.source
    if any(_is_of_stream(line) for _, line in source.records):
        _add_stream(builder)
        return
    builder.id = string(source.records[0][1].get("sessionId"))
    messages = _messages(source.messages)
    calls = (call for _, message in messages for call in objs(message.get("toolCalls")))
    answered = {string(call.get("id")) for call in calls if objs(call.get("result"))}
    for number, message in messages:
        at = seconds(message.get("timestamp"))
        match message.get("type"):
            case "user":
                _hear(builder, number, message, at, answered)
            case "gemini":
                _respond(builder, number, message, at)
            case _:
                pass  # `info` and `error` are only for display


GEMINI = Importer("gemini-cli", _looks, _read)


def _is_of_stream(line: Json) -> bool:
    return "tool_id" in line and line.get("type") in ("tool_use", "tool_result")


def _add_stream(builder: Builder) -> None:
    """Add a stream, in which texts come in pieces; those and the calls between two results are one response."""
    response: LogStretch | None = None
    for role, records in groupby(builder.source.records, lambda record: record[1].get("role")):
        lines = [(number, line, seconds(line.get("timestamp"))) for number, line in records]
        if role == "assistant":
            response = response or builder.respond()
            response.say("".join(string(line.get("content")) for _, line, _ in lines))
            builder.tick(lines[-1][2])
            continue
        for number, line, at in lines:
            call_id = line.get("tool_id")
            match line.get("type"):
                case "init":
                    builder.id = string(line.get("session_id"))
                    builder.model = string(line.get("model"))
                case "message":
                    builder.user(parts_of(line.get("content")), at)
                    response = None
                case "tool_use":
                    response = response or builder.respond()
                    builder.call(response, call_id, line.get("tool_name"), line.get("parameters"))
                    builder.tick(at)
                case "tool_result":
                    output = line.get("output") or obj(line.get("error")).get("message")
                    is_error = line.get("status") == "error"
                    result = LoggedResult(parts=parts_of(output), is_error=is_error, line=number)
                    builder.result(call_id, result, at)
                    response = None
                case _:
                    pass  # the statistics at its end


def _messages(records: tuple[Record, ...]) -> list[Record]:
    """The messages in order, each in its last state, without what the user took back."""
    latest: dict[Any, Record] = {}
    for place, record in enumerate(records):
        number, line = record
        if "$rewindTo" in line:
            ids, back = list(latest), string(line["$rewindTo"])
            for rewound in ids[ids.index(back) if back in latest else 0 :]:
                del latest[rewound]
        elif "$set" in line:
            # What a compression puts in the place of the messages is left out: the session keeps the whole history.
            for message in () if latest else objs(obj(line["$set"]).get("messages")):
                latest[string(message.get("id")) or len(latest)] = (number, message)
        elif "type" in line:
            latest[string(line.get("id")) or place] = record
    return list(latest.values())


def _hear(
    builder: Builder, number: int, message: Json, at: float | None, answered: set[str]
) -> None:
    """Add what the user says; the results that come with it, too, unless their calls contain them."""
    parts = objs(message.get("content"))
    results = [part for part in parts if "functionResponse" in part]
    if not results:
        builder.user(parts_of(message.get("content")), at)
        return
    missing = [r for r in results if string(obj(r["functionResponse"]).get("id")) not in answered]
    for read in messages_in({"role": "user", "parts": missing}, "gemini"):
        add_results(builder, read.content, number, at)
    # What else is not text was read by a tool.
    texts = [TextPart(text=text) for part in parts if (text := string(part.get("text"))).strip()]
    if texts:
        builder.user(texts, at, steers=True)


def _respond(builder: Builder, number: int, message: Json, at: float | None) -> None:
    response = builder.respond(string(message.get("id")), string(message.get("model")))
    response.usage = _usage(response, obj(message.get("tokens")))
    response.say(text_of_parts(parts_of(message.get("content"))))
    calls = objs(message.get("toolCalls"))
    for call in calls:
        builder.call(response, call.get("id"), call.get("name"), call.get("args"))
    builder.tick(at)
    for call in calls:
        if objs(call.get("result")):
            when = seconds(call.get("timestamp"))
            builder.result(call.get("id"), _result(call, number), when)


def _result(call: Json, line: int) -> LoggedResult:
    contents = messages_in({"role": "user", "parts": objs(call.get("result"))}, "gemini")
    results = [c for message in contents for c in message.content if isinstance(c, Result)]
    parts = tuple(part for result in results for part in result.parts)
    is_error = call.get("status") == "error" or any(result.is_error for result in results)
    return LoggedResult(parts=parts, is_error=is_error, line=line)


def _usage(response: LogStretch, tokens: Json) -> UsageRecorded | None:
    """The usage; None if the log has only zeros, because it was unknown. The input includes cached tokens."""
    prompt = count(tokens.get("input"))
    if not prompt:
        return None
    output = count(tokens.get("output")) + count(tokens.get("thoughts"))
    return response.spent(prompt, count(tokens.get("cached")), output)
