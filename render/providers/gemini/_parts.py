"""Parts of a user message or a tool result, as parts of a Gemini content."""

from typing import Final

from blocks import (
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
)
from render.policy._provider import Where
from render.providers._media import DOCUMENT_TEXT, is_base64, media_refusal, misplaced, named
from render.providers.gemini._kinds import IMAGE_MEDIA_TYPES, kind_of
from render.view._provider_blocks import Json

OWN: Final = frozenset({"inlineData", "fileData"})
"""The provider's own parts that a `ProviderPart` may contain: audio, video, or a file of its store."""
_SNAKE: Final = {"inline_data": "inlineData", "file_data": "fileData"}
_INNER: Final = {"mime_type": "mimeType", "file_uri": "fileUri", "display_name": "displayName"}
_SUFFIXES: Final = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}


def part_of(part: Part) -> Json:
    """The part as it is sent; a part that the provider would refuse is only named."""
    if isinstance(part, TextPart):
        return {"text": part.text}
    if refusal(part, "user"):
        return {"text": _named(part)}
    match part:
        case ImagePart():
            return _file(part.url, part.data, _image_type(part))
        case DocumentPart() if part.media_type == DOCUMENT_TEXT and not part.url:
            return {"text": f"[document {part.name}]\n{part.data}" if part.name else part.data}
        case DocumentPart():
            return _file(part.url, part.data, part.media_type)
        case ProviderPart(value=value):
            return _rest_names(value)


def _file(url: str, data: str, media_type: str) -> Json:
    if url:
        return {"fileData": {"fileUri": url, "mimeType": media_type}}
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _image_type(part: ImagePart) -> str:
    """The media type; the ending of a URL is more reliable than the part's default type."""
    path = part.url.partition("?")[0].lower()
    found = (kind for suffix, kind in _SUFFIXES.items() if path.endswith(suffix))
    return next(found, part.media_type) if part.url else part.media_type


def _rest_names(value: Json) -> Json:
    """A part with the field names of the REST API."""
    found: Json = {}
    for name, inner in value.items():
        known = _SNAKE.get(name, name)
        fields = {_INNER.get(k, k): v for k, v in inner.items()} if known in OWN else inner
        found[known] = fields
    return found


def refusal(part: Part, where: Where) -> str:
    """Why the provider would refuse a part; empty: it would accept it, or the part is sent as text."""
    del where
    match part:
        case TextPart():
            return ""
        case ImagePart() | DocumentPart():
            return media_refusal(part, IMAGE_MEDIA_TYPES)
        case ProviderPart(value=value):
            return _foreign(value)


def _foreign(value: Json) -> str:
    """Why a provider's own part is refused; empty: it is accepted."""
    names = {name: _SNAKE.get(name, name) for name in value}
    own = next((name for name, known in names.items() if known in OWN), "")
    if own:
        inner: object = value[own]
        return "" if isinstance(inner, dict) and kind_of(_rest_names(value)) in OWN else "no object"
    return misplaced("a part", value.get("type"), OWN)


def _named(part: Part) -> str:
    if isinstance(part, ImagePart) and not part.url and is_base64(part.data):
        return f"[image: {part.media_type} is a type that the model cannot read]"
    return named(part)
