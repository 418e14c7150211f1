"""The OpenAI Agents SDK: a session whose history is a timeline.

Before each model call the run's items are synced, and the rendered request is sent instead. A hook records the
model's answer with its usage.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from blocks import MisuseError
from render import Json, Rendered
from timeline import AsyncTimeline
from timeline.integrations._lacking import lacking

try:
    from agents import (
        Agent,
        AgentHookContext,
        Handoff,
        ModelResponse,
        ModelSettings,
        RunConfig,
        RunContextWrapper,
        RunHooks,
        SessionSettings,
        TResponseInputItem,
        handoff,
    )
    from agents.models.openai_responses import Converter
    from agents.run import CallModelData, ModelInputData
except ModuleNotFoundError as error:
    raise lacking("openai-agents", error) from error

_FORMAT: Final = "openai.responses"
_HELD: Final = "foldline:"
"""The beginning of the id of the item that stands for the timeline's content; the version follows."""


@attrs.define(eq=False)
class TimelineSession:
    """A session for `Runner.run(..., session=session, hooks=session.hooks, run_config=session.run_config)`.

    The timeline's model must be one of `openai.responses`; another provider's model behind the SDK must accept its
    items. If the run's history is edited, for example by the filter of a handoff, the run continues in a fork.
    """

    timeline: AsyncTimeline
    """The timeline with which the run continues."""
    session_settings: SessionSettings | None = None
    """Part of the SDK's protocol; not used, because the timeline's policy decides what is sent."""
    _saved: int = attrs.field(init=False)
    """Version up to which the SDK's items are in the timeline."""
    _rendered: Rendered | None = attrs.field(default=None, init=False)
    """The newest request of the current run; None: there is no run."""

    def __attrs_post_init__(self) -> None:
        self._saved = self.timeline.version

    @property
    def session_id(self) -> str:
        """The timeline's name."""
        return self.timeline.id

    @property
    def hooks(self) -> "TimelineHooks":
        """Hooks for the runs of this session; to add hooks of your own, derive a class from `TimelineHooks`."""
        return TimelineHooks(self)

    @property
    def run_config(self) -> RunConfig:
        """The configuration for the runs of this session; add further settings with `dataclasses.replace`."""
        settings = self.timeline.settings
        marks = settings.provider.limits(settings.model).marks_max > 0
        return RunConfig(
            call_model_input_filter=self._rendered_instead,
            model_settings=ModelSettings(
                store=False,
                prompt_cache_options={"mode": "explicit"} if marks else None,
                extra_args={"prompt_cache_key": settings.cache_key},
            ),
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:  # noqa: ARG002 -- the SDK's
        """One item that stands for all of the timeline's content; empty for an empty timeline."""
        self._saved, self._rendered = self.timeline.version, None
        held: TResponseInputItem = {"type": "item_reference", "id": f"{_HELD}{self._saved}"}
        return [held] if self._saved else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append the items that the timeline lacks. During a run the next model call does this instead."""
        if self._rendered is None:
            await self._sync(items, self._saved)
        self._saved = self.timeline.version

    async def pop_item(self) -> TResponseInputItem | None:
        """Not supported by a timeline.

        Raises:
            MisuseError: always.
        """
        raise MisuseError(
            "a timeline cannot remove items; continue from an earlier version with fork()"
        )

    async def clear_session(self) -> None:
        """Not supported by a timeline.

        Raises:
            MisuseError: always.
        """
        raise MisuseError("a timeline cannot be cleared; open a new one")

    async def record(self, response: ModelResponse) -> None:
        """Record the model's answer to the newest request."""
        found = {"id": response.response_id, "output": response.output, "usage": response.usage}
        await self.timeline.record(found, self._rendered, format=_FORMAT)

    def end(self) -> None:
        """Note that the run is over: no further model call follows."""
        self._rendered = None

    async def _rendered_instead(self, call: CallModelData[Any]) -> ModelInputData:
        given = call.model_data
        after = _held(given.input)
        system = await self._sync(given.input[1:] if after else given.input, after)
        told = [text for text in (given.instructions, system) if text]
        tools = await _tools(call.agent, call.context)
        self._rendered = await self.timeline.render(system="\n\n".join(told), tools=tools)
        return ModelInputData(input=self._rendered.openai_responses()["input"], instructions=None)

    async def _sync(self, items: Sequence[TResponseInputItem], after: int) -> str:
        synced = await self.timeline.sync(items, format=_FORMAT, after=after, on_divergence="fork")
        self.timeline = synced.timeline
        return synced.system


class TimelineHooks(RunHooks[Any]):
    """Hooks that record the model's answers."""

    def __init__(self, session: TimelineSession) -> None:
        self.session = session

    async def on_llm_end(
        self,
        context: RunContextWrapper[Any],  # noqa: ARG002 -- the SDK's
        agent: Agent[Any],  # noqa: ARG002
        response: ModelResponse,
    ) -> None:
        """Record the model's answer."""
        await self.session.record(response)

    async def on_agent_end(
        self,
        context: AgentHookContext[Any],  # noqa: ARG002 -- the SDK's
        agent: Agent[Any],  # noqa: ARG002
        output: Any,  # noqa: ARG002
    ) -> None:
        """Note that the run is over."""
        self.session.end()


def _held(items: Sequence[TResponseInputItem]) -> int:
    """Version of the timeline for which the first item stands; 0: it is an ordinary item."""
    first: Mapping[str, Any] = items[0] if items else {}
    name = str(first.get("id", ""))
    is_held = first.get("type") == "item_reference" and name.startswith(_HELD)
    return int(name.removeprefix(_HELD)) if is_held else 0


async def _tools(agent: Agent[Any], context: Any) -> list[Json]:
    """The definitions that the SDK will send; here they are only counted."""
    tools = await agent.get_all_tools(RunContextWrapper(context))
    handoffs = [one if isinstance(one, Handoff) else handoff(one) for one in agent.handoffs]
    return [dict(tool) for tool in Converter.convert_tools(tools, handoffs).tools]
