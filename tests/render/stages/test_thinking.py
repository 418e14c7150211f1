"""Thinking: whole and verbatim, or not at all; once gone it never comes back."""

from collections.abc import Iterator
from typing import Any

import attrs

from blocks import Block, BlockId, BlocksHidden, EventId, RangeExpanded, RequestRendered
from render import Context, Rendered, View, commit
from render.stages._visibility import strip_unbound
from tests import _builders as make
from tests._builders import BOUND, context, grown
from tests.render.compaction.talk import compacted
from tests.render.providers.plain import plain_text


def rounds(number: int, turn: str = "t1", first: int = 0) -> Iterator[Block]:
    for n in range(first, first + number):
        thinking = {"type": "thinking", "thinking": f"thought {n}", "signature": "c2ln"}
        yield make.thought(turn, f"r{n}", thinking)
        yield make.call(f"call_{n}", turn, f"r{n}")
        yield make.result(f"call_{n}", f"result {n} " + "x" * 2000, turn)


def hide(view: View, path: str) -> View:
    block = next(e.block.id for e in view.entries if e.path == path)
    return hide_id(view, block)


def hide_id(view: View, block: BlockId) -> View:
    from blocks import Hidden

    hidden = (Hidden(block=block, replacement="[gone]"),)
    return commit(view, BlocksHidden(id=EventId("h"), at=0.0, hidden=hidden, reason="requested"))


def thoughts(view: View, within: Context) -> list[str]:
    rendered: Rendered = make.shown(strip_unbound(view, within), within)
    return [
        c["thinking"] for m in rendered.messages for c in m["content"] if c["type"] == "thinking"
    ]


def numbered(*numbers: int) -> list[str]:
    return [f"thought {n}" for n in numbers]


def test_as_long_as_nothing_is_rewritten_all_of_it_stays() -> None:
    view = make.view_of(make.prompt("go"), *rounds(4))
    assert thoughts(view, context(model=BOUND)) == numbered(0, 1, 2, 3)


def test_where_it_is_bound_it_goes_behind_a_rewrite_and_stays_before_it() -> None:
    view = hide(make.view_of(make.prompt("go"), *rounds(4)), "tc:t1.call_1.result")
    assert thoughts(view, context(model=BOUND)) == numbered(0, 1)
    assert thoughts(view, context()) == numbered(0, 1, 2, 3)


def test_a_restore_is_a_rewrite_too() -> None:
    from blocks import BlocksRestored

    view = make.view_of(make.prompt("go"), *rounds(2))
    result_id = next(e.block.id for e in view.entries if e.path == "tc:t1.call_0.result")
    view = grown(hide_id(view, result_id), *rounds(2, first=2))
    view = commit(view, BlocksRestored(id=EventId("r"), at=0.0, blocks=(result_id,)))
    assert thoughts(view, context(model=BOUND)) == numbered(0)


def test_what_is_thought_after_the_rewrite_stays() -> None:
    within = context(model=BOUND)
    view = hide(make.view_of(make.prompt("go"), *rounds(2)), "tc:t1.call_0.result")
    view = grown(strip_unbound(view, within), *rounds(2, first=2))
    assert thoughts(view, within) == numbered(0, 2, 3)


def test_the_stripping_is_an_event_and_happens_once() -> None:
    within = context(model=BOUND)
    view = hide(make.view_of(make.prompt("go"), *rounds(3)), "tc:t1.call_0.result")
    stripped = strip_unbound(view, within)
    [event] = stripped.decisions
    assert isinstance(event, BlocksHidden)
    assert event.reason == "unsigned"
    assert len(event.hidden) == 2
    assert strip_unbound(stripped.settled(), within) == stripped.settled()


def test_once_stripped_it_does_not_come_back_with_another_model() -> None:
    view = hide(make.view_of(make.prompt("go"), *rounds(3)), "tc:t1.call_0.result")
    stripped = strip_unbound(view, context(model=BOUND)).settled()
    assert thoughts(stripped, context()) == numbered(0)


def test_a_compaction_rewrites_everything_that_is_kept() -> None:
    within = context(limit=10_000, model=BOUND)
    view = make.view_of(make.prompt("go"), *rounds(10))
    after = compacted(view, within, keep=0.4)
    assert len(after.entries) > 4
    assert thoughts(after, within) == []
    assert thoughts(grown(strip_unbound(after, within), *rounds(1, first=77)), within) == numbered(
        77
    )


