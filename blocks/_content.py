"""Parts, which are content of a block besides its text; the text of values; and the ids of artifacts, which are content
stored beside the log under its hash."""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

from blocks._ids import ArtifactId


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
    """A PDF, inline as base64 or by URL; or, with `text/plain`, a text."""

    media_type: str = "application/pdf"
    data: str = ""
    """Base64; for `text/plain`, the text itself."""
    url: str = ""
    name: str = ""


class ProviderPart(Struct, frozen=True, kw_only=True, tag_field="type", tag="provider"):
    """A content block of the provider (`search_result`, `container_upload`, a document with citations), verbatim."""

    value: dict[str, Any]


_INLINE_SHOWN: Final = 60
"""How many characters of a data URL are shown."""
_WEB_URL: Final = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)

Part: TypeAlias = TextPart | ImagePart | DocumentPart | ProviderPart
"""A piece of a block's content."""


def is_web_url(url: str) -> bool:
    """Whether a provider could fetch this URL: http or https, a host, no white space."""
    return url.isprintable() and _WEB_URL.fullmatch(url) is not None


def text_of_parts(parts: Sequence[Part]) -> str:
    """The text of `parts`, joined by line breaks; a part without text is named in brackets."""
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
            words = "\n".join(text for text in _words(part.value) if text.strip())
            return words or f"[{_named(part.value)}]"


def _named(value: dict[str, Any]) -> str:
    """The kind of a part without text, and its URL if there is one."""
    kind = str(value.get("type") or value.get("kind") or "part")
    url = _url_in(value) or _url_in(value.get("source"))
    if url.startswith("data:") and len(url) > _INLINE_SHOWN:
        url = f"{url.partition(',')[0][:_INLINE_SHOWN]},…"
    what = next((word for word in ("image", "document") if word in kind), kind)
    return f"{what} at {url}" if url else kind


def _url_in(value: object) -> str:
    """The first URL in an object, in one of its fields or in an object within one of them; empty if there is none."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for name in ("url", "image_url", "file_url"):
        found: object = fields.get(name)
        found = cast("dict[str, Any]", found).get("url") if isinstance(found, dict) else found
        if isinstance(found, str) and found:
            return found
    return ""


def _words(value: dict[str, Any]) -> Iterator[str]:
    """The texts of a search result, or of a document that contains its text."""
    if value.get("type") not in ("search_result", "document"):
        return
    source: object = value.get("source")
    within = cast("dict[str, Any]", source) if isinstance(source, dict) else value
    texts: list[object] = [value.get("title"), value.get("context"), source, within.get("content")]
    texts += [within.get("data")] if within.get("type") == "text" else []
    inner: object = within.get("content")
    for item in cast("list[Any]", inner) if isinstance(inner, list) else []:
        texts += [cast("dict[str, Any]", item).get("text")] if isinstance(item, dict) else []
    yield from (text for text in texts if isinstance(text, str))


def leaves(value: Any) -> str:
    """All keys, strings and numbers inside a JSON value, one per line, without JSON's escapes."""
    out: list[str] = []
    _collect(value, out)
    return "\n".join(out)


def _collect(value: Any, out: list[str]) -> None:
    stack: list[Any] = [value]
    while stack:  # a loop, not recursion: foreign input may be nested deeper than Python's stack
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, dict):
            for key, inner in reversed(cast("dict[Any, Any]", item).items()):
                stack += (inner, str(key))
        elif isinstance(item, list | tuple):
            stack += reversed(cast("Sequence[Any]", item))
        elif item is not None and not isinstance(item, bool):
            out.append(str(item))


# Artifacts.

Sensitivity: TypeAlias = Literal["public", "internal", "confidential", "restricted"]
"""Who may see a piece of content; `confidential` and `restricted` content is encrypted at rest and never comes back
into a prompt by itself."""

ENCRYPTED: Final[frozenset[Sensitivity]] = frozenset({"confidential", "restricted"})
"""For these sensitivities, the content of a result is kept out of the log, in an encrypted artifact."""
ID_CHARACTERS: Final = 32
_PREFIX: Final = "art-"
_ID: Final = re.compile(rf"(?<![\w-]){_PREFIX}[0-9a-f]{{{ID_CHARACTERS}}}(?![\w-])")


def artifact_id(content: bytes) -> ArtifactId:
    """The id of this content: equal content has equal ids, on every machine."""
    return artifact_id_of_hash(sha256(content).hexdigest())


def artifact_id_of_hash(digest: str) -> ArtifactId:
    """The id of the content with this sha256, in hex; for content that is never whole in memory."""
    return ArtifactId(f"{_PREFIX}{digest[:ID_CHARACTERS]}")


def artifact_ids_in(text: str) -> tuple[ArtifactId, ...]:
    """The artifact ids that a text names as whole tokens, each once, in order."""
    found: list[str] = _ID.findall(text) if _PREFIX in text else []
    return tuple(dict.fromkeys(map(ArtifactId, found)))
