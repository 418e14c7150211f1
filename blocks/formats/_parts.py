"""Reads the content of a message of any format as parts.

The forms of the formats differ, so one table can read all of them.  Content of an unknown form becomes a
`ProviderPart` with the original; if a provider does not accept it, the request says so in its notices.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from blocks._content import DocumentPart, ImagePart, Part, ProviderPart, TextPart, is_web_url
from blocks.formats._json import Json, obj, string

PDF: Final = "application/pdf"
_URLS: Final = ("url", "image_url", "file_url", "fileUri", "file_uri")
_DATA: Final = ("data", "base64", "file_data")
_MEDIA_TYPES: Final = ("media_type", "mime_type", "mimeType")
_NESTED: Final = ("inlineData", "inline_data", "fileData", "file_data")
_STORE: Final = "generativelanguage.googleapis.com/"
"""The server of Gemini's own files, which no other provider may fetch."""
_MARKS: Final = frozenset({"cache-point", "cachePoint"})
"""Kinds of items that are marks in the prompt, not content."""


def parts_of(content: Any) -> tuple[Part, ...]:
    """The parts of content given as JSON: a text, a content block, or a list of both; blank text is left out."""
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return tuple(part for item in items if (part := part_of(item)) is not None)


def part_of(item: Any) -> Part | None:
    """The part of one content block; None if it is empty."""
    if isinstance(item, str):
        return TextPart(text=item) if item.strip() else None
    block = obj(item)
    kind = kind_of(block)
    if not block or kind in _MARKS:
        return None
    if (text := block.get("text")) is not None and isinstance(text, str):
        return TextPart(text=text) if text.strip() else None
    read = _readers(kind) or _gemini(block)
    return read(block) if read else ProviderPart(value=block)


def kind_of(block: Json) -> str:
    """The kind that a content block states; empty if it states none."""
    return string(block.get("type")) or string(block.get("kind"))


def _readers(kind: str) -> Callable[[Json], Part] | None:
    if "image" in kind:
        return _image
    if kind == "refusal":
        return _refusal
    return _FILES.get(kind)


def _gemini(block: Json) -> Callable[[Json], Part] | None:
    """The reader for a part of Gemini, which has a field for its kind instead of a type; None if it is not one."""
    inner = next((name for name in _NESTED if obj(block.get(name))), "")
    return (lambda part: _nested(obj(part[inner]), part)) if inner else None


def _nested(source: Json, block: Json) -> Part:
    """A part with data inline or with the URL of a file."""
    url, media_type = _url(source), _media_type(source)
    if _STORE in url:
        return ProviderPart(value=block)
    if media_type.startswith("image/") and is_web_url(url):
        return ImagePart(media_type=media_type, url=url)
    return _file(source, block)


def _refusal(block: Json) -> Part:
    text = string(block.get("refusal"))
    return TextPart(text=text) if text.strip() else ProviderPart(value=block)


def _image(block: Json) -> Part:
    """An image of Anthropic (`source`), of OpenAI (`image_url`, a text or an object), or of a framework."""
    source = obj(block.get("source")) or block
    if data := _first(source, _DATA):
        return ImagePart(media_type=_media_type(source) or "image/png", data=_standard(data))
    url = _url(source)
    if is_web_url(url):
        return ImagePart(url=url)
    media_type, data = _inline(url)
    # The data is not checked: redaction may have made it invalid, and the code that decodes it must handle that.
    known = media_type is not None
    return (
        ImagePart(media_type=media_type or "image/png", data=data)
        if known
        else ProviderPart(value=block)
    )


def _document(block: Json) -> Part:
    """A document of Anthropic."""
    source = obj(block.get("source"))
    if _is_cited(block, source):
        return ProviderPart(value=block)
    if string(source.get("type")) == "text":
        return TextPart(text=string(source.get("data")))
    return _file({**source, "name": block.get("title")}, block)


def _is_cited(block: Json, source: Json) -> bool:
    """Whether it has more than its content, which our parts cannot represent: citations, or content blocks."""
    return source.get("type") == "content" or bool(obj(block.get("citations")).get("enabled"))


def _any_file(block: Json) -> Part:
    """A file of OpenAI (`file` with an object, `input_file`), or of a framework."""
    return _file(obj(block.get("file")) or obj(block.get("source")) or block, block)


def _file(source: Json, block: Json) -> Part:
    name = _first(source, ("filename", "name", "identifier", "displayName", "display_name"))
    url, data, media_type = _url(source), _first(source, _DATA), _media_type(source)
    if is_web_url(url) and media_type in ("", PDF):
        return DocumentPart(url=url, name=name)
    if data.startswith("data:"):
        url = data
    if url:
        found, data = _inline(url)
        media_type = found or media_type
    if not data:
        return ProviderPart(value=block)
    if media_type.startswith("image/"):
        return ImagePart(media_type=media_type, data=_standard(data))
    if media_type.startswith("text/"):
        return _text_file(data, name) or ProviderPart(value=block)
    if media_type in ("", PDF):
        return DocumentPart(data=_standard(data), name=name)
    return ProviderPart(value=block)


def _text_file(data: str, name: str) -> Part | None:
    try:
        text = b64decode(_standard(data), validate=True).decode()
    except ValueError:
        return None
    return DocumentPart(media_type="text/plain", data=text, name=name)


def _text(block: Json) -> Part:
    """A text to which a framework has added fields."""
    text = string(block.get("content"))
    return TextPart(text=text) if text.strip() else ProviderPart(value=block)


_FILES: Final[Mapping[str, Callable[[Json], Part]]] = {
    "document": _document,
    "file": _any_file,
    "input_file": _any_file,
    "document-url": _any_file,
    "binary": _any_file,
    "text-content": _text,
    "structured-content": _text,
}


def _first(source: Json, names: tuple[str, ...]) -> str:
    return next((found for name in names if (found := string(source.get(name)))), "")


def _media_type(source: Json) -> str:
    return _first(source, _MEDIA_TYPES)


def _url(source: Json) -> str:
    found = next((source[name] for name in _URLS if source.get(name)), "")
    return string(obj(found).get("url")) or string(found)


def _inline(url: str) -> tuple[str | None, str]:
    """The media type and the base64 data of a data URL; None and empty if it is not one."""
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return None, ""
    return head[5:-7].partition(";")[0], data


def _standard(data: str) -> str:
    """Base64 in the standard alphabet, without the beginning of a data URL."""
    _, found = _inline(data)
    data = found or data
    return data.replace("-", "+").replace("_", "/") if "-" in data or "_" in data else data
