"""Sub-agents: an agent as a tool of another, with a timeline of its own.

research = SubAgent("research", "Look into one question and report.", client=client, tools=[read_file])
agent = ReactAgent(timeline, client, tools=[research])

The sub-agent's timeline has the name of the agent's timeline and of the call's block, so the agent's log alone says where it
is; call ids may repeat. A call that was interrupted, or that waits for an approval or for a new allowance, stays open and
goes on there.
"""

from collections.abc import Callable
from typing import Any, Final

import attrs

from blocks import ToolCall, checked_calls
from timeline import AsyncTimeline
from timeline._arguments import is_kind
from timeline.react._agent import AsyncReactAgent, ReactAgent
from timeline.react._approvals import Suspension
from timeline.react._events import Outcome
from timeline.react._loop import Flow, Loop
from timeline.react._settings import AgentSettings
from timeline.react._tools import RunContext, Tool, ToolReply, as_text, tool

_UNFINISHED: Final = "The sub-agent stopped with `{}` before it was done. {}"


@checked_calls
@attrs.frozen
class SubAgent(AgentSettings[Any]):
    """An agent that another one calls as a tool: it gets a task, and its report is the result.

    What it uses counts for the calling agent's limits, too.
    """

    name: str = attrs.field(validator=is_kind(str, "a text"))
    """The tool's name."""
    description: str = attrs.field(validator=is_kind(str, "a text"))
    """What it does, for the model that calls it."""
    client: Any = attrs.field(kw_only=True, repr=False)
    """The client of its model's provider, as for `ReactAgent`."""
    open: Callable[[str], Any] | None = attrs.field(default=None, kw_only=True, repr=False)
    """Opens a timeline of this name: `lambda name: Timeline.open(name, store=store, model="claude-haiku-4-5")`. None: in
    the store of the calling agent, with its model and policy."""

    def as_tool(self) -> Tool:
        """The tool that runs it."""

        def run(task: str, context: RunContext) -> Any:
            """Run the sub-agent.

            Args:
                task: All that it needs to know; it sees nothing of this conversation.
            """
            runs = self._arun if isinstance(context.timeline, AsyncTimeline) else self._run
            return runs(task, context)

        base = tool(name=self.name, description=self.description, idempotent=True)(run)
        return attrs.evolve(base, delegate=self)

    def _run(self, task: str, context: RunContext) -> ToolReply | Suspension:
        with (
            self._opened(context.timeline, context.call) as timeline,
            context.meter.serving(timeline),
        ):
            outcome = ReactAgent(timeline, self.client, **self._settings)._as_child(  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] -- one of ours
                task, context.meter
            )
            return self._answer(outcome, timeline.id, context)

    async def _arun(self, task: str, context: RunContext) -> ToolReply | Suspension:
        async with await self._opened(context.timeline, context.call) as timeline:
            outcome = await AsyncReactAgent(timeline, self.client, **self._settings)._as_child(  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] -- one of ours
                task, context.meter
            )
            return self._answer(outcome, timeline.id, context)

    @property
    def _settings(self) -> dict[str, Any]:
        return {
            field.name: getattr(self, field.name)
            for field in attrs.fields(AgentSettings)
            if field.init
        }

    def _opened(self, timeline: Any, call: ToolCall) -> Any:
        """The sub-agent's timeline; of an async one, to be awaited."""
        return (self.open or timeline.sibling)(f"{timeline.id}/{call.id}")

    def _answer(
        self, outcome: Outcome[Any], name: str, context: RunContext
    ) -> ToolReply | Suspension:
        if outcome.stop == "approval":
            return Suspension(
                "approval", tuple(each.within(context.call.call_id) for each in outcome.approvals)
            )
        if outcome.stop == "limit" and context.meter.reached():
            return Suspension("limit")
        is_done = outcome.stop == "end_turn"
        report: Any = outcome.text if outcome.output is None else outcome.output
        report = report if isinstance(report, str) else as_text(report)
        return ToolReply(
            output=report if is_done else _UNFINISHED.format(outcome.limit or outcome.stop, report),
            is_error=not is_done,
            outcome="success" if is_done else "partial",
            key_fields={"timeline": name},
        )

    def decide(self, timeline: Any, call: ToolCall, decision: tuple[Any, ...]) -> Flow[None]:
        """Record a decision about a call of the sub-agent that a call of the agent on `timeline` has started."""
        child = yield lambda: self._opened(timeline, call)
        try:
            yield from Loop(child, self).decide(*decision)
        finally:
            yield child.close
