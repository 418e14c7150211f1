"""Sub-agents: agents as tools, each with a timeline of its own that the calling agent's log leads to."""

import threading
from typing import Any

import attrs
import pytest
from pydantic import BaseModel

from blocks import MisuseError, TimelineId, ToolCall, ToolResult, UserPrompt
from persistence import MemoryStore
from tests._practice import Practice
from tests._sizes import PATIENCE, until
from timeline import ReactAgent, Timeline, tool
from timeline.fake_provider import Call, Reply
from timeline.react import SubAgent, ToolStarted

from .desk import EVERYWHERE, Desk

HERE = ("anthropic", False)
PAID: list[int] = []


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount}"


def helper(client: Any, **more: Any) -> SubAgent:
    return SubAgent("helper", "Helps with one task.", client=client, **more)


ASK = Reply(text="I ask.", calls=[Call("helper", {"task": "Pay 5."})])
PAY = Reply(text="I pay.", calls=[Call("pay", {"amount": 5})])
REPORT = Reply(text="It is paid.")
DONE = Reply(text="Done.")


def run_with_helper(desk: Desk, verb: str, *given: Any, **more: Any) -> Any:
    """A method of an agent that has the sub-agent, with a client of the same loop."""

    def use(agent: Any, client: Any) -> Any:
        return getattr(attrs.evolve(agent, tools=[helper(client, **more)]), verb)(*given)

    return desk.with_agent(lambda a: use(a, a.client), lambda a: use(a, a.client))


@EVERYWHERE
def test_its_report_is_the_result_and_its_timeline_is_found_from_the_call(
    practice: Practice, provider: str, *, is_async: bool
) -> None:
    """With an approval inside it, each step in another process."""
    PAID.clear()
    desk = Desk.at(practice, (provider, is_async), [ASK, PAY, REPORT, DONE])
    stopped = run_with_helper(desk, "run", "Go.", tools=[pay])
    [approval] = stopped.approvals
    [call] = desk.blocks(ToolCall)
    child = f"desk/{call.id}"
    assert approval.id.startswith(f"{call.call_id}/")
    assert [block.text for block in desk.blocks(UserPrompt, child)] == ["Pay 5."]
    run_with_helper(desk, "approve", approval, {"amount": 4}, tools=[pay])
    outcome = run_with_helper(desk, "resume", tools=[pay])
    assert (outcome.stop, outcome.text, PAID) == ("end_turn", "Done.", [4])
    [result] = desk.blocks(ToolResult)
    assert desk.results == ["It is paid."]
    assert result.envelope.key_fields == {"timeline": child}
    assert len(desk.server.requests) == 4
    assert not desk.server.refused


def test_each_call_has_its_own_also_if_its_id_was_used_before(practice: Practice) -> None:
    """Some servers give the ids `call_0`, `call_1` in each answer. Each step is another process."""
    PAID.clear()
    script = [
        Reply(calls=[Call("helper", {"task": "Pay 5."}, id="call_0")]),
        Reply(calls=[Call("pay", {"amount": 5}, id="call_0")]),
        Reply(text="It is paid."),
        Reply(calls=[Call("helper", {"task": "Pay 7."}, id="call_0")]),
        Reply(calls=[Call("pay", {"amount": 7}, id="call_0")]),
        Reply(text="That, too."),
        DONE,
    ]
    desk = Desk.at(practice, HERE, script)
    outcome = run_with_helper(desk, "run", "Go.", tools=[pay])
    while outcome.stop == "approval":
        run_with_helper(desk, "approve", outcome.approvals[0], tools=[pay])
        outcome = run_with_helper(desk, "resume", tools=[pay])
    assert (outcome.text, PAID) == ("Done.", [5, 7])
    assert desk.results == ["It is paid.", "That, too."]
    assert not desk.server.refused


