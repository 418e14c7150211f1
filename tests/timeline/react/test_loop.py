"""Every way in which a response can stop, with both agents."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, TypeAlias

import anthropic
import attrs
import pytest

from blocks import (
    AssistantThinking,
    BlocksHidden,
    Event,
    ImagePart,
    RangeCompacted,
    SystemMessage,
    TokensCounted,
    ToolCall,
    ToolResult,
    UsageRecorded,
    UserPrompt,
)
from persistence import MemoryStore
from render import LADDER, Json, Policy, Rendered
from tests import _builders as make
from tests._builders import CharCounter, Clock, events_of, open_timeline, steady
from tests._practice import Practice
from tests.timeline.test_timeline import busy
from timeline import (
    AsyncReactAgent,
    AsyncTimeline,
    ReactAgent,
    Timeline,
    retry_with_compaction,
)
from timeline.fake_provider import Call, Fault, Reply
from timeline.react import AgentHooks, Limits, SessionStarted, StepDone, StepStarted, StreamLost

from .both import Agents, Ran, read_file

LOOK = Reply(text="I look.", calls=[Call("read_file", {"path": "a.txt"})])
DONE = Reply(text="It says so.")


def said(ran: Ran, role: str) -> list[Any]:
    """Content blocks of the last request, by role."""
    messages = ran.server.requests[-1]["messages"]
    return [block for m in messages if m["role"] == role for block in m["content"]]


@pytest.fixture
def agents(practice: Practice) -> Agents:
    return Agents(practice)


def test_a_turn_ends_when_the_model_has_no_more_calls(agents: Agents) -> None:
    for ran in agents.run([LOOK, DONE]):
        assert (ran.outcome.text, ran.outcome.stop, ran.outcome.rounds) == (
            "It says so.", "end_turn", 2,
        )  # fmt: skip
        assert ran.results == [("text of a.txt", False)]
        assert ran.outcome.usage.output > 0
        assert ran.outcome.usage.uncached > 0


def test_parallel_calls_are_all_answered_whatever_becomes_of_each(agents: Agents) -> None:
    def fail() -> None:
        raise OSError("no such disk")

    def picture() -> ImagePart:
        return ImagePart(data="iVBORw0KGgo=")

    names = ("fail", "read_file", "picture", "nothing")
    calls = [Call(name, {"path": "b"} if name == "read_file" else {}) for name in names]
    for ran in agents.run([Reply(calls=calls), DONE], tools=[fail, picture, read_file]):
        answered = {block.call_id: block for block in ran.blocks(ToolResult)}
        asked = ran.blocks(ToolCall)
        assert [answered[call.call_id].is_error for call in asked] == [True, False, False, True]
        assert answered[asked[0].call_id].envelope.outcome == "failure"
        content = said(ran, "user")[-4:]
        assert content[0]["content"] == "OSError: no such disk"
        assert content[2]["content"][0]["type"] == "image"
        assert content[3]["content"].startswith("there is no tool 'nothing'; there are: fail, ")


def test_an_incomplete_call_of_a_truncated_answer_is_discarded(agents: Agents) -> None:
    """Feature 004-2; the agent is told and goes on."""
    for ran in agents.run([Fault.max_tokens(), LOOK, DONE]):
        assert (ran.outcome.stop, ran.outcome.text) == ("end_turn", "It says so.")
        assert [call.name for call in ran.blocks(ToolCall)] == ["read_file"]
        [notice] = ran.blocks(SystemMessage)
        assert "cut off" in notice.text


def test_the_complete_calls_of_a_truncated_answer_are_run(agents: Agents) -> None:
    calls = [Call("read_file", {"path": "a"}), Call("read_file", {"path": "b" * 200})]
    for ran in agents.run([Reply(calls=calls, stop_reason="max_tokens"), DONE]):
        assert ran.results == [("text of a", False)]
        assert ran.outcome.stop == "end_turn"


def test_an_agent_that_is_cut_off_again_and_again_stops(agents: Agents) -> None:
    for ran in agents.run([Fault.max_tokens()] * 9):
        assert (ran.outcome.stop, ran.outcome.rounds) == ("max_tokens", 2)
        assert ran.outcome.text == "I write it down." * 2


def test_a_prompt_that_leaves_little_room_is_compacted_when_an_answer_is_cut_off(
    agents: Agents,
) -> None:
    """Feature 004-1: reactive on `max_tokens`."""
    agents.timeline = {"window": 4_000, "policy": Policy(clip_ratio=0.04)}
    script: list[Reply | Fault] = [*big_rounds(8), Fault.max_tokens(), DONE]
    for ran in agents.run(script, tools=[large]):
        compacted = [event for event in ran.events if isinstance(event, RangeCompacted)]
        assert "forced" in [event.trigger for event in compacted]
        assert ran.outcome.stop == "end_turn"


def large(part: int) -> str:
    """A part of the log."""
    return f"part {part} " + "line of the log " * 60


def big_rounds(count: int) -> Iterable[Reply]:
    for part in range(count):
        yield Reply(text=f"Part {part}.", calls=[Call("large", {"part": part})])


def test_a_paused_turn_is_sent_back_as_it_is(agents: Agents) -> None:
    for ran in agents.run([LOOK, Fault.pause(), DONE]):
        assert ran.outcome.stop == "end_turn"
        assert ran.outcome.text == "Still searching.It says so."
        last = ran.server.requests[-1]["messages"][-1]
        assert last["role"] == "assistant"
        assert last["content"][-1]["type"] == "server_tool_use"


def test_a_refusal_ends_the_run_and_the_next_one_goes_on(agents: Agents) -> None:
    for ran in agents.run([LOOK, Fault.refusal()]):
        assert (ran.outcome.stop, ran.outcome.text) == ("refusal", "")


def test_calls_of_a_refused_answer_are_not_run_but_answered(agents: Agents) -> None:
    refused = Reply(calls=[Call("read_file", {"path": "a"})], stop_reason="refusal")
    for ran in agents.run([refused]):
        assert ran.results == [
            ("Not run: the answer that asked for it stopped with `refusal`.", True)
        ]


def test_an_empty_answer_is_asked_about_once(agents: Agents) -> None:
    for ran in agents.run([LOOK, Fault.empty(), DONE]):
        assert ran.outcome.text == "It says so."
        assert "without a word" in said(ran, "user")[-1]["text"]
    for ran in agents.run([LOOK, Fault.empty(), Fault.empty(), DONE]):
        assert (ran.outcome.stop, ran.outcome.text, ran.outcome.rounds) == ("end_turn", "", 3)


def test_a_stop_sequence_ends_the_run(agents: Agents) -> None:
    for ran in agents.run([Reply(text="so", stop_reason="stop_sequence")]):
        assert (ran.outcome.stop, ran.outcome.text) == ("stop_sequence", "so")


def test_rounds_are_bounded(agents: Agents) -> None:
    for ran in agents.run([LOOK] * 9, limits=Limits(rounds=3)):
        assert (ran.outcome.stop, ran.outcome.rounds) == ("limit", 3)
        assert str(ran.outcome.limit) == "rounds: 3 of 3"
        assert len(ran.results) == 3


def test_an_answer_that_ran_into_the_window_is_asked_for_again_in_a_smaller_prompt(
    agents: Agents,
) -> None:
    agents.timeline = {"window": 8_000}
    exceeded = Reply(text="Half a", stop_reason="model_context_window_exceeded")
    for ran in agents.run([*big_rounds(6), exceeded, DONE], tools=[large]):
        assert (ran.outcome.stop, ran.outcome.text) == ("end_turn", "It says so.")
        assert [e.trigger for e in ran.events if isinstance(e, RangeCompacted)] == ["forced"]
        assert "Half a" not in str(ran.server.requests[-1])


def test_a_run_ends_cleanly_when_compaction_cannot_help(agents: Agents) -> None:
    """Features 004-1 and 004-8."""
    exceeded = Reply(text="Half a", stop_reason="model_context_window_exceeded")
    for ran in agents.run([exceeded] * 9):
        assert ran.outcome.stop == "model_context_window_exceeded"
        assert ran.outcome.text == "Half a"


def test_thinking_goes_back_as_it_came_and_is_stripped_when_the_prompt_was_rewritten(
    agents: Agents,
) -> None:
    agents.timeline = {"window": 4_000, "policy": Policy(trigger_ratio=0.8, target_ratio=0.4)}
    script = [
        Reply(thinking=f"{n}?", text=f"{n}.", calls=[Call("large", {"part": n})]) for n in range(30)
    ]
    for ran in agents.run([*script, DONE], tools=[large]):
        assert ran.outcome.stop == "end_turn"
        assert len(ran.blocks(AssistantThinking)) == 30
        assert sum("signature" in str(request) for request in ran.server.requests) > 10
        assert any(isinstance(event, RangeCompacted) for event in ran.events)


def is_compaction(event: Event) -> bool:
    """Whether an event is what a compaction did; those of one compaction follow each other."""
    is_rung = isinstance(event, BlocksHidden) and event.reason in LADDER
    return is_rung or isinstance(event, RangeCompacted)


def test_hooks_see_every_step_and_can_break_nothing(agents: Agents) -> None:
    """Features 002-10, and 004-7: a session starts anew with source "compact"."""
    agents.timeline = {
        "window": 4_000,
        "policy": Policy(trigger_ratio=0.8, target_ratio=0.4, clip_ratio=0.1),
    }
    seen: list[Any] = []

    def bad(_: object) -> None:
        raise ValueError("a bad hook")

    hooks = AgentHooks(
        on_session_start=[seen.append],
        before_step=[bad, seen.append],
        after_step=[seen.append, bad],
    )
    for ran in agents.run([*big_rounds(12), DONE], tools=[large], hooks=hooks):
        starts = [event for event in seen if isinstance(event, SessionStarted)]
        compactions = sum(1 for is_one, _ in groupby(ran.events, key=is_compaction) if is_one)
        assert [start.source for start in starts] == ["startup", *["compact"] * compactions]
        assert compactions
        begun = [event.round for event in seen if isinstance(event, StepStarted)]
        done = [(event.round, event.stop) for event in seen if isinstance(event, StepDone)]
        assert begun == [number for number, _ in done] == list(range(1, 14))
        assert done[-1] == (13, "end_turn")
        seen.clear()


def test_it_compacts_before_a_call_once_the_window_is_used_to_a_share(agents: Agents) -> None:
    """Feature 004-1: proactive, here above 80%."""
    agents.timeline = {"window": 4_000, "policy": Policy(trigger_ratio=0.8, target_ratio=0.4)}
    for ran in agents.run([*big_rounds(20), DONE], tools=[large]):
        compacted = [event for event in ran.events if isinstance(event, RangeCompacted)]
        assert compacted
        assert {event.trigger for event in compacted} == {"proactive"}
        assert all(event.tokens_before > 3_200 for event in compacted)


def test_what_the_user_says_while_the_last_answer_is_on_its_way_is_answered(
    practice: Practice,
) -> None:
    store = MemoryStore()

    def responder(request: Json) -> Reply:
        last = request["messages"][-1]["content"][-1]["text"]
        if last == "Look at a.txt.":
            Timeline.open("agent", store=store).steer("And at b.txt.")
        return Reply(text=f"Answer to: {last} ")

    with Timeline.open("agent", store=store) as timeline:
        client = practice.client(practice.serve(responder=responder))
        outcome = ReactAgent(timeline, client).run("Look at a.txt.")
    assert (outcome.stop, outcome.rounds) == ("end_turn", 2)
    assert outcome.text == "Answer to: Look at a.txt. Answer to: And at b.txt. "


# What goes wrong between the agent and the provider, streamed or not, sync and async.


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


def test_a_request_that_the_client_does_not_send_is_not_tried_again(practice: Practice) -> None:
    """Anthropic's client wants a stream for an answer that may be this long."""
    lost: list[Any] = []
    hooks, server = AgentHooks(on_lost=[lost.append]), practice.serve(responder=[DONE])
    with anthropic.Anthropic(base_url=server.url, api_key="any") as client:
        agent = ReactAgent(Timeline.open("agent"), client, max_tokens=64_000, hooks=hooks)
        with pytest.raises(ValueError, match="Streaming is required"):
            agent.run("Look.")
    assert lost == []


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


