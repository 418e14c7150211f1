"""A content or tool as the prompt cache sees it: its key for equality, its tokens, and its text."""

from functools import partial
from typing import Any, cast

import msgspec

from blocks import leaves
from render.policy._provider import Segment
from render.providers._definitions import definition_of
from render.providers.openai._count import (
    MESSAGE_TOKENS,
    call_texts,
    content_tokens,
    definition_tokens,
)
from render.providers.openai._kinds import MARK
from render.providers.openai._prices import MINUTES_30
from render.view._provider_blocks import Json


def segment_of(place: str, content: Json) -> Segment:
    """A content or a tool as the cache sees it."""
    if place == "tools":
        tool = definition_of(content)
        return Segment((place, _exact(content)), "tool", 0, partial(definition_tokens, tool))
    plain, is_marked = unmarked(content)
    kind = str(content.get("type") or content.get("role") or "")
    ttl = MINUTES_30 if is_marked else 0
    return Segment((place, kind, _exact(plain)), kind, ttl, partial(_tokens, plain))


def unmarked(content: Json) -> tuple[Json, bool]:
    """A content without its cache mark, and whether it had one, itself or in one of its parts."""
    if MARK in content:
        return {key: value for key, value in content.items() if key != MARK}, True
    for field in ("output", "content"):
        parts: object = content.get(field)
        if isinstance(parts, list) and any(MARK in part for part in cast("list[Json]", parts)):
            plain = [unmarked(part)[0] for part in cast("list[Json]", parts)]
            return {**content, field: plain}, True
    return content, False


def text_of_content(content: Json) -> str:
    """The text of a content that a model reads, without thinking."""
    kind = content.get("type") or content.get("role")
    match kind:
        case "input_text" | "output_text" | "text":
            return _string(content.get("text"))
        case "refusal":
            return _string(content.get("refusal"))
        case "function_call" | "custom_tool_call" | "function" | "custom":
            name, arguments = call_texts(content)
            return f"{name}\n{_leaves(arguments)}"
        case "input_image" | "image_url":
            return "[image]"
        case _:
            return _texts(content.get("output", content.get("content")))


def _texts(inner: Any) -> str:
    if isinstance(inner, list):
        return "\n".join(text_of_content(part) for part in cast("list[Json]", inner))
    return _string(inner)


def _leaves(arguments: str) -> str:
    try:
        return leaves(msgspec.json.decode(arguments))
    except (ValueError, RecursionError):
        return arguments


def _tokens(content: Json, counter: Any) -> int:
    return MESSAGE_TOKENS + content_tokens(content, counter)


def _exact(value: object) -> bytes:
    return msgspec.json.encode(value)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
