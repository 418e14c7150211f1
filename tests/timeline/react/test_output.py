"""Typed output: the run ends with a value of the type, or with an error that says why not; the log shows each try."""

from dataclasses import dataclass
from typing import Any, assert_type

import pytest
from pydantic import BaseModel, Field

from blocks import MisuseError, SystemMessage, ToolCall, ToolResult
from tests._practice import Practice
from tests._table import for_each
from timeline import AsyncReactAgent, ReactAgent, Timeline, tool
from timeline.fake_provider import Call, Reply
from timeline.react import AgentSettings, OutputError, SubAgent

from .desk import EVERYWHERE, Desk


class Report(BaseModel):
    title: str
    pages: int = Field(ge=1)


@dataclass
class Answer:
    words: list[str]


HERE = ("anthropic", False)


def result(value: Any) -> Reply:
    return Reply(text="I report.", calls=[Call("final_result", {"result": value})])


@EVERYWHERE
def test_a_run_ends_with_a_value(practice: Practice, provider: str, *, is_async: bool) -> None:
    """After a wrong one, and after an answer without one."""
    script = [
        result({"title": "a", "pages": 0}),
        Reply(text="That was it."),
        result({"title": "a", "pages": "2"}),
    ]
    desk = Desk.at(practice, (provider, is_async), script, output=Report)
    outcome = desk.run()
    assert (outcome.stop, outcome.output) == ("end_turn", Report(title="a", pages=2))
    assert [r.is_error for r in desk.blocks(ToolResult)] == [True, False]
    assert "greater than or equal to 1 - at `$.result.pages`" in desk.results[0]
    [reminder] = desk.blocks(SystemMessage)
    assert "Call final_result" in reminder.text
    assert not desk.server.refused
    again = desk.resume()
    assert (again.output, again.rounds) == (outcome.output, 0), "the log has it"


def test_type_checkers_know_the_type_of_the_value(practice: Practice) -> None:
    """Checked by mypy and pyright, which read this."""
    server = practice.serve(responder=[result({"title": "a", "pages": 1})])
    client = practice.client(server)
    reporter = ReactAgent(Timeline.open("a"), client, output=Report)
    assert_type(reporter.run("Go.").output, Report | None)
    talker = ReactAgent(Timeline.open("c"), client)
    assert_type(talker, ReactAgent[Any])
    helper = SubAgent("helper", "Helps.", client=client, output=Report)
    assert helper.output is Report

    async def work(agent: AsyncReactAgent[Answer]) -> None:
        assert_type((await agent.run("Go.")).output, Answer | None)

    assert callable(work)


def test_after_so_many_tries_there_is_an_error_and_the_run_can_be_resumed(
    practice: Practice,
) -> None:
    wrong = result({"title": "a", "pages": 0})
    desk = Desk.at(
        practice, HERE, [*[wrong] * 3, result({"title": "b", "pages": 1})], output=Report
    )
    with pytest.raises(
        OutputError, match=r"no valid final_result in 3 tries; .*\$\.result\.pages"
    ) as raised:
        desk.run()
    assert raised.value.tries == 3
    assert len(desk.blocks(ToolCall)) == len(desk.blocks(ToolResult)) == 3
    assert desk.resume().output == Report(title="b", pages=1)
    assert not desk.server.refused


def test_a_model_that_never_gives_a_result_is_told_so_often_enough(practice: Practice) -> None:
    desk = Desk.at(practice, HERE, [Reply(text="So.")] * 9, output=Answer, output_retries=1)
    with pytest.raises(OutputError, match="in 2 tries; the last one: the model gave no result"):
        desk.run()
    assert len(desk.server.requests) == 2


def test_other_calls_of_the_same_answer_are_made(practice: Practice) -> None:
    seen: list[str] = []

    def look(path: str) -> str:
        """Look."""
        seen.append(path)
        return path

    both = Reply(
        calls=[Call("final_result", {"result": {"words": ["a"]}}), Call("look", {"path": "x"})]
    )
    desk = Desk.at(practice, HERE, [both], output=Answer, tools=[look])
    assert (desk.run().output, seen) == (Answer(["a"]), ["x"])


def test_a_result_beside_a_call_that_waits_ends_the_run_once_that_is_decided(
    practice: Practice,
) -> None:
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    both = Reply(
        calls=[Call("final_result", {"result": {"words": ["a"]}}), Call("pay", {"amount": 5})]
    )
    desk = Desk.at(practice, HERE, [both], output=Answer, tools=[pay])
    stopped = desk.run()
    assert stopped.stop == "approval"
    desk.do("approve", stopped.approvals[0])
    done = desk.resume()
    assert (done.stop, done.output, done.rounds) == ("end_turn", Answer(["a"]), 0)
    assert len(desk.server.requests) == 1


def test_the_next_prompt_gets_a_result_of_its_own(practice: Practice) -> None:
    script = [result({"words": ["a"]}), Reply(text="Hm."), result({"words": ["b"]})]
    desk = Desk.at(practice, HERE, script, output=Answer)
    assert desk.run().output == Answer(["a"])
    assert desk.run("And now?").output == Answer(["b"])
    assert not desk.server.refused


@for_each(("kind", "value"), [(int, 7), (list[str], ["a"]), (str | None, None), (bool, False)])
def test_any_type_can_be_the_result(practice: Practice, kind: Any, value: Any) -> None:
    outcome = Desk.at(practice, HERE, [result(value)], output=kind).run()
    assert (outcome.stop, outcome.output) == ("end_turn", value)


def test_a_refusal_ends_the_run_without_a_value(practice: Practice) -> None:
    outcome = Desk.at(practice, HERE, [Reply(stop_reason="refusal")], output=Answer).run()
    assert (outcome.stop, outcome.output) == ("refusal", None)


def test_a_wrong_type_or_a_second_tool_of_that_name_is_refused() -> None:
    with pytest.raises(MisuseError, match="'object' has no JSON form"):
        AgentSettings(output=object)

    def final_result() -> str:
        return ""

    with pytest.raises(MisuseError, match="two tools have the name final_result"):
        AgentSettings(output=int, tools=[final_result])
    with pytest.raises(MisuseError, match="output_retries must be a whole number"):
        AgentSettings(output_retries=-1)
