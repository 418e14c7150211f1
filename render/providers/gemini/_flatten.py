"""A part or tool as the prompt cache sees it: its key for equality, its tokens, and its text."""

from functools import partial
from typing import Any, cast

import msgspec

from blocks import leaves
from render.policy._provider import Segment, TokenCounter
from render.providers._definitions import definition_of
from render.providers.gemini._count import MESSAGE_TOKENS, definition_tokens, part_tokens
from render.providers.gemini._kinds import kind_of
from render.view._provider_blocks import Json


def segment_of(place: str, content: Json) -> Segment:
    """A part or a tool as the cache sees it."""
    exact = msgspec.json.encode(content)
    if place == "tools":
        tool = definition_of(content)
        return Segment((place, exact), "tool", 0, partial(definition_tokens, tool))
    return Segment((place, exact), kind_of(content), 0, partial(_tokens, content))


def text_of_content(content: Json) -> str:
    """The text of a part that a model reads, without thinking."""
    kind = kind_of(content)
    inner: Any = content.get(kind)
    fields = cast("Json", inner) if isinstance(inner, dict) else {}
    match kind:
        case "text":
            is_read = isinstance(inner, str) and not content.get("thought")
            return cast("str", inner) if is_read else ""
        case "functionCall":
            return f"{fields.get('name')}\n{leaves(fields.get('args'))}"
        case "functionResponse":
            response: object = fields.get("response")
            values = cast("Json", response).values() if isinstance(response, dict) else ()
            return "\n".join(leaves(value) for value in values)
        case "inlineData" | "fileData":
            is_image = str(fields.get("mimeType")).startswith("image/")
            return "[image]" if is_image else "[document]"
        case _:
            return leaves(inner)


def _tokens(part: Json, counter: TokenCounter) -> int:
    return MESSAGE_TOKENS + part_tokens(part, counter)
