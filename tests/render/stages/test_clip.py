"""Clipping: what alone would crowd out everything else is cut before it is first shown."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block, BlocksHidden, EventId, Hidden, RequestRendered
from render import Context, View, commit, fold, total_tokens
from render.stages._visibility import clip_oversized, cut_text, strip_unbound
from tests import _builders as make
from tests._table import for_each

HUGE = "\n".join(f"line {n}" for n in range(2000))


def small(**changes: Any) -> Context:
    return make.context(limit=2000, policy=make.steady(clip_ratio=0.2), **changes)


def clipped(view: View) -> list[str]:
    after = clip_oversized(view, small())
    return [entry.path for entry in after.entries if entry.replacement is not None]


def test_a_huge_result_keeps_head_and_tail_and_names_the_way_back() -> None:
    view = make.view_of(make.prompt("go"), make.call("c"), make.result("c", HUGE))
    text = make.text_in(make.shown(clip_oversized(view, small())))
    assert "line 0\n" in text
    assert text.endswith("line 1999")
    assert "the whole text is at tc:t1.c.result" in text
    assert make.CharCounter().count(text) <= 0.5 * 2000


def test_one_event_tells_of_all_and_why() -> None:
    calls = [make.call(f"c{n}", response="r") for n in range(3)]
    results = [make.result(f"c{n}", HUGE) for n in range(3)]
    after = clip_oversized(make.view_of(make.prompt("go"), *calls, *results), small())
    [event] = after.decisions
    assert isinstance(event, BlocksHidden)
    assert event.reason == "clipped"
    assert len(event.hidden) == 3


def test_small_results_are_whole_and_the_large_ones_share_half_of_the_room() -> None:
    """The other half is for the next round."""
    sizes = {"c1": 100, "c2": 900, "c3": 6400, "c4": 6400}
    calls = [make.call(call_id, response="r") for call_id in sizes]
    results = [make.result(call_id, "x" * size) for call_id, size in sizes.items()]
    after = clip_oversized(make.view_of(make.prompt("go"), *calls, *results), small())
    shown = make.text_in(make.shown(after))
    assert 0.3 * 2000 < make.CharCounter().count(shown) <= 0.6 * 2000
    assert "x" * 900 in shown
    assert [e.path for e in after.entries if e.replacement] == [
        "tc:t1.c3.result",
        "tc:t1.c4.result",
    ]


def test_a_result_that_fits_the_window_is_whole() -> None:
    """However large its share of the window is."""
    for size in (1000, 3000, 6900):
        view = make.view_of(make.prompt("go"), make.call("c"), make.result("c", "x" * size))
        assert clip_oversized(view, small()) is view


def test_exactly_what_is_free_may_be_filled() -> None:
    """Up to the trigger, which is what the whole request may have before it is compacted."""
    view = make.view_of(make.prompt("go"), make.call("c"), make.result("c", "x" * 6000))
    tokens = total_tokens(view, small())
    for trigger, whole in ((tokens, True), (tokens - 1, False)):
        policy = make.steady(clip_ratio=0.2, trigger_tokens=trigger)
        within = make.context(limit=2000, policy=policy)
        assert (clip_oversized(view, within) is view) == whole


def test_a_result_for_which_a_compaction_makes_room_is_whole() -> None:
    """What was shown before gives way, not what was just asked for."""
    old: list[Block] = [
        make.prompt("go"),
        make.call("c1"),
        make.result("c1", "x" * 6000),
        make.call("c2"),
    ]
    view = make.view_of(*old, make.result("c2", "y" * 2000))
    assert total_tokens(view, small()) > 0.9 * 2000
    assert clip_oversized(view, small()) is view
    too_large = make.view_of(*old, make.result("c2", "y" * 6000))
    assert clipped(too_large) == ["tc:t1.c2.result"]


def test_only_the_newest_round_is_clipped() -> None:
    """The model has answered what came before: thinking may depend on it, and a provider may have cached it."""
    rounds = [(make.call(name), make.result(name, "x" * 8000)) for name in ("c1", "c2")]
    assert clipped(make.view_of(make.prompt("go"), *rounds[0], *rounds[1])) == ["tc:t1.c2.result"]


def test_a_standing_instruction_is_clipped_only_if_it_would_not_fit_alone() -> None:
    rules = make.attachment("AGENTS.md", "rule\n" * 1000, standing="rules:AGENTS.md")
    text = make.attachment("a.txt", HUGE)
    assert clipped(make.view_of(rules, text, make.prompt("see"))) == ["fi:t1.a.txt"]
    larger = make.attachment("AGENTS.md", "rule\n" * 4000, standing="rules:AGENTS.md")
    assert "fi:t1.AGENTS.md" in clipped(make.view_of(larger, make.prompt("see")))


@given(
    st.lists(st.lists(st.integers(1, 2500), min_size=1, max_size=3), min_size=1, max_size=5),
    st.integers(500, 3000),
)
def test_a_result_that_fits_is_whole_in_the_first_request_that_shows_it(
    sizes: list[list[int]], window: int
) -> None:
    """And what a request has shown stays as it was, until something is compacted."""
    policy = make.steady(clip_ratio=0.05)
    timeline = make.open_timeline(window=window, policy=policy)
    timeline.user("go")
    rendered = timeline.render()
    for number, round_ in enumerate(sizes):
        uses = [make.tool_use(f"c{number}.{n}") for n in range(len(round_))]
        timeline.record(make.response(*uses, id=f"r{number}"))
        for n, size in enumerate(round_):
            timeline.tool_result(f"c{number}.{n}", "wxyz" * size)
        total = total_tokens(timeline.view, make.context(limit=window, policy=policy))
        before, rendered = make.flat(rendered), timeline.render()
        if total <= int(0.9 * window) - 75:
            assert not [e for e in rendered.decisions if isinstance(e, BlocksHidden)]
        if not rendered.decisions:
            assert make.flat(rendered)[: len(before)] == before


def test_a_compaction_cuts_what_it_keeps_of_results_that_a_request_has_shown() -> None:
    """And leaves whole what no request has shown yet."""
    timeline = make.open_timeline(window=4000, policy=make.steady(clip_ratio=0.05, keep_ratio=0.5))
    timeline.user("go")
    for number, size in enumerate((400, 700, 700, 900)):
        timeline.record(make.response(make.tool_use(f"c{number}"), id=f"r{number}"))
        timeline.tool_result(f"c{number}", f"{number}abc" * size)
        rendered = timeline.render()
        if number < 3:
            assert f"{number}abc" * size in str(rendered.messages)
    timeline.record(make.response(make.tool_use("c4"), id="r4"))
    timeline.tool_result("c4", "4abc" * 300)
    shown = str(timeline.compact().messages)
    assert "4abc" * 300 in shown
    assert "3abc" * 20 in shown
    assert "3abc" * 900 not in shown
    assert "the whole text is at tc:t1.c3.result" in shown


def test_user_text_is_never_clipped() -> None:
    assert clipped(make.view_of(make.prompt(HUGE), make.steer(HUGE), make.note(HUGE))) == []


def test_an_attachment_is() -> None:
    assert clipped(make.view_of(make.prompt("see"), make.attachment("a.txt", HUGE))) == [
        "fi:t1.a.txt"
    ]


def test_what_a_request_has_shown_is_not_clipped_afterwards() -> None:
    """That would rewrite the prefix in the provider's cache."""
    view = make.view_of(make.prompt("go"), make.call("c"), make.result("c", HUGE))
    sent = RequestRendered(id=EventId("r"), at=0.0, content_hash="", tokens=0, shown=view.version)
    shown = commit(view, sent)
    assert clip_oversized(shown, small()) is shown
    grown = fold(
        shown, [(9, make.appended(make.call("d"))), (10, make.appended(make.result("d", HUGE)))]
    )
    assert clipped(grown) == ["tc:t1.d.result"]


