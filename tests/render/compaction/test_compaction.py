"""Compaction: when it is due, what it leaves, and how it survives being reopened."""

from collections.abc import Iterator
from typing import Any

import pytest

from blocks import (
    Block,
    CompactionSkipped,
    Decision,
    EventId,
    LogWindow,
    Provenance,
    RangeCompacted,
    RequestRendered,
    StructuredSummary,
    ToolOutcome,
    encode_block,
    encode_event,
)
from render import (
    CompactionPlan,
    Context,
    Place,
    RangePlan,
    Summary,
    View,
    apply_compaction,
    apply_range,
    commit,
    compaction_due,
    extractive,
    fits_after,
    fitting_range,
    gains_enough,
    open_view,
    plan_at,
    plan_compaction,
    plan_range,
    skip,
    total_tokens,
)
from tests import _builders as make
from tests._builders import context, grown, steady
from tests.render.compaction.drawings import drawn

NOW = 1_000_000.0


def rounds(number: int, turn: str = "t1", size: int = 100, first: int = 0) -> Iterator[Block]:
    for n in range(first, first + number):
        yield make.said(f"Step {n}.", turn, f"r{n}")
        yield make.call(f"call_{n}", turn, f"r{n}", path=f"src/file_{n}.py")
        yield make.result(f"call_{n}", "x" * size * 4, turn)


def turns(number: int, **more: Any) -> list[Block]:
    found: list[Block] = []
    for n in range(number):
        turn = f"t{n}"
        found += [make.header(turn), make.prompt(f"Prompt {n}.", turn)]
        found += rounds(2, turn, first=2 * n, **more)
    return found


def planned(view: View, within: Context, keep_ratio: float | None = None) -> RangePlan:
    found = plan_range(view, within, "proactive", keep_ratio)
    assert found is not None
    return found


def compacted(view: View, within: Context, *, keep: float = 0.0, **summary: Any) -> View:
    plan = planned(view, within, keep)
    written = Summary(summary=StructuredSummary(**summary)) if summary else extractive(plan)
    after = apply_range(view, plan, written, within)
    assert isinstance(after.decisions[-1], RangeCompacted), after.decisions[-1]
    return after


# When.


def test_it_is_due_above_its_share_of_the_budget() -> None:
    view = make.view_of(*turns(10))
    total = total_tokens(view, context())
    at = int(total / 0.9)
    assert compaction_due(view, context(limit=at - 20)) == "proactive"
    assert compaction_due(view, context(limit=at + 20)) is None


def test_system_and_tools_count() -> None:
    view = make.view_of(*turns(10))
    limit = int(total_tokens(view, context()) / 0.9) + 20
    system = ({"type": "text", "text": "x" * 400},)
    tools = ({"name": "bash", "description": "x" * 400, "input_schema": {"type": "object"}},)
    assert compaction_due(view, context(limit=limit, system=system)) == "proactive"
    assert compaction_due(view, context(limit=limit, tools=tools)) == "proactive"


def test_an_absolute_trigger_replaces_the_share() -> None:
    view = make.view_of(*turns(10))
    total = total_tokens(view, context())
    assert compaction_due(view, context(policy=steady(trigger_tokens=total))) is None
    assert compaction_due(view, context(policy=steady(trigger_tokens=total - 1))) == "proactive"


def test_what_is_reserved_is_not_there_to_be_used() -> None:
    view = make.view_of(*turns(10))
    limit = int(total_tokens(view, context()) / 0.9) + 100
    assert compaction_due(view, context(limit=limit)) is None
    for policy in (steady(safety_ratio=0.1), steady(rehydration_tokens=500)):
        assert compaction_due(view, context(limit=limit, policy=policy)) == "proactive"


