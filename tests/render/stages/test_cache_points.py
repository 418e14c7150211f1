"""Cache points: three positions, found again by the next request, never more than the provider takes."""

from collections.abc import Iterator
from typing import Any

import attrs

from blocks import Block, EventId, RequestRendered, TextPart
from render import Rendered, View, commit, handed_out, total_tokens, validate_request
from tests import _builders as make
from tests._builders import LOOSE, context, steady
from tests._table import for_each
from tests.render.compaction.talk import compacted, turns

SYSTEM = ({"type": "text", "text": "You help."},)
TOOLS = ({"name": "bash", "input_schema": {"type": "object"}},)


def rounds(number: int, turn: str = "t1", first: int = 0) -> Iterator[Block]:
    for n in range(first, first + number):
        yield make.call(f"call_{n}", turn, f"r{n}", step=n)
        yield make.result(f"call_{n}", f"result {n}", turn)


def points(rendered: Rendered) -> dict[str, int]:
    return {point.reason: point.version for point in rendered.cache_points}


def marked(rendered: Rendered) -> list[Any]:
    """Every block of the request that carries a mark."""
    request = rendered.request()
    parts = [*request.get("tools", ()), *request.get("system", ())]
    parts += [content for m in request["messages"] for content in m["content"]]
    return [part for part in parts if "cache_control" in part]


def after_request(view: View, rendered: Rendered) -> View:
    return commit(view, handed_out(rendered, make.context()))


def test_the_three_points_of_a_request() -> None:
    """Last block of the turn before, last block of round N-4, last block of all."""
    view = make.view_of(
        make.prompt("first", "t1"), make.said("done", "t1"),  # 1, 2
        make.header("t2"), make.prompt("second", "t2"),  # 3, 4
        *rounds(6, "t2"),  # 5 to 16
    )  # fmt: skip
    assert points(make.shown(view)) == {"previous turn": 2, "pre-tail": 8, "tail": 16}


def test_the_pre_tail_needs_enough_rounds() -> None:
    for number in (1, 4, 5):
        assert "pre-tail" not in points(
            make.shown(make.view_of(make.prompt("go"), *rounds(number)))
        )
    few = context(policy=steady(cache_point_min_rounds=5))
    assert points(make.shown(make.view_of(make.prompt("go"), *rounds(5)), few)) == {
        "pre-tail": 3,
        "tail": 11,
    }


def test_it_needs_a_round_to_stand_on() -> None:
    """Round N-4 is there from the fifth round on, however few rounds the policy asks for."""
    eager = context(policy=steady(cache_point_min_rounds=1))
    for number, there in ((4, {"tail": 9}), (5, {"pre-tail": 3, "tail": 11})):
        view = make.view_of(make.prompt("go"), *rounds(number))
        assert points(make.shown(view, eager)) == there


def test_its_distance_from_the_tail_is_policy() -> None:
    near = context(policy=steady(cache_point_offset_rounds=1))
    view = make.view_of(make.prompt("go"), *rounds(8))
    assert points(make.shown(view, near)) == {"pre-tail": 15, "tail": 17}


def test_a_single_turn_has_no_previous_one() -> None:
    assert points(make.shown(make.view_of(make.prompt("go"), make.said("yes")))) == {"tail": 2}


def test_a_turn_that_has_only_begun_has_its_previous_one_at_the_tail() -> None:
    view = make.view_of(make.prompt("go", "t1"), *rounds(1), make.header("t2"))
    assert points(make.shown(view)) == {"tail": 3}


def test_an_empty_log_has_none() -> None:
    assert make.shown(make.view_of()).cache_points == ()


def test_points_that_fall_together_are_one() -> None:
    view = make.view_of(make.prompt("a", "t1"), make.said("b", "t1"), make.prompt("", "t2"))
    assert len(make.shown(view).cache_points) <= 2


def test_after_a_compaction_the_points_are_those_of_what_is_visible() -> None:
    after = compacted(make.view_of(*turns(4)), context(), keep=0.0)
    rendered = make.shown(after)
    assert rendered.violations == ()
    assert points(rendered)["tail"] == after.entries[-1].version
    assert all(point.piece < 3 for point in rendered.cache_points)


def test_no_point_stands_on_thinking() -> None:
    view = make.view_of(
        make.prompt("a", "t1"), make.said("b", "t1", "r1"), make.thought("t1", "r1"),
        make.prompt("c", "t2"),
    )  # fmt: skip
    for mark in marked(make.shown(view)):
        assert mark["type"] not in {"thinking", "redacted_thinking"}


