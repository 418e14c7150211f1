"""Limits on a request as a whole: cache marks, images, size, output tokens.

Reading a mark is done once for a message; counting and ordering is done for every request, over the
few parts that carry any.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

from render.policy._provider import Violation
from render.providers.anthropic._kinds import (
    IMAGES_MAX,
    IMAGES_MAX_SMALL_WINDOW,
    MARKS_MAX,
    REQUEST_BYTES_MAX,
    SMALL_WINDOW_TOKENS,
)
from render.providers.anthropic.validator._facts import (
    Facts,
    Json,
    Mark,
    Scan,
    Ttl,
    as_object,
    joined,
    violation,
)
from render.providers.anthropic.validator._rules import ModelRules, Rule

PlacedMark: TypeAlias = tuple[str, Ttl]
"""Full place of a mark, and its time to live."""


def scan_mark(thing: Json, at: str, scan: Scan) -> None:
    """Note the mark on a block, a tool or the request."""
    if thing.get("cache_control") is None:
        return
    control = as_object(thing["cache_control"])
    if control is None or control.get("type") != "ephemeral":
        scan.fault(Rule.MARK_FORM, at, field="cache_control")
        return
    match control.get("ttl", "5m"):
        case "5m":
            scan.marks.append(Mark(at, "5m"))
        case "1h":
            scan.marks.append(Mark(at, "1h"))
        case _:
            scan.fault(Rule.MARK_TTL, at, field="cache_control.ttl")


def placed_marks(parts: Sequence[tuple[str, Facts]]) -> list[PlacedMark]:
    """All marks, in the order of `parts`."""
    return [(joined(place, mark.at), mark.ttl) for place, facts in parts for mark in facts.marks]


def check_marks(marks: Sequence[PlacedMark], request: Json, last_block: str) -> Iterator[Violation]:
    """Check number and order of all marks; `last_block` is the place an automatic mark falls on."""
    scan = Scan()
    scan_mark(request, "", scan)
    yield from (fault.below("") for fault in scan.faults)
    for mark in scan.marks:
        explicit = next((ttl for place, ttl in marks if place == last_block), None)
        if explicit is None:
            marks = [*marks, (last_block, mark.ttl)]
        elif explicit != mark.ttl:
            yield violation(Rule.MARK_CONFLICT, last_block, field="cache_control.ttl")
    if len(marks) > MARKS_MAX:
        yield violation(Rule.MARKS_MAX, marks[MARKS_MAX][0], len(marks))
    yield from _check_order(marks)


def _check_order(marks: Sequence[PlacedMark]) -> Iterator[Violation]:
    short_seen = False
    for place, ttl in marks:
        if ttl == "5m":
            short_seen = True
        elif short_seen:
            yield violation(Rule.MARK_ORDER, place, field="cache_control.ttl")


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
