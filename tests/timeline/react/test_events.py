"""A run as an iterator of its events: what comes in which order, and that closing it stops the run cleanly."""

import asyncio
import inspect
import threading
import time
from itertools import groupby, islice
from typing import Any

import pytest

from blocks import ToolCall, ToolResult, UserPrompt
from persistence import MemoryStore
from tests._practice import Practice
from tests._sizes import PATIENCE, until
from tests._table import for_each
from timeline import AsyncReactAgent, AsyncTimeline, ReactAgent, Timeline, tool
from timeline.fake_provider import Call, Fault, Reply
from timeline.react import (
    AgentHooks,
    Outcome,
    SessionStarted,
    StepDone,
    StreamLost,
    TextDelta,
    ToolDone,
    ToolStarted,
)

from .desk import EVERYWHERE, Desk

HERE = ("anthropic", False)


def look(path: str) -> str:
    """Look."""
    return f"text of {path}"


LOOK = Reply(text="I look at it now, with care.", calls=[Call("look", {"path": "a"})])
DONE = Reply(text="All of it is well, as far as I can see.")


def names(events: list[Any]) -> list[str]:
    """The kinds of the events; several in a row are one."""
    return [name for name, _ in groupby(type(event).__name__ for event in events)]


@for_each("stream", [False, True], ids=["whole", "stream"])
@EVERYWHERE
def test_the_events_of_a_run_come_in_order(
    practice: Practice, provider: str, *, is_async: bool, stream: bool
) -> None:
    desk = Desk.at(practice, (provider, is_async), [LOOK, DONE], tools=[look], stream=stream)
    events = desk.events("run", "Go.")
    step = ["StepStarted", "TextDelta"]
    assert names(events) == [
        *("SessionStarted", *step, "ToolStarted", "ToolDone", "StepDone"),
        *(*step, "StepDone", "Outcome"),
    ]
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(texts) == LOOK.text + DONE.text
    assert (len(texts) > 2) == stream
    [done] = [event for event in events if isinstance(event, ToolDone)]
    assert (done.call.input, done.output, done.is_error) == ({"path": "a"}, "text of a", False)
    last = events[-1]
    assert (last.text, last.stop, last.rounds) == (DONE.text, "end_turn", 2)
    usages = [event.usage for event in events if isinstance(event, StepDone)]
    assert 0 < usages[0].tokens < usages[1].tokens
    assert 0 < usages[0].dollars < usages[1].dollars
    assert usages[1] == last.usage
    assert not desk.server.refused


def test_hooks_are_called_with_the_same_events(practice: Practice) -> None:
    seen: list[Any] = []
    hooks = AgentHooks(
        on_session_start=[seen.append],
        before_step=[seen.append],
        after_step=[seen.append],
        on_text=[lambda text: seen.append(TextDelta(text))],
        on_lost=[seen.append],
    )
    script = [LOOK, Fault.cut(), DONE]
    desk = Desk.at(practice, HERE, script, tools=[look], stream=True, hooks=hooks)
    events = desk.events("run", "Go.")
    assert [event for event in events if isinstance(event, StreamLost)]
    hookless = (ToolStarted, ToolDone, Outcome)
    assert seen == [event for event in events if not isinstance(event, hookless)]


def test_a_compaction_is_an_event(practice: Practice) -> None:
    def read(part: int) -> str:
        """Read."""
        return f"part {part} of the log, with many words in it. " * 80

    script = [*[Reply(text="On.", calls=[Call("read", {"part": n})]) for n in range(9)], DONE]
    server = practice.serve(responder=script)
    with Timeline.open("t", window=4_000) as timeline:
        events = list(ReactAgent(timeline, practice.client(server), tools=[read]).run_events("Go."))
    sources = [event.source for event in events if isinstance(event, SessionStarted)]
    assert sources[0] == "startup"
    assert set(sources[1:]) == {"compact"}


STOPS = ("SessionStarted", "StepStarted", "TextDelta", "ToolStarted", "ToolDone", "StepDone")


@for_each("stop", STOPS)
@for_each("is_async", [False, True], ids=["sync", "async"])
def test_closed_at_any_event_nothing_is_half_written(
    practice: Practice, stop: str, *, is_async: bool
) -> None:
    """And the run goes on in another process."""
    desk = Desk.at(practice, ("anthropic", is_async), [LOOK, DONE, DONE], tools=[look], stream=True)

    def until(agent: Any) -> None:
        events = agent.run_events("Go.")
        for event in events:
            if type(event).__name__ == stop:
                break
        events.close()

    async def auntil(agent: Any) -> None:
        events = agent.run_events("Go.")
        async for event in events:
            if type(event).__name__ == stop:
                break
        await events.aclose()

    desk.with_agent(until, auntil)
    calls, results = desk.blocks(ToolCall), desk.blocks(ToolResult)
    assert [call.call_id for call in calls] == [result.call_id for result in results]
    begun = bool(desk.blocks(UserPrompt))
    assert begun == (stop != "SessionStarted")
    outcome = desk.resume() if begun else desk.run()
    assert outcome.stop == "end_turn"
    assert not desk.server.refused


def test_breaking_off_an_async_loop_stops_the_tools_that_run(practice: Practice) -> None:
    cancelled: list[str] = []

    async def wait(path: str) -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(path)
            raise
        return path

    call = Reply(calls=[Call("wait", {"path": "a"}), Call("quick", {"path": "b"})])
    server = practice.serve(responder=[call])

    async def quick(path: str) -> str:
        """Be quick."""
        return path

    async def run() -> None:
        timeline = await AsyncTimeline.open("t")
        async with practice.aclient(server) as client:
            events = AsyncReactAgent(timeline, client, tools=[wait, quick]).run_events("Go.")
            async for event in events:
                if isinstance(event, ToolDone):
                    break
            await events.aclose()
        assert timeline.open_calls == ()

    asyncio.run(run())
    assert cancelled == ["a"]