def test_a_trigger_or_a_reserve_that_is_too_large_for_the_window_is_cut_to_it() -> None:
    """A trigger to what the prompt may have, a reserve to a fifth of the window."""
    view = make.view_of(*turns(10))
    total = total_tokens(view, context())
    late = steady(trigger_tokens=10 * total, safety_ratio=0.5)
    roomy = steady(trigger_ratio=1.0, rehydration_tokens=10 * total)
    for limit in range(2 * total - 4, 2 * total + 5):
        due = compaction_due(view, context(limit=limit, policy=late))
        assert bool(due) == (total > limit // 2)
    for limit in range(total * 5 // 4 - 2, total * 5 // 4 + 3):
        due = compaction_due(view, context(limit=limit, policy=roomy))
        assert bool(due) == (total > limit - limit // 5)


def sent(view: View, at: float) -> View:
    return commit(view, RequestRendered(id=EventId("r"), at=at, content_hash="", tokens=0))


def test_when_the_cache_is_cold_half_is_enough() -> None:
    view = sent(make.view_of(*turns(10)), NOW)
    limit = int(total_tokens(view, context()) / 0.6)
    assert compaction_due(view, context(limit=limit, now=NOW + 60)) is None
    assert compaction_due(view, context(limit=limit, now=NOW + 400)) == "cold"
    assert compaction_due(view, context(limit=2 * limit, now=NOW + 400)) is None


@pytest.mark.parametrize("safety", [0.0, 0.5])
def test_half_is_half_of_what_the_prompt_may_have_and_not_reached_by_exactly_that(
    safety: float,
) -> None:
    view = sent(make.view_of(*turns(10)), NOW)
    total = total_tokens(view, context())
    for budget, due in ((2 * total - 2, "cold"), (2 * total, None)):
        limit = int(budget / (1 - safety))
        within = context(limit=limit, now=NOW + 400, policy=steady(safety_ratio=safety))
        assert compaction_due(view, within) == due


def test_before_the_first_request_nothing_is_cold() -> None:
    view = make.view_of(*turns(10))
    limit = int(total_tokens(view, context()) / 0.6)
    assert compaction_due(view, context(limit=limit, now=NOW + 9999)) is None


# The breaker.


def failed(view: View, times: int, within: Context) -> View:
    for _ in range(times):
        view = skip(view, "failed", within).settled()
    return view


def test_after_some_failures_it_is_not_tried_again_until_the_timeline_has_grown() -> None:
    view = make.view_of(*turns(10))
    within = context(limit=int(total_tokens(view, context()) / 0.95))
    assert compaction_due(failed(view, 2, within), within) == "proactive"
    broken = failed(view, 3, within)
    assert compaction_due(broken, within) is None
    bigger = grown(broken, make.said("x" * 4 * int(0.11 * within.limit)))
    assert compaction_due(bigger, within) == "proactive"


def test_it_has_grown_once_it_has_what_a_compaction_must_free() -> None:
    """Of the limit, since the last failure; exactly that is enough."""
    blocks = [*turns(10), make.said("x" * 400, "t9")]
    small, view = make.view_of(*turns(10)), make.view_of(*blocks)
    growth = total_tokens(view, context()) - total_tokens(small, context())
    limit = int(total_tokens(view, context()) / 0.95)
    for share, due in ((growth / limit, "proactive"), ((growth + 1) / limit, None)):
        within = context(limit=limit, policy=steady(gain_min=share))
        after = grown(failed(small, 3, within), blocks[-1])
        assert compaction_due(after, within) == due


def test_a_cold_cache_does_not_close_the_breaker() -> None:
    view = sent(make.view_of(*turns(10)), NOW)
    within = context(limit=int(total_tokens(view, context()) / 0.6), now=NOW + 400)
    assert compaction_due(failed(view, 2, within), within) == "cold"
    assert compaction_due(failed(view, 3, within), within) is None


def test_a_prompt_of_exactly_its_limit_still_fits() -> None:
    view = make.view_of(*turns(10))
    within = context(limit=total_tokens(view, context()))
    assert compaction_due(failed(view, 3, within), within) is None


def test_a_prompt_over_its_limit_is_always_tried() -> None:
    view = make.view_of(*turns(10))
    within = context(limit=total_tokens(view, context()) - 1)
    assert compaction_due(failed(view, 9, within), within) == "proactive"


def test_the_breaker_is_folded_from_events() -> None:
    """So it survives a reopen."""
    within = context(limit=int(total_tokens(make.view_of(*turns(10)), context()) / 0.95))
    events = list(make.log(*turns(10)))
    for n in range(3):
        skipped = CompactionSkipped(
            id=EventId(f"s{n}"),
            at=NOW,
            reason="no_gain",
            tokens=total_tokens(make.view_of(*turns(10)), context()),
        )
        events.append((len(events) + 1, skipped))
    reopened = open_view(LogWindow(version=len(events), events=tuple(events)))
    assert reopened.state.failures == 3
    assert compaction_due(reopened, within) is None


def test_a_success_forgives_the_failures_before_it() -> None:
    within = context(limit=3000)
    view = failed(make.view_of(*turns(10)), 3, within)
    after = compacted(view, within)
    assert after.state.failures == 0
    assert after.state.failed_tokens == 0


def test_it_forgives_those_before_the_cut_too_and_counts_afresh() -> None:
    """The fold begins with the state in which the first kept block found the timeline."""
    within = context(limit=3000)
    view = grown(failed(make.view_of(*turns(10)), 3, within), *rounds(2, "t9", first=20))
    after = compacted(view, within)
    assert after.compaction
    assert after.compaction.event.cut > 64, "behind the failures"
    assert (after.state.failures, after.state.failed_tokens) == (0, 0)
    again = failed(after.settled(), 1, within)
    assert again.state.failures == 1


# Gain and target.


def test_a_compaction_that_gains_too_little_is_not_committed() -> None:
    view = make.view_of(make.prompt("hello", "t1"), make.said("hi", "t1"), make.prompt("x", "t2"))
    within = context()
    climb = plan_compaction(view, within, "forced")
    assert climb
    after = apply_compaction(view, climb, None, within)
    [event] = after.decisions
    assert isinstance(event, CompactionSkipped)
    assert event.reason == "no_gain"
    assert after.compaction is None
    assert make.request_bytes(make.shown(after)) == make.request_bytes(make.shown(view))


@pytest.mark.parametrize(
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
    plan = CompactionPlan(version=1, trigger="proactive", tokens_before=before)
    within = context(limit=2000, policy=steady(gain_min=0.25))
    assert gains_enough(plan, after, within) == enough


def test_of_the_folds_that_may_be_had_the_first_that_leaves_room_for_a_round_is_taken() -> None:
    """Five hundredths below the trigger: a fold that ends right under it is due again at once."""
    view = make.view_of(*turns(20))
    total = total_tokens(view, context())
    tight = 0
    for trigger in range(total // 8, total, total // 50):
        within = context(policy=steady(trigger_tokens=trigger, keep_ratio=0.05))
        fold = fitting_range(view, within, "proactive")
        assert fold
        after = total_tokens(
            apply_range(view, fold.range, extractive(fold.range), fold.context), within
        )
        assert after <= 0.95 * trigger or fold.squeeze == pytest.approx(0.1)
        assert fits_after(view, fold.range, fold.context) == (after <= 0.95 * trigger)
        tight += 0.9 * trigger < after <= 0.95 * trigger
    assert tight, "some ends near it"


def test_trigger_and_target_differ_so_that_it_does_not_compact_on_every_round() -> None:
    within = context(limit=4000)
    view = make.view_of(make.prompt("go"), *rounds(40))
    assert compaction_due(view, within)
    after = compacted(view, within, keep=0.2)
    compactions = 0
    for n in range(40, 60):
        assert total_tokens(after, within) <= within.limit
        after = grown(after, *rounds(1, first=n))
        if compaction_due(after, within):
            after, compactions = compacted(after, within, keep=0.2), compactions + 1
    assert compactions <= 3


def test_nothing_to_fold_gives_no_plan() -> None:
    assert plan_range(make.view_of(), context(), "forced") is None
    assert plan_range(make.view_of(make.prompt("hi")), context(), "forced") is None


def test_forced_folds_even_what_would_be_kept() -> None:
    view = make.view_of(*turns(3))
    assert plan_range(view, context(), "proactive") is None
    forced = plan_range(view, context(), "forced")
    assert forced is not None
    assert [e.path for e in forced.kept] == ["tc:t2.call_5.call", "tc:t2.call_5.result"]


# What it leaves.


def test_the_event_names_a_range_and_the_turns_it_covers() -> None:
    view = make.view_of(*turns(3), make.header("t9"), make.prompt("The last.", "t9"))
    [event] = [e for e in compacted(view, context()).decisions if isinstance(e, RangeCompacted)]
    summary = event.summary
    assert (event.start, event.cut) == (1, 26)
    assert (summary.start, summary.cut) == (1, 26)
    assert summary.covered_turn_ids == ("t0", "t1", "t2", "t9")
    assert summary.split_turn_id is None
    assert event.tokens_after < event.tokens_before


def test_a_cut_inside_a_turn_says_which_and_sums_up_its_first_part_apart() -> None:
    view = make.view_of(*turns(2), make.prompt("The last.", "t9"), *rounds(4, "t9", first=9))
    plan = planned(view, context(), 0.0)
    assert plan.is_split
    assert {entry.block.turn for entry in plan.prefix} == {"t9"}
    after = compacted(view, context())
    assert after.compaction
    assert after.compaction.event.summary.split_turn_id == "t9"
    assert "## Turn Context (split turn)\n" in make.text_in(make.shown(after))


@pytest.mark.parametrize("block", [make.prompt("p", "t9"), make.steer("s", "t9")])
def test_a_cut_before_the_users_words_splits_no_turn(block: Block) -> None:
    view = make.view_of(*turns(2), make.said("working", "t9"), block)
    plan = planned(view, context(), 0.0)
    assert plan.kept[0].block == block
    assert not plan.is_split


def test_the_range_is_hidden_and_the_log_keeps_it() -> None:
    view = make.view_of(*turns(6))
    after = compacted(view, context())
    assert after.compaction
    assert [e.version for e in after.entries] == [
        e.version for e in view.entries if e.version >= after.compaction.event.cut
    ]
    shown = make.shown(after)
    assert shown.violations == ()
    assert "Prompt 0." in make.text_in(shown)
    assert "xxxx" * 50 not in make.text_in(shown).split("</summary>")[0]


@pytest.mark.parametrize(
    "line",
    [
        "P c1 r1 c2 r2 c3 r3 a",
        "P (t a c1) r1 s (a c2 c3) r3 r2 P a",
        "H P a H P c1 | s r1 (t a c2) f n a",
        "P a P a ! s",
    ],
)
def test_rounds_keep_their_numbers_wherever_the_cut_is(line: str) -> None:
    """A prune goes by the age of a round, and by nothing that was folded before it."""
    view, within = drawn(line).view, context()
    numbers = {entry.version: entry.round for entry in view.entries}
    cuts = 0
    for entry in view.entries:
        plan = plan_at(view, within, "forced", entry.version)
        if plan is None:
            continue
        cuts += 1
        after = apply_range(view, plan, extractive(plan), within)
        opened = [e for e in after.entries if e.round]
        assert {e.version: e.round for e in opened} == {
            e.version: numbers[e.version] for e in opened
        }
        assert all(e.round for e in after.entries if e.place is Place.RESPONSE)
        assert after.state.rounds == view.state.rounds
        assert grown(after, make.said("on", "t9", "new")).entries[-1].round == view.state.rounds + 1
    assert cuts >= 3


def test_a_chain_of_compactions_leaves_no_gap() -> None:
    within = context(limit=3000)
    view = make.view_of(make.header(), make.prompt("go"))
    ends: list[tuple[int, int]] = []
    for n in range(6):
        view = compacted(grown(view, *rounds(10, first=10 * n)), within)
        assert view.compaction
        ends.append((view.compaction.event.start, view.compaction.event.cut))
    facts = [start for start, _ in ends[1:]]
    assert ends[0][0] == 1
    assert all(cut <= start for (_, cut), start in zip(ends, facts, strict=False))
    assert view.compaction
    digest = view.compaction.event.summary.digest
    assert digest.compactions == 6
    assert digest.rounds >= 59


def test_ten_compactions_lose_no_constraint_and_no_decision() -> None:
    """Whatever the limit forces out, and whatever the model forgets to repeat."""
    within = context(limit=6000)
    view = make.view_of(make.header(), make.prompt("the task"))
    for n in range(10):
        view = compacted(
            grown(view, *rounds(10, first=10 * n)),
            within,
            task="the task",
            constraints=(f"constraint {n}: never do {n}",),
            decisions=(Decision(decision=f"decision {n}", reason=f"reason {n}"),),
            tool_outcomes=(ToolOutcome(tool="bash", outcome=f"outcome {n} " + "o" * 900),),
            state=f"state {n}",
        )
    text = make.text_in(make.shown(view))
    assert all(f"constraint {n}: never do {n}" in text for n in range(10))
    assert all(f"decision {n}, because reason {n}" in text for n in range(10))
    assert "state 9" in text
    assert "state 8" not in text
    assert "outcome 0 " not in text


def test_the_size_of_the_event_does_not_grow_with_what_it_folds() -> None:
    """Two versions, never a list of ids."""
    sizes: list[int] = []
    for number in (20, 200):
        view = make.view_of(make.header(), make.prompt("go"), *rounds(number))
        event = compacted(view, context(limit=2000)).decisions[-1]
        assert isinstance(event, RangeCompacted)
        sizes.append(len(encode_event(event)) - len(encode_block(event.summary)))
    assert sizes[1] < sizes[0] + 20


def test_live_and_reopened_views_are_one() -> None:
    within = context(limit=4000)
    view = make.view_of(*turns(10))
    after = compacted(view, within, keep=0.1)
    assert after.compaction
    log = [*make.log(), *view.events_since_cut, (view.version + 1, after.decisions[-1])]
    kept = tuple(r for r in log if r[0] >= after.compaction.event.cut)
    reopened = open_view(LogWindow(version=view.version + 1, compaction=log[-1], events=kept))
    assert make.request_bytes(make.shown(reopened)) == make.request_bytes(make.shown(after))
    assert reopened.state == after.state


def test_model_calls_for_summaries_are_counted_across_compactions() -> None:
    within = context(limit=4000)
    view = make.view_of(make.header(), make.prompt("go"), *rounds(30))
    for n in range(3):
        plan = planned(view, within, 0.0)
        written = Summary(
            summary=StructuredSummary(state="s"),
            provenance=Provenance(source_hash=plan.source_hash, model="some-model"),
        )
        view = apply_range(view, plan, written, within)
        assert view.state.summaries == n + 1
        view = grown(view, *rounds(30, first=30 * (n + 1)))


# The tail.


def answers(number: int) -> list[Block]:
    """Rounds of one block each: there may be a cut before every one of them."""
    return [make.said("x" * 200, response=f"r{n}") for n in range(number)]


@pytest.mark.parametrize(
    ("share", "system", "tokens"),
    [(0.1, 0, 1000), (0.3, 0, 2000), (0.3, 3000, 500), (0.3, 3500, 400), (0.3, 9000, 400)],
)
def test_the_tail_has_its_share_or_half_of_what_is_left_below_the_target(
    share: float, system: int, tokens: int
) -> None:
    """As few blocks as reach it; of a limit of 10,000 with a target of 4,000, never under 400."""
    view = make.view_of(make.prompt("go"), *answers(80))
    fixed = ({"type": "text", "text": "s" * 4 * system},) if system else ()
    within = context(limit=10_000, policy=steady(keep_ratio=share), system=fixed)
    plan = planned(view, within)
    less = plan_at(view, within, "proactive", plan.kept[1].version)
    assert less
    assert less.kept_tokens < tokens <= plan.kept_tokens


@pytest.mark.parametrize(("number", "ratio", "kept"), [(6, 0.2, 6), (7, 0.2, 7), (10, 0.1, 5)])
def test_a_tail_by_number_counts_blocks_and_is_squeezed_in_proportion(
    number: int, ratio: float, kept: int
) -> None:
    within = context(policy=steady(keep_ratio=0.2, keep_messages=number))
    plan = planned(make.view_of(make.prompt("go"), *answers(80)), within, ratio)
    assert len(plan.kept) == kept


# The plan.


def test_the_same_range_gives_the_same_plan() -> None:
    blocks = turns(8)
    one, two = make.view_of(*blocks), make.view_of(*blocks)
    first, second = planned(one, context(), 0.01), planned(two, context(), 0.01)
    assert (first.start, first.cut, first.source_hash, first.carried) == (
        second.start, second.cut, second.source_hash, second.carried,
    )  # fmt: skip


def test_another_content_gives_another_source_hash() -> None:
    blocks = turns(4)
    other = [*blocks[:1], make.prompt("Something else.", "t0"), *blocks[2:]]
    one, two = make.view_of(*blocks), make.view_of(*other)
    assert planned(one, context(), 0.0).source_hash != planned(two, context(), 0.0).source_hash


def test_another_summary_before_it_gives_another_source_hash() -> None:
    """The range is summarised together with the summary before it."""
    view = make.view_of(*turns(4))
    more = list(rounds(4, "t9", first=50))
    one, two = (compacted(view, context(), state=state).settled() for state in ("one", "two"))
    plans = [planned(grown(after, *more), context(), 0.0) for after in (one, two, one)]
    assert plans[0].folded == plans[2].folded or plans[0].start == plans[1].start
    assert plans[0].source_hash == plans[2].source_hash != plans[1].source_hash


def test_planning_and_applying_change_nothing_by_themselves() -> None:
    view = make.view_of(*turns(8))
    before = make.request_bytes(make.shown(view))
    compacted(view, context())
    assert make.request_bytes(make.shown(view)) == before
    assert view.decisions == ()


def test_open_calls_outlive_every_compaction() -> None:
    view = make.view_of(*turns(8), make.call("open", "t7", "r"), make.steer("hurry", "t7"))
    after = compacted(view, context())
    answered = grown(after, make.result("open", "the answer", "t7"))
    [answer] = [
        c for m in make.shown(answered).messages for c in m["content"] if c["type"] == "tool_result"
    ]
    assert answer["content"] == "the answer"
