"""Two summaries become one by rule: nothing said twice, each part within its room."""

import re
from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    Decision,
    OpenItem,
    StructuredSummary,
    ToolOutcome,
    Work,
)
from render import SummaryRoom
from render.summary._written import FORCED_OUT, merge_summaries, report_history
from tests.render.summary.samples import count, summaries

# Merging.


def room(history: int, prefix: int = 10**6) -> SummaryRoom:
    return SummaryRoom(history=history, prefix=prefix, count=count)


PLENTY = room(10**6)


def wordings(texts_: Sequence[str]) -> list[tuple[str, ...]]:
    """What tells sentences apart: their words in order."""
    return list(dict.fromkeys(tuple(re.findall(r"\w+", t.lower())) or (t,) for t in texts_))


@given(summaries(), summaries(), st.integers(0, 200), st.integers(0, 60))
def test_each_part_stays_within_its_room(
    old: StructuredSummary, new: StructuredSummary, history: int, prefix: int
) -> None:
    """The beginning of a turn takes nothing from history, nor history from it."""
    merged = merge_summaries(old, new, room(history, prefix))
    assert count(report_history(merged)) <= history
    assert count(merged.turn_context) <= prefix
    alone = merge_summaries(old, msgspec.structs.replace(new, turn_context=""), room(history, 0))
    assert msgspec.structs.replace(merged, turn_context="") == alone


@given(summaries(), summaries())
def test_with_room_nothing_is_lost_and_nothing_is_said_twice(
    old: StructuredSummary, new: StructuredSummary
) -> None:
    merged = merge_summaries(old, new, PLENTY)
    for name in ("tool_outcomes", "artifacts", "completed", "errors", "lists"):
        both = [*getattr(old, name), *getattr(new, name)]
        assert getattr(merged, name) == tuple(dict.fromkeys(both))
    for name in ("facts", "constraints"):
        both = [*getattr(old, name), *getattr(new, name)]
        assert wordings(getattr(merged, name)) == wordings(both)
    assert merge_summaries(merged, new, PLENTY) == merged


def test_the_newest_state_counts_and_an_empty_one_keeps_the_last() -> None:
    old = StructuredSummary(state="half", plan="go on")
    assert merge_summaries(old, StructuredSummary(state="done"), PLENTY).state == "done"
    kept = merge_summaries(old, StructuredSummary(), PLENTY)
    assert (kept.state, kept.plan) == ("half", "go on")


def test_an_entry_is_cut_to_its_share_its_longest_texts_alike() -> None:
    """Its priority is one word, and stays; so does a short text."""
    long = OpenItem(item="i" * 400, priority="high")
    work = Work(component="c" * 400, action="short", description="d" * 400)
    some = room(1000)
    assert some.first((long,), 1000, some.size(long)) == (long,)
    for each in (50, 25):
        cut_item, cut_work = (
            short for item in (long, work) for short in some.first((item,), 1000, each)
        )
        assert isinstance(cut_item, OpenItem)
        assert isinstance(cut_work, Work)
        assert cut_item.priority == "high"
        assert cut_work.action == "short"
        for item in (cut_item, cut_work):
            assert each - 4 <= some.size(item) <= each
        assert abs(len(cut_work.component) - len(cut_work.description)) <= 4


def test_what_is_forced_out_goes_in_order_the_oldest_first() -> None:
    outcomes = tuple(ToolOutcome(tool=f"tool {n}", outcome="fine") for n in range(10))
    full = StructuredSummary(
        facts=("a fact",), decisions=(Decision(decision="a decision"),), tool_outcomes=outcomes,
        completed=(Work(component="a part", action="made"),),
    )  # fmt: skip
    sizes: list[tuple[int, ...]] = []
    for tokens_max in range(120, -1, -1):
        merged = merge_summaries(full, StructuredSummary(), room(tokens_max))
        left = [len(getattr(merged, name)) for name in FORCED_OUT if name != "resolved"]
        sizes.append(tuple(left))
        assert merged.facts or tokens_max < 40, "they have a room of their own"
        assert merged.decisions or tokens_max < 40
        newest = outcomes[len(outcomes) - len(merged.tool_outcomes) :]
        assert merged.tool_outcomes[1:] == newest[1:], "the last to go may be cut"
    assert set(sizes[-1]) == {0}
    emptied = [min((i for i, s in enumerate(sizes) if s[at] == 0), default=0) for at in (0, 2)]
    assert emptied == sorted(emptied)
