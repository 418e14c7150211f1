"""Calling a tool: whatever the tool does, the model gets a result.

Tools are other people's code: the text of an exception (without the traceback) is logged and given to the
model, and the loop goes on.  Cancellation is not an error and goes through.

The state of the source is captured *before* the tool reads it.  If the source changes in between, it will seem to
have changed later, and the result is kept; in the other order, a stale result would pass for fresh.
"""

import inspect
import logging
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any, cast

import attrs
import msgspec

from blocks import (
    BlockId,
    Determinism,
    DocumentPart,
    Envelope,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
    TooLargeError,
    ToolCall,
    ToolResult,
    TurnId,
    encode_block,
    fields_in,
)
from persistence import EVENT_BYTES_MAX
from timeline._arguments import Output, output_parts
from timeline._flow import adrive, drive
from timeline.engine._artifacts import confidential
from timeline.react._signature import accepted
from timeline.react._tool import Function, Tool, ToolReply

log = logging.getLogger("foldline")

RESULT_BYTES_MAX = EVENT_BYTES_MAX - 1_000_000
"""Largest size in bytes of a result with its envelope; the rest of the limit is for the other fields of its event."""


class NotCalledError(Exception):
    """The model called an unknown tool, or passed invalid input."""


@attrs.frozen(kw_only=True)
class Done:
    """A call with its result."""

    call: ToolCall
    output: Output
    is_error: bool
    envelope: Envelope


@attrs.frozen
class _Run:
    """What the flow of a call yields: a tool or `capture` function to be run."""

    function: Function
    arguments: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Caller:
    """Calls tools by name."""

    tools: Mapping[str, Tool]
    clock: Callable[[], float]

    def call(self, call: ToolCall) -> Done:
        """Run the tool of a call; an async tool runs in an event loop of its own."""
        return drive(self._called(call), _perform)

    async def acall(self, call: ToolCall) -> Done:
        """The same for asyncio; a sync tool runs in a thread."""
        return await adrive(self._called(call), _aperform)

    def current(self, call: ToolCall) -> Determinism | None:
        """The current state of a call's source; empty if it could not be found out.

        None: the tool has no `capture`.  Never raises.
        """
        return drive(self._current(call), _perform)

    def _called(self, call: ToolCall) -> Generator[_Run, Any, Done]:
        started, mark = self.clock(), None
        try:
            tool, arguments = self._prepared(call)
            mark = yield from self._current(call)
            reply = _shown(_reply((yield _Run(tool.call, arguments))))
        except Exception as error:  # noqa: BLE001 -- the tool is foreign code
            reply = _failed(call, error)
        done = self._done(call, reply, started, mark)
        refusal = _too_large(done)
        return self._done(call, _failed(call, refusal), started, None) if refusal else done

    def _current(self, call: ToolCall) -> Generator[_Run, Any, Determinism | None]:
        tool = self.tools.get(call.name)
        if tool is None or tool.capture is None:
            return None
        try:
            arguments = accepted(tool.capture, tool.check(call.input))
            return _mark((yield _Run(tool.capture, arguments)))
        except Exception:
            log.warning("the capture of tool %s failed", call.name, exc_info=True)
            return Determinism()

    def _prepared(self, call: ToolCall) -> tuple[Tool, dict[str, Any]]:
        tool = self.tools.get(call.name)
        if tool is None:
            names = ", ".join(self.tools) or "none at all"
            raise NotCalledError(f"there is no tool {call.name!r}; there are: {names}")
        try:
            return tool, tool.check(call.input)
        except (ValueError, TypeError) as error:
            raise NotCalledError(f"invalid input for {call.name}: {error}") from error

    def _done(
        self, call: ToolCall, reply: ToolReply, started: float, mark: Determinism | None
    ) -> Done:
        tool = self.tools.get(call.name)
        outcome = reply.outcome or ("failure" if reply.is_error else "success")
        if reply.determinism != Determinism():
            mark = reply.determinism
        preserved = fields_in(_text(reply.output), tool.preserve) if tool else {}
        envelope = Envelope(
            outcome=outcome,
            key_fields={**preserved, **reply.key_fields},
            durability=tool.durability if tool else "ephemeral",
            determinism=mark if mark and outcome != "failure" else Determinism(),
            sensitivity=reply.sensitivity or (tool.sensitivity if tool else "internal"),
            kind=tool.kind if tool else None,
            target=tool.target if tool else "",
            started_at=started,
            ended_at=self.clock(),
        )
        return Done(call=call, output=reply.output, is_error=reply.is_error, envelope=envelope)


def withheld(done: Done) -> Done:
    """The notice that the model gets instead of a confidential result that cannot be kept; the turn goes on."""
    refusal = confidential(f"what {done.call.name} returned")
    log.error("%s", refusal)
    known = Envelope(
        outcome="failure", started_at=done.envelope.started_at, ended_at=done.envelope.ended_at
    )
    return Done(call=done.call, output=refusal, is_error=True, envelope=known)


def _perform(run: _Run) -> object:
    answer = run.function(**run.arguments)
    return _awaited(answer) if inspect.iscoroutine(answer) else answer


async def _aperform(run: _Run) -> object:
    import asyncio  # here, as in `timeline._flow`

    try:
        if inspect.iscoroutinefunction(run.function):
            return await run.function(**run.arguments)
        answer = await asyncio.to_thread(run.function, **run.arguments)
        return await answer if inspect.isawaitable(answer) else answer
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise CancelledError(*error.args) from error  # cancelled within the tool, not by the caller


def _awaited(answer: Coroutine[Any, Any, Any]) -> object:
    """Run a coroutine to its end, even if an event loop is already running in this thread."""
    import asyncio

    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(asyncio.run, answer).result()
        except asyncio.CancelledError as error:
            raise CancelledError(*error.args) from error


def _failed(call: ToolCall, error: BaseException) -> ToolReply:
    log.info("tool %s failed", call.name, exc_info=error)
    told = str(error) if isinstance(error, NotCalledError) else f"{type(error).__name__}: {error}"
    return ToolReply(output=told, is_error=True)


def _reply(answer: object) -> ToolReply:
    """The reply for a tool's return value: a text, parts, or a value that JSON can represent."""
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


def _shown(reply: ToolReply) -> ToolReply:
    """The reply, if all of it can be shown to the model.

    Raises:
        MisuseError: the provider would refuse a part of it; the model gets the message as the call's error.
    """
    output_parts(reply.output, "the output")
    return reply


def _too_large(done: Done) -> TooLargeError | None:
    """The error that the model gets instead of a result that is too large for a store."""
    block = ToolResult(
        id=BlockId(""),
        turn=TurnId(""),
        call_id=done.call.call_id,
        parts=output_parts(done.output, "the output"),
        envelope=done.envelope,
    )
    size = len(encode_block(block))
    advice = "return less of it, a part say, or where it can be read"
    return (
        TooLargeError("the output", size, RESULT_BYTES_MAX, advice)
        if size > RESULT_BYTES_MAX
        else None
    )


def _are_parts(items: Sequence[object]) -> bool:
    return bool(items) and all(isinstance(item, Part) for item in items)


def _mark(found: object) -> Determinism:
    if isinstance(found, Determinism):
        return found
    raise TypeError(f"a capture returns a Determinism, not {type(found).__name__}")


def _text(output: Output) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(part.text for part in output if isinstance(part, TextPart))
