"""A call that waits for a person: the run stops with it as a value, and any process goes on from the log."""

import asyncio
from typing import Any

import pytest

from blocks import AlreadyRecordedError, BlockAppended, MisuseError, SystemMessage, ToolResult
from persistence import MemoryStore
from tests._practice import Practice
from tests._table import for_each
from timeline import AsyncTimeline, ReactAgent, Timeline, tool
from timeline.fake_provider import Call, Reply
from timeline.react import ApprovalNeeded, Outcome, ToolDone
from timeline.react._approvals import Approval

from .desk import EVERYWHERE, Desk

PAID: list[int] = []


@pytest.fixture(autouse=True)
def nothing_is_paid() -> None:
    PAID.clear()


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount}"


def look(path: str) -> str:
    """Look at a file."""
    return f"text of {path}"


SCRIPT = [
    Reply(
        text="I pay.",
        calls=[Call("look", {"path": "a"}), Call("pay", {"amount": 5}), Call("pay", {"amount": 7})],
    ),
    Reply(text="Done."),
]
HERE = ("anthropic", False)


def desk_at(practice: Practice, where: tuple[str, bool] = HERE, **more: Any) -> Desk:
    return Desk.at(practice, where, list(SCRIPT), **{"tools": [pay, look], **more})


@EVERYWHERE
def test_a_run_stops_and_goes_on_in_another_process(
    practice: Practice, provider: str, *, is_async: bool
) -> None:
    """One approved with other arguments, one denied; each step by a process of its own."""
    PAID.clear()
    desk = desk_at(practice, (provider, is_async))
    stopped = desk.run()
    assert (stopped.stop, stopped.text, PAID) == ("approval", "I pay.", [])
    assert [(each.name, each.input) for each in stopped.approvals] == [
        ("pay", {"amount": 5}),
        ("pay", {"amount": 7}),
    ]
    assert desk.results == ["text of a"], "the call that needs no approval was made"
    five, seven = stopped.approvals
    desk.do("approve", five, {"amount": 6})
    assert PAID == [], "an approved call is made when the run is resumed"
    half = desk.resume()
    assert (half.stop, half.approvals, PAID) == ("approval", (seven,), [6])
    assert half.rounds == 0
    desk.do("deny", seven.id, "That is too much.")
    done = desk.resume()
    assert (done.stop, done.text, PAID) == ("end_turn", "Done.", [6])
    assert desk.results == [
        "text of a",
        "paid 6",
        "Not run: the user did not approve it. That is too much.",
    ]
    assert [result.is_error for result in desk.blocks(ToolResult)] == [False, False, True]
    [notice] = desk.blocks(SystemMessage)
    assert notice.text.endswith('(pay) with other arguments: {"amount":6}')
    assert len(desk.server.requests) == 2
    assert not desk.server.refused


def test_what_waits_is_told_as_events_before_the_outcome(practice: Practice) -> None:
    desk = desk_at(practice)
    events = desk.events("run", "Go.")
    asked = [event.approval for event in events if isinstance(event, ApprovalNeeded)]
    outcome = events[-1]
    assert isinstance(outcome, Outcome)
    assert tuple(asked) == outcome.approvals
    assert [event.call.name for event in events if isinstance(event, ToolDone)] == ["look"]
    again = desk.events("resume")
    assert again[-1].approvals == outcome.approvals, "asked again, the log answers the same"


def test_resuming_without_a_decision_asks_no_model_and_writes_nothing(practice: Practice) -> None:
    desk = desk_at(practice)
    first = desk.run()
    before = len(desk.store.read("desk"))
    assert desk.resume().approvals == first.approvals
    assert len(desk.store.read("desk")) == before
    assert len(desk.server.requests) == 1


def test_the_first_decision_counts(practice: Practice) -> None:
    desk = desk_at(practice)
    five, seven = desk.run().approvals
    desk.do("deny", five)
    for late in ("approve", "deny"):
        with pytest.raises(AlreadyRecordedError, match=f"the decision about call '{five.id}'"):
            desk.do(late, five)
    desk.do("approve", seven)
    with pytest.raises(AlreadyRecordedError):
        desk.do("deny", seven)
    desk.resume()
    assert PAID == [7]
    with pytest.raises(MisuseError, match="none does"):
        desk.do("approve", seven)


def test_of_two_processes_that_decide_at_once_one_is_told_so(practice: Practice) -> None:
    """Neither has seen the other's decision when it makes its own."""

    class Racing(MemoryStore):
        rival: Any = None

        def append(self, *given: Any, **named: Any) -> int:
            rival, self.rival = self.rival, None
            if rival:
                rival()
            return super().append(*given, **named)

    desk = desk_at(practice)
    desk.store = Racing()
    five, seven = desk.run().approvals
    desk.store.rival = lambda: desk.do("deny", five)
    with pytest.raises(AlreadyRecordedError, match=f"the decision about call '{five.id}'"):
        desk.do("approve", five)
    desk.do("approve", seven)
    desk.store.rival = desk.resume  # both go on with the call that was approved
    desk.resume()
    assert PAID == [7]
    assert not desk.server.refused


@for_each("input", [{"amount": "much"}, {}, {"amount": 1, "to": "me"}, "much", [5]], ids=str)
def test_arguments_that_the_tool_does_not_take_are_refused(
    practice: Practice,
    input: Any,  # noqa: A002 -- the parameter
) -> None:
    desk = desk_at(practice)
    five, _ = desk.run().approvals
    with pytest.raises(MisuseError, match=r"approve\(\): .* input for pay"):
        desk.do("approve", five, input)
    assert five in desk.resume().approvals, "it still waits"


