"""Rules for images and documents that all providers share, and texts that replace refused parts."""

import binascii
from collections.abc import Collection, Sequence
from typing import Final

from blocks import (
    DocumentPart,
    ImagePart,
    Part,
    ProviderPart,
    did_you_mean,
    in_words,
    is_web_url,
    text_of_parts,
)

PDF: Final = "application/pdf"
DOCUMENT_TEXT: Final = "text/plain"


def media_refusal(part: ImagePart | DocumentPart, image_types: Sequence[str]) -> str:
    """Why an image or document would be refused; empty: it would be accepted."""
    if part.url:
        return "" if is_web_url(part.url) else f"{in_words(part.url)} is no http(s) url"
    if isinstance(part, ImagePart):
        if part.media_type not in image_types:
            return f"media_type {in_words(part.media_type)} is none of {', '.join(image_types)}"
    elif part.media_type == DOCUMENT_TEXT:
        return "" if part.data.strip() else "its text is empty"
    elif part.media_type != PDF:
        return f"media_type {in_words(part.media_type)} is neither {PDF} nor {DOCUMENT_TEXT}"
    return "" if is_base64(part.data) else "its data is not base64"


def misplaced(what: str, kind: object, taken: Collection[str]) -> str:
    """Why a provider's own part is refused whose type is not one of `taken`."""
    near = did_you_mean(kind, taken) or f"; there are {', '.join(sorted(taken))}"
    return f"{what} of type {in_words(kind)} cannot go there{near}"


def unreadable(part: ImagePart | DocumentPart) -> str:
    """The text that replaces an image or document that would be refused."""
    kind = "image" if isinstance(part, ImagePart) else "document"
    return f"[{kind}: its {'url' if part.url else 'data'} could not be read]"


def named(part: Part) -> str:
    """The text that replaces a part that a provider would refuse."""
    match part:
        case ImagePart() | DocumentPart():
            return unreadable(part)
        case ProviderPart(value={"tool_name": str(name)}):
            return f"[tool {name}]"
        case _:
            return text_of_parts((part,)).strip() or "[part]"


def is_base64(data: object) -> bool:
    """Whether the value is a non-empty text in base64."""
    if not isinstance(data, str) or not data:
        return False
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError):
        return False
    return True
