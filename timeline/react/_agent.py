"""The agents: a sync and an async shell around one loop."""

import logging
from typing import TYPE_CHECKING, Any, Final

import attrs

from blocks import ENCRYPTED, FoldlineError, ToolCall, checked_calls
from timeline._apis import Api, api_of
from timeline._arguments import Given, checked_prompt
from timeline._flow import adrive, drive
from timeline._timeline import AsyncTimeline, Timeline
from timeline.observe._hooks import acall, call
from timeline.react._asking import Ask, Asker, Effect, Flow, Notify, RunTools
from timeline.react._calling import Done, withheld
from timeline.react._hooks import Outcome
from timeline.react._loop import Loop
from timeline.react._settings import AgentSettings, is_kind
from timeline.react._spans import answered, chat_span, ran, returned, run_span, tool_span

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
                return ran(span, drive(flow, self._perform))
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
                with chat_span(self.timeline, effect.arguments) as span:
                    response = Asker(self.client, self._api, self).ask(effect.arguments)
                    return answered(span, self.timeline, response)
            case RunTools():
                return [self._run_one(tool_call) for tool_call in effect.calls]
            case Notify():
                return [call(hook, effect.argument) for hook in effect.hooks]
            case use:
                return use()

    def _run_one(self, tool_call: ToolCall) -> Any:
        with tool_span(self.timeline, tool_call) as span:
            done = returned(span, self.caller.call(tool_call))
        return _append(self, done)


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
                return ran(span, await adrive(flow, self._perform))
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
                with chat_span(self.timeline, effect.arguments) as span:
                    response = await Asker(self.client, self._api, self).aask(effect.arguments)
                    return answered(span, self.timeline, response)
            case RunTools():
                return await self._run(effect.calls)
            case Notify():
                return [await acall(hook, effect.argument) for hook in effect.hooks]
            case use:
                return await use()

    async def _run(self, calls: tuple[ToolCall, ...]) -> list[int]:
        """Run all calls concurrently; each result is appended as soon as it arrives."""
        import asyncio  # here, as in `timeline._flow`

        room = asyncio.Semaphore(PARALLEL_MAX)
        tasks = [asyncio.create_task(self._run_one(tool_call, room)) for tool_call in calls]
        try:
            return await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise

    async def _run_one(self, tool_call: ToolCall, room: "Semaphore") -> int:
        async with room:
            with tool_span(self.timeline, tool_call) as span:
                done = returned(span, await self.caller.acall(tool_call))
        version: int = await _append(self, done)
        return version


def _append(agent: ReactAgent | AsyncReactAgent, done: Done) -> Any:
    """Append the result of a call; with an async agent, await this."""
    if done.envelope.sensitivity in ENCRYPTED and not agent.timeline.settings.can_seal:
        done = withheld(done)
    return agent.timeline.tool_result(
        done.call.call_id, done.output, is_error=done.is_error, envelope=done.envelope
    )
