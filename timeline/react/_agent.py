"""The agents: a sync and an async shell around one loop, and the spans of their work.

A response is requested whole or streamed.  The spans of a run, a model call and a tool call belong to the agent's
timeline, and exist only if that has a tracer.
"""

import logging
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import attrs

from blocks import ENCRYPTED, FoldlineError, ToolCall, checked_calls
from blocks.formats import as_json
from render import Json
from timeline import AsyncTimeline, Timeline
from timeline._apis import Api, api_of
from timeline._arguments import Given, checked_prompt
from timeline._flow import adrive, drive
from timeline._timeline import Shell
from timeline.observe._hooks import acall, call
from timeline.observe._traces import (
    Span,
    compacted_attributes,
    request_attributes,
    response_attributes,
    server_attributes,
    usage_attributes,
)
from timeline.react._loop import Ask, Effect, Flow, Loop, Notify, RunTools
from timeline.react._settings import AgentSettings, Outcome, is_kind
from timeline.react._tools import CallResult, withheld

if TYPE_CHECKING:
    from asyncio import Semaphore


log = logging.getLogger("foldline")
PARALLEL_MAX: Final = 16
"""Largest number of tools of one round that run at the same time."""


@checked_calls()
@attrs.frozen
class ReactAgent(AgentSettings):
    """An agent on a timeline: calls the model and runs its tools until the model is done.

    If it is interrupted at any point (Ctrl-C, an error of the provider, a crash), the log stays valid, and
    `run` and `resume` continue from it.
    """

    timeline: Timeline = attrs.field(validator=is_kind(Timeline, "a Timeline"))
    client: Any = attrs.field(repr=False)
    """The client of the model's provider: an `anthropic.Anthropic` (or its `.beta`), an `openai.OpenAI`, ..."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._api.check(self.client)

    def run(self, prompt: str, *parts: Given) -> Outcome:
        """Append the user's prompt, and run until the model ends its turn.

        Raises:
            MisuseError: the prompt is not a string, or a part cannot be shown; nothing was done.
            any error of the client, except for a prompt that is too long, which gives an `Outcome`.
        """
        checked_prompt(prompt, parts, "run()")
        return self._drive(Loop(self.timeline, self).run(prompt, *parts))

    def resume(self) -> Outcome:
        """Continue a run that ended early; calls without a result are closed first."""
        return self._drive(Loop(self.timeline, self).resume())

    @property
    def _api(self) -> Api:
        return api_of(self.timeline.settings.provider.name)

    def _drive(self, flow: Flow[Outcome]) -> Outcome:
        with run_span(self.timeline, self.name) as span:
            try:
                return end_run(span, drive(flow, self._perform))
            except BaseException:
                self._settle()
                raise

    def _settle(self) -> None:
        """Close open calls. An error here is only logged, because the earlier error matters more."""
        try:
            self.timeline.close_calls()
        except FoldlineError:
            log.exception("open calls are still open; `resume` closes them")

    def _perform(self, effect: Effect) -> object:
        match effect:
            case Ask():
                with chat_span(self, effect.arguments) as span:
                    return end_chat(span, self.timeline, self._ask(effect.arguments))
            case RunTools():
                return [self._call_tool(tool_call) for tool_call in effect.calls]
            case Notify():
                return [call(hook, effect.argument) for hook in effect.hooks]
            case use:
                return use()

    def _ask(self, arguments: Json) -> Any:
        if not self.stream:
            return self._api.create(self.client, arguments)
        telling = self._api.telling()
        for text in telling.texts(self.client, arguments):
            for hook in self.hooks.on_text:
                call(hook, text)
        return telling.response

    def _call_tool(self, tool_call: ToolCall) -> Any:
        with tool_span(self.timeline, tool_call) as span:
            result = end_tool(span, self.caller.call(tool_call))
        return _append(self, result)


@checked_calls()
@attrs.frozen
class AsyncReactAgent(AgentSettings):
    """`ReactAgent` for asyncio: the tools of one round run concurrently, sync tools in threads."""

    timeline: AsyncTimeline = attrs.field(validator=is_kind(AsyncTimeline, "an AsyncTimeline"))
    client: Any = attrs.field(repr=False)
    """The client of the model's provider: an `anthropic.AsyncAnthropic`, an `openai.AsyncOpenAI`, ..."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._api.check(self.client)

    async def run(self, prompt: str, *parts: Given) -> Outcome:
        """See `ReactAgent.run`."""
        checked_prompt(prompt, parts, "run()")
        return await self._drive(Loop(self.timeline, self).run(prompt, *parts))

    async def resume(self) -> Outcome:
        """See `ReactAgent.resume`."""
        return await self._drive(Loop(self.timeline, self).resume())

    @property
    def _api(self) -> Api:
        return api_of(self.timeline.settings.provider.name)

    async def _drive(self, flow: Flow[Outcome]) -> Outcome:
        with run_span(self.timeline, self.name) as span:
            try:
                return end_run(span, await adrive(flow, self._perform))
            except BaseException:
                from asyncio import shield

                await shield(self._settle())
                raise

    async def _settle(self) -> None:
        try:
            await self.timeline.close_calls()
        except FoldlineError:
            log.exception("open calls are still open; `resume` closes them")

    async def _perform(self, effect: Effect) -> object:
        match effect:
            case Ask():
                with chat_span(self, effect.arguments) as span:
                    return end_chat(span, self.timeline, await self._ask(effect.arguments))
            case RunTools():
                return await self._run(effect.calls)
            case Notify():
                return [await acall(hook, effect.argument) for hook in effect.hooks]
            case use:
                return await use()

    async def _ask(self, arguments: Json) -> Any:
        if not self.stream:
            return await self._api.create(self.client, arguments)
        telling = self._api.telling()
        async for text in telling.atexts(self.client, arguments):
            for hook in self.hooks.on_text:
                await acall(hook, text)
        return telling.response

    async def _run(self, calls: tuple[ToolCall, ...]) -> list[int]:
        """Run all calls concurrently; each result is appended as soon as it arrives."""
        import asyncio  # here, as in `timeline._flow`

        room = asyncio.Semaphore(PARALLEL_MAX)
        tasks = [asyncio.create_task(self._call_tool(tool_call, room)) for tool_call in calls]
        try:
            return await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise

    async def _call_tool(self, tool_call: ToolCall, room: "Semaphore") -> int:
        async with room:
            with tool_span(self.timeline, tool_call) as span:
                result = end_tool(span, await self.caller.acall(tool_call))
        version: int = await _append(self, result)
        return version


