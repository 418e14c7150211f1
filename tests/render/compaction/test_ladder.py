"""The ladder: rung after rung as the policy says, as far as needed and no further."""

from collections.abc import Iterator
from typing import Any

import attrs

from blocks import (
    Block,
    BlocksHidden,
    CallId,
    CompactionSkipped,
    Determinism,
    Envelope,
    RangeCompacted,
    StructuredSummary,
    Trigger,
    artifact_id,
)
from render import (
    CompactionDraft,
    CompactionTrial,
    Context,
    ExternalFacts,
    RungName,
    Summary,
    View,
    apply_compaction,
    draft_compaction,
    gains_enough,
    range_before_tail,
    restore_draft,
    total_tokens,
)
from render.compaction._ladder import goal_of
from tests import _builders as make
from tests._builders import context, steady
from tests._table import for_each

LARGE, SMALL = 2_000, 60
"""Characters of a result."""


def rounds(number: int, first: int = 0, size: int = LARGE, **envelope: Any) -> Iterator[Block]:
    for n in range(first, first + number):
        call_id, response = f"c{n}", f"r{n}"
        yield make.call(call_id, "t1", response, name="read_file", path=f"src/file_{n}.py")
        text = f"class File{n}: ...\n" + "x" * size
        yield make.result(call_id, text, "t1", envelope=Envelope(**envelope))


def talk(*more: Block, number: int = 20, **given: Any) -> View:
    return make.view_of(make.prompt("Look at the files."), *rounds(number, **given), *more)


def within(*rungs: RungName, limit: int = 10_000, **policy: Any) -> Context:
    given = {"rungs": rungs, "externalize_tokens": 300, "pointer_tokens": 20, **policy}
    return make.context(policy=steady(**given), can_externalize=True, limit=limit)


def draft_of(
    view: View, context: Context, trigger: Trigger = "proactive", **known: Any
) -> CompactionDraft:
    found = draft_compaction(view, context, trigger, ExternalFacts(**known))
    assert found is not None
    return found.draft


# Order, and where it ends.


@for_each(
    "order",
    [
        ("externalize", "summarize"),
        ("summarize", "externalize"),
        ("clear", "summarize", "drop"),
        ("drop", "externalize", "clear"),
    ],
)
def test_the_first_rung_of_the_policy_is_tried_first(order: tuple[RungName, ...]) -> None:
    draft = draft_of(talk(), within(*order))
    assert draft.rungs[0] == order[0]
    assert list(draft.rungs) == [rung for rung in order if rung in draft.rungs]


def test_it_stops_as_soon_as_the_request_is_small_enough() -> None:
    context = within("externalize", "summarize", "clear", "drop", limit=12_000)
    draft = draft_of(talk(), context)
    assert draft.rungs == ("externalize",)
    assert draft.tokens_after <= goal_of(context) < draft.tokens_before


LIMIT = 1 << 16
"""Shares of it are exact."""
EXACT: dict[str, Any] = {"limit": LIMIT, "keep_messages": 6, "page_tokens": 0}
"""What stays does not depend on where the goal is."""


@for_each("field", ["enough_ratio", "target_ratio"])
def test_what_comes_exactly_to_its_goal_is_enough(field: str) -> None:
    """The goal is the smaller of the two shares; one token less, and another rung is tried."""
    view = talk()
    tokens = draft_of(view, within("externalize", **EXACT)).tokens_after
    for goal, rungs in ((tokens, ("externalize",)), (tokens - 1, ("externalize", "summarize"))):
        shares: dict[str, Any] = {"enough_ratio": 0.5, "target_ratio": 0.5, field: goal / LIMIT}
        draft = draft_of(view, within("externalize", "summarize", **EXACT, **shares))
        assert (draft.target, draft.rungs) == (goal, rungs)


def test_a_cut_that_is_summarised_already_is_taken_if_it_leaves_room() -> None:
    """The first of them that may be cut at and does; else the range is chosen as ever."""
    view, context = talk(), within("summarize", limit=6000)
    early, inside, late = (view.entries[at].version for at in (1, 30, 31))

    def cut(*known: int) -> int:
        (proposal,) = draft_of(view, context, cuts=known).proposals
        assert proposal.action == "summarize"
        return proposal.cut

    usual = cut()
    assert usual not in {early, inside, late}
    assert cut(late) == cut(early, inside, late, usual) == late
    assert cut(early) == cut(inside) == usual


def test_once_something_is_summarised_the_target_is_enough() -> None:
    view = talk()
    known: dict[str, Any] = {"cuts": (view.entries[11].version,)}
    tokens = draft_of(view, within("summarize", **EXACT), **known).tokens_after
    for target, rungs in ((tokens, ("summarize",)), (tokens - 1, ("summarize", "drop"))):
        shares: dict[str, Any] = {"enough_ratio": 0.01, "target_ratio": target / LIMIT}
        context = within("summarize", "drop", **EXACT, **shares)
        assert draft_of(view, context, **known).rungs == rungs


