"""Killed or interrupted anywhere, and resumed: every call has one result, and what must not run twice does not.

A script of rounds is drawn, with calls of every kind of tool. A run of it is killed (nothing more reaches the store) or
interrupted (the agent may still put the log in order) at drawn commits and tools, and gone on with in a new process each
time; a person decides about some of the calls that wait, between the runs.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from threading import RLock
from typing import Any, Final

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blocks import (
    BlockAppended,
    OpaqueBlock,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserPrompt,
    text_of,
)
from persistence import MemoryStore
from tests._practice import Practice
from tests._sizes import sized
from timeline import Timeline, tool
from timeline.fake_provider import Call, ParsedRequest, Reply
from timeline.react import Limits, RunContext, SubAgent

from .desk import Desk

TOOLS: Final = ("look", "pay", "count", "helper")
PERSON: Final = ("approve", "edit", "deny", "wait")
HARMLESS: Final = frozenset({"count", "helper"})
"""Tools whose calls may be made again."""


class KilledError(BaseException):
    """The process is gone."""


@attrs.define
class Trap:
    """Springs at the n-th thing that happens in one process; after a kill, nothing happens in it any more."""

    at: int = 0
    kill: bool = False
    dead: bool = False
    spent: int = 0
    lock: RLock = attrs.field(factory=RLock)
    """Held during a commit, because a process that is killed by one of its threads commits nothing in another."""

    def step(self) -> None:
        with self.lock:
            self._step()

    def _step(self) -> None:
        self.spent += 1
        if self.dead or (self.spent == self.at and self.kill):
            self.dead = True
            raise KilledError
        if self.spent == self.at:
            raise KeyboardInterrupt


TRAP: ContextVar[Trap] = ContextVar("TRAP")
"""The trap of the process. Its threads keep it, also those that are still there when the next process begins."""


class TrappedStore(MemoryStore):
    """Steps on the trap before and after each commit."""

    def append(self, *given: Any, **named: Any) -> int:
        trap = TRAP.get()
        with trap.lock:
            trap.step()
            version = super().append(*given, **named)
            trap.step()
        return version

    def load_window(self, *given: Any, **named: Any) -> Any:
        if TRAP.get().dead:
            raise KilledError
        return super().load_window(*given, **named)


@attrs.define
class World:
    """The tools, what they did, and the model that calls them."""

    rounds: list[list[str]]
    done: Counter[str] = attrs.field(factory=Counter[str])
    """How often the function of a call was entered, by call id."""
    amounts: dict[str, int] = attrs.field(factory=dict[str, int])
    approved: dict[str, int] = attrs.field(factory=dict[str, int])
    """By approval id: the amount that the person allowed."""
    denied: set[str] = attrs.field(factory=set[str])

    def tools(self, client: Any) -> list[Any]:
        """The tools of the agent; its sub-agent has the first three, too."""

        def work(context: RunContext, amount: int) -> str:
            TRAP.get().step()
            self.done[context.call.call_id] += 1
            self.amounts[context.call.call_id] = amount
            TRAP.get().step()
            return f"{context.call.name} {amount}"

        def look(amount: int, context: RunContext) -> str:
            return work(context, amount)

        own = [
            tool(look),
            tool(name="pay", needs_approval=True)(look),
            tool(name="count", idempotent=True)(look),
        ]
        return [*own, SubAgent("helper", "Helps.", client=client, tools=own, parallel_max=1)]

    def answer(self, request: Any) -> Reply:
        """The reply of the round that a request is in: it depends on the request alone, as a model's does."""
        messages = ParsedRequest.of(request).messages
        number = sum(message.role == "assistant" for message in messages)
        is_helper = "HELP" in str(messages[0])
        plan = [["pay", "count"], ["look"]] if is_helper else self.rounds
        if number >= len(plan):
            return Reply(text="helped" if is_helper else "Done.")
        calls = [
            Call(name, {"task": "HELP"} if name == "helper" else {"amount": 10 * number + place})
            for place, name in enumerate(plan[number])
        ]
        return Reply(text=f"Round {number}.", calls=calls)


kills = st.lists(st.tuples(st.integers(0, 16), st.booleans()), max_size=8)
"""For each process: at which of its steps it is stopped (0: at none), and whether it is killed."""
tools = st.sampled_from((*TOOLS, "pay"))
plans = st.lists(st.lists(tools, min_size=1, max_size=3), min_size=1, max_size=3)
people = st.lists(st.sampled_from(PERSON), max_size=20)


BOTH = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def play(
    desk: Desk,
    rounds: list[list[str]],
    traps: list[tuple[int, bool]],
    person: list[str],
    several: int,
) -> None:
    """Run a script to its end, through all traps and decisions, and check what is promised."""
    world = World(rounds)
    desk.server.provider.responder = world.answer
    desk.store = TrappedStore()
    TRAP.set(Trap())
    through(world, desk, traps, iter(person), parallel_max=several)
    check(world, desk)
    assert not desk.server.refused
    assert not desk.server.provider.failures


