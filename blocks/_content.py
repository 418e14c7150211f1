"""Parts: what a block can hold besides plain text."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import Struct


class TextPart(Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text as the model reads it."""

    text: str


class ImagePart(
    Struct, frozen=True, kw_only=True, tag_field="type", tag="image", omit_defaults=True
):
    """An image, inline as base64 or by URL."""

    media_type: str = "image/png"
    data: str = ""
    """Base64, exactly as it was read; may be invalid in a redacted log."""
    url: str = ""


class DocumentPart(
    Struct, frozen=True, kw_only=True, tag_field="type", tag="document", omit_defaults=True
):
    """A PDF, inline as base64 or by URL."""

    media_type: str = "application/pdf"
    data: str = ""
    url: str = ""
    name: str = ""


class ProviderPart(Struct, frozen=True, kw_only=True, tag_field="type", tag="provider"):
    """A part that only its provider understands (`search_result`, `tool_reference`), verbatim."""

    value: dict[str, Any]


Part: TypeAlias = TextPart | ImagePart | DocumentPart | ProviderPart


def text_of_parts(parts: Sequence[Part]) -> str:
    """The text of `parts`, one line break between them; parts without text say what they are."""
    return "\n".join(_text(part) for part in parts)


def _text(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ImagePart():
            return "[image]"
        case DocumentPart():
            return f"[document {part.name}]" if part.name else "[document]"
        case ProviderPart():
            return f"[{part.value.get('type', 'part')}]"
