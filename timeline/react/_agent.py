"""The agents: a sync and an async shell around one loop, and the spans of their work.

A run is an iterator of its events, and the last one is its outcome; `run` and `resume` go through it to the end.  A
response is requested whole or streamed.  The spans of a run, a model call and a tool call belong to the agent's timeline,
and exist only if that has a tracer.
"""

import logging
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import AbstractContextManager, aclosing, closing, nullcontext
from functools import partial
from queue import SimpleQueue
from threading import Semaphore
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import attrs

from blocks import ENCRYPTED, ClosedError, FoldlineError, ToolCall, checked_calls
from blocks.formats import as_json
from render import Json, Rendered
from timeline import AsyncTimeline, Timeline
from timeline._apis import api_of
from timeline._arguments import AnyPart, checked_prompt, is_kind
from timeline._flow_drivers import adrive, aplay, drive, in_thread, play
from timeline._timeline import Shell
from timeline.observe._hooks import acall, call
from timeline.observe._traces import (
    SafeSpan,
    compacted_attributes,
    request_attributes,
    response_attributes,
    server_attributes,
    usage_attributes,
)
from timeline.react._approvals import Approval, Suspension
from timeline.react._events import AgentEvent, Outcome, OutputT, TextDelta, ToolDone, ToolStarted
from timeline.react._limits import Meter
from timeline.react._loop import Ask, Flow, Loop, RunTools
from timeline.react._settings import AgentSettings, text_in
from timeline.react._tools import RunContext, withheld

if TYPE_CHECKING:
    from asyncio import Semaphore as AsyncSemaphore


log = logging.getLogger("foldline")
Performed: TypeAlias = Generator[AgentEvent, None, Any]
"""Work that reports events, and returns what it came to."""


