"""The registry: what a fold finds without looking is what looking would have found."""

from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    AssistantThinking,
    Block,
    BlocksHidden,
    BlocksRestored,
    CallId,
    EventId,
    Hidden,
    Naming,
    RequestRendered,
    ToolCall,
)
from render import Entry, View, commit, fold
from render.view._view import Registry
from tests import _builders as make

Item: TypeAlias = Block | RequestRendered
names = st.sampled_from(("a", "b", "b_3", "c d"))
turns = st.sampled_from(("t1", "t2"))
logs = st.lists(
    st.one_of(
        st.builds(make.call, names, turns, st.sampled_from(("", "r1", "r2"))),
        st.builds(make.result, names, turn=turns),
        st.builds(make.thought, turns),
        st.builds(make.said, st.just("so"), turns),
        st.builds(make.note, st.just("keep"), turns),
        st.builds(make.prompt, st.just("go"), turns),
        st.builds(
            RequestRendered,
            id=st.just(EventId("q")),
            at=st.just(0.0),
            content_hash=st.just(""),
            tokens=st.just(0),
            sent=st.sampled_from(("", "s1", "s2")),
        ),
    ),
    max_size=25,
)


def seen(view: View) -> list[tuple[object, ...]]:
    return [
        (e.version, e.path, e.place, e.pair, e.round, e.replacement, e.unbound)
        for e in view.entries
    ]


def one_by_one(view: View, log: list[Item]) -> View:
    for item in log:
        event = item if isinstance(item, RequestRendered) else make.appended(item)
        view = fold(view, [(view.version + 1, event)])
    return view


def blocks_of(log: list[Item]) -> list[Block]:
    return [item for item in log if not isinstance(item, RequestRendered)]


@given(logs)
def test_block_by_block_or_all_at_once_is_the_same(log: list[Item]) -> None:
    assert seen(one_by_one(View(), log)) == seen(make.view_of(*log))


@given(logs, logs, logs)
def test_views_that_go_on_from_one_view_do_not_feel_each_other(
    log: list[Item], one: list[Item], other: list[Item]
) -> None:
    start = one_by_one(View(), log)
    first, second = one_by_one(start, one), one_by_one(start, other)
    assert seen(first) == seen(make.view_of(*log, *one))
    assert seen(second) == seen(make.view_of(*log, *other))
    assert seen(one_by_one(first, other)) == seen(make.view_of(*log, *one, *other))


@given(logs, st.data())
def test_a_hide_and_its_undoing_find_all_that_they_name(
    log: list[Item], data: st.DataObject
) -> None:
    start = make.view_of(*log)
    blocks = data.draw(
        st.lists(st.sampled_from([b.id for b in blocks_of(log)]), max_size=3)
        if blocks_of(log)
        else st.just([])
    )
    hidden = tuple(Hidden(block=block, replacement="gone") for block in blocks)
    event = BlocksHidden(id=EventId("h"), at=0.0, hidden=hidden, reason="cleared")
    after = commit(start, event)
    assert {e.block.id for e in after.entries if e.replacement == "gone"} == set(blocks)
    first = min((e.version for e in start.entries if e.block.id in blocks), default=None)
    for before, entry in zip(start.entries, after.entries, strict=True):
        is_thought = isinstance(entry.block, AssistantThinking)
        is_behind = is_thought and first is not None and entry.version > first
        assert entry.unbound == (before.unbound or is_behind)
    back = commit(after, BlocksRestored(id=EventId("r"), at=0.0, blocks=tuple(blocks)))
    assert not any(e.replacement for e in back.entries)


@given(logs)
def test_everything_is_found_by_path_and_by_id(log: list[Item]) -> None:
    view = make.view_of(*log)
    oldest: dict[str, Entry] = {}
    for entry in view.entries:
        assert view.find(entry.path) is entry
        oldest.setdefault(entry.block.id, entry)
    assert all(view.find(key) is entry for key, entry in oldest.items())
    assert view.find("ar:t9.user.prompt") is None
    calls = {b.call_id: b.turn for b in blocks_of(log) if isinstance(b, ToolCall)}
    assert {call: view.turn_of(call) for call in calls} == calls
    assert view.turn_of(CallId("none")) is None


def test_an_older_view_finds_nothing_that_came_later() -> None:
    start = make.view_of(make.prompt("go"), make.call("a"))
    later = make.grown(start, make.result("a"), make.call("b"))
    assert later.find("tc:t1.a.result") is not None
    assert start.find("tc:t1.a.result") is None
    assert start.turn_of(CallId("b")) is None


def test_a_fold_that_failed_half_way_leaves_no_trace() -> None:
    start = make.view_of(make.prompt("go"), make.call("a"))
    with pytest.raises(ZeroDivisionError):
        fold(start, ((3 // n, make.appended(make.result("a"))) for n in (1, 0)))
    assert seen(make.grown(start, make.result("a"))) == seen(
        make.view_of(make.prompt("go"), make.call("a"), make.result("a"))
    )


def test_of_many_threads_one_gets_it() -> None:
    registry = Registry.of(make.view_of(make.prompt("go")).groups, Naming())
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(registry.claim, [1] * 200))
    assert got.count(True) == 1


def test_calls_of_one_id_have_ids_that_a_provider_takes_after_a_compaction_too() -> None:
    """Made unique by their own version, however many there are."""
    timeline = make.open_timeline(policy=make.steady(keep_messages=200, keep_ratio=0.1))
    timeline.user("go")
    for number in range(150):
        timeline.record(make.response(make.tool_use("same"), id=f"m{number}"))
        timeline.tool_result("same", f"result {number}")
    before = {e.version: e.pair for e in timeline.view.entries if e.pair}
    assert timeline.compact().violations == ()
    after = {e.version: e.pair for e in timeline.view.entries if e.pair}
    assert 100 < len(after) < len(before)
    assert len(set(after.values())) == len(after) // 2
    assert max(map(len, after.values())) <= 64
