"""Limits on a request as a whole: images, size, output tokens."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from render.policy._provider import Violation
from render.providers.anthropic._kinds import (
    IMAGES_MAX,
    IMAGES_MAX_SMALL_WINDOW,
    REQUEST_BYTES_MAX,
    SMALL_WINDOW_TOKENS,
)
from render.providers.anthropic.validator._facts import Facts
from render.providers.anthropic.validator._rules import ModelRules, Rule
from render.providers.anthropic.validator._violation import violation

_INTEGER_BITS: Final = 63


def check_images(noted: Sequence[Facts], model: ModelRules | None) -> Iterator[Violation]:
    """Count images, wherever they stand; models with a small window take fewer."""
    images = sum(facts.images for facts in noted)
    small = model is not None and model.tokens_window <= SMALL_WINDOW_TOKENS
    images_max = IMAGES_MAX_SMALL_WINDOW if small else IMAGES_MAX
    if images > images_max:
        yield violation(Rule.IMAGES_MAX, "messages", images, images_max)


def check_size(parts: Sequence[Facts]) -> Iterator[Violation]:
    """Add up a lower bound of the bytes on the wire."""
    size = sum(map(attrgetter("size"), parts))
    if size > REQUEST_BYTES_MAX:
        yield violation(Rule.REQUEST_BYTES, "request", size)


def check_max_tokens(max_tokens: Any, model: ModelRules | None) -> Iterator[Violation]:
    """Zero is legal: it warms the cache and generates nothing."""
    if max_tokens is None:
        return
    if not _is_count(max_tokens):
        yield violation(Rule.SHAPE, "max_tokens", "integer")
    elif model is not None and max_tokens > model.output_tokens_max:
        yield violation(Rule.MAX_TOKENS, "max_tokens", max_tokens, model.output_tokens_max)


def _is_count(value: Any) -> bool:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return plain and value >= 0 and value.bit_length() <= _INTEGER_BITS
