"""Parts of a user's message or of a tool's result, as parts of a content."""

import binascii
from typing import Final

from blocks import (
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
    did_you_mean,
    in_words,
    is_web_url,
    text_of_parts,
)
from render.policy._provider import Where
from render.providers.gemini._kinds import DOCUMENT_TEXT, IMAGE_MEDIA_TYPES, PDF, kind_of
from render.view._provider_blocks import Json

OWN: Final = frozenset({"inlineData", "fileData"})
"""The provider's own parts that a `ProviderPart` may hold: sound, film, a file of its store."""
_SNAKE: Final = {"inline_data": "inlineData", "file_data": "fileData"}
_INNER: Final = {"mime_type": "mimeType", "file_uri": "fileUri", "display_name": "displayName"}
_SUFFIXES: Final = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}


def part_of(part: Part) -> Json:
    """The part as it is sent; what the provider would refuse is told by name."""
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
    """What an address ends in says more than the type that a part has unless told otherwise."""
    path = part.url.partition("?")[0].lower()
    found = (kind for suffix, kind in _SUFFIXES.items() if path.endswith(suffix))
    return next(found, part.media_type) if part.url else part.media_type


def _rest_names(value: Json) -> Json:
    """A part with the names of the REST interface."""
    found: Json = {}
    for name, inner in value.items():
        known = _SNAKE.get(name, name)
        fields = {_INNER.get(k, k): v for k, v in inner.items()} if known in OWN else inner
        found[known] = fields
    return found


def refusal(part: Part, where: Where) -> str:
    """Why the provider would refuse a part; empty: it would not, or it is told in words."""
    del where
    match part:
        case TextPart():
            return ""
        case ImagePart() | DocumentPart() if part.url:
            return "" if is_web_url(part.url) else f"{in_words(part.url)} is no http(s) url"
        case ImagePart():
            if part.media_type not in IMAGE_MEDIA_TYPES:
                types = ", ".join(IMAGE_MEDIA_TYPES)
                return f"media_type {in_words(part.media_type)} is none of {types}"
            return "" if _is_base64(part.data) else "its data is not base64"
        case DocumentPart(media_type="text/plain"):
            return "" if part.data.strip() else "its text is empty"
        case DocumentPart():
            if part.media_type != PDF:
                return f"media_type {in_words(part.media_type)} is neither {PDF} nor text/plain"
            return "" if _is_base64(part.data) else "its data is not base64"
        case ProviderPart(value=value):
            return _foreign(value)


def _foreign(value: Json) -> str:
    """Why a part of somebody's own is refused."""
    names = {name: _SNAKE.get(name, name) for name in value}
    own = next((name for name, known in names.items() if known in OWN), "")
    if own:
        inner: object = value[own]
        return "" if isinstance(inner, dict) and kind_of(_rest_names(value)) in OWN else "no object"
    kind = value.get("type")
    near = did_you_mean(kind, OWN) or f"; there are {', '.join(sorted(OWN))}"
    return f"a part of type {in_words(kind)} cannot go there{near}"


def _named(part: Part) -> str:
    match part:
        case ImagePart(data=data, url="") if data and _is_base64(data):
            return f"[image: {part.media_type} is a type that the model cannot read]"
        case ImagePart() | DocumentPart():
            kind = "image" if isinstance(part, ImagePart) else "document"
            return f"[{kind}: its {'url' if part.url else 'data'} could not be read]"
        case ProviderPart(value={"tool_name": str(name)}):
            return f"[tool {name}]"
        case _:
            return text_of_parts((part,)).strip() or "[part]"


def _is_base64(data: str) -> bool:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError):
        return False
    return bool(data)
