"""A tail in turns: the newest stay whole as long as what is left fits."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block
from render import Context, View, draft_compaction
from render.compaction._range import (
    fitting_range,
    is_legal,
    range_before,
    squeezed,
    tried_out,
    turns_cut,
)
from tests import _builders as make
from tests._table import for_each
from tests.render.compaction.talk import rounds, turns


def context(limit: int = 100_000, **policy: Any) -> Context:
    return make.context(limit=limit, policy=make.steady(**policy))


def cut_turn(view: View, within: Context, trigger: Any = "forced") -> tuple[str, bool]:
    """The turn that is kept from, and whether it is split."""
    fitted = fitting_range(view, within, trigger)
    assert fitted is not None
    return fitted.range.tail[0].block.turn, fitted.range.is_split


@for_each(("number", "first"), [(1, "t5"), (2, "t4"), (4, "t2")])
def test_the_newest_turns_are_kept(number: int, first: str) -> None:
    view = make.view_of(*turns(6))
    assert cut_turn(view, context(keep_turns=number)) == (first, False)


def test_fewer_are_kept_where_they_would_not_fit() -> None:
    view = make.view_of(*turns(6, size=200))
    assert cut_turn(view, context(1_300, keep_turns=4)) == ("t5", False)


def test_a_turn_is_split_only_where_it_would_not_fit_whole() -> None:
    view = make.view_of(*turns(2), make.prompt("long", "t9"), *rounds(30, "t9", first=10))
    assert cut_turn(view, context(9_000, keep_turns=1)) == ("t9", False)
    assert cut_turn(view, context(2_500, keep_turns=1)) == ("t9", True)


def test_where_the_prompt_fits_no_turn_is_split() -> None:
    """A cold cache makes rewriting free, and is no reason to give up what is to be kept."""
    view = make.view_of(*turns(3))
    assert fitting_range(view, context(keep_turns=3), "cold") is None
    assert draft_compaction(view, context(keep_turns=3), "cold") is None


def test_the_other_rungs_leave_the_turns_alone() -> None:
    view = make.view_of(*turns(6, size=400))
    within = context(6_000, keep_turns=2, rungs=("clear", "drop"), prune_block_tokens=10)
    trial = draft_compaction(view, within, "forced")
    assert trial is not None
    first = next(e.version for e in view.entries if e.block.turn == "t4")
    assert all(proposal.last < first for proposal in trial.draft.proposals)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(300, 3_000))
def test_a_turn_is_split_for_no_other_reason(turns_in_log: int, keep: int, limit: int) -> None:
    view = make.view_of(*turns(turns_in_log))
    within = context(limit, keep_turns=keep)
    fitted = fitting_range(view, within, "proactive")
    if fitted is None or not fitted.range.is_split:
        return
    cut = turns_cut(view.entries, 1) or 0
    for factor in (1.0, 0.4, 0.1):
        less = squeezed(within, factor)
        fold = range_before(view, less, "proactive", view.entries[cut].version)
        assert fold is None or not tried_out(view, fold, less).fits


LATE: list[Block] = [
    make.prompt("one", "t1"), make.call("a", "t1", "r1"), make.prompt("two", "t2"),
    make.result("a", "late", "t1"), make.said("done", "t2", "r2"),
]  # fmt: skip


def test_a_cut_that_would_part_a_call_from_its_result_moves_back() -> None:
    entries = make.view_of(make.said("before", "t0", "r0"), *LATE).entries
    cut = turns_cut(entries, 1)
    assert cut == 2, "before the call, not before the turn"
    assert is_legal(entries, cut)


def test_a_late_result_opens_no_turn() -> None:
    entries = make.view_of(*LATE[:3], make.said("x", "t2", "r2"), *LATE[3:]).entries
    assert turns_cut(entries, 2) is None
