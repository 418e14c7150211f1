"""What a page counts, and that it tells of what was dropped."""

from msgspec.structs import replace

from blocks import BlocksHidden, DroppedSpan, EventId, Hidden, StructuredSummary
from render.compaction._head import counted
from render.summary._actions import advance, text_of_actions
from render.summary._calls import runs_of
from tests._builders import call, prompt, result, view_of
from tests.render.summary.samples import block


def test_counts_add_up_from_one_compaction_to_the_next() -> None:
    folded = view_of(prompt("go"), call("a"), result("a"), call("b"), result("b")).entries
    one = counted(None, folded)
    assert (one.blocks, one.turns, one.rounds, one.compactions) == (5, 1, 2, 1)
    before = block(StructuredSummary(), one)
    two = counted(before, folded)
    assert (two.blocks, two.turns, two.rounds, two.compactions) == (10, 2, 4, 2)
    split = replace(before, covered_turn_ids=(folded[0].block.turn,))
    assert counted(split, folded).turns == 1, "a turn that goes on is one"


def test_what_was_dropped_is_told_like_everything_else_when_it_is_folded() -> None:
    span = DroppedSpan(first=2, last=3, about="2 blocks")
    asked, answered = call("a", name="bash", command="make"), result("a", "all done")
    hidden = BlocksHidden(
        id=EventId("h"),
        at=0.0,
        hidden=(
            Hidden(block=asked.id, replacement="[dropped]", dropped=span),
            Hidden(block=answered.id),
        ),
        reason="dropped",
    )
    entries = view_of(prompt("go"), asked, answered, hidden).entries
    assert counted(None, entries).dropped == (span,)
    assert text_of_actions(advance((), entries, runs_of(entries))) == "[v3] $ make -> all done"
