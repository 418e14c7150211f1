"""Content of any provider's message as parts."""

from typing import Any, cast

from blocks import DocumentPart, ImagePart, Part, ProviderPart, TextPart, is_web_url
from persistence.sessions._json import Json, obj, string


def parts_of(content: Any) -> tuple[Part, ...]:
    """The parts of a text, a content block, or a list of both; blank text is no part."""
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return tuple(part for item in items if (part := _part(item)) is not None)


def _part(item: Any) -> Part | None:
    if isinstance(item, str):
        return TextPart(text=item) if item.strip() else None
    block = obj(item)
    if not block:
        return None
    if isinstance(block.get("text"), str):
        return TextPart(text=block["text"]) if block["text"].strip() else None
    kind = string(block.get("type"))
    if kind == "document":
        return _document(block)
    if "image" in kind:
        return _image(block)
    return ProviderPart(value=block)


def _document(block: Json) -> Part:
    source = obj(block.get("source"))
    url = string(source.get("url"))
    if url and not is_web_url(url):
        return TextPart(text=f"[document at {url}]")
    if string(source.get("type")) == "text":
        return TextPart(text=string(source.get("data")))
    return DocumentPart(
        media_type=string(source.get("media_type")) or "application/pdf",
        data=string(source.get("data")),
        url=url,
        name=string(block.get("title")),
    )


def _image(block: Json) -> ImagePart | TextPart | None:
    """An image of Anthropic (`source`), of OpenAI (`image_url`, text or object), or of pi."""
    source = obj(block.get("source")) or block
    media_type = string(source.get("media_type") or source.get("mimeType")) or "image/png"
    if data := string(source.get("data")):
        return ImagePart(media_type=media_type, data=data)
    url = source.get("image_url", source.get("url"))
    url = string(obj(url).get("url")) or string(url)
    return _from_url(url) if url else None


def _from_url(url: str) -> ImagePart | TextPart:
    """An image; where no provider could fetch from (a path in a sandbox, say), words about it."""
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return ImagePart(url=url) if is_web_url(url) else TextPart(text=f"[image at {url}]")
    # Kept as it is: redaction may have made it invalid, and whoever decodes it must cope.
    return ImagePart(media_type=head[5:-7] or "image/png", data=data)