def test_under_the_minimum_of_the_provider_there_are_none() -> None:
    view = make.view_of(make.prompt("x" * 4000, "t1"), make.said("y"), make.prompt("z", "t2"))
    strict = attrs.evolve(LOOSE, cache_tokens_min=1020)
    assert points(make.shown(view, context(model=strict))) == {}
    system = ({"type": "text", "text": "s" * 80},)
    assert "tail" in points(make.shown(view, context(model=strict, system=system)))


@for_each("system", [(), SYSTEM])
def test_a_prefix_of_exactly_the_minimum_is_cached(system: Any) -> None:
    """Each point by its own prefix: system, tools and the messages up to it."""
    first = [make.prompt("x" * 4000, "t1"), *rounds(1, "t1", first=9)]
    rest = [make.prompt("z" * 400, "t2"), *rounds(7, "t2")]
    whole = make.view_of(*first, *rest)
    tokens = {
        "previous turn": total_tokens(make.view_of(*first), context(system=system)),
        "pre-tail": total_tokens(make.view_of(*first, *rest[:-8]), context(system=system)),
        "tail": total_tokens(whole, context(system=system)),
    }
    for n, (reason, minimum) in enumerate(tokens.items()):
        for more, there in ((0, list(tokens)[n:]), (1, list(tokens)[n + 1 :])):
            model = attrs.evolve(LOOSE, cache_tokens_min=minimum + more)
            found = points(make.shown(whole, context(model=model, system=system)))
            assert list(found) == there, reason


@for_each(("system", "tools"), [(SYSTEM, TOOLS), (SYSTEM, ()), ((), TOOLS), ((), ())])
@for_each("ttl", ["5m", "1h"])
def test_never_more_than_three_and_one(system: Any, tools: Any, ttl: Any) -> None:
    """The fourth stands at the end of system, or of the tools without one, with a life of its own."""
    fixed = context(system=system, tools=tools, policy=steady(system_ttl=ttl))
    view = make.view_of(
        make.prompt("a", "t1"), make.said("b", "t1"), make.prompt("c", "t2"), *rounds(9, "t2")
    )
    rendered = make.shown(view, fixed)
    assert len(rendered.cache_points) == 3
    found = marked(rendered)
    assert len(found) == 3 + bool(system or tools)
    assert validate_request(rendered.anthropic(max_tokens=10)) == ()
    if system or tools:
        wanted = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": "1h"}
        assert found[0]["cache_control"] == wanted


def test_marks_of_the_caller_are_not_kept() -> None:
    """Where they go is ours to say."""
    timeline = make.open_timeline()
    timeline.user("hi")
    marks = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": f"part {n}", **marks} for n in range(6)]
    rendered = timeline.render(system=system, tools=[{**TOOLS[0], **marks}])
    assert len(marked(rendered)) == 2
    assert rendered.violations == ()


# What is laid down: standing instructions and the user's words, before the summary.


def compacted_view() -> View:
    """A compaction, and enough after it for all the other points."""
    before = make.view_of(*turns(4), make.prompt("go on", "t8"))
    after = compacted(before, context(), keep=0.0)
    return make.grown(after, *rounds(2, "t8"), make.prompt("and on", "t9"), *rounds(9, "t9", 20))


@for_each("system", [(), SYSTEM])
def test_behind_a_compaction_the_users_words_have_a_point_of_their_own(system: Any) -> None:
    """They stay in the cache when the summary behind them is written anew. There are four marks in all."""
    rendered = make.shown(compacted_view(), context(system=system))
    laid_down, *others = rendered.cache_points
    assert (laid_down.reason, laid_down.piece) == ("laid down", 0)
    assert [point.reason for point in others] == ["pre-tail", "tail"]
    assert len(marked(rendered)) == 3 + bool(system)
    assert "earlier-message" in marked(rendered)[-3]["text"]
    assert rendered.violations == ()


@for_each("system", [(), SYSTEM])
def test_words_too_short_to_be_cached_have_none(system: Any) -> None:
    view = compacted_view()
    within = context(system=system)
    spots = within.encoder.pieces(view.shown)[0].spots
    assert view.compaction
    said = sum(
        spot.tokens for spot in spots if spot.version and spot.version < view.compaction.event.cut
    )
    minimum = said + within.prefix.tokens
    for more, there in ((0, True), (1, False)):
        strict = context(system=system, model=attrs.evolve(LOOSE, cache_tokens_min=minimum + more))
        assert ("laid down" in points(make.shown(view, strict))) is there


# Found again.


def positions(rendered: Rendered, older: Any, newer: Any) -> int:
    """From one content block back to another, as the provider counts: a run of tool uses, or of
    results, is one position, and the newer one's own is the first.
    """
    contents = [make.unmarked(c) for m in rendered.messages for c in m["content"]]
    one, two = contents.index(older), contents.index(newer)
    count, last = 0, ""
    for content in reversed(contents[one : two + 1]):
        kind = content["type"]
        count += kind != last or kind not in {"tool_use", "tool_result"}
        last = kind
    return count


