"""Rules for images and documents: their sources, types and sizes."""

import re
from typing import Final, cast

from blocks import is_web_url
from render.providers.anthropic._kinds import IMAGE_BYTES_MAX, IMAGE_MEDIA_TYPES
from render.providers.anthropic.validator._facts import Facts, Json
from render.providers.anthropic.validator._rules import Rule

IMAGE_SOURCES: Final = ("base64", "url", "file")
DOCUMENT_SOURCES: Final = ("base64", "text", "content", "url", "file")
DOCUMENT_MEDIA_TYPES: Final = ("application/pdf",)

_REFERENCES: Final = {"url": "url", "file": "file_id"}
_HEAD_LENGTH: Final = 256
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=\s]+")


def scan_image(block: Json, at: str, facts: Facts) -> None:
    """Check an image and count it."""
    facts.images += 1
    source = source_of(block, IMAGE_SOURCES, at, facts)
    if source is None or source["type"] != "base64":
        return
    length = _scan_base64(source, IMAGE_MEDIA_TYPES, at, facts)
    if length > IMAGE_BYTES_MAX:
        facts.fault(Rule.IMAGE_BYTES, at, length, field="image.source.base64")


def scan_pdf(source: Json, at: str, facts: Facts) -> None:
    """Check the inline bytes of a document."""
    _scan_base64(source, DOCUMENT_MEDIA_TYPES, at, facts)


def source_of(block: Json, kinds: tuple[str, ...], at: str, facts: Facts) -> Json | None:
    """The source of `block` if its type is one of `kinds` and its reference is valid; otherwise None, with
    a fault."""
    given = block.get("source")
    source = cast("Json", given if isinstance(given, dict) else {})
    kind = source.get("type")
    if not isinstance(kind, str) or kind not in kinds:
        facts.fault(Rule.SOURCE, at, ", ".join(kinds), field=f"{block['type']}.source")
        return None
    reference = _REFERENCES.get(kind)
    referred = source.get(reference) if reference else "inline"
    if not isinstance(referred, str) or not referred:
        facts.fault(Rule.SHAPE, at, "string", field=f"{block['type']}.source.{kind}.{reference}")
        return None
    if kind == "url" and not is_web_url(referred):
        facts.fault(Rule.URL, at, field=f"{block['type']}.source.url.url")
        return None
    return source


def _scan_base64(source: Json, media_types: tuple[str, ...], at: str, facts: Facts) -> int:
    """Check inline bytes; returns their length in base64."""
    data = source.get("data")
    if source.get("media_type") not in media_types:
        facts.fault(Rule.MEDIA_TYPE, at, ", ".join(media_types), field="source.base64.media_type")
    if not isinstance(data, str) or not _BASE64.fullmatch(data, 0, _HEAD_LENGTH):
        facts.fault(Rule.BASE64, at, field="source.base64.data")
        return 0
    facts.size += len(data)
    return len(data)
