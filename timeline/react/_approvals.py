"""Approvals: calls that wait for a person, and what is decided about them, all of it in the log.

    asked ──▶ approved ──▶ begun ──▶ result
        └───▶ denied ──────────────▶ result (an error that gives the reason)

Each step is a block that the model does not see. It is durable before the next one is taken, and of two equal steps, by two
processes, the first in the log counts. So an approved call runs once at most, whoever goes on: a process that is killed
before `begun` has not run it, and the next one does; a process that is killed after it may have, and the next one closes
the call as interrupted.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import attrs
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from blocks import (
    AlreadyRecordedError,
    BlockId,
    CallId,
    MisuseError,
    OpaqueBlock,
    SystemMessage,
    ToolCall,
    TurnId,
)
from render import Json, View

if TYPE_CHECKING:
    from timeline.react._tools import Tool

TAG: Final = "react.approval"
"""The tag of the blocks that record a step."""
Step: TypeAlias = Literal["asked", "approved", "denied", "begun"]
DENIED: Final = "Not run: the user did not approve it."
FORGONE: Final = "Not run: nobody approved it before the conversation went on."
EDITED: Final = "The user approved the call {} ({}) with other arguments: {}"


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a call's approval."""

    id: BlockId
    turn: TurnId
    call: BlockId
    """The block of the call, because call ids may repeat."""
    step: Step
    input: dict[str, Any] | None = None
    """The arguments instead of the model's."""
    reason: str = ""
    """Why it was denied."""

    def block(self) -> OpaqueBlock:
        """The block for the log; without an author and a text, no model is shown it."""
        return OpaqueBlock(TAG, msgspec.to_builtins(self))


@attrs.frozen(kw_only=True)
class Approval:
    """A call that waits for a person's decision: `agent.approve(approval)` or `agent.deny(approval, reason)`."""

    id: str
    """The call's id; for a call of a sub-agent, the ids of both calls: `toolu_1/toolu_2`."""
    name: str
    """The tool."""
    input: Json
    """The arguments, as the model gave them."""

    @classmethod
    def of(cls, call: ToolCall) -> "Approval":
        """The approval that a call waits for."""
        return cls(id=call.call_id, name=call.name, input=call.input)

    def within(self, call_id: str) -> "Approval":
        """The same as the agent sees it that called a sub-agent."""
        return attrs.evolve(self, id=f"{call_id}/{self.id}")

    def place_in(self, call_ids: Sequence[str]) -> int:
        """Which of the agent's calls waits, itself or with its sub-agent."""
        own = (i for i, each in enumerate(call_ids) if f"{self.id}/".startswith(f"{each}/"))
        return next(own, len(call_ids))


@attrs.frozen
class Suspension:
    """What a sub-agent's call comes to for now: it stays open, and goes on when the agent's run is resumed."""

    stop: Literal["approval", "limit"]
    approvals: tuple[Approval, ...] = ()


@attrs.frozen
class CallState:
    """The steps of one call's approval so far, each with its version in the log."""

    call: ToolCall
    steps: Mapping[Step, tuple[int, Record]]

    @property
    def decision(self) -> tuple[int, Record] | None:
        """The first decision, which counts."""
        decisions: tuple[Step, ...] = ("approved", "denied")
        records = [self.steps[step] for step in decisions if step in self.steps]
        return min(records, key=lambda each: each[0], default=None)

    @property
    def effective(self) -> ToolCall:
        """The call with the arguments that the user gave it."""
        edited = self.decision[1].input if self.decision else None
        return self.call if edited is None else replace(self.call, input=edited)


def open_calls(view: View) -> tuple[ToolCall, ...]:
    """The calls that wait for a result, in order."""
    return tuple(call for _, call in view.groups[-1].unanswered) if view.groups else ()


