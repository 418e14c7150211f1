"""Images and documents: where their bytes come from, and how many they may be."""

import re
from typing import Final

from blocks import is_web_url
from render.providers.anthropic._kinds import IMAGE_BYTES_MAX, IMAGE_MEDIA_TYPES
from render.providers.anthropic.validator._facts import Json, Scan, as_object, as_string
from render.providers.anthropic.validator._rules import Rule

IMAGE_SOURCES: Final = ("base64", "url", "file")
DOCUMENT_SOURCES: Final = ("base64", "text", "content", "url", "file")
DOCUMENT_MEDIA_TYPES: Final = ("application/pdf",)

_REFERENCES: Final = {"url": "url", "file": "file_id"}
_HEAD_LENGTH: Final = 256
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=\s]+")


def scan_image(block: Json, at: str, scan: Scan) -> None:
    """Check an image and count it."""
    scan.images += 1
    source = source_of(block, IMAGE_SOURCES, at, scan)
    if source is None or source["type"] != "base64":
        return
    length = _scan_base64(source, IMAGE_MEDIA_TYPES, at, scan)
    if length > IMAGE_BYTES_MAX:
        scan.fault(Rule.IMAGE_BYTES, at, length, field="image.source.base64")


def scan_pdf(source: Json, at: str, scan: Scan) -> None:
    """Check the inline bytes of a document."""
    _scan_base64(source, DOCUMENT_MEDIA_TYPES, at, scan)


def source_of(block: Json, kinds: tuple[str, ...], at: str, scan: Scan) -> Json | None:
    """The source of `block` when it has one of `kinds` and names what it refers to."""
    source = as_object(block.get("source"))
    kind = as_string(source.get("type")) if source else ""
    if source is None or kind not in kinds:
        scan.fault(Rule.SOURCE, at, ", ".join(kinds), field=f"{block['type']}.source")
        return None
    reference = _REFERENCES.get(kind)
    if reference and not as_string(source.get(reference)):
        scan.fault(Rule.SHAPE, at, "string", field=f"{block['type']}.source.{kind}.{reference}")
        return None
    if kind == "url" and not is_web_url(as_string(source["url"])):
        scan.fault(Rule.URL, at, field=f"{block['type']}.source.url.url")
        return None
    return source


def _scan_base64(source: Json, media_types: tuple[str, ...], at: str, scan: Scan) -> int:
    """Check inline bytes; give their length in base64."""
    data = as_string(source.get("data"))
    if as_string(source.get("media_type")) not in media_types:
        scan.fault(Rule.MEDIA_TYPE, at, ", ".join(media_types), field="source.base64.media_type")
    if not _BASE64.fullmatch(data, 0, _HEAD_LENGTH):
        scan.fault(Rule.BASE64, at, field="source.base64.data")
        return 0
    scan.size += len(data)
    return len(data)
