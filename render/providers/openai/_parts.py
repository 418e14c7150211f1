"""Parts of a user message or a tool result, as content of either API."""

from collections.abc import Sequence
from typing import Final

import attrs

from blocks import (
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
)
from render.policy._provider import Where
from render.providers._media import media_refusal, misplaced, named
from render.providers.openai._count import is_text
from render.providers.openai._kinds import IMAGE_MEDIA_TYPES, MARK
from render.view._provider_blocks import Json

OWN: Final = frozenset({"input_image", "input_file", "image_url", "file", "input_audio"})
"""The provider's own parts, of either API, that a `ProviderPart` may contain."""
FILE_NAME: Final = "document.pdf"
"""Name for a file without one, because the provider requires a name."""


@attrs.frozen
class ResponsesParts:
    """The forms of parts in Responses."""

    own: frozenset[str] = frozenset({"input_image", "input_file"})

    def text(self, text: str) -> Json:
        """A text."""
        return {"type": "input_text", "text": text}

    def image(self, url: str) -> Json:
        """An image with a URL or a `data:` URL."""
        return {"type": "input_image", "image_url": url, "detail": "auto"}

    def file(self, name: str, data: str) -> Json | None:
        """A file with a `data:` URL."""
        return {"type": "input_file", "filename": name, "file_data": data}

    def linked(self, url: str) -> Json | None:
        """A file with a URL; None if the API has no form for it."""
        return {"type": "input_file", "file_url": url}


@attrs.frozen
class ChatParts:
    """The forms of parts in Chat Completions."""

    own: frozenset[str] = frozenset({"image_url", "file", "input_audio"})

    def text(self, text: str) -> Json:
        """A text."""
        return {"type": "text", "text": text}

    def image(self, url: str) -> Json:
        """An image with a URL or a `data:` URL."""
        return {"type": "image_url", "image_url": {"url": url}}

    def file(self, name: str, data: str) -> Json | None:
        """A file with a `data:` URL."""
        return {"type": "file", "file": {"filename": name, "file_data": data}}

    def linked(self, url: str) -> Json | None:
        """None, because the API fetches no files."""
        del url
        return None


Parts = ResponsesParts | ChatParts


def content_of(part: Part, parts: Parts) -> Json:
    """The content of a part; a part that the provider would refuse is only named."""
    if isinstance(part, TextPart):
        return parts.text(part.text)
    if refusal(part, "user"):
        return parts.text(named(part))
    match part:
        case ImagePart():
            return parts.image(part.url or _data_url(part))
        case DocumentPart() if is_text(part):
            return parts.text(f"[document {part.name}]\n{part.data}" if part.name else part.data)
        case DocumentPart() if part.url:
            return parts.linked(part.url) or parts.text(f"[document: {part.url}]")
        case DocumentPart():
            return parts.file(part.name or FILE_NAME, _data_url(part)) or parts.text(named(part))
        case ProviderPart(value=value) if value.get("type") in parts.own:
            return {key: inner for key, inner in value.items() if key != MARK}
        case ProviderPart():
            return parts.text(named(part))


def refusal(part: Part, where: Where) -> str:
    """Why the provider would refuse a part; empty: it would accept it, or the part is sent as text."""
    del where
    match part:
        case TextPart():
            return ""
        case ImagePart() | DocumentPart():
            return media_refusal(part, IMAGE_MEDIA_TYPES)
        case ProviderPart(value=value):
            kind: object = value.get("type")
            if isinstance(kind, str) and kind in OWN:
                return ""
            return misplaced("a content part", kind, OWN)


def texts_of(contents: Sequence[Json]) -> list[str] | None:
    """The texts of contents that are all text; None if one is not."""
    kinds = {content["type"] for content in contents}
    if kinds <= {"input_text", "text"}:
        return [content["text"] for content in contents]
    return None


def _data_url(part: ImagePart | DocumentPart) -> str:
    return f"data:{part.media_type};base64,{part.data}"
