"""Qwen Code's chats: Gemini's contents in a tree of records; several records with one id may be one response."""

from msgspec.structs import replace

from blocks.formats import (
    Content,
    Json,
    Result,
    gemini_usage_in,
    messages_in,
    obj,
    parts_in,
    string,
)
from persistence.sessions._builder import Builder, Importer, LoggedResult
from persistence.sessions._messages import add_content
from persistence.sessions._source import Record, Source, path_to, seconds

_SPOKEN = frozenset({"user", "assistant", "tool_result"})
_TYPED = frozenset({"", "mid_turn_user_message"})
"""Subtypes of the user's own text; texts with other subtypes come from the program."""


def _looks(source: Source) -> bool:
    return any(
        "uuid" in record and "parts" in obj(record.get("message")) for _, record in source.records
    )


def _read(builder: Builder) -> None:
    for number, record in _active(builder.source.records):
        _add(builder, number, record)


QWEN = Importer("qwen", _looks, _read)


def _active(records: tuple[Record, ...]) -> list[Record]:
    """The branch of the last message, or of the message to which the user last went back."""
    places = {string(record.get("uuid")): place for place, (_, record) in enumerate(records)}
    last = [place for place, (_, record) in enumerate(records) if _leads(record)]
    if not last:
        return []
    parents = [string(record.get("parentUuid")) for _, record in records]
    path = path_to(last[-1], parents, places, {""})
    ids = {string(records[place][1].get("uuid")) for place in path}
    return [record for record in records if string(record[1].get("uuid")) in ids]


def _leads(record: Json) -> bool:
    return string(record.get("type")) in _SPOKEN or record.get("subtype") == "rewind"


def _add(builder: Builder, number: int, record: Json) -> None:
    at = seconds(record.get("timestamp"))
    match record.get("type"):
        case "user":
            subtype = string(record.get("subtype"))
            parts = parts_in(_content(record, "user"))
            if subtype in _TYPED:
                builder.user(parts, at, steers=bool(subtype))
            else:
                builder.attach(parts, at, subtype)
        case "assistant":
            response = builder.response(string(record.get("uuid")))
            response.model = response.model or string(record.get("model"))
            add_content(builder, response, _content(record, "model"))
            if usage := gemini_usage_in(obj(record.get("usageMetadata"))):
                response.usage = replace(usage, model=response.model, response=response.id)
            builder.tick(at)
        case "tool_result":
            call = obj(record.get("toolCallResult"))
            for result in _content(record, "user"):
                if isinstance(result, Result):
                    is_error = result.is_error or call.get("status") == "error"
                    logged = LoggedResult(parts=result.parts, is_error=is_error, line=number)
                    builder.result(result.call_id or call.get("callId"), logged, at)
        case _:
            pass  # titles, rewinds, compressions: the session keeps the whole history


def _content(record: Json, role: str) -> tuple[Content, ...]:
    fields = {**obj(record.get("message")), "role": role}
    return tuple(c for message in messages_in(fields, "gemini") for c in message.content)