# A prompt that the provider calls too long: compacted, rendered again, tried again, each try smaller.


WINDOW = 100_000
OPTIONS: dict[str, Any] = {
    "counter": CharCounter(),
    "model": make.LOOSE,
    "window": WINDOW,
    "policy": steady(keep_ratio=0.01),
    "clock": Clock(),
}


class TooLongError(Exception):
    """As the provider's client raises it."""

    status_code = 400

    def __init__(self, told: str) -> None:
        text = f"prompt is too long{told}"
        self.body = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
        super().__init__(text)


@attrs.define
class Provider:
    """Takes prompts of so many tokens, by its own count, and remembers what it was asked."""

    tokens_max: int
    factor: float = 1.0
    """Its tokens for one of ours."""
    tells: bool = True
    """Whether its error says how many there were."""
    asked: list[int] = attrs.field(factory=list[int])

    def __call__(self, rendered: Rendered) -> str:
        tokens = round(self.factor * rendered.account.estimated)
        self.asked.append(rendered.account.estimated)
        if tokens > self.tokens_max:
            told = f": {tokens} tokens > {self.tokens_max} maximum" if self.tells else ""
            raise TooLongError(told)
        return "done"

    async def later(self, rendered: Rendered) -> str:
        return self(rendered)


Retry: TypeAlias = Callable[..., str]