def test_approvals_are_in_the_order_of_the_calls(practice: Practice) -> None:
    """Whichever sub-agent comes first to the call that waits, and whatever waits beside them."""

    def answer(request: Any) -> Reply:
        task = request["messages"][0]["content"][0]["text"]
        two = [Call("helper", {"task": "slow"}), Call("helper", {"task": "quick"})]
        if task == "Go.":
            return Reply(calls=[*two, Call("pay", {"amount": 1})])
        return attrs.evolve(PAY, delay_seconds=0.3 if task == "slow" else 0.0)

    desk = Desk.at(practice, HERE, answer)
    desk.agent["tools"] = [helper(desk.client(), tools=[pay]), pay]
    outer = [each.id.partition("/")[0] for each in desk.run().approvals]
    assert outer == [call.call_id for call in desk.blocks(ToolCall)]


def test_it_sees_nothing_of_the_conversation_and_has_its_own_system_prompt(
    practice: Practice,
) -> None:
    desk = Desk.at(practice, HERE, [ASK, REPORT, DONE], system="You lead.")
    run_with_helper(desk, "run", "The secret plan.", system="You help.")
    mine, its, _ = desk.server.requests
    assert "You lead." in str(mine)
    assert "secret" not in str(its)
    assert "You help." in str(its)
    definition = mine["tools"][0]
    assert list(definition["input_schema"]["properties"]) == ["task"]
    assert definition["description"] == "Helps with one task."


def test_it_may_have_another_model_and_another_store(practice: Practice) -> None:
    elsewhere = MemoryStore()
    desk = Desk.at(practice, HERE, [ASK, REPORT, DONE])

    def opened(name: str) -> Timeline:
        return Timeline.open(name, store=elsewhere, model="claude-haiku-4-5")

    run_with_helper(desk, "run", "Go.", open=opened)
    assert [request["model"] for request in desk.server.requests] == [
        "claude-sonnet-5-5",
        "claude-haiku-4-5",
        "claude-sonnet-5-5",
    ]
    [call] = desk.blocks(ToolCall)
    assert elsewhere.head(TimelineId(f"desk/{call.id}"))
    assert not desk.server.refused


class Paid(BaseModel):
    amount: int


def test_it_may_report_a_value(practice: Practice) -> None:
    value = Reply(calls=[Call("final_result", {"result": {"amount": 5}})])
    desk = Desk.at(practice, HERE, [ASK, value, DONE])
    run_with_helper(desk, "run", "Go.", output=Paid)
    assert desk.results == ['{"amount":5}']


def test_several_work_at_the_same_time_and_sub_agents_have_sub_agents(practice: Practice) -> None:
    two = Reply(calls=[Call("helper", {"task": "A"}), Call("helper", {"task": "B"})])

    def answer(request: Any) -> Reply:
        messages = request["messages"]
        if len(messages) > 1:
            return REPORT
        task = messages[0]["content"][0]["text"]
        if task == "Go.":
            return two
        return Reply(calls=[Call("deeper", {"task": "C"})]) if task in "AB" else DONE

    desk = Desk.at(practice, HERE, answer)
    deeper = SubAgent("deeper", "Looks deeper.", client=desk.client())
    outcome = run_with_helper(desk, "run", "Go.", tools=[deeper])
    assert outcome.usage.rounds == 8
    assert desk.results == ["It is paid."] * 2
    calls = desk.blocks(ToolCall)
    inner = [desk.blocks(ToolCall, f"desk/{call.id}")[0] for call in calls]
    names = [f"desk/{a.id}/{b.id}" for a, b in zip(calls, inner, strict=True)]
    assert [desk.blocks(UserPrompt, name)[0].text for name in names] == ["C", "C"]


def test_an_interrupted_one_goes_on_where_it_was(practice: Practice) -> None:
    """Ctrl-C in a tool of the sub-agent: its call is closed there, and the agent's stays open."""
    seen: list[str] = []

    def look(path: str) -> str:
        """Look."""
        seen.append(path)
        raise KeyboardInterrupt

    look_at = Reply(text="I look.", calls=[Call("look", {"path": "a"})])
    desk = Desk.at(practice, HERE, [ASK, look_at, REPORT, DONE])
    with pytest.raises(KeyboardInterrupt):
        run_with_helper(desk, "run", "Go.", tools=[look])
    assert desk.results == []
    outcome = run_with_helper(desk, "resume", tools=[look])
    assert (outcome.text, desk.results, seen) == ("Done.", ["It is paid."], ["a"])
    [call] = desk.blocks(ToolCall)
    [closed] = desk.blocks(ToolResult, f"desk/{call.id}")
    assert closed.envelope.outcome == "partial"
    assert not desk.server.refused


