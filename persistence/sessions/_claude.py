"""Content blocks of Anthropic's messages, which Claude Code logs as they are."""

from typing import Any

from persistence.sessions._builder import Builder, Voice
from persistence.sessions._json import Json, items, obj, objs, string, tool_input
from persistence.sessions._parts import parts_of
from persistence.sessions._returned import Returned
from persistence.sessions._stretch import Stretch

_THINKING = ("thinking", "redacted_thinking")


def add_response(builder: Builder, response: Stretch, content: Any) -> None:
    """The blocks of an assistant message; server tools and unknown kinds have no place here."""
    if isinstance(content, str):
        response.say(content)
    for block in objs(content):
        kind = string(block.get("type"))
        if kind == "text":
            response.say(string(block.get("text")))
        elif kind == "tool_use":
            builder.call(
                response,
                string(block.get("id")),
                string(block.get("name")),
                tool_input(block.get("input")),
            )
        elif kind in _THINKING:
            response.think(block)


def add_results(builder: Builder, content: Any, at: float | None, line: int) -> Any:
    """The tool results of a user message; returns the rest of its content."""
    if not isinstance(content, list):
        return content
    rest: list[Any] = []
    for item in items(content):
        block = obj(item)
        if block.get("type") == "tool_result":
            builder.result(string(block.get("tool_use_id")), _returned(block, line), at)
        else:
            rest.append(item)
    return rest


def _returned(block: Json, line: int) -> Returned:
    return Returned(
        parts=parts_of(block.get("content")), is_error=block.get("is_error") is True, line=line
    )


def words_of(rest: Any, content: Any) -> Voice:
    """Words in the same message as results reach an agent that is still at work."""
    return "prompt" if rest == content else "steer"