# Tools of one round.


def test_the_sync_agent_calls_the_tools_of_a_round_at_the_same_time(practice: Practice) -> None:
    """Each waits until all have begun, so one after the other would never end."""
    meeting = threading.Barrier(4)

    def meet(number: int) -> str:
        """Meet."""
        meeting.wait(PATIENCE)
        return f"met {number}"

    calls = [Call("meet", {"number": number}) for number in range(4)]
    desk = Desk.at(practice, HERE, [Reply(calls=calls), DONE], tools=[meet])
    assert desk.run().text == DONE.text
    assert sorted(desk.results) == [f"met {number}" for number in range(4)]
    assert not desk.server.refused


def test_with_one_at_a_time_they_run_in_order_in_the_callers_thread(practice: Practice) -> None:
    seen: list[tuple[int, int]] = []

    def look_at(number: int) -> str:
        """Look."""
        seen.append((number, threading.get_ident()))
        return ""

    calls = [Call("look_at", {"number": number}) for number in range(4)]
    desk = Desk.at(practice, HERE, [Reply(calls=calls), DONE], tools=[look_at], parallel_max=1)
    desk.run()
    assert seen == [(number, threading.get_ident()) for number in range(4)]


def test_an_interrupt_closes_what_is_open_and_late_results_change_nothing(
    practice: Practice,
) -> None:
    """A thread cannot be stopped; what it returns after the interrupt is dropped."""
    release, late = threading.Event(), threading.Event()

    def stop(number: int) -> str:
        """Stop, or be late."""
        if number:
            raise KeyboardInterrupt
        release.wait(PATIENCE)
        late.set()
        return "late"

    calls = [Call("stop", {"number": number}) for number in range(2)]
    server, store = practice.serve(responder=[Reply(calls=calls), DONE]), MemoryStore()
    with Timeline.open("t", store=store) as timeline:
        agent = ReactAgent(timeline, practice.client(server), tools=[stop])
        with pytest.raises(KeyboardInterrupt):
            agent.run("Go.")
        assert timeline.open_calls == ()
        before = timeline.version
        release.set()
        assert late.wait(PATIENCE)
        assert timeline.version == before
        assert agent.resume().text == DONE.text


def test_after_an_interrupt_no_call_begins_that_was_waiting_for_room(practice: Practice) -> None:
    """Two at a time: the third is reported as interrupted, so it must not run when there is room."""
    began, release = threading.Barrier(3), threading.Event()
    entered: list[int] = []

    def hold(number: int) -> str:
        """Hold the room."""
        entered.append(number)
        if number < 2:
            began.wait(PATIENCE)
            release.wait(PATIENCE)
        return "late"

    calls = [Call("hold", {"number": number}) for number in range(4)]
    server, store = practice.serve(responder=[Reply(calls=calls), DONE]), MemoryStore()
    others = set(threading.enumerate())
    with Timeline.open("t", store=store) as timeline:
        agent = ReactAgent(timeline, practice.client(server), tools=[hold], parallel_max=2)
        events = agent.run_events("Go.")
        started = (event for event in events if isinstance(event, ToolStarted))
        assert [event.call.input["number"] for event in islice(started, 4)] == [0, 1, 2, 3]
        began.wait(PATIENCE)
        events.close()
        assert timeline.open_calls == ()
        release.set()
        until(lambda: all(t.name != "foldline-tool" for t in set(threading.enumerate()) - others))
        assert sorted(entered) == [0, 1]
        assert agent.resume().text == DONE.text


# Timeouts.


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_tool_that_takes_too_long_is_given_up_and_the_model_is_told(
    practice: Practice, *, is_async: bool
) -> None:
    release = threading.Event()

    @tool(timeout=0.05)
    def hang() -> str:
        """Hang."""
        release.wait(PATIENCE)
        return "late"

    @tool(timeout=0.05)
    async def ahang() -> str:
        """Hang, too."""
        await asyncio.Event().wait()
        return "late"

    @tool(timeout=PATIENCE)
    def own() -> str:
        """Raise a TimeoutError of its own."""
        raise TimeoutError("the disk")

    calls = [Call("hang"), Call("ahang"), Call("own")]
    desk = Desk.at(
        practice,
        ("anthropic", is_async),
        [Reply(calls=calls), DONE],
        tools=[hang, ahang, own],
        parallel_max=1,
    )
    began = time.monotonic()
    assert desk.run().text == DONE.text
    release.set()
    assert time.monotonic() - began < PATIENCE
    given_up = "no answer within 0.05 seconds; the call was given up, and may have had a part of its effects"
    assert desk.results == [given_up, given_up, "TimeoutError: the disk"]
    outcomes = [result.envelope.outcome for result in desk.blocks(ToolResult)]
    assert outcomes == ["partial", "partial", "failure"]
    assert not desk.server.refused


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_coroutine_that_comes_too_late_is_closed(practice: Practice, *, is_async: bool) -> None:
    """A plain function that returns one when its call was given up: Python warns of what nobody awaits."""
    release, made = threading.Event(), list[Any]()

    async def work() -> str:
        return "late"

    @tool(timeout=0.05)
    def hang() -> Any:
        """Hang, then return a coroutine."""
        release.wait(PATIENCE)
        made.append(work())
        return made[0]

    desk = Desk.at(
        practice, ("anthropic", is_async), [Reply(calls=[Call("hang")]), DONE], tools=[hang]
    )
    assert desk.run().text == DONE.text
    release.set()
    until(lambda: made and inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED)