@pytest.fixture(params=["sync", "async"])
def retry(request: pytest.FixtureRequest) -> Iterator[Retry]:
    """Calls a provider for the timeline in a store; what holds for one kind holds for both."""

    def run(store: MemoryStore, provider: Provider, **more: Any) -> str:
        with open_timeline(store=store, **OPTIONS) as timeline:
            return retry_with_compaction(timeline, provider, **more)

    async def arun(store: MemoryStore, provider: Provider, **more: Any) -> str:
        async with await AsyncTimeline.open("talk", store=store, **OPTIONS) as timeline:
            return await retry_with_compaction(timeline, provider.later, **more)

    if request.param == "sync":
        yield run
        return
    with asyncio.Runner() as runner:
        yield lambda *given, **more: runner.run(arun(*given, **more))


def talk(rounds: int = 40) -> MemoryStore:
    store = MemoryStore()
    with open_timeline(store=store, **OPTIONS) as timeline:
        busy(timeline, rounds)
    return store


def facts(store: MemoryStore, kind: type[Any]) -> list[Any]:
    with open_timeline(store=store, **OPTIONS) as timeline:
        return events_of(timeline, kind)


def test_what_fits_is_asked_once_and_nothing_is_compacted(retry: Retry) -> None:
    store, provider = talk(), Provider(WINDOW)
    assert retry(store, provider) == "done"
    assert len(provider.asked) == 1
    assert facts(store, RangeCompacted) == []


