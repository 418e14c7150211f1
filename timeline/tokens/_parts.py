"""What images, documents and foreign parts cost.

Provider docs, vision: an image is scaled down until its long edge and its tokens fit the model's
tier, and then costs ceil(width/28) * ceil(height/28).  PDF support: a page costs its text, 1,500 to
3,000 tokens, and its image.
"""

import json
from collections.abc import Callable
from math import ceil

from blocks import DocumentPart, ImagePart, Part, TextPart
from render import Model
from timeline.tokens._media import image_size, pdf_pages

FLAT_TOKENS = 1_500
"""An image, or a page, where no model says better."""
PAGE_TEXT_TOKENS = 1_500
PAGE_IMAGE_TOKENS_MAX = 1_568
"""At what resolution pages are drawn is not documented; we take the smaller image tier."""
_PATCH_PIXELS = 28


def image_tokens(data: str, model: Model) -> int:
    """Tokens of an image given as base64; of unknown size: the most an image may cost."""
    size = image_size(data)
    if size is None:
        return model.image_tokens_max
    scale = min(1.0, model.image_edge_max / max(size))
    width, height = (max(1, round(edge * scale)) for edge in size)
    return min(ceil(width / _PATCH_PIXELS) * ceil(height / _PATCH_PIXELS), model.image_tokens_max)


def part_tokens(part: Part, model: Model, count: Callable[[str], int]) -> int:
    """Tokens of a part under the rules of `model`; `count` counts text."""
    match part:
        case ImagePart():
            return image_tokens(part.data, model)
        case DocumentPart() if not _is_text(part):
            page = PAGE_TEXT_TOKENS + min(PAGE_IMAGE_TOKENS_MAX, model.image_tokens_max)
            return page * pdf_pages(part.data)
        case _:
            return _text_tokens(part, count)


def flat_part_tokens(part: Part, count: Callable[[str], int]) -> int:
    """Tokens of a part at one flat rate for images and pages, whatever the model."""
    match part:
        case ImagePart():
            return FLAT_TOKENS
        case DocumentPart() if not _is_text(part):
            return FLAT_TOKENS * pdf_pages(part.data)
        case _:
            return _text_tokens(part, count)


def _is_text(part: DocumentPart) -> bool:
    return part.media_type.startswith("text/")


def _text_tokens(part: Part, count: Callable[[str], int]) -> int:
    match part:
        case TextPart():
            return count(part.text)
        case DocumentPart() | ImagePart():
            return count(part.data)
        case _:
            return count(json.dumps(part.value, ensure_ascii=False, default=str))