def _append(agent: ReactAgent | AsyncReactAgent, result: CallResult) -> Any:
    """Append the result of a call; with an async agent, await this."""
    if result.envelope.sensitivity in ENCRYPTED and not agent.timeline.settings.can_seal:
        result = withheld(result)
    return agent.timeline.tool_result(
        result.call.call_id, result.output, is_error=result.is_error, envelope=result.envelope
    )


# Spans


FAILED_TOOL: Final = "tool_error"
"""The type of a failed tool call's error: the conventions ask for a short name, and the tool's output is content."""


def run_span(timeline: Shell, name: str) -> AbstractContextManager[Span]:
    """The span of an agent's run; the agent may have a name."""
    about = {
        "gen_ai.operation.name": "invoke_agent",
        **timeline.traces.about,
        **({"gen_ai.agent.name": name} if name else {}),
    }
    return timeline.traces.span(f"invoke_agent {name}".rstrip(), about)


def end_run(span: Span, outcome: Outcome) -> Outcome:
    """Add the result of a run to its span."""
    used = outcome.usage
    span.set_attributes(
        usage_attributes(used) | {"foldline.stop": outcome.stop, "foldline.rounds": outcome.rounds}
    )
    return outcome


def chat_span(agent: ReactAgent | AsyncReactAgent, arguments: Json) -> AbstractContextManager[Span]:
    """The span of one call to the model."""
    timeline: Shell = agent.timeline
    if not timeline.traces.are_on:
        return nullcontext(Span())
    api = timeline.settings.provider.name
    about = request_attributes(arguments, api, is_streamed=agent.stream)
    about |= server_attributes(agent.client) | compacted_attributes(timeline.view)
    return timeline.traces.chat(timeline.settings.model.name, timeline.traces.provider, about)


def end_chat(span: Span, timeline: Shell, response: Any) -> Any:
    """Add the attributes of a response to its span."""
    if timeline.traces.are_on:
        provider = timeline.settings.provider
        used, stop = provider.usage(response), provider.stop(response)
        span.set_attributes(response_attributes(as_json(response), used, stop))
    return response


def tool_span(timeline: Shell, call: ToolCall) -> AbstractContextManager[Span]:
    """The span of one tool call."""
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.call_id,
        "gen_ai.tool.type": "function",
        "gen_ai.provider.name": timeline.traces.provider,
    }
    return timeline.traces.span(f"execute_tool {call.name}", about)


def end_tool(span: Span, result: CallResult) -> CallResult:
    """Add the result of a tool call to its span."""
    if result.is_error:
        span.fail(FAILED_TOOL)
    return result