def states_in(view: View) -> list[CallState]:
    """The open calls with the steps of their approvals; of calls with the same id the oldest, to which the next result
    of that id belongs."""
    oldest: dict[CallId, ToolCall] = {}
    for call in open_calls(view):
        oldest.setdefault(call.call_id, call)
    steps: dict[BlockId, dict[Step, tuple[int, Record]]] = {}
    for entry in view.groups[-1].entries if view.groups else ():
        block = entry.block
        if isinstance(block, OpaqueBlock) and block.tag == TAG:
            record = msgspec.convert(block.fields, Record)
            steps.setdefault(record.call, {}).setdefault(record.step, (entry.version, record))
    return [CallState(call, steps.get(call.id, {})) for call in oldest.values()]


Fate: TypeAlias = Literal["ask", "wait", "deny", "begin", "run", "close"]
"""What is to be done with an open call: ask a person, wait for one, tell the model that it was denied, begin an approved
one, run it, or close it as interrupted."""


@attrs.frozen
class Gate:
    """Decides about open calls, by the log and by what their tools declare."""

    tools: "Mapping[str, Tool]"

    def fates(self, view: View, new: Collection[BlockId] = ()) -> dict[Fate, list[CallState]]:
        """The open calls by what is to be done with them. The `new` ones cannot have been begun."""
        fates: dict[Fate, list[CallState]] = {}
        for state in states_in(view):
            fates.setdefault(self._fate(state, new=state.call.id in new), []).append(state)
        return fates

    def fate_of(self, view: View, call: ToolCall) -> Fate | None:
        """What is to be done with this call; None: it is not open, or waits for an older one with its id."""
        states = (state for state in states_in(view) if state.call.id == call.id)
        return next((self._fate(state, new=False) for state in states), None)

    def _fate(self, state: CallState, *, new: bool) -> Fate:
        tool = self.tools.get(state.call.name)
        may_repeat = new or (tool is not None and tool.idempotent)
        if state.decision and state.decision[1].step == "denied":
            return "deny"
        if "begun" in state.steps:
            return "run" if may_repeat else "close"
        if state.decision:
            return "begin"
        if "asked" in state.steps:
            return "wait"
        if tool is not None and tool.must_ask(state.call):
            return "ask"
        return "run" if may_repeat else "close"

    def pending(self, view: View, approval_id: str) -> CallState:
        """The call that waits for this decision.

        Raises:
            MisuseError: no call with this id waits.
            AlreadyRecordedError: it is decided.
        """
        fates = self.fates(view)
        waiting: list[CallState] = [*fates.get("wait", ()), *fates.get("ask", ())]
        for state in states_in(view):
            if state.call.call_id == approval_id and state.decision:
                raise AlreadyRecordedError(
                    f"the decision about call {approval_id!r}", state.decision[0]
                )
            if state.call.call_id == approval_id and state in waiting:
                return state
        ids = ", ".join(state.call.call_id for state in waiting)
        raise MisuseError(
            f"no call {approval_id!r} waits for an approval; {f'there are: {ids}' if ids else 'none does'}"
        )


def edited_notice(state: CallState, new_id: BlockId) -> Iterable[SystemMessage]:
    """The notice to the model that a call runs with other arguments than its own; none if they are the same."""
    call = state.effective
    if call.input != state.call.input:
        text = EDITED.format(call.call_id, call.name, msgspec.json.encode(call.input).decode())
        yield SystemMessage(id=new_id, turn=call.turn, text=text)


def decided_first(state: CallState, view: View, version: int) -> bool:
    """Whether the decision at this version is the first one about a call."""
    for each in states_in(view):
        if each.call.id == state.call.id and each.decision:
            return each.decision[0] == version
    return False


def begun_between(view: View, after: int, version: int) -> set[CallId]:
    """The calls whose `begun` in these versions, which one process has just appended, is the first."""
    return {
        state.call.call_id
        for state in states_in(view)
        if "begun" in state.steps and after < state.steps["begun"][0] <= version
    }
