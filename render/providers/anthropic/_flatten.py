"""A request as the prompt cache sees it: its content blocks in order, each with a key for equality.

The order is tools, system, messages. A key covers what the prefix hash covers, including the order of keys
in a tool's input, and leaves out `cache_control`, which is not content. (Provider documentation: prompt
caching.)
"""

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from json import dumps
from typing import Final

import msgspec

from blocks import leaves
from render.policy._provider import Segment, TokenCounter
from render.providers.anthropic._count import (
    BLOCK_TOKENS,
    RESULT_TOKENS,
    content_tokens,
    tool_tokens,
)
from render.providers.anthropic._prices import HOUR, MINUTES_5
from render.view._provider_blocks import Json

TOOLS: Final = "tools"
PROMPT: Final = "system prompt"
"""Not `system`, because messages may have that role."""
_PLAIN_TEXT: Final = frozenset({"type", "text", "cache_control"})


def contents_of(
    system: str | Sequence[Json], tools: Sequence[Json], messages: Sequence[Json]
) -> Iterator[tuple[str, Json]]:
    """The content blocks in cache order, each with its role. A deferred tool is in no prompt until a search loads it,
    and then it is part of the result. (Provider documentation: tool search.)"""
    for tool in tools:
        if not tool.get("defer_loading"):
            yield TOOLS, tool
    for text in _blocks(system):
        yield PROMPT, text
    for message in messages:
        role = message.get("role", "")
        for content in _blocks(message.get("content")):
            yield role, content


def segment_of(place: str, content: Json) -> Segment:
    """A content block as the cache sees it."""
    kind = content.get("type") or ""
    key = (place, kind, _content(content))
    ttl = _ttl(content)
    plain = content if not ttl else _unmarked(content)
    match place:
        case "tools":
            return Segment(key, "tool", ttl, partial(tool_tokens, plain))
        case "system prompt":
            return Segment(key, "system", ttl, partial(_text_tokens, plain))
        case _:
            return Segment(key, kind, ttl, partial(_tokens, plain))


def text_of_content(content: Json) -> str:
    """The text of a content block that a model reads, without thinking."""
    match content.get("type"):
        case "text":
            return _string(content.get("text"))
        case "tool_use":
            return f"{content.get('name')}\n{leaves(content.get('input'))}"
        case "tool_result":
            return "\n".join(text_of_content(part) for part in _blocks(content.get("content")))
        case "compaction":
            return _string(content.get("content"))
        case "image":
            return "[image]"
        case _:
            return ""


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _tokens(content: Json, counter: TokenCounter) -> int:
    """Tokens as in a render, except that the parts of a result are counted one by one."""
    inner = content.get("content")
    match content.get("type"):
        case "tool_result" if inner and not isinstance(inner, str):
            return RESULT_TOKENS + sum(_tokens(part, counter) - BLOCK_TOKENS for part in inner)
        case "compaction":
            return BLOCK_TOKENS + counter.count(inner or "")
        case _:
            return content_tokens(content, counter)


def _text_tokens(text: Json, counter: TokenCounter) -> int:
    return counter.count(text.get("text") or "")


def _blocks(content: str | Sequence[Json] | None) -> Sequence[Json]:
    """Content as a list; a string counts as one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else ()
    return content or ()


def _content(block: Json) -> Hashable:
    """The key of a block; long strings are not copied or hashed again, because Python caches their hash."""
    match block.get("type"):
        case "text" if block.keys() <= _PLAIN_TEXT:
            return block.get("text")
        case "tool_result":
            return (
                block.get("tool_use_id"),
                _inner(block.get("content")),
                bool(block.get("is_error")),
            )
        case "image" if isinstance(block.get("source"), dict):
            return tuple(_strings(block["source"]))
        case _:
            return _exact(_unmarked(block))


def _inner(content: str | Sequence[Json] | None) -> Hashable:
    """The key of a result's content; a string equals one text block."""
    if isinstance(content, str):
        return (("text", content),)
    return tuple((part.get("type"), _content(part)) for part in content or ())


def _exact(value: object) -> str | bytes:
    """The value as JSON, with its keys in their order."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair, from a truncation
        return dumps(value, ensure_ascii=False)


def _strings(source: Json) -> Iterator[tuple[str, str]]:
    for name, value in source.items():
        yield name, value if isinstance(value, str) else dumps(value, ensure_ascii=False)


def _unmarked(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control"}


def _ttl(block: Json) -> int:
    """Seconds that a block's mark asks for: 0 without a mark, 5 minutes unless it says an hour."""
    mark = block.get("cache_control")
    if not mark:
        return 0
    return HOUR if mark.get("ttl") == "1h" else MINUTES_5
