"""Parts as content blocks of the Messages API: unchanged, or only named if the API would refuse them.

User messages and tool results accept different parts (SDK: the unions of `MessageParam.content` and
`ToolResultBlockParam.content`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

from blocks import (
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
    text_of_parts,
)
from render.policy._provider import Where
from render.providers._media import DOCUMENT_TEXT, is_base64, media_refusal, misplaced, unreadable
from render.providers.anthropic._kinds import IMAGE_BYTES_MAX, IMAGE_MEDIA_TYPES
from render.view._provider_blocks import Json

Refuses: TypeAlias = Callable[[str, Json], str]
"""Why the API would refuse a content block in a message of this role; empty: it would accept it."""

SENT: Final[Mapping[Where, frozenset[str]]] = {
    "user": frozenset({"search_result", "image", "document", "container_upload"}),
    "result": frozenset({"search_result", "image", "document"}),
}
"""The provider's own parts that are sent unchanged."""
TOLD: Final = frozenset({"tool_reference", "browser_state"})
"""Accepted in tool results, but only named: the tool they refer to may no longer be in the request."""
TITLE_CHARACTERS_MAX: Final = 500


def part_content(part: Part, where: Where, refuses: Refuses) -> Json:
    """The content block of a part; a part that the provider would refuse is only named."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if refusal(part, where, refuses) or _is_told(part):
        return {"type": "text", "text": _named(part)}
    return plain(part.value) if isinstance(part, ProviderPart) else _source(part)


def refusal(part: Part, where: Where, refuses: Refuses) -> str:
    """Why the provider would refuse a part; empty: it would accept it."""
    match part:
        case TextPart():
            return ""
        case ImagePart() | DocumentPart():
            return media_refusal(part, IMAGE_MEDIA_TYPES) or _size_refusal(part)
        case ProviderPart():
            return _provider_refusal(part.value, where, refuses)


def _size_refusal(part: ImagePart | DocumentPart) -> str:
    if isinstance(part, ImagePart) and len(part.data) > IMAGE_BYTES_MAX:
        return f"{len(part.data)} bytes of base64 are more than {IMAGE_BYTES_MAX}"
    return ""


def _provider_refusal(value: Json, where: Where, refuses: Refuses) -> str:
    kind: object = value.get("type")
    taken = SENT[where] | TOLD if where == "result" else SENT[where]
    if not isinstance(kind, str) or kind not in taken:
        return misplaced("a content block", kind, taken)
    if kind in TOLD:
        return ""
    content = plain(value)
    source: object = content.get("source")
    if isinstance(source, dict):
        fields = cast("Json", source)
        if fields.get("type") == "base64" and not is_base64(fields.get("data")):
            return "its data is not base64"
    return refuses("user", content)


def _is_told(part: Part) -> bool:
    return isinstance(part, ProviderPart) and part.value.get("type") in TOLD


def _named(part: Part) -> str:
    match part:
        case ImagePart() | DocumentPart():
            return unreadable(part)
        case ProviderPart():
            own: object = part.value.get("type")
            if not isinstance(own, str) or own in SENT["user"] | TOLD:
                return f"[tool {part.value.get('tool_name') or own or 'part'}]"
            return text_of_parts((part,)).strip() or "[part]"
        case TextPart():
            return part.text


def _source(part: ImagePart | DocumentPart) -> Json:
    kind = "image" if isinstance(part, ImagePart) else "document"
    title = part.name.strip()[:TITLE_CHARACTERS_MAX] if isinstance(part, DocumentPart) else ""
    titled = {"title": title} if title else {}
    if part.url:
        return {"type": kind, "source": {"type": "url", "url": part.url}, **titled}
    form = "text" if part.media_type == DOCUMENT_TEXT else "base64"
    source = {"type": form, "media_type": part.media_type, "data": part.data}
    return {"type": kind, "source": source, **titled}


def plain(value: Json) -> Json:
    """A block of the provider without parts that may not be sent: cache marks, blank texts, and citations by others."""
    kept = {key: inner for key, inner in value.items() if key != "cache_control"}
    if isinstance(kept.get("content"), list):
        kept["content"] = list(_plain_parts(kept["content"]))
    source: object = kept.get("source")
    if isinstance(source, dict) and isinstance(cast("Json", source).get("content"), list):
        inner = cast("Json", source)
        kept["source"] = {**inner, "content": list(_plain_parts(inner["content"]))}
    return kept


def _plain_parts(items: Iterable[Any]) -> Iterable[Any]:
    for item in items:
        if not isinstance(item, dict):
            yield item
            continue
        part = cast("Json", item)
        text: object = part.get("text")
        if part.get("type") != "text" or not isinstance(text, str):
            yield {key: inner for key, inner in part.items() if key != "cache_control"}
        elif text.strip():
            yield {"type": "text", "text": text}