def test_a_new_prompt_gives_up_what_waits(practice: Practice) -> None:
    desk = desk_at(practice)
    five, _ = desk.run().approvals
    desk.do("approve", five)
    assert desk.run("Never mind.").text == "Done."
    assert PAID == []
    assert desk.results[1:] == ["Not run: nobody approved it before the conversation went on."] * 2
    assert not desk.server.refused


def test_a_function_decides_whether_a_call_waits(practice: Practice) -> None:
    @tool(name="pay", needs_approval=lambda amount: amount > 5)
    def careful(amount: int, note: str = "") -> str:
        return f"{pay(amount)}{note}"

    outcome = desk_at(practice, tools=[careful, look]).run()
    assert [each.input for each in outcome.approvals] == [{"amount": 7}]
    assert PAID == [5]

    @tool(name="pay", needs_approval=lambda amount: bool(amount / 0))
    def broken(amount: int) -> str:
        return f"{pay(amount)}"

    assert len(desk_at(practice, tools=[broken, look]).run().approvals) == 2


@for_each("asks", [True, lambda amount: amount > 5])
def test_input_that_is_not_valid_is_refused_without_asking_anybody(
    practice: Practice, asks: Any
) -> None:
    script = [Reply(calls=[Call("pay", {"amount": "much"})]), Reply(text="Done.")]
    checked = tool(name="pay", needs_approval=asks)(pay.call)
    desk = Desk.at(practice, HERE, script, tools=[checked])
    assert desk.run().text == "Done."
    assert desk.results[0].startswith("invalid input for pay")


@EVERYWHERE
def test_calls_with_the_same_id_are_made_one_after_the_other(
    practice: Practice, provider: str, *, is_async: bool
) -> None:
    """The log joins a result with the oldest call of its id. So each decision and each result is that of its own call."""
    PAID.clear()
    twice = [Call("pay", {"amount": 5}, id="x"), Call("look", {"path": "a"}, id="x")]
    script = [Reply(calls=[*twice, Call("pay", {"amount": 7}, id="x")]), Reply(text="Done.")]
    desk = Desk.at(practice, (provider, is_async), script, tools=[pay, look])
    [five] = desk.run().approvals
    assert (five.input, desk.results) == ({"amount": 5}, [])
    desk.do("deny", five, "Not 5.")
    [seven] = desk.resume().approvals
    assert (seven.input, desk.results[1:]) == ({"amount": 7}, ["text of a"])
    desk.do("approve", seven)
    assert (desk.resume().text, PAID, desk.results[2]) == ("Done.", [7], "paid 7")
    assert not desk.server.refused


def test_a_new_prompt_gives_up_calls_with_the_same_id(practice: Practice) -> None:
    calls = [Call("pay", {"amount": 5}, id="x"), Call("pay", {"amount": 7}, id="x")]
    desk = Desk.at(practice, HERE, [Reply(calls=calls), Reply(text="Done.")], tools=[pay])
    desk.run()
    assert desk.run("Never mind.").text == "Done."
    assert desk.results == ["Not run: nobody approved it before the conversation went on."] * 2


def test_a_wrong_declaration_is_refused() -> None:
    async def ask(amount: int) -> bool:
        return amount > 5

    with pytest.raises(MisuseError, match="must be a plain function"):
        tool(needs_approval=ask)(pay.call)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=r"its needs_approval needs price, .* \(amount\)"):
        tool(needs_approval=lambda price: price > 5)(pay.call)
    with pytest.raises(MisuseError, match="needs_approval"):
        tool(needs_approval="yes")(pay.call)  # type: ignore[call-overload]


def test_the_model_sees_nothing_of_the_approval_itself(practice: Practice) -> None:
    desk = desk_at(practice)
    for each in desk.run().approvals:
        desk.do("approve", each)
    desk.resume()
    sent = str(desk.server.requests[-1])
    assert "approv" not in sent
    with Timeline.open("desk", store=desk.store) as timeline:
        kinds = [
            getattr(event.block, "tag", "")
            for _, event in timeline.events()
            if isinstance(event, BlockAppended)
        ]
        found = timeline.search("type:react.approval denied approved asked begun")
    assert kinds.count("react.approval") == 6
    assert not found, "it has no text that a model could read back"


def test_an_approval_is_a_plain_value() -> None:
    """So it can be stored and sent: its id is enough to decide."""
    assert Approval(id="c1", name="pay", input={"amount": 5}) == Approval(
        id="c1", name="pay", input={"amount": 5}
    )


def test_an_agent_that_has_the_timeline_open_sees_decisions_of_others(practice: Practice) -> None:
    desk = desk_at(practice)
    with Timeline.open("desk", store=desk.store) as timeline:
        agent = ReactAgent(timeline, desk.client(), tools=[pay, look])
        for each in agent.run("Go.").approvals:
            desk.do("approve", each)
        assert agent.resume().text == "Done."
    assert sorted(PAID) == [5, 7]


def test_an_interrupt_while_others_wait_leaves_them_waiting(practice: Practice) -> None:
    def stop(path: str) -> str:
        raise KeyboardInterrupt(path)

    stop.__name__ = "look"
    desk = desk_at(practice, tools=[pay, stop])
    with pytest.raises(KeyboardInterrupt):
        desk.run()
    outcome = desk.resume()
    assert (outcome.stop, len(outcome.approvals)) == ("approval", 2)
    assert desk.results[0].startswith("Interrupted")


def test_an_async_timeline_reads_what_a_sync_one_decided(practice: Practice) -> None:
    desk = desk_at(practice)
    for each in desk.run().approvals:
        desk.do("approve", each)
    desk.is_async = True
    assert desk.resume().text == "Done."

    async def opened() -> tuple[str, ...]:
        timeline = await AsyncTimeline.open("desk", store=desk.store)
        return timeline.open_calls

    assert asyncio.run(opened()) == ()