@BOTH
def test_any_interleaving_of_kills_decisions_and_resumes(
    practice: Practice, *, is_async: bool
) -> None:
    desk = Desk.at(practice, ("anthropic", is_async), [])

    @settings(
        max_examples=sized(8, 300),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(rounds=plans, traps=kills, person=people, several=st.sampled_from([1, 4]))
    def any_script(
        rounds: list[list[str]], traps: list[tuple[int, bool]], person: list[str], several: int
    ) -> None:
        play(desk, rounds, traps, person, several)

    any_script()


@BOTH
@pytest.mark.parametrize("kill", [False, True], ids=["interrupt", "kill"])
def test_stopped_at_every_step_from_the_approval_to_the_end(
    practice: Practice, *, kill: bool, is_async: bool
) -> None:
    """Each commit and each moment in a tool, of the process that goes on after the decision."""
    desk = Desk.at(practice, ("anthropic", is_async), [])
    for at in range(1, sized(10, 20)):
        play(desk, [["pay"]], [(0, False), (at, kill)], ["edit"], 1)
    play(desk, [["helper"]], [(0, False), (sized(5, 9), kill)], ["edit"], 1)


def through(
    world: World, desk: Desk, traps: list[tuple[int, bool]], person: Any, **given: Any
) -> None:
    """Run the script to its end, through all traps and decisions."""
    client = desk.aclient if desk.is_async else desk.client
    waiting, verb = iter(traps), "run"
    while True:
        at, kill = next(waiting, (0, False))
        TRAP.set(Trap(at, kill))
        try:
            outcome = one_process(world, desk, verb, client, given)
        except (KilledError, KeyboardInterrupt):
            outcome = None
        TRAP.set(Trap())
        verb = "resume" if desk.blocks(UserPrompt) else "run"
        if outcome is None:
            continue
        if outcome.stop == "end_turn":
            return
        assert outcome.stop == "approval"
        decide(world, desk, outcome.approvals, person)


def one_process(
    world: World, desk: Desk, verb: str, client: Callable[[], Any], given: dict[str, Any]
) -> Any:
    prompt = ("Go.",) if verb == "run" else ()

    def agent(child: Any) -> None:
        desk.agent = {"tools": world.tools(child), "limits": Limits(rounds=99), **given}

    if not desk.is_async:
        agent(client())
        return desk.do(verb, *prompt)

    async def work() -> Any:
        async with client() as child:
            agent(child)
            return await desk._awaited(lambda made: getattr(made, verb)(*prompt))

    return asyncio.run(work())


def decide(world: World, desk: Desk, approvals: Any, person: Any) -> None:
    """The person decides about some of the calls; if about none, about the first."""
    for place, each in enumerate(approvals):
        decision = next(person, "approve")
        if decision == "wait" and place:
            continue
        amount = each.input["amount"]
        if decision == "deny":
            desk.do("deny", each, "No.")
            world.denied.add(each.id.rpartition("/")[2])
            continue
        edited = {"amount": amount + 100} if decision == "edit" else None
        desk.do("approve", each, edited)
        world.approved[each.id.rpartition("/")[2]] = amount + 100 if edited else amount


def check(world: World, desk: Desk) -> None:
    """What is promised, of the agent's log and of each sub-agent's."""
    names = [desk.name, *(f"desk/{c.id}" for c in desk.blocks(ToolCall) if c.name == "helper")]
    for name in names:
        with Timeline.open(name, store=desk.store) as timeline:
            assert timeline.open_calls == ()
            assert timeline.render().violations == ()
            log = [e.block for _, e in timeline.events() if isinstance(e, BlockAppended)]
        calls = {block.call_id: block for block in log if isinstance(block, ToolCall)}
        results = {block.call_id: block for block in log if isinstance(block, ToolResult)}
        order = [type(b).__name__ + b.call_id for b in log if isinstance(b, ToolCall | ToolResult)]
        assert len(order) == len(set(order)) == 2 * len(calls), "each call has one result"
        for call_id, call in calls.items():
            assert order.index(f"ToolCall{call_id}") < order.index(f"ToolResult{call_id}")
            promised(world, call, results[call_id], log)


def promised(world: World, call: ToolCall, result: ToolResult, log: list[Any]) -> None:
    ran, interrupted = world.done[call.call_id], result.envelope.outcome == "partial"
    if call.name in HARMLESS:
        assert not interrupted, "it was made again"
        assert call.name != "helper" or text_of(result) == "helped", "its report is the result"
        return
    assert ran <= 1, "it ran twice"
    assert interrupted or ran == (not result.is_error)
    if call.name != "pay":
        return
    steps = [b.fields["step"] for b in log if is_step_of(b, call)]
    if call.call_id in world.denied:
        assert (ran, steps, result.is_error) == (0, ["asked", "denied"], True)
    else:
        assert steps == ["asked", "approved", "begun"], "an approved call is not forgotten"
        if ran:
            assert world.amounts[call.call_id] == world.approved[call.call_id]
        edited = [b for b in log if isinstance(b, SystemMessage) and call.call_id in b.text]
        assert bool(edited) == (world.approved[call.call_id] != call.input["amount"])


def is_step_of(block: Any, call: ToolCall) -> bool:
    return isinstance(block, OpaqueBlock) and block.fields.get("call") == call.id
