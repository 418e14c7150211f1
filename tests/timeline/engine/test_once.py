"""What comes from somewhere else is appended once, however often and by whomever it is delivered."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blocks import AlreadyRecordedError, Block, BlockAppended, UsageRecorded, encode_block
from persistence import MemoryStore
from persistence._store import BlockIndex
from tests._builders import Ids, call, header, opaque, open_timeline, prompt, said, steady
from tests._table import for_each
from timeline import Timeline

LONG = "Look at the files. " * 40


def opened(store: MemoryStore, prefix: str = "") -> Timeline:
    return open_timeline(store=store, ids=Ids(prefix), window=400, policy=steady())


def sources(timeline: Timeline) -> list[str]:
    blocks = (e.block for _, e in timeline.events() if isinstance(e, BlockAppended))
    return [block.source for block in blocks if block.source]


def test_a_block_without_a_source_is_stored_as_ever() -> None:
    assert b"source" not in encode_block(prompt("hi"))
    assert b'"source":"m1"' in encode_block(replace(prompt("hi"), source="m1"))


def test_appending_a_source_again_changes_nothing_and_says_so() -> None:
    timeline = open_timeline()
    first = timeline.append(replace(prompt("hi"), source="m1"), replace(said("ho"), source="m2"))
    assert (first, first.known) == (2, {})
    again = timeline.append(replace(prompt("hi"), source="m1"))
    assert (again, again.known, timeline.version) == (2, {"m1": 1}, 2)
    partly = timeline.append(replace(said("ho"), source="m2"), replace(said("more"), source="m3"))
    assert (partly, partly.known) == (3, {"m2": 2})
    assert sources(timeline) == ["m1", "m2", "m3"]


def test_blocks_of_one_source_are_appended_together() -> None:
    timeline = open_timeline()
    both: list[Block] = [replace(said("a"), source="m1"), replace(call("c"), source="m1")]
    assert timeline.append(*both) == 2
    assert timeline.append(*both).known == {"m1": 2}


def test_a_field_of_a_kind_of_ones_own_is_no_source() -> None:
    timeline = open_timeline()
    for _ in range(2):
        timeline.append(opaque("acme.mail", source="email", text="hi"))
    assert timeline.version == 2


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), max_size=30))
def test_each_source_is_there_once_through_compactions_and_reopening(
    steps: list[tuple[int, bool, bool]],
) -> None:
    store, wanted = MemoryStore(), list[str]()
    timeline = opened(store)
    for number, (source, render, reopen) in enumerate(steps):
        turn, name = f"t{number}", f"m{source}"
        block = replace(prompt(LONG, turn), source=name)
        known = timeline.append(replace(header(turn), source=name), block).known
        assert (name in known) == (name in wanted)
        wanted += [] if known else [name, name]
        if render:
            timeline.render()
        if reopen:
            timeline = opened(store, f"{number}-")
    assert sources(timeline) == wanted


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), max_size=24))
def test_a_response_is_recorded_once_through_compactions_and_reopening(
    steps: list[tuple[int, bool, bool]],
) -> None:
    """Whatever ids the server gives: it may give one id to several responses."""
    store, done = MemoryStore(), set[int]()
    timeline = opened(store)
    timeline.user("go")
    for number, (response, render, reopen) in enumerate(steps):
        content = [{"type": "text", "text": f"{LONG}{response}"}]
        usage = {"input_tokens": 10 + response}
        try:
            timeline.record({"id": f"msg_{response % 3}", "content": content, "usage": usage})
            assert response not in done
            done.add(response)
        except AlreadyRecordedError:
            assert response in done
        if render:
            timeline.render()
        if reopen:
            timeline = opened(store, f"{number}-")
    assert len(sources(timeline)) == len(set(sources(timeline))) == len(done)
    used = [e for _, e in timeline.events() if isinstance(e, UsageRecorded)]
    assert [each.response for each in used] == sources(timeline)
    assert timeline.render().violations == ()


def test_an_answer_to_a_request_that_showed_its_like_is_another_one() -> None:
    """Some servers give each response the same id, and a model may say the same again."""
    timeline = opened(MemoryStore())
    answer = {"id": "msg_0", "content": [{"type": "text", "text": "Done."}]}
    for prompt_text in ("one", "two", "three"):
        timeline.user(prompt_text)
        rendered = timeline.render()
        timeline.record(answer, rendered)
        with pytest.raises(AlreadyRecordedError, match="'msg_0' is already recorded"):
            timeline.record(answer, rendered)
    own = sources(timeline)
    assert own[0] == "msg_0"
    assert len(set(own)) == 3
    assert timeline.view.state.rounds == 3


def test_the_own_id_of_a_response_depends_on_the_log_alone() -> None:
    def ids(prefix: str) -> list[str]:
        timeline = opened(MemoryStore(), prefix)
        timeline.user("go")
        for words in ("a", "b", "c"):
            timeline.record({"id": "msg_0", "content": [{"type": "text", "text": words}]})
        return sources(timeline)

    assert ids("x-") == ids("y-")


def test_two_who_append_the_same_source_append_it_once() -> None:
    store = MemoryStore()
    both = [opened(store, "a-"), opened(store, "b-")]
    for number in range(30):
        block = replace(prompt("hi", f"t{number}"), source=f"m{number}")
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Timeline.append, both, [block, block]))
    assert sources(both[0]) == [f"m{number}" for number in range(30)]


def test_what_is_new_is_looked_for_in_no_history() -> None:
    class Counting(MemoryStore):
        """Counts what is read of a store besides windows and heads."""

        asked = 0

        def read(self, *given: Any, **named: Any) -> Any:
            self.asked += 1
            return super().read(*given, **named)

        def block_index(self) -> BlockIndex:
            self.asked += 1
            return super().block_index()

    counting = Counting()
    timeline = open_timeline(store=counting, ids=Ids(), window=400, policy=steady())
    counting.asked = 0
    for number in range(60):
        timeline.append(replace(prompt(LONG, f"t{number}"), source=f"m{number}"))
        timeline.render()
    assert timeline.view.compaction is not None
    assert counting.asked == 0
    assert timeline.append(replace(prompt(LONG, "t60"), source="m0")).known == {"m0": 1}


@for_each("name", ["anthropic", None])
def test_what_a_model_said_names_the_response_that_it_came_in(name: str | None) -> None:
    timeline = open_timeline()
    timeline.user("go")
    content = [{"type": "text", "text": "ok"}, {"type": "tool_use", "id": "c", "name": "f"}]
    timeline.record({"id": "msg_1", "content": content}, format=name)  # type: ignore[arg-type]
    assert sources(timeline) == ["msg_1", "msg_1"]
