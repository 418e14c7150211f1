"""The OpenAI Agents SDK: a session whose history is a timeline.

What the run has is synced before each call of the model, what is rendered is sent instead, and the model's
answer is recorded, with its usage, by a hook.
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
"""How the id of the item begins that stands for what the timeline holds; its version follows."""


@attrs.define(eq=False)
class TimelineSession:
    """A session for `Runner.run(..., session=session, hooks=session.hooks, run_config=session.run_config)`.

    The timeline's model is one of `openai.responses`; another maker's, behind the SDK, has to read these
    items, too.  Where the run's history is edited, by a filter of a handoff say, it goes on in a fork.
    """

    timeline: AsyncTimeline
    """What the run goes on with."""
    session_settings: SessionSettings | None = None
    """Of the SDK's protocol; not used: the timeline's policy says what is sent."""
    _saved: int = attrs.field(init=False)
    """Version up to which the SDK has saved everything."""
    _rendered: Rendered | None = attrs.field(default=None, init=False)
    """The newest request of the run that is going on."""

    def __attrs_post_init__(self) -> None:
        self._saved = self.timeline.version

    @property
    def session_id(self) -> str:
        """The timeline's name."""
        return self.timeline.id

    @property
    def hooks(self) -> "TimelineHooks":
        """Hooks for the runs of this session; for more of them, derive from their class."""
        return TimelineHooks(self)

    @property
    def run_config(self) -> RunConfig:
        """For the runs of this session; `dataclasses.replace` adds what else it is to have."""
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
        """One item that stands for all that the timeline holds."""
        self._saved, self._rendered = self.timeline.version, None
        held: TResponseInputItem = {"type": "item_reference", "id": f"{_HELD}{self._saved}"}
        return [held] if self._saved else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append what of these is not in the timeline yet, unless the next call of the model does."""
        if self._rendered is None:
            await self._sync(items, self._saved)
        self._saved = self.timeline.version

    async def pop_item(self) -> TResponseInputItem | None:
        """Not for a timeline.

        Raises:
            MisuseError: always.
        """
        raise MisuseError("a timeline forgets nothing: go on from an earlier version with fork()")

    async def clear_session(self) -> None:
        """Not for a timeline.

        Raises:
            MisuseError: always.
        """
        raise MisuseError("a timeline forgets nothing: open another one")

    async def record(self, response: ModelResponse) -> None:
        """Record what the model answered to the newest request."""
        found = {"id": response.response_id, "output": response.output, "usage": response.usage}
        await self.timeline.record(found, self._rendered, format=_FORMAT)

    def end(self) -> None:
        """No call of the model follows."""
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
    """Hooks that record what the model answers."""

    def __init__(self, session: TimelineSession) -> None:
        self.session = session

    async def on_llm_end(
        self,
        context: RunContextWrapper[Any],  # noqa: ARG002 -- the SDK's
        agent: Agent[Any],  # noqa: ARG002
        response: ModelResponse,
    ) -> None:
        """Record it."""
        await self.session.record(response)

    async def on_agent_end(
        self,
        context: AgentHookContext[Any],  # noqa: ARG002 -- the SDK's
        agent: Agent[Any],  # noqa: ARG002
        output: Any,  # noqa: ARG002
    ) -> None:
        """The run is over."""
        self.session.end()


def _held(items: Sequence[TResponseInputItem]) -> int:
    """Version of what the first item stands for; 0: it is one like all others."""
    first: Mapping[str, Any] = items[0] if items else {}
    name = str(first.get("id", ""))
    is_held = first.get("type") == "item_reference" and name.startswith(_HELD)
    return int(name.removeprefix(_HELD)) if is_held else 0


async def _tools(agent: Agent[Any], context: Any) -> list[Json]:
    """The definitions that the SDK is going to send; here they are only counted."""
    tools = await agent.get_all_tools(RunContextWrapper(context))
    handoffs = [one if isinstance(one, Handoff) else handoff(one) for one in agent.handoffs]
    return [dict(tool) for tool in Converter.convert_tools(tools, handoffs).tools]
