"""Requests for a summary, and the JSON that answers them: quoted, not written."""

from itertools import islice
from typing import Any, Final

import msgspec

from blocks import OpenItem, StructuredSummary, ToolOutcome
from render import Json
from timeline.fake_provider._json import blocks_of, child
from timeline.fake_provider._reply import Reply

MARKER: Final = "[foldline: summarise]"
"""How our summariser's instruction begins."""
_TEXT_CHARS: Final = 160
_LIST_MAX: Final = 5
_EMPTY: Final[Json] = {"string": "", "array": [], "object": {}, "integer": 0, "number": 0}


def wants_summary(request: Json) -> bool:
    """Whether the output has to be JSON, or the last words are those of our own summariser."""
    return _schema(request) is not None or last_words(request).startswith(MARKER)


def last_words(request: Json) -> str:
    """The last text of the last message, if that is the user's."""
    message = request["messages"][-1]
    texts = [b["text"] for b in blocks_of(message["content"]) if b["type"] == "text"]
    return texts[-1] if texts and message["role"] == "user" else ""


def summary_reply(request: Json) -> Reply:
    """A valid summary of the conversation, in the fields that the request asks for."""
    summary: Json = msgspec.to_builtins(_summary(request))
    asked = child(_schema(request) or {}, "properties")
    if asked:
        summary = {name: _value(name, child(asked, name), summary) for name in asked}
    return Reply(text=msgspec.json.encode(summary).decode())


def _schema(request: Json) -> Json | None:
    """The JSON schema of the output format; a reference at its top followed."""
    asked = child(child(request, "output_config"), "format")
    if asked.get("type") != "json_schema":
        return None
    schema = child(asked, "schema")
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    return child(child(schema, "$defs"), reference) or schema


def _value(name: str, about: Json, summary: Json) -> Any:
    if name in summary:
        return summary[name]
    if "default" in about:
        return about["default"]
    choices: list[Any] = about.get("enum") or [_EMPTY.get(str(about.get("type")))]
    return choices[0]


def _summary(request: Json) -> StructuredSummary:
    blocks = [
        (message["role"], block)
        for message in request["messages"]
        for block in blocks_of(message["content"])
    ]
    said = [(role, b["text"][:_TEXT_CHARS]) for role, b in blocks if b["type"] == "text"]
    mine = [text for role, text in said if role == "assistant"]
    calls = (b for _, b in reversed(blocks) if b["type"] == "tool_use")
    outcomes = tuple(
        ToolOutcome(tool=call["name"], outcome="called", detail=str(call["input"])[:_TEXT_CHARS])
        for call in islice(calls, _LIST_MAX)
    )
    return StructuredSummary(
        task=next((text for role, text in said if role == "user"), "(no task)"),
        facts=tuple(mine[-_LIST_MAX:]) or ("Nothing was said yet.",),
        tool_outcomes=outcomes[::-1],
        state=mine[-1] if mine else "Just begun.",
        open_items=(OpenItem(item="Go on with the task."),),
    )
