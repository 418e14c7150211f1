"""What goes wrong between the agent and the provider, streamed or not, sync and async."""

import asyncio
import json
from typing import Any

import anthropic
import pytest

from blocks import RangeCompacted, TokensCounted, UsageRecorded, UserPrompt
from tests._practice import Practice
from timeline import AsyncReactAgent, AsyncTimeline, ReactAgent, Timeline
from timeline.fake_provider import Call, Fault, Reply
from timeline.react import AgentHooks, StreamLost

from .both import Agents, read_file
from .test_stops import big_rounds, large

LOOK = Reply(text="I look.", calls=[Call("read_file", {"path": "a.txt"})])
DONE = Reply(text="It says so.")


@pytest.fixture
def agents(practice: Practice) -> Agents:
    return Agents(practice)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "fault",
    [
        Fault.rate_limit(0.01),
        Fault.server_error(),
        Fault.overloaded(),
        Fault.cut(),
        Fault.garbled(),
    ],
    ids=["429", "500", "529", "cut", "garbled"],
)
def test_a_fault_is_survived_and_leaves_nothing_behind(
    agents: Agents, fault: Fault, *, stream: bool
) -> None:
    """The client retries the refusals; a response that broke off is asked for once more."""
    for ran in agents.run([fault, LOOK, fault, DONE], stream=stream):
        assert (ran.outcome.text, ran.outcome.rounds) == ("It says so.", 2)
        assert ran.results == [("text of a.txt", False)]
        assert len([event for event in ran.events if isinstance(event, UsageRecorded)]) == 2


@pytest.mark.parametrize("after", [0, 1, 3, 5, 8])
def test_nothing_of_a_stream_that_broke_off_is_recorded(agents: Agents, after: int) -> None:
    """Overloaded in the middle of a stream, wherever that is."""
    lost: list[Any] = []
    hooks = AgentHooks(on_lost=[lost.append])
    script: list[Reply | Fault] = [Fault.overloaded_in_stream(after), LOOK, Fault.cut(after), DONE]
    for ran in agents.run(script, stream=True, hooks=hooks):
        assert ran.outcome.text == "It says so."
        assert "Nobody will ever read" not in str(ran.server.requests[-1])
    assert [type(event) for event in lost] == [StreamLost] * 4


def test_the_text_is_streamed_to_hooks(agents: Agents) -> None:
    pieces: list[str] = []

    def fail(_: object) -> None:
        raise ValueError("a bad hook")

    hooks = AgentHooks(on_text=[pieces.append, fail])
    for ran in agents.run([LOOK, DONE], stream=True, hooks=hooks):
        assert "".join(pieces) == "I look.It says so."
        assert ran.outcome.text == "It says so."
        pieces.clear()


def test_an_overflow_is_compacted_and_its_numbers_are_learnt(agents: Agents) -> None:
    """Features 003-2 and 004-1: the provider said "prompt is too long"."""
    agents.timeline = {"window": 8_000}
    script: list[Reply | Fault] = [*big_rounds(6), Fault.overflow(9_001, 9_000), DONE]
    for ran in agents.run(script, tools=[large]):
        assert (ran.outcome.stop, ran.outcome.text) == ("end_turn", "It says so.")
        assert [e.trigger for e in ran.events if isinstance(e, RangeCompacted)] == ["forced"]
        [refused] = [event for event in ran.events if isinstance(event, TokensCounted)]
        assert (refused.input, refused.limit) == (9_001, 9_000)


def test_an_overflow_that_compaction_cannot_help_is_an_outcome(agents: Agents) -> None:
    """Features 004-1 and 004-8: the loop does not crash."""
    for ran in agents.run([Fault.overflow()] * 9):
        assert (ran.outcome.stop, ran.outcome.text) == ("model_context_window_exceeded", "")
        assert len(ran.server.requests) <= 3


def test_other_errors_come_through_and_the_run_is_resumed(practice: Practice) -> None:
    server = practice.serve(responder=[LOOK, Fault.cut(), Fault.cut(), DONE])
    with Timeline.open("agent") as timeline:
        agent = ReactAgent(timeline, practice.client(server), tools=[read_file])
        with pytest.raises(anthropic.APIConnectionError):
            agent.run("Look.")
        assert timeline.render().violations == ()
        outcome = agent.resume()
        assert (outcome.text, outcome.rounds) == ("It says so.", 1)
        again = agent.resume()
        assert (again.stop, again.rounds) == ("end_turn", 0), "nothing left to do"
    assert not server.refused


def test_other_errors_come_through_and_an_async_run_is_resumed(practice: Practice) -> None:
    server = practice.serve(responder=[LOOK, Fault.garbled(), Fault.garbled(), DONE])

    async def run() -> str:
        timeline = await AsyncTimeline.open("agent")
        async with practice.aclient(server) as client:
            agent = AsyncReactAgent(timeline, client, tools=[read_file], stream=True)
            with pytest.raises(json.JSONDecodeError):
                await agent.run("Look.")
            outcome = await agent.resume()
        await timeline.close()
        return outcome.text

    assert asyncio.run(run()) == "It says so."
    assert not server.refused


def test_a_refused_request_is_not_sent_again(practice: Practice) -> None:
    """400, and not because of its length: the fault is ours, so nothing is retried."""
    server = practice.serve(responder=[DONE])
    with Timeline.open("agent") as timeline:
        agent = ReactAgent(timeline, practice.client(server), options={"temperature": 1})
        with pytest.raises((anthropic.BadRequestError, TypeError)):
            agent.run("Look.")
        assert [b for b in timeline.view.entries if isinstance(b.block, UserPrompt)]


def test_an_agent_with_other_tools_goes_on_without_the_thinking_that_knew_the_old_ones(
    practice: Practice,
) -> None:
    """A signature binds thinking to system and tools; the provider would refuse the request."""
    thoughtful = Reply(thinking="Hm.", text="I look.", calls=LOOK.calls)
    server = practice.serve(responder=[thoughtful, DONE, thoughtful, DONE, thoughtful, DONE])
    with Timeline.open("agent") as timeline:
        client = practice.client(server)
        more: list[Any] = [read_file, large]
        for tools in ([read_file], more, more):
            assert ReactAgent(timeline, client, tools=tools).run("Look.").stop == "end_turn"
    thinking = [str(request).count("signature") for request in server.requests]
    assert thinking == [0, 1, 0, 1, 1, 2]
    assert not server.refused
