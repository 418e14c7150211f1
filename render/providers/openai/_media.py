"""Checks of images and files that both validators share: a URL that can be fetched, or readable data."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeAlias, cast

import attrs

from blocks import is_web_url
from render.providers._facts import PartFacts
from render.providers._parts import is_base64

Json: TypeAlias = Mapping[str, Any]
_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")


@attrs.define(eq=False)
class MediaFacts(PartFacts):
    """Facts about a part that may have images and cache marks."""

    marks: int = 0
    images: int = 0
    size: int = 0
    """Characters of text and attachments; never more than the bytes that are sent."""


def scan_image(part: Json, url: object, at: str, facts: MediaFacts, rules: type[Enum]) -> None:
    """Check an image: an uploaded file, a URL, or a `data:` URL."""
    facts.images += 1
    if isinstance(url, str) and url.startswith("data:"):
        media_type = _scan_data(url, at, facts, rules)
        if media_type not in _IMAGES:
            facts.fault(rules["MEDIA_TYPE"], at, ", ".join(_IMAGES), field="image_url")
    elif not (isinstance(url, str) and is_web_url(url)) and not part.get("file_id"):
        facts.fault(rules["URL"], at, field="image_url")


def scan_file(part: Json, at: str, facts: MediaFacts, rules: type[Enum]) -> None:
    """Check a file: an uploaded file, a URL, or a `data:` URL."""
    facts.images += 1
    data: object = part.get("file_data")
    if isinstance(data, str):
        _scan_data(data, at, facts, rules)
        if not isinstance(part.get("filename"), str):
            facts.fault(rules["FILE"], at, field="filename")
    elif not part.get("file_id") and not is_web_url(str(part.get("file_url", ""))):
        facts.fault(rules["FILE"], at)


def _scan_data(url: str, at: str, facts: MediaFacts, rules: type[Enum]) -> str:
    """Check a `data:` URL; returns its media type."""
    facts.size += len(url)
    head, comma, data = url.partition(";base64,")
    if not (comma and is_base64(data)):
        facts.fault(rules["BASE64"], at)
    return head.removeprefix("data:")


def parts_of(value: object) -> list[Json]:
    """The objects in a list of a request; empty if the value is not a list."""
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Json", part) for part in found if isinstance(part, dict)]
