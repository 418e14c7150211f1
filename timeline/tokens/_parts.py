"""What images, documents and foreign parts cost.

Anthropic's documentation, vision: an image is scaled down until its long edge and its tokens fit the
model's tier, and then costs ceil(width/28) * ceil(height/28).  PDF support: a page costs its text, 1,500
to 3,000 tokens, and its image.

OpenAI's guide to images: patches of 32 pixels, the image scaled down until a budget covers it, times the
model's factor; or, for other models, scaled down to fit 2,048 pixels, then until its short edge has 768,
and then a price for each tile of 512 pixels, and one for the image.  Gemini's: one price for all images.

The data itself says how large an image is and how many pages a PDF has.  Magic bytes decide, not the
media type: recorded logs often carry the wrong one, or no data at all.  Nothing here raises; what cannot
be read is `None`.
"""

import binascii
import json
import re
import struct
from collections.abc import Callable
from math import ceil, floor, sqrt
from typing import TypeAlias

from blocks import DocumentPart, ImagePart, ProviderPart
from render import Model

Size: TypeAlias = tuple[int, int]
Untexted: TypeAlias = ImagePart | DocumentPart | ProviderPart
"""A part that is not text."""
_HEADER_CHARS = 64
_JPEG_CHARS = 512 * 1024
"""Number of base64 characters that are read: a JPEG's size may follow several segments of metadata of up to 64 kB."""
_MARKER = 0xFF
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SPACE = str.maketrans("", "", " \t\r\n")
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})")
_PDF_BYTES_PER_PAGE = 100_000
_PDF_PAGES_MAX = 600
"""The providers' limit for pages of a PDF; a damaged page count must not give an endless number of tokens."""


def image_size(data: str) -> Size | None:
    """Width and height in pixels of a base64 PNG, GIF, WebP or JPEG; None: unknown."""
    header = _decoded(data, _HEADER_CHARS)
    if header.startswith(b"\xff\xd8"):
        size = _jpeg_size(_decoded(data, _JPEG_CHARS))
    else:
        size = _header_size(header.ljust(32, b"\0"))
    return size if size and min(size) > 0 else None


def pdf_pages(data: str) -> int:
    """The number of pages of a base64 PDF, at least 1.

    Page objects may be in compressed streams that only a PDF reader can read. Then the count in the page tree is
    used, and without one the size.
    """
    pdf = _decoded(data, len(data))
    pages = len(_PAGE.findall(pdf))
    pages = pages or max((int(count) for count in _COUNT.findall(pdf)), default=0)
    pages = pages or 1 + len(pdf) // _PDF_BYTES_PER_PAGE
    return min(pages, _PDF_PAGES_MAX)


def _decoded(data: str, chars: int) -> bytes:
    """The first `chars` base64 characters as bytes; empty if they are not valid base64."""
    prefix = data[:chars].translate(_SPACE)
    try:
        return binascii.a2b_base64(prefix[: len(prefix) // 4 * 4])
    except ValueError:  # not base64, or not even ASCII, as in a redacted log
        return b""


def _header_size(header: bytes) -> Size | None:
    """The size for formats that state it in the first 30 bytes."""
    if header.startswith(b"\x89PNG\r\n\x1a\n"):
        return _unpacked(">II", header, 16)
    if header.startswith((b"GIF87a", b"GIF89a")):
        return _unpacked("<HH", header, 6)
    if header.startswith(b"RIFF") and header[8:12] == b"WEBP":
        return _webp_size(header)
    return None


def _webp_size(header: bytes) -> Size | None:
    """The size of a WebP. Lossy, lossless and extended files state it in three different ways (RFC 9649)."""
    match header[12:16]:
        case b"VP8 ":
            width, height = _unpacked("<HH", header, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            bits = int.from_bytes(header[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8X":
            width = int.from_bytes(header[24:27], "little")
            return 1 + width, 1 + int.from_bytes(header[27:30], "little")
        case _:
            return None


def _jpeg_size(jpeg: bytes) -> Size | None:
    """The size in the first frame header (ITU T.81, annex B)."""
    at = 2
    while at + 9 <= len(jpeg) and jpeg[at] == _MARKER:
        marker = jpeg[at + 1]
        if marker == _MARKER:  # a fill byte
            at += 1
        elif marker in _FRAME_HEADERS:
            height, width = _unpacked(">HH", jpeg, at + 5)
            return width, height
        else:
            at += 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
    return None


def _unpacked(layout: str, data: bytes, at: int) -> Size:
    first, second = struct.unpack_from(layout, data, at)
    return int(first), int(second)


FLAT_TOKENS = 1_500
"""Tokens of an image or a page if the model has no rule."""
PAGE_TEXT_TOKENS = 1_500
PAGE_IMAGE_TOKENS_MAX = 1_568
"""Largest number of tokens of a page's image. The resolution at which pages are drawn is not documented, so this is
the smaller image tier."""
_TILE_PIXELS = 512
_TILED_SHORT_EDGE = 768
_ROUNDING = 1e-9


def image_tokens(data: str, model: Model) -> int:
    """Tokens of an image given as base64; if its size is unknown, the largest number that an image may have."""
    size = image_size(data)
    if size is None or model.image_rule == "flat":
        return ceil(model.image_tokens_max * model.image_factor)
    scale = min(1.0, model.image_edge_max / max(size))
    width, height = (max(1, round(edge * scale)) for edge in size)
    match model.image_rule:
        case "tiles":
            tokens = _tiled(width, height, model)
        case "budget":
            tokens = _budgeted(width / model.image_patch, height / model.image_patch, model)
        case _:
            tokens = ceil(width / model.image_patch) * ceil(height / model.image_patch)
    return ceil(min(tokens, model.image_tokens_max) * model.image_factor)


def _tiled(width: int, height: int, model: Model) -> int:
    scale = min(1.0, _TILED_SHORT_EDGE / min(width, height))
    columns, rows = (ceil(round(edge * scale) / _TILE_PIXELS) for edge in (width, height))
    return model.image_base_tokens + columns * rows * model.image_tile_tokens


def _budgeted(columns: float, rows: float, model: Model) -> int:
    """The number of patches of an image with this many columns and rows. Above the model's budget, the image is
    first shrunk to the budget, and then to a whole number of patches in one direction."""
    if ceil(columns) * ceil(rows) <= model.image_tokens_max:
        return ceil(columns) * ceil(rows)
    scale = sqrt(model.image_tokens_max / (columns * rows))
    columns, rows = columns * scale, rows * scale
    scale = min(max(floor(edge), 1) / edge for edge in (columns, rows))
    return ceil(columns * scale - _ROUNDING) * ceil(rows * scale - _ROUNDING)


def part_tokens(part: Untexted, model: Model | None, count: Callable[[str], int]) -> int:
    """Tokens of a part under the rules of `model`; None: images and pages at one flat rate. `count` counts text."""
    match part:
        case ImagePart():
            return image_tokens(part.data, model) if model else FLAT_TOKENS
        case DocumentPart() if part.media_type.startswith("text/"):
            return count(part.data)
        case DocumentPart():
            page = FLAT_TOKENS
            if model:
                page = PAGE_TEXT_TOKENS + min(PAGE_IMAGE_TOKENS_MAX, model.image_tokens_max)
            return page * pdf_pages(part.data)
        case ProviderPart():
            return count(json.dumps(part.value, ensure_ascii=False, default=str))
