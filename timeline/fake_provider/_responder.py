"""The model behind the fake provider when no script says otherwise: small, and always the same.

It reads on from file to file: a name that the user or a tool mentioned and that no tool was asked
for yet goes to the first tool that takes a text.  When there is none left, it says what it saw.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from render import Json
from timeline.fake_provider._fault import Fault
from timeline.fake_provider._json import blocks_of, child
from timeline.fake_provider._reply import Call, Reply
from timeline.fake_provider._summary import last_words, summary_reply, wants_summary

Responder: TypeAlias = Callable[[Json], Reply | Fault]
"""From a request to what the model answers."""

_CALLS_MAX: Final = 2
"""Calls of one round."""
_ROUNDS_MAX: Final = 12
"""Rounds of one turn."""
_NAME: Final = re.compile(r"(?<![\w/.:-])(?:[\w-]+/)*[\w-]+\.[a-z]{1,5}\b")
_QUOTE_CHARS: Final = 160


def tutorial_responder(request: Json) -> Reply:
    """Summarise when asked to; look at what was mentioned; say what was found."""
    if wants_summary(request):
        return summary_reply(request)
    results = _results(request)
    tool = _tool(request)
    names = _unseen(request) if tool and _rounds(request) < _ROUNDS_MAX else []
    if tool and names:
        name, field = tool
        calls = [Call(name, {field: mentioned}) for mentioned in names[:_CALLS_MAX]]
        listed = " and ".join(names[:_CALLS_MAX])
        return Reply(
            thinking=f"{listed} may tell." if _thinks(request) else None,
            text=f"I look at {listed}.",
            calls=calls,
        )
    if results:
        found = results[-1].strip()[:_QUOTE_CHARS] or "nothing"
        return Reply(text=f"That is all I can see. The last thing I found: {found}")
    return Reply(text=f"You said: {last_words(request)[:_QUOTE_CHARS]}")


def _thinks(request: Json) -> bool:
    return bool(child(request, "thinking").get("type", "disabled") != "disabled")


def _tool(request: Json) -> tuple[str, str] | None:
    """The first tool with a field for a text, and that field; required fields first."""
    for tool in request.get("tools") or ():
        schema = child(tool, "input_schema")
        fields = child(schema, "properties")
        for name in (*schema.get("required", ()), *fields):
            if child(fields, name).get("type") == "string":
                return tool["name"], name
    return None


def _unseen(request: Json) -> list[str]:
    """Names mentioned by the user or in results that no call has asked for, oldest first."""
    asked = {
        value
        for block in _blocks(request, "tool_use")
        for value in block["input"].values()
        if isinstance(value, str)
    }
    texts = (block["text"] for message in _of_user(request) for block in _texts(message))
    mentioned = (name for text in (*texts, *_results(request)) for name in _NAME.findall(text))
    return [name for name in dict.fromkeys(mentioned) if name not in asked]


def _rounds(request: Json) -> int:
    """Rounds since the user last said something."""
    rounds = 0
    for message in reversed(request["messages"]):
        if message["role"] == "assistant":
            rounds += 1
        elif any(True for _ in _texts(message)):
            break
    return rounds


def _results(request: Json) -> list[str]:
    return [
        part["text"]
        for block in _blocks(request, "tool_result")
        for part in blocks_of(block.get("content"))
        if part["type"] == "text"
    ]


def _of_user(request: Json) -> list[Json]:
    return [message for message in request["messages"] if message["role"] == "user"]


def _texts(message: Json) -> Iterator[Json]:
    return (block for block in blocks_of(message["content"]) if block["type"] == "text")


def _blocks(request: Json, kind: str) -> Iterator[Json]:
    for message in request["messages"]:
        yield from (b for b in blocks_of(message["content"]) if b["type"] == kind)