def test_a_goal_is_below_the_trigger_by_enough_for_another_round() -> None:
    """Five hundredths of it."""
    view = talk()
    tokens = draft_of(view, within("externalize", **EXACT)).tokens_after
    enough = -(-tokens * 20 // 19)
    for trigger, rungs in ((enough, ("externalize",)), (enough - 2, ("externalize", "drop"))):
        shares = {"enough_ratio": 1.0, "target_ratio": 1.0}
        context = within("externalize", "drop", trigger_tokens=trigger, **{**EXACT, **shares})
        assert draft_of(view, context).rungs == rungs


def test_a_rung_that_is_not_enough_is_followed_by_the_next() -> None:
    """Small results: there is little to move, so whole rounds go."""
    view = talk(number=200, size=400)
    context = within("externalize", "clear", "drop", limit=14_000, prune_block_tokens=1000)
    draft = draft_of(view, context)
    assert draft.rungs == ("drop",)
    assert draft.tokens_after <= goal_of(context)


@for_each("rungs", [(), ("externalize",), ("clear", "drop")])
def test_without_anything_to_do_there_is_no_draft(rungs: tuple[RungName, ...]) -> None:
    view = make.view_of(make.prompt("Hello."), make.said("Hello."))
    for trigger in ("proactive", "cold", "forced"):
        assert draft_compaction(view, within(*rungs), trigger) is None
    assert draft_compaction(make.view_of(), within(*rungs), "forced") is None


def test_no_rungs_no_draft() -> None:
    assert draft_compaction(talk(), within(limit=1_000), "forced") is None


# What may not be touched, until nothing else helps.


def versions(draft: CompactionDraft) -> int:
    return max(proposal.last for proposal in draft.proposals)


def test_the_verbatim_tail_is_left_alone() -> None:
    view, context = talk(), within("externalize", limit=10_000, keep_ratio=0.3)
    draft = draft_of(view, context)
    fold = range_before_tail(view, context, "proactive")
    assert fold
    assert versions(draft) == fold.cut - 1
    assert len(fold.tail) >= 6


def test_the_tail_may_be_given_in_turns() -> None:
    """What is before the newest turn goes first, and that is enough here."""
    more = [make.prompt("And these.", "t2"), *rounds(3, 50)]
    context = within("externalize", keep_turns=1, limit=12_000)
    draft = draft_of(talk(*more), context)
    assert draft.proposals
    assert all(proposal.last < 42 for proposal in draft.proposals)
    assert draft.tokens_after <= goal_of(context)


def test_where_it_would_not_fit_all_but_the_newest_round_is_tried() -> None:
    """The tail itself is too large: one more time, with everything but the newest round."""
    view = talk(number=8, size=4_000)
    context = within("externalize", limit=3_000, keep_ratio=0.9, target_ratio=0.6)
    draft = draft_of(view, context)
    assert versions(draft) == view.entries[-3].version
    assert draft.tokens_after <= 3_000


def test_only_as_a_last_resort_what_cannot_be_had_again_is_dropped() -> None:
    view = talk(number=8, size=4_000, durability="non-replayable")
    roomy = within("drop", limit=8_000, target_ratio=0.6)
    assert draft_compaction(view, attrs.evolve(roomy, limit=9_500), "proactive") is None
    draft = draft_of(view, attrs.evolve(roomy, limit=4_000))
    assert all(proposal.action == "drop" for proposal in draft.proposals)
    assert draft.tokens_after <= 4_000


@for_each("trigger", ["cold", "forced"])
def test_one_that_was_asked_for_goes_on_until_the_summary(trigger: Trigger) -> None:
    """It may have started under its goal: what is large is not all there is to do."""
    view = talk(number=12)
    context = within("externalize", "summarize", "drop", limit=100_000, keep_ratio=0.01)
    assert draft_of(view, context, trigger).rungs == ("externalize", "summarize")
    offered = draft_compaction(view, context, "proactive")
    assert offered is not None
    assert offered.draft.rungs == ("externalize",)


def test_one_that_was_asked_for_goes_on_to_its_goal_where_no_rung_summarises() -> None:
    """A few large results are moved; that is not enough, and nobody may stop there."""
    few = list(rounds(2, first=100, size=8_000))
    view = make.view_of(make.prompt("Go."), *few, *rounds(60, size=900))
    context = within("externalize", "drop", limit=10_000)
    assert total_tokens(view, context) > 10_000
    draft = draft_of(view, context, "forced")
    assert draft.rungs == ("externalize", "drop")
    assert draft.tokens_after <= goal_of(context)


# What rests.


def test_externalize_and_drop_rest_in_a_turn_into_which_an_artifact_comes_back() -> None:
    artifact = artifact_id(b"something")
    rungs: tuple[RungName, ...] = ("externalize", "clear", "drop")
    named = talk(make.said(f"I look at {artifact} again.", "t1", "last"))
    assert draft_of(named, within(*rungs)).rungs == ("clear",)
    plain = talk(make.said("I look at it again.", "t1", "last"))
    assert "externalize" in draft_of(plain, within(*rungs)).rungs
    nothing = within(*rungs, rehydration_artifacts=0)
    assert "externalize" in draft_of(named, nothing).rungs


def test_a_rung_may_be_told_to_rest() -> None:
    draft = draft_of(
        talk(), within("externalize", "clear"), disabled_rungs=frozenset({"externalize"})
    )
    assert draft.rungs == ("clear",)


def test_what_a_probe_has_seen_decides_about_replayable_results() -> None:
    marked = Determinism(version="1")
    view = talk(durability="replayable", determinism=marked)
    context = within("clear")
    assert draft_compaction(view, context, "proactive") is None
    seen = {CallId("c3"): marked, CallId("c4"): Determinism(version="2")}
    [cleared] = draft_of(view, context, current=seen).proposals
    assert cleared.blocks == (view.entries[8].block.id,)


# Draft and deed.


def trial_of(view: View, context: Context, trigger: Trigger = "proactive") -> CompactionTrial:
    found = draft_compaction(view, context, trigger)
    assert found is not None
    return found


ORDERS: list[tuple[RungName, ...]] = [
    ("externalize", "summarize", "clear", "drop"),
    ("clear", "summarize"),
    ("clear", "drop"),
    ("externalize", "drop"),
    ("drop", "summarize", "externalize"),
]


@for_each("order", ORDERS)
def test_a_draft_from_json_does_what_the_first_would_have_done(order: tuple[RungName, ...]) -> None:
    view = talk(number=60, size=1_500)
    context = within(*order, limit=5_000)
    live = trial_of(view, context, "forced")
    again = restore_draft(CompactionDraft.from_json(live.draft.to_json()), view, context)
    assert again is not None
    one = apply_compaction(view, live, None, context)
    two = apply_compaction(view, again, None, context)
    assert [type(e) for e in one.decisions] == [type(e) for e in two.decisions]
    assert make.request_bytes(make.shown(one)) == make.request_bytes(make.shown(two))
    assert total_tokens(one, context) == live.draft.tokens_after


def test_a_model_s_summary_takes_the_place_of_the_probe() -> None:
    view, context = talk(), within("externalize", "summarize", limit=4_000)
    found = trial_of(view, context, "forced")
    written = Summary(summary=StructuredSummary(state="All files were read."))
    after = apply_compaction(view, found, written, context)
    assert [type(event) for event in after.decisions] == [BlocksHidden, RangeCompacted]
    assert "All files were read." in make.text_in(make.shown(after))


def test_a_draft_does_not_belong_to_a_view_without_its_blocks() -> None:
    context = within("externalize")
    draft = trial_of(talk(), context).draft
    assert restore_draft(draft, talk(number=3), context) is None


def test_a_draft_does_not_belong_to_a_view_whose_range_is_another() -> None:
    context = within("summarize")
    view = talk()
    draft = trial_of(view, context, "forced").draft
    first = view.entries[0].block.id
    changed = make.view_of(
        *(e.block for e in view.entries if e.block.id != first), make.said("more", "t1", "x")
    )
    assert restore_draft(draft, changed, context) is None


# Gain and target.


def test_a_compaction_that_gains_too_little_is_not_committed() -> None:
    view = make.view_of(make.prompt("hello", "t1"), make.said("hi", "t1"), make.prompt("x", "t2"))
    within = context()
    climb = draft_compaction(view, within, "forced")
    assert climb
    after = apply_compaction(view, climb, None, within)
    [event] = after.decisions
    assert isinstance(event, CompactionSkipped)
    assert event.reason == "no_gain"
    assert after.compaction is None
    assert make.request_bytes(make.shown(after)) == make.request_bytes(make.shown(view))


@for_each(
    ("before", "after", "enough"),
    [
        (1000, 750, True),
        (1000, 751, False),
        (2000, 1500, True),
        (2000, 1501, False),
        (2001, 2000, True),
        (2001, 2001, False),
        (4000, 3999, True),
    ],
)
def test_what_is_enough_ends_exactly_at_the_share_that_the_policy_wants(
    before: int,
    after: int,
    enough: bool,  # noqa: FBT001 -- a table
) -> None:
    """Over the limit, which is 2000 here, every token counts."""
    draft = CompactionDraft(version=1, trigger="proactive", tokens_before=before)
    within = context(limit=2000, policy=steady(gain_min=0.25))
    assert gains_enough(draft, after, within) == enough
