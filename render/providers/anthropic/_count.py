"""Counting tokens of content blocks, including the envelope that the provider adds to each."""

from json import dumps
from typing import Any, Final, cast

from blocks import DocumentPart, ImagePart, ProviderPart
from render.policy._provider import TokenCounter
from render.view._provider_blocks import Json

BLOCK_TOKENS: Final = 3
"""Tokens of a content block's envelope; undocumented, measured as 4 to 8 per message."""
TOOL_TOKENS: Final = 12
"""Additional tokens of the envelope of a call or a result."""
RESULT_TOKENS: Final = BLOCK_TOKENS + TOOL_TOKENS
"""Tokens of an empty result."""


def content_tokens(content: Json, counter: TokenCounter) -> int:
    """Tokens of one content block, its envelope included."""
    match content.get("type"):
        case "text":
            return BLOCK_TOKENS + counter.count(content.get("text") or "")
        case "tool_use":
            arguments = dumps(content.get("input"), ensure_ascii=False)
            named = counter.count(content.get("name") or "")
            return BLOCK_TOKENS + TOOL_TOKENS + named + counter.count(arguments)
        case "tool_result":
            return RESULT_TOKENS + _result_tokens(content.get("content") or "", counter)
        case "thinking" | "redacted_thinking":
            thought = content.get("thinking") or content.get("data") or ""
            return BLOCK_TOKENS + counter.count(str(thought))
        case _:
            return BLOCK_TOKENS + _media_tokens(content, counter)


def tool_tokens(tool: Json, counter: TokenCounter) -> int:
    """Tokens of one tool definition."""
    plain = {key: value for key, value in tool.items() if key != "cache_control"}
    return counter.count(dumps(plain, ensure_ascii=False))


def _result_tokens(content: str | list[Json], counter: TokenCounter) -> int:
    if isinstance(content, str):
        return counter.count(content)
    texts = [part["text"] if part.get("type") == "text" else "[image]" for part in content]
    media = sum(_media_tokens(part, counter) for part in content if part.get("type") != "text")
    return counter.count("\n".join(texts)) + media


def _media_tokens(content: Json, counter: TokenCounter) -> int:
    found: object = content.get("source")  # a text for search results
    source = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    data, media_type = str(source.get("data", "")), str(source.get("media_type", ""))
    if source.get("type") in ("text", "content"):
        return _document_tokens(content, source, counter)
    match content.get("type"):
        case "image":
            return counter.part(ImagePart(media_type=media_type, data=data))
        case "document":
            return counter.part(DocumentPart(media_type=media_type, data=data))
        case _:
            return counter.part(ProviderPart(value=content))


def _document_tokens(content: Json, source: Json, counter: TokenCounter) -> int:
    """Tokens of a document that is not a PDF: its text and images."""
    inner: object = source.get("content")
    parts = cast("list[Json]", inner) if isinstance(inner, list) else []
    texts: list[object] = [content.get("title"), content.get("context"), source.get("data"), inner]
    texts += [part.get("text") for part in parts]
    pictures = sum(_media_tokens(part, counter) for part in parts if part.get("type") == "image")
    return counter.count("\n".join(text for text in texts if isinstance(text, str))) + pictures
