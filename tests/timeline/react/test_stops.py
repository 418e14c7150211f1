"""Every way in which a response can stop, with both agents."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pytest

from blocks import (
    AssistantThinking,
    BlocksHidden,
    Event,
    ImagePart,
    RangeCompacted,
    SystemMessage,
    ToolCall,
    ToolResult,
)
from persistence import MemoryStore
from render import LADDER, Json, Policy
from tests._practice import Practice
from timeline import ReactAgent, Timeline
from timeline.fake_provider import Call, Fault, Reply
from timeline.react import AgentHooks, Limits, SessionStarted, StepDone, StepStarted

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
