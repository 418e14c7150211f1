"""Parts of a user's message or of a tool's result, as content of either API."""

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
"""The provider's own parts, of either API, that a `ProviderPart` may hold."""
FILE_NAME: Final = "document.pdf"
"""Of a file that came without a name: the provider wants one."""


@attrs.frozen
class ResponsesParts:
    """Parts as Responses takes them."""

    own: frozenset[str] = frozenset({"input_image", "input_file"})

    def text(self, text: str) -> Json:
        """A text."""
        return {"type": "input_text", "text": text}

    def image(self, url: str) -> Json:
        """An image, at a url or in a `data:` url."""
        return {"type": "input_image", "image_url": url, "detail": "auto"}

    def file(self, name: str, data: str) -> Json | None:
        """A file in a `data:` url."""
        return {"type": "input_file", "filename": name, "file_data": data}

    def linked(self, url: str) -> Json | None:
        """A file at a url; None: there is no way to say it."""
        return {"type": "input_file", "file_url": url}


@attrs.frozen
class ChatParts:
    """Parts as Chat Completions takes them."""

    own: frozenset[str] = frozenset({"image_url", "file", "input_audio"})

    def text(self, text: str) -> Json:
        """A text."""
        return {"type": "text", "text": text}

    def image(self, url: str) -> Json:
        """An image, at a url or in a `data:` url."""
        return {"type": "image_url", "image_url": {"url": url}}

    def file(self, name: str, data: str) -> Json | None:
        """A file in a `data:` url."""
        return {"type": "file", "file": {"filename": name, "file_data": data}}

    def linked(self, url: str) -> Json | None:
        """The API fetches no files."""
        del url
        return None


Parts = ResponsesParts | ChatParts


def content_of(part: Part, parts: Parts) -> Json:
    """The content of one part; what the provider would refuse is told by name."""
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
    """Why the provider would refuse a part; empty: it would not, or it is told in words."""
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
    """The texts of contents that are nothing but text; None: there is more."""
    kinds = {content["type"] for content in contents}
    if kinds <= {"input_text", "text"}:
        return [content["text"] for content in contents]
    return None


def _data_url(part: ImagePart | DocumentPart) -> str:
    return f"data:{part.media_type};base64,{part.data}"
