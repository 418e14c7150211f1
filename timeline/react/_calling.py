"""Calling a tool: whatever it does, the model gets a result.

Tools are other people's code: what they raise is told to the model (the text, no traceback) and
logged, and the loop goes on.  Being cancelled is not an error and goes through.
"""

import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import attrs
import msgspec

from blocks import DocumentPart, Envelope, ImagePart, Part, ProviderPart, TextPart, ToolCall
from timeline._recorder import Output
from timeline.react._tool import Tool, ToolReply

log = logging.getLogger("foldline")


class NotCalledError(Exception):
    """The model asked for a tool that there is not, or gave it what it does not take."""


@attrs.frozen(kw_only=True)
class Done:
    """A call that was answered."""

    call: ToolCall
    output: Output
    is_error: bool
    envelope: Envelope


@attrs.frozen(kw_only=True)
class Caller:
    """Calls tools by name."""

    tools: Mapping[str, Tool]
    clock: Callable[[], float]

    def call(self, call: ToolCall) -> Done:
        """The call, answered; an async tool gets a loop of its own."""
        started = self.clock()
        try:
            tool, arguments = self._prepared(call)
            answer = tool.call(**arguments)
            if inspect.iscoroutine(answer):
                answer = _run(answer)
            reply = _reply(answer)
        except Exception as error:  # noqa: BLE001 -- foreign code; see above
            reply = _failed(call, error)
        return self._done(call, reply, started)

    async def acall(self, call: ToolCall) -> Done:
        """The same for asyncio; a sync tool runs in a thread."""
        import asyncio  # here, as in `timeline._flow`

        started = self.clock()
        try:
            tool, arguments = self._prepared(call)
            if inspect.iscoroutinefunction(tool.call):
                answer = await tool.call(**arguments)
            else:
                answer = await asyncio.to_thread(tool.call, **arguments)
                answer = await answer if inspect.isawaitable(answer) else answer
            reply = _reply(answer)
        except Exception as error:  # noqa: BLE001 -- foreign code; see above
            reply = _failed(call, error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            reply = _failed(call, error)  # cancelled from within, not by whoever runs the agent
        return self._done(call, reply, started)

    def _prepared(self, call: ToolCall) -> tuple[Tool, dict[str, Any]]:
        tool = self.tools.get(call.name)
        if tool is None:
            names = ", ".join(self.tools) or "none at all"
            raise NotCalledError(f"there is no tool {call.name!r}; there are: {names}")
        try:
            return tool, tool.check(call.input)
        except (ValueError, TypeError) as error:
            raise NotCalledError(f"invalid input for {call.name}: {error}") from error

    def _done(self, call: ToolCall, reply: ToolReply, started: float) -> Done:
        tool = self.tools.get(call.name)
        envelope = Envelope(
            outcome="failure" if reply.is_error else "success",
            key_fields=reply.key_fields,
            durability=tool.durability if tool else "ephemeral",
            determinism=reply.determinism,
            started_at=started,
            ended_at=self.clock(),
        )
        return Done(call=call, output=reply.output, is_error=reply.is_error, envelope=envelope)


def _run(answer: Coroutine[Any, Any, Any]) -> object:
    """Run a coroutine to its end, even where a loop is running already."""
    from asyncio import run

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run, answer).result()


def _failed(call: ToolCall, error: BaseException) -> ToolReply:
    log.info("tool %s failed", call.name, exc_info=error)
    told = str(error) if isinstance(error, NotCalledError) else f"{type(error).__name__}: {error}"
    return ToolReply(output=told, is_error=True)


def _reply(answer: object) -> ToolReply:
    """What a tool returned: a text, parts, or anything that has JSON."""
    match answer:
        case ToolReply():
            return answer
        case None:
            return ToolReply(output="")
        case str():
            return ToolReply(output=answer)
        case TextPart() | ImagePart() | DocumentPart() | ProviderPart():
            return ToolReply(output=[answer])
        case list() | tuple() if _are_parts(cast("Sequence[object]", answer)):
            return ToolReply(output=cast("Sequence[Part]", answer))
        case _:
            return ToolReply(output=msgspec.json.encode(answer, enc_hook=str).decode())


def _are_parts(items: Sequence[object]) -> bool:
    return bool(items) and all(isinstance(item, Part) for item in items)