@checked_calls
@attrs.frozen
class ReactAgent(AgentSettings[OutputT]):
    """An agent on a timeline: calls the model and runs its tools until the model is done.

    If it is interrupted at any point (Ctrl-C, an error of the provider, a crash), the log stays valid, and
    `run` and `resume` continue from it.
    """

    timeline: Timeline = attrs.field(validator=is_kind(Timeline, "a Timeline"))
    client: Any = attrs.field(repr=False)
    """The client of the model's provider: an `anthropic.Anthropic` (or its `.beta`), an `openai.OpenAI`, ..."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        api_of(self.timeline.settings.provider.name).check(self.client)

    def run(self, prompt: str, *parts: AnyPart) -> Outcome[OutputT]:
        """Append the user's prompt, and run until the model ends its turn.

        Raises:
            MisuseError: the prompt is not a string, or a part cannot be shown; nothing was done.
            OutputError: the agent has an `output`, and the model gave no valid one.
            any error of the client, except for a prompt that is too long, which gives an `Outcome`.
        """
        return _last(self.run_events(prompt, *parts))

    def run_events(self, prompt: str, *parts: AnyPart) -> Generator[AgentEvent, None, None]:
        """As `run`, but one event after the other as it happens; the last one is the `Outcome`.

        The run goes on while the iterator is read. Closing it (or leaving the loop that reads it) interrupts the run as
        Ctrl-C would: nothing is half written, and `resume` goes on.

        Raises:
            MisuseError: the prompt is not a string, or a part cannot be shown; nothing was done.
        """
        checked_prompt(prompt, parts, "run()")
        return self._play(Loop(self.timeline, self).run(prompt, *parts))

    def resume(self) -> Outcome[OutputT]:
        """Continue a run that stopped or that ended early: with what was approved and denied, and with a new allowance.

        A call that may have been begun, and has no result, is closed as interrupted; one of an `idempotent` tool is made
        again.

        Raises:
            OutputError: as from `run`.
            any error of the client, as from `run`.
        """
        return _last(self.resume_events())

    def resume_events(self) -> Generator[AgentEvent, None, None]:
        """As `resume`, but one event after the other, as `run_events`."""
        return self._play(Loop(self.timeline, self).resume())

    def approve(self, approval: "Approval | str", input: Json | None = None) -> None:  # noqa: A002 -- as in the log
        """Approve a call that waits, perhaps with other arguments; durable at once, and run by `resume`.

        Raises:
            MisuseError: no such call waits, or the arguments are not valid for the tool.
            AlreadyRecordedError: somebody has decided already.
        """
        drive(Loop(self.timeline, self).decide(_id(approval), "approved", input))

    def deny(self, approval: "Approval | str", reason: str = "") -> None:
        """Deny a call that waits; durable at once. `resume` tells the model, with the reason.

        Raises:
            MisuseError: no such call waits.
            AlreadyRecordedError: somebody has decided already.
        """
        drive(Loop(self.timeline, self).decide(_id(approval), "denied", None, reason))

    def _as_child(self, task: str, above: Meter) -> Outcome[OutputT]:
        """Begin a task, or go on with it, for the agent whose meter is given."""
        loop = Loop(self.timeline, self, above)
        return _last(self._play(loop.resume() if self.timeline.version else loop.run(task)))

    def _play(self, flow: Flow[Outcome[OutputT]]) -> Generator[AgentEvent, None, None]:
        with run_span(self.timeline, self.name) as span:
            try:
                with closing(play(flow, self._perform)) as events:
                    for event in events:
                        for hook, argument in self.hooks.of(event):
                            call(hook, argument)
                        yield end_run(span, event)
            except BaseException:
                self._settle()
                raise

    def _settle(self) -> None:
        """Close interrupted calls. An error here is only logged, because the earlier error matters more."""
        try:
            Loop(self.timeline, self).settle()
        except ClosedError:
            pass  # by the run above, which was interrupted: `resume` closes them
        except FoldlineError:
            log.exception("open calls are still open; `resume` closes them")

    def _perform(self, effect: Any) -> Performed:
        match effect:
            case Ask():
                return (yield from self._ask(effect.rendered))
            case RunTools():
                return (yield from self._run_tools(effect))
            case use if callable(use):
                return use()
            case event:
                yield event
                return None

    def _ask(self, rendered: Rendered) -> Performed:
        api, arguments = api_of(rendered.provider.name), self.arguments(rendered)
        with chat_span(self, arguments) as span:
            if self.stream:
                telling = api.telling()
                for text in telling.texts(self.client, arguments):
                    yield TextDelta(text)
                response = telling.response
            else:
                response = api.create(self.client, arguments)
                if text := text_in(response, rendered.provider):
                    yield TextDelta(text)
            return end_chat(span, self.timeline, response)

    def _run_tools(self, effect: RunTools) -> Performed:
        """Run the calls, several at once in threads; each result is appended as soon as it arrives, by this thread alone,
        and if this is interrupted, the threads append nothing any more and begin no further call."""
        suspended: list[Suspension] = []
        several = len(effect.calls) > 1 and self.parallel_max > 1
        try:
            for result in (self._concurrent if several else self._in_order)(effect):
                if isinstance(result, Suspension):
                    suspended.append(result)
                else:
                    yield _append(self, result)[1] if isinstance(result, ToolDone) else result
        except BaseException:
            effect.meter.give_up()
            raise
        return suspended

    def _in_order(self, effect: RunTools) -> Iterator[ToolStarted | ToolDone | Suspension]:
        for each in effect.calls:
            yield ToolStarted(each)
            yield self._call_tool(each, effect.meter)

    def _concurrent(self, effect: RunTools) -> Iterator[ToolStarted | ToolDone | Suspension]:
        room, ready = Semaphore(self.parallel_max), SimpleQueue[Any]()

        def work(one: ToolCall) -> ToolDone | Suspension:
            with room:
                if effect.meter.is_given_up:
                    raise ClosedError("the run was interrupted before this call began")
                return self._call_tool(one, effect.meter)

        for each in effect.calls:
            yield ToolStarted(each)
            in_thread(partial(work, each), "foldline-tool").add_done_callback(ready.put)
        for _ in effect.calls:
            yield ready.get().result()

    def _call_tool(self, tool_call: ToolCall, meter: Meter) -> ToolDone | Suspension:
        with tool_span(self.timeline, tool_call) as span:
            context = RunContext(call=tool_call, timeline=self.timeline, meter=meter)
            return end_tool(span, self.caller.call(tool_call, context))


def _last(events: Iterator[AgentEvent]) -> Outcome[Any]:
    """The outcome of a run, which is read to its end: closing it before would interrupt it."""
    return cast("Outcome[Any]", deque(events, maxlen=1).pop())


def _id(approval: Approval | str) -> str:
    return approval.id if isinstance(approval, Approval) else approval


@checked_calls
@attrs.frozen
class AsyncReactAgent(AgentSettings[OutputT]):
    """`ReactAgent` for asyncio: the tools of one round run concurrently, sync tools in threads."""

    timeline: AsyncTimeline = attrs.field(validator=is_kind(AsyncTimeline, "an AsyncTimeline"))
    client: Any = attrs.field(repr=False)
    """The client of the model's provider: an `anthropic.AsyncAnthropic`, an `openai.AsyncOpenAI`, ..."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        api_of(self.timeline.settings.provider.name).check(self.client)

    async def run(self, prompt: str, *parts: AnyPart) -> Outcome[OutputT]:
        """See `ReactAgent.run`."""
        return await _alast(self.run_events(prompt, *parts))

    def run_events(self, prompt: str, *parts: AnyPart) -> AsyncGenerator[AgentEvent, None]:
        """See `ReactAgent.run_events`. To stop a run, cancel its task or await `aclose()` of the iterator."""
        checked_prompt(prompt, parts, "run()")
        return self._play(Loop(self.timeline, self).run(prompt, *parts))

    async def resume(self) -> Outcome[OutputT]:
        """See `ReactAgent.resume`."""
        return await _alast(self.resume_events())

    def resume_events(self) -> AsyncGenerator[AgentEvent, None]:
        """See `ReactAgent.resume_events`."""
        return self._play(Loop(self.timeline, self).resume())

    async def approve(self, approval: "Approval | str", input: Json | None = None) -> None:  # noqa: A002 -- as in the log
        """See `ReactAgent.approve`."""
        await adrive(Loop(self.timeline, self).decide(_id(approval), "approved", input))

    async def deny(self, approval: "Approval | str", reason: str = "") -> None:
        """See `ReactAgent.deny`."""
        await adrive(Loop(self.timeline, self).decide(_id(approval), "denied", None, reason))

    async def _as_child(self, task: str, above: Meter) -> Outcome[OutputT]:
        loop = Loop(self.timeline, self, above)
        return await _alast(self._play(loop.resume() if self.timeline.version else loop.run(task)))

    async def _play(self, flow: Flow[Outcome[OutputT]]) -> AsyncGenerator[AgentEvent, None]:
        with run_span(self.timeline, self.name) as span:
            try:
                async with aclosing(aplay(flow, self._perform)) as events:
                    async for event in events:
                        for hook, argument in self.hooks.of(event):
                            await acall(hook, argument)
                        yield end_run(span, event)
            except BaseException:
                from asyncio import shield

                await shield(self._settle())
                raise

    async def _settle(self) -> None:
        try:
            await Loop(self.timeline, self).settle()
        except FoldlineError:
            log.exception("open calls are still open; `resume` closes them")

    def _perform(self, effect: Any, answer: list[Any]) -> AsyncGenerator[AgentEvent, None]:
        """Carry out an effect, and put what it came to into `answer`, because an async generator returns nothing."""
        match effect:
            case Ask():
                return self._ask(effect.rendered, answer)
            case RunTools():
                return self._run_tools(effect, answer)
            case _:
                return self._use_or_report(effect, answer)

    async def _use_or_report(
        self, effect: Any, answer: list[Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Make a call on the timeline, or pass on an event of the loop."""
        if callable(effect):
            work: Any = effect()
            answer.append(await work)
        else:
            yield effect
            answer.append(None)

    async def _ask(self, rendered: Rendered, answer: list[Any]) -> AsyncGenerator[AgentEvent, None]:
        api, arguments = api_of(rendered.provider.name), self.arguments(rendered)
        with chat_span(self, arguments) as span:
            if self.stream:
                telling = api.telling()
                async for text in telling.atexts(self.client, arguments):
                    yield TextDelta(text)
                response = telling.response
            else:
                response = await api.create(self.client, arguments)
                if text := text_in(response, rendered.provider):
                    yield TextDelta(text)
            answer.append(end_chat(span, self.timeline, response))

    async def _run_tools(
        self, effect: RunTools, answer: list[Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run all calls concurrently; each result is appended as soon as it arrives."""
        import asyncio  # here, as in `timeline._flow_drivers`

        room = asyncio.Semaphore(self.parallel_max)
        tasks: list[asyncio.Task[ToolDone | Suspension]] = []
        suspended: list[Suspension] = []
        try:
            for each in effect.calls:
                yield ToolStarted(each)
                tasks.append(asyncio.create_task(self._call_tool(each, effect.meter, room)))
            for done in asyncio.as_completed(tasks):
                if isinstance(result := await done, Suspension):
                    suspended.append(result)
                else:
                    yield result
        except BaseException:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            raise
        answer.append(suspended)

    async def _call_tool(
        self, tool_call: ToolCall, meter: Meter, room: "AsyncSemaphore"
    ) -> ToolDone | Suspension:
        async with room:
            with tool_span(self.timeline, tool_call) as span:
                context = RunContext(call=tool_call, timeline=self.timeline, meter=meter)
                result = end_tool(span, await self.caller.acall(tool_call, context))
        if isinstance(result, Suspension):
            return result
        commit, done = _append(self, result)
        await commit
        return done


async def _alast(events: AsyncGenerator[AgentEvent, None]) -> Outcome[Any]:
    last: AgentEvent | None = None
    async with aclosing(events):
        async for event in events:
            last = event
    return cast("Outcome[Any]", last)


def _append(
    agent: ReactAgent[Any] | AsyncReactAgent[Any], result: ToolDone
) -> tuple[Any, ToolDone]:
    """Append the result of a call; with an async agent, await the first of the two."""
    if result.envelope.sensitivity in ENCRYPTED and not agent.timeline.settings.can_seal:
        result = withheld(result)
    commit = agent.timeline.tool_result(
        result.call.call_id, result.output, is_error=result.is_error, envelope=result.envelope
    )
    return commit, result


# Spans


FAILED_TOOL: Final = "tool_error"
"""The type of a failed tool call's error: the conventions ask for a short name, and the tool's output is content."""


def run_span(timeline: Shell, name: str) -> AbstractContextManager[SafeSpan]:
    """The span of an agent's run; the agent may have a name."""
    about = {
        "gen_ai.operation.name": "invoke_agent",
        **timeline.traces.about,
        **({"gen_ai.agent.name": name} if name else {}),
    }
    return timeline.traces.span(f"invoke_agent {name}".rstrip(), about)


def end_run(span: SafeSpan, event: AgentEvent) -> AgentEvent:
    """Add the result of a run to its span, if the event is its outcome."""
    if isinstance(event, Outcome):
        span.set_attributes(
            usage_attributes(event.usage)
            | {"foldline.stop": event.stop, "foldline.rounds": event.rounds}
        )
    return event


def chat_span(
    agent: ReactAgent[Any] | AsyncReactAgent[Any], arguments: Json
) -> AbstractContextManager[SafeSpan]:
    """The span of one call to the model."""
    timeline: Shell = agent.timeline
    if not timeline.traces.are_on:
        return nullcontext(SafeSpan())
    api = timeline.settings.provider.name
    about = request_attributes(arguments, api, is_streamed=agent.stream)
    about |= server_attributes(agent.client) | compacted_attributes(timeline.view)
    return timeline.traces.chat(timeline.settings.model.name, timeline.traces.provider, about)


def end_chat(span: SafeSpan, timeline: Shell, response: Any) -> Any:
    """Add the attributes of a response to its span."""
    if timeline.traces.are_on:
        provider = timeline.settings.provider
        used, stop = provider.usage(response), provider.stop(response)
        span.set_attributes(response_attributes(as_json(response), used, stop))
    return response


def tool_span(timeline: Shell, call: ToolCall) -> AbstractContextManager[SafeSpan]:
    """The span of one tool call."""
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.call_id,
        "gen_ai.tool.type": "function",
        "gen_ai.provider.name": timeline.traces.provider,
    }
    return timeline.traces.span(f"execute_tool {call.name}", about)


def end_tool(span: SafeSpan, result: ToolDone | Suspension) -> ToolDone | Suspension:
    """Add the result of a tool call to its span."""
    if isinstance(result, ToolDone) and result.is_error:
        span.fail(FAILED_TOOL)
    return result
