"""pi's sessions: a flat list in version 1, a tree with one current branch from version 2 on."""

from collections.abc import Sequence

from msgspec.structs import replace

from blocks.formats import Json, obj, objs, parts_of, string
from persistence.sessions._builder import Builder, Importer, LoggedResult, LogStretch
from persistence.sessions._source import Record, Source, path_to, seconds

_USAGE = ("input", "cacheRead", "output", "cacheWrite")


def _looks(source: Source) -> bool:
    """Whether this is a session of pi: it has pi's header, or a role or a field that only pi uses."""
    return any(
        (entry.get("type") == "session" and "timestamp" in entry)
        or (
            entry.get("type") == "message"
            and (
                obj(entry.get("message")).get("role") == "toolResult"
                or "stopReason" in obj(entry.get("message"))
            )
        )
        for _, entry in source.records
    )


def _read(builder: Builder) -> None:
    records = builder.source.records
    for _, entry in records:
        _note(builder, entry)
    branch = _branch(records)
    for number, entry in branch:
        _add(builder, number, entry)
    on_branch = {number for number, _ in branch}
    for number, entry in records if len(branch) < len(records) else ():
        if number not in on_branch:
            _add_aside(builder, number, entry)


PI = Importer("pi", _looks, _read)


def _branch(records: Sequence[Record]) -> Sequence[Record]:
    """The active branch: the path to the last entry."""
    places = {
        string(entry.get("id")): place
        for place, (_, entry) in enumerate(records)
        if entry.get("type") != "session" and "parentId" in entry
    }
    if not places:
        return records
    roots = {string(e.get("id")) for _, e in records if e.get("type") == "session"} | {""}
    parents = [string(entry.get("parentId")) for _, entry in records]
    return [records[place] for place in path_to(max(places.values()), parents, places, roots)]


def _note(builder: Builder, entry: Json) -> None:
    """Note what the entry says of the session; its newest title counts."""
    match entry.get("type"):
        case "session":
            builder.id = builder.id or string(entry.get("id"))
            builder.folder = builder.folder or string(entry.get("cwd"))
        case "session_info":
            builder.title = string(entry.get("name")) or builder.title
        case _:
            pass


def _add(builder: Builder, number: int, entry: Json) -> None:
    at = seconds(entry.get("timestamp"))
    match entry.get("type"):
        case "message":
            _add_message(builder, number, obj(entry.get("message")), at)
        case "custom_message":
            name = string(entry.get("customType")) or "custom_message"
            builder.attach(parts_of(entry.get("content")), at, name)
        case "branch_summary":
            builder.attach(parts_of(entry.get("summary")), at, "branch_summary")
        case "session" | "model_change":
            builder.model = builder.model or string(entry.get("modelId"))
        case _:
            pass  # also `compaction`: the session keeps the whole history


def _add_aside(builder: Builder, number: int, entry: Json) -> None:
    """Keep the usage of a response on another branch: it was paid for, too."""
    message, name = obj(entry.get("message")), f"line {number}"
    response = LogStretch(id=name, model=string(message.get("model")))
    response.use(obj(message.get("usage")), _USAGE)
    if message.get("role") == "assistant" and response.usage:
        at = seconds(entry.get("timestamp")) or 0.0
        builder.aside[name] = replace(response.usage, at=at)


def _add_message(builder: Builder, number: int, message: Json, at: float | None) -> None:
    parts = parts_of(message.get("content"))
    match message.get("role"):
        case "user":
            builder.user(parts, at)
        case "bashExecution":
            text = f"$ {string(message.get('command'))}\n{string(message.get('output'))}"
            builder.attach(parts_of(text), at, "bash")
        case "assistant":
            _respond(builder, message)
            builder.tick(at)
        case "toolResult":
            is_error = message.get("isError") is True
            result = LoggedResult(parts=parts, is_error=is_error, line=number)
            builder.result(message.get("toolCallId"), result, at)
        case _:
            pass


def _respond(builder: Builder, message: Json) -> None:
    response = builder.respond(string(message.get("responseId")), string(message.get("model")))
    for block in objs(message.get("content")):
        match block.get("type"):
            case "text":
                response.say(string(block.get("text")))
            case "toolCall":
                builder.call(response, block.get("id"), block.get("name"), block.get("arguments"))
            case "thinking":
                text, signature = block.get("thinking"), block.get("thinkingSignature")
                response.reason(string(text), string(signature))
            case _:
                pass
    response.use(obj(message.get("usage")), _USAGE)
    builder.at_work = message.get("stopReason") == "toolUse"