def test_after_an_interrupt_the_threads_of_sub_agents_append_nothing(practice: Practice) -> None:
    """A thread cannot be stopped. When the call is made again, two would work on one log, and both would answer."""
    began, release = threading.Event(), threading.Event()

    def look() -> str:
        """Look, and take long."""
        began.set()
        release.wait(PATIENCE)
        return "seen"

    def stop() -> None:
        """Interrupt the run when the sub-agent's sub-agent is at work."""
        assert began.wait(PATIENCE)
        raise KeyboardInterrupt

    def answer(request: Any) -> Reply:
        messages = request["messages"]
        if len(messages) > 1:
            return DONE
        task = messages[0]["content"][0]["text"]
        both = [Call("look"), Call("rest")]
        calls = {"Go.": [*ASK.calls, Call("stop")], "Pay 5.": [Call("deeper", {"task": "C"})]}
        return Reply(calls=calls.get(task, both))

    desk = Desk.at(practice, HERE, answer)
    rest = tool(name="rest")(lambda: "rested")
    deeper = SubAgent("deeper", "Looks deeper.", client=desk.client(), tools=[tool(look), rest])
    desk.agent = {"tools": [helper(desk.client(), tools=[deeper]), tool(stop)]}
    others = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        desk.run()
    name = f"desk/{desk.blocks(ToolCall)[0].id}"
    below = f"{name}/{desk.blocks(ToolCall, name)[0].id}"
    before = [desk.store.head(each) for each in (name, below)]
    release.set()
    until(lambda: all(t.name != "foldline-tool" for t in set(threading.enumerate()) - others))
    assert [desk.store.head(each) for each in (name, below)] == before
    assert desk.resume().text == DONE.text
    for each in (name, below):
        with Timeline.open(each, store=desk.store) as timeline:
            assert timeline.open_calls == ()
            assert timeline.render().violations == ()
    assert not desk.server.refused


def test_a_report_that_did_not_reach_the_agent_is_not_asked_for_again(practice: Practice) -> None:
    """Killed when the sub-agent was done, and before its report was the result of the call."""
    desk = Desk.at(practice, HERE, [ASK, REPORT, DONE])

    def last(agent: Any) -> None:
        for event in agent.run_events("Go."):
            if isinstance(event, ToolStarted):
                break

    desk.agent["tools"] = [helper(desk.client())]
    desk.with_agent(last, last)
    [call] = desk.blocks(ToolCall)
    with Timeline.open(f"desk/{call.id}", store=desk.store) as child:
        ReactAgent(child, desk.client()).run("Pay 5.")
    assert desk.resume().text == "Done."
    assert desk.results == ["It is paid."]
    assert len(desk.server.requests) == 3


def test_what_goes_wrong_in_it_is_its_report(practice: Practice) -> None:
    desk = Desk.at(practice, HERE, [ASK, Reply(stop_reason="refusal"), DONE])
    run_with_helper(desk, "run", "Go.")
    assert desk.results[0].startswith("The sub-agent stopped with `refusal` before it was done.")
    assert desk.blocks(ToolResult)[0].is_error


def test_a_decision_about_no_call_of_it_is_refused(practice: Practice) -> None:
    desk = Desk.at(practice, HERE, [ASK, PAY])
    [approval] = run_with_helper(desk, "run", "Go.", tools=[pay]).approvals
    outer, _, inner = approval.id.partition("/")
    for wrong in ("x", inner, f"{outer}/x", outer):
        with pytest.raises(MisuseError, match=r"no call .* waits for an approval"):
            run_with_helper(desk, "deny", wrong, tools=[pay])


def test_it_is_declared_like_an_agent() -> None:
    with pytest.raises(MisuseError, match="did you mean 'system'"):
        SubAgent("helper", "Helps.", client=None, sistem="x")  # type: ignore[call-arg]
    with pytest.raises(MisuseError, match="a tool's name must be"):
        SubAgent("no good", "Helps.", client=None).as_tool()