def test_what_is_too_long_is_compacted_and_tried_again(retry: Retry) -> None:
    store, provider = talk(), Provider(WINDOW, factor=15.0)
    assert retry(store, provider) == "done"
    first, second = provider.asked
    assert 15 * second <= WINDOW < 15 * first
    assert len(facts(store, RangeCompacted)) == 1


def test_the_provider_s_count_is_learnt(retry: Retry) -> None:
    store, provider = talk(), Provider(WINDOW, factor=15.0)
    retry(store, provider)
    [learnt] = facts(store, TokensCounted)
    assert (learnt.input, learnt.estimated) == (15 * provider.asked[0], provider.asked[0])
    assert learnt.limit == WINDOW


def test_a_smaller_limit_that_the_provider_names_holds_for_all_later_requests(retry: Retry) -> None:
    """Such as that of a server that was started with a smaller context than the model's."""
    store, provider = talk(), Provider(1_000)
    assert retry(store, provider) == "done"
    assert len(provider.asked) == 2
    for _ in range(3):
        with open_timeline(store=store, **OPTIONS) as timeline:
            timeline.user("Which of the parts is the largest? " * 60)
        assert retry(store, provider) == "done"
    assert len(provider.asked) == 5
    [learnt] = facts(store, TokensCounted)
    assert learnt.limit == 1_000
    with open_timeline(
        store=store, **{**OPTIONS, "model": attrs.evolve(make.LOOSE, name="b")}
    ) as other:
        assert other.render().account.limit == WINDOW


def test_a_limit_that_is_larger_than_the_timelines_changes_nothing(retry: Retry) -> None:
    store = talk()
    retry(store, Provider(2 * WINDOW, factor=30.0))
    with open_timeline(store=store, **OPTIONS) as timeline:
        assert timeline.render().account.limit == WINDOW


def test_an_error_without_numbers_teaches_nothing_and_is_tried_again_all_the_same(
    retry: Retry,
) -> None:
    store, provider = talk(), Provider(WINDOW, factor=15.0, tells=False)
    assert retry(store, provider) == "done"
    assert len(provider.asked) == 2
    assert facts(store, TokensCounted) == []


@pytest.mark.parametrize("rounds", [0, 1, 40])
def test_a_request_that_is_no_smaller_is_not_tried(retry: Retry, rounds: int) -> None:
    """The provider has just refused it, and would again."""
    provider = Provider(1, tells=False)
    with pytest.raises(TooLongError):
        retry(talk(rounds), provider, retries_max=9)
    assert provider.asked == sorted(set(provider.asked), reverse=True)
    assert len(provider.asked) == 1 or rounds == 40


@pytest.mark.parametrize("retries", [0, 1])
def test_it_is_tried_no_more_often_than_asked_for(retry: Retry, retries: int) -> None:
    provider = Provider(1)
    with pytest.raises(TooLongError):
        retry(talk(), provider, retries_max=retries)
    assert len(provider.asked) == 1 + retries


def test_another_error_comes_through_at_once(retry: Retry) -> None:
    class BrokenProvider(Provider):
        def __call__(self, rendered: Rendered) -> str:
            self.asked.append(rendered.tokens)
            raise ConnectionError("gone")

    store, provider = talk(), BrokenProvider(1)
    with pytest.raises(ConnectionError):
        retry(store, provider)
    assert len(provider.asked) == 1
    assert facts(store, RangeCompacted) == []
