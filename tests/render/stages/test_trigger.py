"""When a compaction is due, and the breaker that stops trying after failures."""

from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    Block,
    CompactionSkipped,
    EventId,
    LogWindow,
)
from render import (
    Policy,
    compaction_due,
    open_view,
    total_tokens,
    widened,
)
from tests import _builders as make
from tests._builders import context, grown, steady
from tests._table import for_each
from tests.render.compaction.talk import NOW, compacted, failed, rounds, sent, turns

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


def test_an_absolute_trigger_is_beside_the_share_and_one_above_the_window_changes_nothing() -> None:
    """A policy for large windows compacts a small one as early as others do, with room for the request of a summariser."""
    view = make.view_of(*turns(10))
    total = total_tokens(view, context())
    for limit in range(total, total + total // 5, 7):
        plain, absolute = Policy(), Policy(trigger_tokens=100 * total)
        due = compaction_due(view, context(limit=limit, policy=absolute))
        assert due == compaction_due(view, context(limit=limit, policy=plain))
    assert compaction_due(view, context(policy=steady(trigger_tokens=total))) is None
    assert compaction_due(view, context(policy=steady(trigger_tokens=total - 1))) == "proactive"


# How much of a large window is filled.


@given(st.integers(1, 10**8), st.integers(1, 10**8))
def test_a_window_that_is_sixteen_times_as_large_is_filled_twice_as_far(
    first: int, second: int
) -> None:
    smaller, larger = sorted((first, second))
    less, more = (context(limit=limit).capacity for limit in (smaller, larger))
    assert 0 <= more - less <= larger - smaller
    assert smaller > 100_000 or less == smaller
    assert smaller < 100_000 or 0 <= context(limit=16 * smaller).capacity - 2 * less <= 1


def test_a_large_window_is_compacted_before_it_is_full_unless_the_policy_fills_it() -> None:
    """Each call pays for all that stands in it, and clients compact at four fifths of 200,000 tokens by themselves."""
    view = make.view_of(*turns(10), *_rounds(15, 10_000))
    total = total_tokens(view, context())
    assert 150_000 < total < 160_000
    for limit, trigger, due in (
        (200_000, None, "proactive"),
        (10**6, None, None),
        (200_000, 0, None),
        (10**6, 140_000, "proactive"),
    ):
        within = context(limit=limit, policy=steady(trigger_tokens=trigger))
        assert compaction_due(view, widened(within, view)) == due, (limit, trigger)


@for_each("asked, answered", [(160_000, 0), (0, 160_000), (60_000, 90_000)])
def test_what_no_compaction_can_fold_may_fill_all_of_the_window(asked: int, answered: int) -> None:
    """The prompt of the current turn and the newest round are shown whole if the window has room: a fold of all else
    would not make them smaller."""
    prompt = [make.header("t11"), make.prompt("x" * 4 * asked or "Go.", "t11"), *rounds(3, "t11")]
    view = make.view_of(*turns(10), *prompt, *_rounds(1, answered or 10))
    within = context(limit=200_000)
    assert compaction_due(view, within) == "proactive"
    assert compaction_due(view, widened(within, view)) is None
    after = grown(view, make.said("Done.", "t11"), make.header("t12"), make.prompt("Now?", "t12"))
    assert compaction_due(after, widened(within, after)) == "proactive"


def _rounds(count: int, tokens: int) -> list[Block]:
    """Rounds of turn `t11` whose results have so many tokens each."""
    calls = [(f"big{n}", "x" * 4 * tokens) for n in range(count)]
    return [
        block
        for name, text in calls
        for block in (make.call(name, "t11"), make.result(name, text, "t11"))
    ]


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
    late = steady(trigger_tokens=10 * total, trigger_ratio=1.0, trigger_room=0, safety_ratio=0.5)
    roomy = steady(trigger_ratio=1.0, trigger_room=0, rehydration_tokens=10 * total)
    for limit in range(2 * total - 4, 2 * total + 5):
        due = compaction_due(view, context(limit=limit, policy=late))
        assert bool(due) == (total > limit // 2)
    for limit in range(total * 5 // 4 - 2, total * 5 // 4 + 3):
        due = compaction_due(view, context(limit=limit, policy=roomy))
        assert bool(due) == (total > limit - limit // 5)


def test_room_for_a_summariser_is_kept_whatever_the_share_and_at_most_a_twentieth() -> None:
    view = make.view_of(*turns(10))
    total = total_tokens(view, context())
    for room in (10 * total, total // 50):
        late = steady(trigger_ratio=1.0, trigger_room=room)
        for limit in range(total, total + total // 10):
            kept = min(room, int(0.05 * limit))
            due = compaction_due(view, context(limit=limit, policy=late))
            assert bool(due) == (total > limit - kept), (limit, room)


def test_when_the_cache_is_cold_half_is_enough() -> None:
    view = sent(make.view_of(*turns(10)), NOW)
    limit = int(total_tokens(view, context()) / 0.6)
    assert compaction_due(view, context(limit=limit, now=NOW + 60)) is None
    assert compaction_due(view, context(limit=limit, now=NOW + 400)) == "cold"
    assert compaction_due(view, context(limit=2 * limit, now=NOW + 400)) is None


@for_each("safety", [0.0, 0.5])
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
