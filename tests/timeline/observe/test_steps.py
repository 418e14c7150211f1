"""Whoever watches is told each step of a render: what it was, and the tokens before and after."""

from itertools import pairwise
from typing import Any

import pytest

from blocks import BlocksHidden, RangeCompacted
from persistence import ArtifactDescription, MemoryStore
from tests._builders import Clock, events_of, open_timeline, response, steady, text, tool_use
from timeline import AsyncTimeline, Hooks, Step, Timeline

LADDER = steady(
    rungs=("externalize", "summarize", "clear", "drop"), externalize_tokens=50, pointer_tokens=10
)


def work(timeline: Timeline, rounds: int, size: int = 800) -> None:
    for n in range(timeline.version, timeline.version + rounds):
        timeline.record(response(tool_use(f"c{n}", "bash", command=f"make {n}"), id=f"r{n}"))
        timeline.tool_result(f"c{n}", f"{n} " * (size // 4))


def test_every_rung_that_was_tried_is_a_step_with_its_tokens() -> None:
    steps: list[Step] = []
    timeline = open_timeline(window=4_000, policy=LADDER, observers=[steps.append])
    timeline.user("go")
    work(timeline, 30)
    rendered = timeline.render()
    kinds = [step.kind for step in steps]
    assert kinds[:3] == ["due", "proposed", "externalized"]
    assert kinds[-1] == "rendered"
    due, proposed, first = steps[:3]
    assert due.detail == "proactive"
    assert proposed.detail.startswith("externalize, summarize")
    assert due.tokens_freed == proposed.tokens_freed == 0, "nothing is done yet"
    assert proposed.first <= first.first
    assert proposed.blocks >= first.blocks
    [hidden] = [e for e in events_of(timeline, BlocksHidden) if e.reason == "externalized"]
    assert first.blocks == len(hidden.hidden)
    assert 0 < first.first < first.last <= timeline.version
    assert first.tokens_freed > 0
    for before, after in pairwise(steps):
        assert before.tokens_after == after.tokens_before
    assert steps[-1].tokens_after == rendered.tokens
    assert {step.limit for step in steps} == {4_000}


def test_what_was_due_and_did_not_happen_is_told_as_far_as_it_came() -> None:
    """Vetoed once it was proposed; or there was nothing to propose."""
    steps: list[Step] = []
    watched: dict[str, Any] = {"window": 9_000, "observers": [steps.append]}
    timeline = open_timeline(hooks=Hooks(on_before_compaction=[lambda _: False]), **watched)
    timeline.user("go")
    work(timeline, 12)
    timeline.compact()
    assert [step.kind for step in steps] == ["due", "proposed", "skipped", "rendered"]
    steps.clear()
    full = open_timeline(policy=steady(rungs=("clear",)), **watched)
    full.user("go")
    full.render(system="word " * 9_000)
    assert [step.kind for step in steps] == ["due", "skipped", "rendered"]


def test_where_nothing_is_due_nothing_is_said_of_it() -> None:
    steps: list[Step] = []
    timeline = open_timeline(observers=[steps.append])
    timeline.user("go")
    timeline.render()
    assert [step.kind for step in steps] == ["rendered"]


def test_a_fold_is_a_step_with_its_range_and_trigger() -> None:
    steps: list[Step] = []
    timeline = open_timeline(window=4_000, observers=[steps.append])
    timeline.user("go")
    work(timeline, 30)
    timeline.compact()
    [fold] = [step for step in steps if step.kind == "summarized"]
    [event] = events_of(timeline, RangeCompacted)
    assert (fold.first, fold.last, fold.detail) == (event.start, event.cut - 1, "forced")
    assert fold.tokens_after == event.tokens_after
    assert fold.blocks == event.summary.digest.blocks


def test_what_comes_back_is_a_step() -> None:
    steps: list[Step] = []
    store = MemoryStore()
    timeline = open_timeline(store=store, observers=[steps.append])
    about = ArtifactDescription(timeline=timeline.id)
    artifact = store.artifacts(clock=Clock()).put(b"the report", about)
    timeline.user("go")
    timeline.record(response(text(f"see {artifact}"), tool_use("c", "ls"), id="r"))
    timeline.tool_result("c", "ok")
    timeline.render()
    [step] = [step for step in steps if step.kind == "rehydrated"]
    assert (step.blocks, step.detail) == (1, artifact)
    assert step.tokens_after - step.tokens_before == timeline.view.state.tokens - step.tokens_before


def test_nothing_that_an_observer_raises_changes_anything(caplog: pytest.LogCaptureFixture) -> None:
    def broken(step: Step) -> None:
        raise RuntimeError(step.kind)

    timeline = open_timeline(observers=[broken])
    timeline.user("go")
    assert timeline.render().violations == ()
    assert "failed" in caplog.text


async def told_async() -> list[str]:
    kinds: list[str] = []

    async def observer(step: Step) -> None:
        kinds.append(step.kind)

    timeline = await AsyncTimeline.open("talk", clock=Clock(), observers=[observer], window=9_000)
    await timeline.user("go")
    await timeline.render()
    return kinds


def test_an_async_timeline_awaits_its_observers() -> None:
    import asyncio

    assert asyncio.run(told_async()) == ["rendered"]
