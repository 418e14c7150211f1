"""Parts as content blocks of the Messages API."""

import binascii
from typing import Final, cast

from blocks import DocumentPart, ImagePart, Part, ProviderPart, TextPart
from render._context import Json
from render.anthropic._rules import IMAGE_BYTES_MAX

IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def part_content(part: Part) -> Json:
    """The content block of one part; what the provider would refuse is told by name."""
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart():
            return _source(part, "image") if part.url or _is_image(part) else _named(part)
        case DocumentPart():
            return _source(part, "document") if part.url or _is_pdf(part) else _named(part)
        case ProviderPart():
            return _provider(part)


def _provider(part: ProviderPart) -> Json:
    """A provider's own part; one of its tool references is told by name (its tool may be gone)."""
    if part.value.get("type") == "search_result" and _is_search_result(part.value):
        return {key: value for key, value in part.value.items() if key != "cache_control"}
    name = part.value.get("tool_name") or part.value.get("type") or "part"
    return {"type": "text", "text": f"[tool {name}]"}


def _source(part: ImagePart | DocumentPart, kind: str) -> Json:
    if part.url:
        return {"type": kind, "source": {"type": "url", "url": part.url}}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": kind, "source": source}


def _named(part: ImagePart | DocumentPart) -> Json:
    kind = "image" if isinstance(part, ImagePart) else "document"
    return {"type": "text", "text": f"[{kind}: its data could not be read]"}


def _is_search_result(value: Json) -> bool:
    """Whether it holds nothing but texts with words and without citations."""
    content = value.get("content")
    return isinstance(content, list) and all(map(_is_plain_text, cast("list[object]", content)))


def _is_plain_text(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    fields = cast("Json", part)
    text = fields.get("text")
    is_plain = fields.get("type") == "text" and set(fields) == {"type", "text"}
    return is_plain and isinstance(text, str) and bool(text.strip())


def _is_image(part: ImagePart) -> bool:
    is_small = len(part.data) <= IMAGE_BYTES_MAX
    return is_small and part.media_type in IMAGE_TYPES and _is_base64(part.data)


def _is_pdf(part: DocumentPart) -> bool:
    return part.media_type == "application/pdf" and _is_base64(part.data)


def _is_base64(data: str) -> bool:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError):
        return False
    return bool(data)
