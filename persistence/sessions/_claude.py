"""Content blocks of Anthropic's messages, which Claude Code logs unchanged."""

from typing import Any

from blocks.formats import Result, items, messages_in, obj
from persistence.sessions._builder import Builder, Voice
from persistence.sessions._messages import add_said
from persistence.sessions._returned import Returned
from persistence.sessions._stretch import Stretch


def add_response(builder: Builder, response: Stretch, content: Any) -> None:
    """Add the blocks of an assistant message, except those of server tools and of unknown kinds."""
    for message in messages_in({"role": "assistant", "content": content}, "anthropic"):
        add_said(builder, response, message.content)


def add_results(builder: Builder, content: Any, at: float | None, line: int) -> Any:
    """Add the tool results of a user message; return the rest of its content."""
    if not isinstance(content, list):
        return content
    rest: list[Any] = []
    for item in items(content):
        if obj(item).get("type") != "tool_result":
            rest.append(item)
            continue
        for message in messages_in({"role": "user", "content": [item]}, "anthropic"):
            for result in message.content:
                if isinstance(result, Result):
                    returned = Returned(parts=result.parts, is_error=result.is_error, line=line)
                    builder.result(result.call_id, returned, at)
    return rest


def words_of(rest: Any, content: Any) -> Voice:
    """What the text of a user message is: a steer if the message also has results, because the agent is still
    running."""
    return "prompt" if rest == content else "steer"