def test_behind_a_compaction_only_what_is_rewritten_counts() -> None:
    """Hiding a kept block changes nothing before it; hiding what was carried changes everything."""
    within = context(limit=10_000, model=BOUND)
    after = compacted(make.view_of(make.prompt("go"), *rounds(10)), within, keep=0.4)
    view = grown(strip_unbound(after, within), *rounds(4, first=20))
    assert thoughts(view, within) == numbered(20, 21, 22, 23)
    assert thoughts(hide(view, "tc:t1.call_21.result"), within) == numbered(20, 21)
    assert thoughts(hide_id(view, BlockId("unknown")), within) == numbered(20, 21, 22, 23)
    assert view.compaction
    carried = view.compaction.head.entries[0].block.id
    assert thoughts(hide_id(view, carried), within) == []


def test_a_loop_that_the_cut_went_through_loses_its_thinking_on_every_model() -> None:
    """Complete, or the whole loop's goes; that of other turns may stay where it is not bound."""
    within = context(limit=10_000)
    split = compacted(make.view_of(make.prompt("go"), *rounds(10)), within, keep=0.4)
    assert thoughts(split, within) == []
    blocks = [make.prompt("one", "t1"), *rounds(8, "t1"), make.prompt("two", "t2")]
    view = make.view_of(*blocks, *rounds(2, "t2", 8))
    cuts = [compacted(view, within, keep=share / 400) for share in range(30, 60)]
    whole = next(cut for cut in cuts if cut.entries[0].path == "ar:t2.user.prompt")
    assert thoughts(whole, within) == numbered(8, 9)


def test_a_provider_without_rules_for_thinking_loses_none() -> None:
    """Behind a rewrite, behind a cut through the loop, with a model that binds it elsewhere."""
    within = context(limit=10_000, model=BOUND)
    free = attrs.evolve(within, provider=plain_text(name="plain"))
    hidden = hide(make.view_of(make.prompt("go"), *rounds(4)), "tc:t1.call_1.result")
    split = compacted(make.view_of(make.prompt("go"), *rounds(10)), free, keep=0.4)
    for view in (hidden, split):
        assert strip_unbound(view, free) is view
        assert strip_unbound(view, within) is not view


def test_undoing_a_compaction_is_a_rewrite() -> None:
    within = context(model=BOUND)
    view = make.view_of(make.prompt("go"), *rounds(3))
    view = commit(view, RangeExpanded(id=EventId("x"), at=0.0, compaction=99))
    assert thoughts(view, within) == []


def test_the_clip_of_a_new_result_rewrites_nothing() -> None:
    """It happens before the result is first shown, so the cache stays warm and thinking whole."""
    timeline = make.open_timeline(model=BOUND, window=6000)
    timeline.user("go")
    timeline.record(make.response(dict(make.SIGNED), make.tool_use("a"), id="r1"))
    timeline.tool_result("a", "small")
    before = make.flat(timeline.render())
    timeline.record(make.response(dict(make.SIGNED), make.tool_use("b"), id="r2"))
    timeline.tool_result("b", "huge " * 8000)
    after = timeline.render()
    assert "cut here" in make.text_in(after)
    assert make.flat(after)[: len(before)] == before
    assert make.text_in(after).count("Let me think.") == 2


def test_without_thinking_nothing_has_to_be_decided() -> None:
    view = hide(make.view_of(make.prompt("go"), *rounds(3)), "tc:t1.call_0.result")
    off = context(model=BOUND, keep_thinking=False)
    assert strip_unbound(view, off) is view
    assert thoughts(view, off) == []


def test_sealing_and_stripping_agree() -> None:
    """A request that showed a round does not stop its thinking from being stripped later."""
    within: Any = context(model=BOUND)
    view = make.view_of(make.prompt("go"), *rounds(3))
    sent = RequestRendered(id=EventId("s"), at=0.0, content_hash="", tokens=0, shown=view.version)
    view = hide(commit(view, sent), "tc:t1.call_0.result")
    assert thoughts(view, within) == numbered(0)
