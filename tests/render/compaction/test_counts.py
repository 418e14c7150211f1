"""What a page counts, and what was dropped without a summary: bounded, and what falls out is counted."""

from msgspec.structs import replace

from blocks import BlocksHidden, Digest, DroppedSpan, EventId, Hidden, StructuredSummary
from render.compaction._head import counted
from render.summary._text import SPANS_MAX, dropped_text, fitted
from tests._builders import call, prompt, result, view_of
from tests.render.summary.samples import block, count


def spans(number: int) -> Digest:
    """A digest with so many dropped spans."""
    return Digest(
        dropped=tuple(DroppedSpan(first=n, last=n, about=f"read {n}.py") for n in range(number))
    )


def test_counts_add_up_from_one_compaction_to_the_next() -> None:
    folded = view_of(prompt("go"), call("a"), result("a"), call("b"), result("b")).entries
    one = counted(None, folded)
    assert (one.blocks, one.turns, one.rounds, one.compactions) == (5, 1, 2, 1)
    before = block(StructuredSummary(), one)
    two = counted(before, folded)
    assert (two.blocks, two.turns, two.rounds, two.compactions) == (10, 2, 4, 2)
    split = replace(before, covered_turn_ids=(folded[0].block.turn,))
    assert counted(split, folded).turns == 1, "a turn that goes on is one"


def test_the_list_is_bounded_and_what_falls_out_is_counted() -> None:
    digest = fitted(spans(SPANS_MAX + 25), 99_999, count)
    assert digest.dropped == spans(SPANS_MAX + 25).dropped[25:]
    assert digest.forgotten == {"dropped": 25}
    assert dropped_text(digest).startswith("- (25 earlier ones not listed)\n- ")
    assert fitted(spans(5), 99_999, count).forgotten == {}


def test_what_does_not_fit_goes_the_oldest_third_first() -> None:
    digest = spans(15)
    tokens = count(dropped_text(digest))
    assert fitted(digest, tokens, count) == digest
    less = fitted(digest, tokens - 1, count)
    assert less.dropped == digest.dropped[6:]
    assert less.forgotten == {"dropped": 6}
    assert fitted(digest, 0, count).dropped == ()


def test_a_span_that_was_dropped_is_still_told_of_when_it_is_folded() -> None:
    span = DroppedSpan(first=2, last=3, about="2 blocks")
    asked, answered = call("a"), result("a", "x" * 400)
    hidden = BlocksHidden(
        id=EventId("h"),
        at=0.0,
        hidden=(
            Hidden(block=asked.id, replacement="[dropped]", dropped=span),
            Hidden(block=answered.id),
        ),
        reason="dropped",
    )
    digest = counted(None, view_of(prompt("go"), asked, answered, hidden).entries)
    assert digest.dropped == (span,)
