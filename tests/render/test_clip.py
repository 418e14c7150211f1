"""Clipping: what alone would crowd out everything else is cut before it is first shown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import BlocksHidden, EventId, RequestRendered
from render import Context, View, clip_oversized, commit, fold, strip_unbound
from render._clip import cut_text
from tests import _builders as make

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
    assert make.CharCounter().count(text) < 600


def test_one_event_tells_of_all_and_why() -> None:
    calls = [make.call(f"c{n}", response="r") for n in range(3)]
    results = [make.result(f"c{n}", HUGE) for n in range(3)]
    after = clip_oversized(make.view_of(make.prompt("go"), *calls, *results), small())
    [event] = after.decisions
    assert isinstance(event, BlocksHidden)
    assert event.reason == "clipped"
    assert len(event.hidden) == 3


def test_one_result_has_its_share_and_all_of_a_round_twice_that() -> None:
    """What the small ones leave is for the large."""
    sizes = {"c1": 100, "c2": 900, "c3": 2400, "c4": 2400}
    calls = [make.call(call_id, response="r") for call_id in sizes]
    results = [make.result(call_id, "x" * size) for call_id, size in sizes.items()]
    after = clip_oversized(make.view_of(make.prompt("go"), *calls, *results), small())
    shown = make.text_in(make.shown(after))
    assert make.CharCounter().count(shown) <= 2 * 0.2 * 2000 + 100
    assert "x" * 900 in shown
    assert [e.path for e in after.entries if e.replacement] == [
        "tc:t1.c3.result",
        "tc:t1.c4.result",
    ]


def test_what_fits_is_left_alone() -> None:
    view = make.view_of(make.prompt("go"), make.call("c"), make.result("c", "x" * 1000))
    assert clip_oversized(view, small()) is view


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


@pytest.mark.parametrize("tokens_max", [0, 1, 20, 40, 100, 400])
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