def tails(rendered: Rendered) -> list[Any]:
    messages = rendered.messages
    return [make.unmarked(c) for m in messages for c in m["content"] if "cache_control" in c]


@for_each("steps", [1, 3, 8, 12, 30])
@for_each("size", [1, 4])
def test_two_requests_find_each_other_however_much_came_in_between(steps: int, size: int) -> None:
    """If the last tail would fall out of the look-back of 20 positions, a point is left on it."""
    view = make.view_of(make.prompt("go"), *rounds(3))
    before = make.shown(view)
    view = after_request(view, before)
    blocks: list[Block] = []
    for n in range(10, 10 + steps):
        blocks += [make.said(f"text {n}.{i}", response=f"r{n}") for i in range(size)]
        blocks += [
            make.call(f"call_{n}", response=f"r{n}"),
            make.result(f"call_{n}", f"result {n}"),
        ]
    view = make.grown(view, *blocks)
    after = make.shown(view)
    [*_, old_tail] = tails(before)
    assert any(positions(after, old_tail, new) <= 20 for new in tails(after))


def test_a_point_is_left_on_the_last_tail_from_the_21st_position_on_and_not_before() -> None:
    """Every text is a position; the newest one's own is the first."""
    view = make.view_of(make.prompt("go"), *rounds(1))
    view = after_request(view, make.shown(view))
    for more in range(1, 25):
        later = make.grown(view, *(make.steer(f"more {n}") for n in range(more)))
        found = points(make.shown(later))
        assert found == ({"tail": 4 + more} if more < 20 else {"pre-tail": 3, "tail": 4 + more})


@for_each(("more", "there"), [(1, False), (2, True)])
def test_positions_are_counted_through_the_rounds(more: int, there: bool) -> None:  # noqa: FBT001 -- a table
    """A round of text, call and result has three, so that six rounds and two texts are twenty."""
    view = make.view_of(make.prompt("go"), *rounds(1))
    view = after_request(view, make.shown(view))
    blocks = [
        block
        for n in range(10, 16)
        for block in (make.said("I go on.", response=f"r{n}"), *rounds(1, first=n))
    ]
    later = make.grown(view, *blocks, *(make.steer(f"more {n}") for n in range(more)))
    few = context(policy=steady(cache_point_min_rounds=50))
    assert points(make.shown(later, few)).get("pre-tail") == (3 if there else None)


def test_it_is_left_on_the_last_content_of_the_block_that_had_it() -> None:
    view = make.view_of(make.prompt("go", "t1", TextPart(text="one"), TextPart(text="two")))
    before = make.shown(view)
    view = after_request(view, before)
    after = make.shown(make.grown(view, *(make.steer(f"more {n}") for n in range(30))))
    assert tails(before)[-1] in tails(after)
    assert len(tails(after)) == 2


def test_before_the_first_request_there_is_no_last_tail() -> None:
    """Not even the summary, which is older than everything."""
    after = compacted(make.view_of(*turns(4)), context(), keep=0.0)
    later = make.grown(after, *(make.steer(f"more {n}", "t3") for n in range(30)))
    assert "pre-tail" not in points(make.shown(later))


def test_a_request_that_is_repeated_has_the_same_points() -> None:
    """Although its own tail is the last one on record by then."""
    view = make.view_of(make.prompt("go"), *rounds(3))
    view = after_request(view, make.shown(view))
    view = make.grown(view, *rounds(15, first=20))
    first = make.shown(view)
    again = make.shown(after_request(view, first))
    assert "pre-tail" in points(first)
    assert make.request_bytes(again) == make.request_bytes(first)


def test_a_long_run_of_parallel_calls_counts_as_one_position() -> None:
    """So the usual place of the pre-tail point is kept."""
    view = make.view_of(make.prompt("go"), *rounds(8))
    view = after_request(view, make.shown(view))
    calls = [make.call(f"p{n}", response="many") for n in range(40)]
    results = [make.result(f"p{n}", "x") for n in range(40)]
    view = make.grown(view, *calls, *results)
    assert points(make.shown(view))["pre-tail"] == 11


def test_the_fact_of_a_request_names_its_points_and_its_tail_last() -> None:
    view = make.view_of(
        make.prompt("a", "t1"), make.said("b", "t1"), make.prompt("c", "t2"), *rounds(6, "t2")
    )
    rendered = make.shown(view)
    event = handed_out(rendered, make.context(now=5.0))
    assert event.cache_points == tuple(p.version for p in rendered.cache_points)
    assert commit(view, event).state.tail == view.version
    assert isinstance(event, RequestRendered)
    assert event.id == EventId("")