def test_a_late_result_is_clipped_and_what_was_shown_beside_it_is_not() -> None:
    calls = [make.call(f"c{n}", response="r") for n in range(2)]
    view = make.view_of(make.prompt("go"), *calls, make.result("c0", HUGE))
    view = commit(view, RequestRendered(id=EventId("r"), at=0.0, content_hash="", tokens=0))
    assert clipped(make.grown(view, make.result("c1", HUGE))) == ["tc:t1.c1.result"]


def test_what_somebody_hid_is_not_clipped_however_long_the_text_that_stands_for_it() -> None:
    result = make.result("c", HUGE)
    masked = Hidden(block=result.id, replacement="y" * 8000)
    hidden = BlocksHidden(id=EventId("h"), at=0.0, hidden=(masked,), reason="requested")
    view = make.view_of(make.prompt("go"), make.call("c"), result, hidden)
    assert clip_oversized(view, small()) is view


@for_each("policy", [{"compaction": False}, {"rungs": ()}])
def test_where_nothing_is_to_be_compacted_nothing_is_clipped(policy: dict[str, Any]) -> None:
    view = make.view_of(make.prompt("go"), make.call("c"), make.result("c", HUGE))
    within = make.context(limit=2000, policy=make.steady(clip_ratio=0.2, **policy))
    assert clip_oversized(view, within) is view


def test_most_of_what_is_kept_is_the_beginning() -> None:
    """Seven tenths: a result says first what it is about."""
    found = cut_text(HUGE, make.CharCounter().count(HUGE), 400, "tc:t1.c.result", small())
    head, tail = re.split(r"\n\[… cut here: .*\]\n", found)
    assert HUGE.startswith(head)
    assert HUGE.endswith(tail)
    assert 0.65 < len(head) / len(head + tail) < 0.75


def test_a_clip_of_something_new_costs_no_thinking_its_place() -> None:
    """Thinking is bound to what stands before it; a new result stands behind."""
    bound = small(model=make.BOUND)
    view = make.view_of(
        make.prompt("go"), make.thought(response="r"), make.call("c", response="r"),
        make.result("c", HUGE),
    )  # fmt: skip
    after = strip_unbound(clip_oversized(view, bound), bound)
    assert len(after.decisions) == 1
    assert "Let me think." in make.text_in(make.shown(after, bound))


@for_each("tokens_max", [0, 1, 20, 40, 100, 400])
def test_a_cut_text_is_never_larger_than_asked_for_unless_only_the_marker_is_left(
    tokens_max: int,
) -> None:
    found = cut_text(HUGE, make.CharCounter().count(HUGE), tokens_max, "tc:t1.c.result", small())
    assert "tc:t1.c.result" in found
    assert make.CharCounter().count(found) <= max(tokens_max, 30)


@given(st.text(max_size=3000), st.integers(0, 500))
def test_cutting_never_fails_and_always_says_where_the_rest_is(text: str, tokens_max: int) -> None:
    found = cut_text(text, make.CharCounter().count(text), tokens_max, "ar:t1.x", small())
    assert "ar:t1.x" in found
