"""Cache marks: what one may look like, and how many may stand in which order.

Reading a mark is done once for a message; counting and ordering is done for every request, over the
few parts that carry any.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from render.policy._provider import Violation
from render.providers.anthropic._kinds import MARKS_MAX
from render.providers.anthropic.validator._facts import Facts, Mark, Scan, Ttl
from render.providers.anthropic.validator._json import Json, as_object
from render.providers.anthropic.validator._rules import Rule
from render.providers.anthropic.validator._violation import joined, violation

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
