"""Pydantic AI: a capability that sends what a timeline renders, instead of the run's whole history.

The run's messages are synced before each model call and at the end of the run. The rendered request is sent in place
of Pydantic AI's messages, and the model's answer is recorded with its usage.  The run's own history does not change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import attrs

from blocks import MisuseError
from render import Json, Rendered
from timeline import AsyncTimeline
from timeline.integrations._lacking import lacking

try:
    from pydantic_ai import AgentRunResult, ModelMessage, ModelResponse, RunContext, ToolDefinition
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.models import Model, ModelRequestContext
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.settings import ModelSettings
except ModuleNotFoundError as error:
    raise lacking("pydantic-ai", error) from error

_FORMAT: Final = "pydantic_ai"
_CHANGE: Final = "model-settings-delta"
_PROVIDERS: Final[Mapping[type[Model[Any]], str]] = {
    AnthropicModel: "anthropic",
    OpenAIResponsesModel: "openai.responses",
    OpenAIChatModel: "openai.chat",
}
_OWN_MARKS: Final[Json] = {
    "cache": False,
    "anthropic_cache": False,
    "anthropic_cache_tool_definitions": False,
}
"""Settings that stop Pydantic AI from setting cache marks in addition to the timeline's."""


@attrs.define(eq=False)
class TimelineCapability(AbstractCapability[Any]):
    """A capability for `Agent(..., capabilities=[TimelineCapability(timeline)])`; it serves one conversation.

    The timeline's model must use the API of the agent's model: Anthropic's, or one of OpenAI's two. A run without
    `message_history` continues the timeline. A `message_history` must have the whole conversation; if it was edited,
    the run continues in a fork.
    """

    timeline: AsyncTimeline
    """The timeline with which the run continues."""
    _begun: str | None = attrs.field(default=None, init=False)
    """Id of the run with which the history begins; None: no run yet."""
    _after: int = attrs.field(default=0, init=False)
    """Version of the timeline after which the history begins."""
    _rendered: Rendered | None = attrs.field(default=None, init=False)
    """The newest request; None: none yet."""

    def get_ordering(self) -> CapabilityOrdering:
        """Make this the innermost capability, so that it syncs the messages as the others have changed them."""
        return CapabilityOrdering(position="innermost")

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Find the version of the timeline after which the run's history begins."""
        begun = ctx.messages[0].run_id if ctx.messages else ctx.run_id
        if not ctx.messages:
            await self.timeline.close_calls()  # calls that a crashed process left open
            self._after = self.timeline.version
        elif begun != self._begun:
            self._after = 0
        self._begun = begun

    async def after_run(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 -- the framework's
        *,
        result: AgentRunResult[Any],
    ) -> AgentRunResult[Any]:
        """Sync the messages that were in no request, such as the result of a tool that ends the run."""
        await self._sync(result.all_messages())
        return result

    async def prepare_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 -- the framework's
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Sync the messages, and put the rendered request in their place.

        Raises:
            MisuseError: the timeline's provider is not that of the agent's model.
        """
        settings, model = request_context.model_settings, request_context.model
        self._check(model)
        system = await self._sync(request_context.messages)
        _, asked = model.prepare_request(settings, request_context.model_request_parameters)
        told = [text for text in (system, asked.prompted_output_instructions) if text]
        tools = [_tool(tool) for tool in asked.declared_tool_defs.values()]
        self._rendered = await self.timeline.render(system="\n\n".join(told), tools=tools)
        return replace(
            request_context,
            messages=[_without_changes(message) for message in request_context.messages],
            model_settings=_instead(settings, self._rendered),
        )

    async def after_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 -- the framework's
        *,
        request_context: ModelRequestContext,  # noqa: ARG002
        response: ModelResponse,
    ) -> ModelResponse:
        """Record the model's answer."""
        await self.timeline.record(response, self._rendered, format=_FORMAT)
        return response

    async def _sync(self, messages: Sequence[ModelMessage]) -> str:
        synced = await self.timeline.sync(
            messages, format=_FORMAT, after=self._after, on_divergence="fork"
        )
        self.timeline = synced.timeline
        return synced.system

    def _check(self, model: Model[Any]) -> None:
        while isinstance(model, WrapperModel):
            model = model.wrapped
        own = self.timeline.settings.provider.name
        if own not in (name for kind, name in _PROVIDERS.items() if isinstance(model, kind)):
            raise MisuseError(
                f"timeline {self.timeline.id!r} is rendered for {own!r}, and the agent asks"
                f" {type(model).__name__}: open it with a model of the same API"
            )


def _without_changes(message: ModelMessage) -> ModelMessage:
    """The message without changes of settings, which Pydantic AI keeps in its messages but not in the request."""
    if not any(part.part_kind == _CHANGE for part in message.parts):
        return message
    parts: Any = [part for part in message.parts if part.part_kind != _CHANGE]
    return replace(message, parts=parts)


def _tool(tool: ToolDefinition) -> Json:
    """The tool's definition in a common form; here it is only counted."""
    known = {"name": tool.name, "description": tool.description or ""}
    return {**known, "input_schema": tool.parameters_json_schema}


def _instead(settings: ModelSettings | None, rendered: Rendered) -> ModelSettings:
    """Settings that send the rendered request in place of Pydantic AI's messages; its tools are kept."""
    request = rendered.request()
    request.pop("tools", None)
    if "input" in request:
        request["instructions"] = None  # they are the first item of the input
    given: Any = {**(settings or {}), **_OWN_MARKS}
    given["extra_body"] = {**(given.get("extra_body") or {}), **request}
    return cast("ModelSettings", given)
