"""Tools: typed Python functions that the model may call.

@tool(kind="read", target="contract", durability="ephemeral")
def show_contract(contract: str, pages: int = 10) -> str:
    '''Read the beginning of a contract.

    Args:
        contract: Its number.
        pages: How many pages at most.
    '''

Whatever a tool does when it is called, the model gets a result.
"""

import inspect
import logging
import os
import re
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack, cast, get_args, overload

import attrs
import msgspec
from attrs.validators import in_, instance_of, optional

from blocks import (
    BlockId,
    Determinism,
    DocumentPart,
    Durability,
    Envelope,
    ImagePart,
    MisuseError,
    Part,
    ProviderPart,
    Sensitivity,
    TextPart,
    TooLargeError,
    ToolCall,
    ToolKind,
    ToolResult,
    TurnId,
    checked_calls,
    encode_block,
    fields_in,
    in_words,
)
from blocks import Outcome as ResultOutcome
from persistence import EVENT_BYTES_MAX
from render import Json
from timeline._arguments import Output, output_parts
from timeline._flow_drivers import adrive, drive, in_thread
from timeline.engine._artifacts import confidential
from timeline.react._approvals import Suspension
from timeline.react._events import ToolDone
from timeline.react._limits import Meter, positive_number
from timeline.react._schemas import Function, Signature, accepted, required

log = logging.getLogger("foldline")
RESULT_BYTES_MAX = EVENT_BYTES_MAX - 1_000_000
"""Largest size in bytes of a result with its envelope; the rest of the limit is for the other fields of its event."""
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TIMED_OUT: Final = (
    "no answer within {:g} seconds; the call was given up, and may have had a part of its effects"
)


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


class Declared(TypedDict, total=False):
    """What the decorator `tool` may declare about a function; see `Tool`."""

    name: str
    description: str
    durability: Durability
    preserve: Sequence[str]
    sensitivity: Sensitivity
    kind: ToolKind | None
    target: str
    capture: Function
    needs_approval: bool | Callable[..., bool]
    timeout: float | None
    idempotent: bool


@attrs.frozen(kw_only=True)
class RunContext:
    """What a tool may know of the run that calls it: a parameter with this annotation receives it, and is not shown to
    the model."""

    call: ToolCall
    """The call."""
    timeline: Any = attrs.field(repr=False)
    """The agent's `Timeline` or `AsyncTimeline`."""
    meter: Meter = attrs.field(repr=False)
    """What the run has used."""


@checked_calls
@attrs.frozen(kw_only=True)
class ToolReply:
    """A tool's output with facts about it."""

    output: Output
    is_error: bool = attrs.field(default=False, validator=instance_of(bool))
    key_fields: dict[str, Any] = attrs.field(factory=dict[str, Any], validator=instance_of(dict))
    """Small facts that stay when the output is cleared: an exit status, a count, an id."""
    determinism: Determinism = attrs.field(factory=Determinism, validator=instance_of(Determinism))
    """The state of the source that was read; if it is not empty, it replaces the result of `capture`."""
    outcome: ResultOutcome | None = attrs.field(
        default=None, validator=optional(in_(get_args(ResultOutcome)))
    )
    """The outcome; None: `failure` if it is an error, else `success`."""
    sensitivity: Sensitivity | None = attrs.field(
        default=None, validator=optional(in_(get_args(Sensitivity)))
    )
    """The sensitivity of this result; None: the tool's."""


@checked_calls
@attrs.frozen(kw_only=True)
class Tool:
    """A function with what the model and the engine must know about it."""

    name: str
    description: str
    input_schema: Json = attrs.field(repr=False)
    call: Function
    """Sync or async; called with the validated input as keyword arguments."""
    durability: Durability = attrs.field(default="anchoring", validator=in_(get_args(Durability)))
    """How its results may be shortened when space is short; see `Envelope`."""
    preserve: tuple[str, ...] = attrs.field(default=(), converter=_names)
    """Fields of a JSON reply that stay when the rest is cleared: `id`, `order.total`."""
    sensitivity: Sensitivity = attrs.field(default="internal", validator=in_(get_args(Sensitivity)))
    """The sensitivity of its results."""
    kind: ToolKind | None = attrs.field(default=None, validator=optional(in_(get_args(ToolKind))))
    """What it does; summaries list its calls by this kind. None: what its name suggests. For a `write`,
    the reply's key fields may say more: `path` or `paths`, `mime`, `visibility`, `sources`."""
    target: str = ""
    """The parameter that names the object of a call: a path, a query, an id."""
    capture: Function | None = attrs.field(default=None, repr=False)
    """A function that returns the state of the source as a `Determinism`; it receives those arguments of the tool
    for which it has parameters. Called before each call of the tool, and again before a replayable result is
    cleared. Sync or async; an exception in it is logged, and the source then counts as changed."""
    needs_approval: bool | Callable[..., bool] = attrs.field(
        default=False,
        validator=instance_of((bool, Callable)),  # type: ignore[arg-type]
    )
    """Whether a call waits until a person approves it; or a function that decides it from those arguments of the tool for
    which it has parameters. If that function raises, the call waits."""
    timeout: float | None = attrs.field(default=None, validator=optional(positive_number))
    """Seconds after which a call is given up and the model is told so. A sync function goes on in its thread, because
    threads cannot be stopped; its result is discarded."""
    idempotent: bool = attrs.field(default=False, validator=instance_of(bool))
    """Whether calling it again does no harm: `resume` makes an interrupted call again, instead of telling the model that
    it was interrupted."""
    context: str = attrs.field(default="", repr=False)
    """The parameter that receives the `RunContext`; empty: none does."""
    delegate: Any = attrs.field(default=None, repr=False, eq=False)
    """The `SubAgent` whose tool it is."""
    check: Callable[[Json], Json] = attrs.field(default=dict, repr=False, eq=False)
    """Turns the input into keyword arguments; raises ValueError or TypeError with a text for the model."""

    def __attrs_post_init__(self) -> None:
        if inspect.iscoroutinefunction(self.needs_approval):
            raise MisuseError(
                f"tool {self.name}: needs_approval must be a plain function, not an async one"
            )
        if not _NAME.fullmatch(self.name):
            raise MisuseError(
                f"a tool's name must be 1 to 64 of a-z A-Z 0-9 _ -, not {self.name!r}"
            )
        parameters = self.input_schema.get("properties", {})
        if self.target and self.target not in parameters:
            raise MisuseError(
                f"tool {self.name}: its target {self.target!r} is not a parameter of the tool "
                f"({', '.join(parameters) or 'it has none'})"
            )

    def arguments(self, call: ToolCall) -> Json:
        """The keyword arguments of a call, checked.

        Raises:
            ValueError, TypeError: they are not valid; the text is for the model.
        """
        written: object = call.provider.get("arguments")
        if isinstance(written, str) and call.input == {"input": written}:  # see `tool_input`
            raise ValueError(f"the arguments are not a JSON object: {in_words(written)}")
        return self.check(call.input)

    def must_ask(self, call: ToolCall) -> bool:
        """Whether a call waits for a person. One whose input is not valid does not wait: it is refused."""
        if self.needs_approval is False:
            return False
        try:
            arguments = self.arguments(call)
        except (ValueError, TypeError):
            return False
        if self.needs_approval is True:
            return True
        try:
            return bool(self.needs_approval(**accepted(self.needs_approval, arguments)))
        except Exception:
            log.warning(
                "needs_approval of tool %s failed: the call waits", self.name, exc_info=True
            )
            return True

    @property
    def definition(self) -> Json:
        """The definition of the tool, for a request."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }

    def __call__(self, *positional: Any, **named: Any) -> Any:
        """Call the function itself, for use in Python code."""
        return self.call(*positional, **named)


@overload
def tool(function: Function, /) -> Tool: ...
@overload
def tool(**declared: Unpack[Declared]) -> Callable[[Function], Tool]: ...
def tool(
    function: Function | None = None, /, **declared: Unpack[Declared]
) -> Tool | Callable[[Function], Tool]:
    """Make a tool from a function: its schema from the annotations, its descriptions from the docstring.

    Raises:
        MisuseError: the type of a parameter has no JSON form, its default is of another type, or it cannot be passed by
            name; `capture` or `needs_approval` needs a parameter that the tool does not have; or `target` is not a
            parameter of the tool.
    """

    def make(function: Function) -> Tool:
        signature = Signature.of(function, RunContext)
        facts: Declared = {
            "name": str(getattr(function, "__name__", "tool")),
            "description": signature.description,
            **declared,
        }
        result = Tool(
            **facts,
            input_schema=signature.schema,
            call=function,
            check=signature.arguments,
            context=signature.context,
        )
        _check_needs(result, "capture", result.capture)
        _check_needs(result, "needs_approval", result.needs_approval)
        return result

    return make if function is None else make(function)


def _check_needs(owner: Tool, name: str, function: object) -> None:
    """Refuse a function about calls that needs what the calls do not have."""
    parameters = owner.input_schema.get("properties", {})
    needs = required(function) if callable(function) else []
    missing = [each for each in needs if each not in parameters]
    if missing:
        raise MisuseError(
            f"tool {owner.name}: its {name} needs {', '.join(missing)}, "
            f"which is not a parameter of the tool ({', '.join(parameters) or 'it has none'})"
        )


def file_state(path: str | os.PathLike[str]) -> Determinism:
    """A file's content hash and the time of its last change; a ready `capture` for `tool`.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    with Path(path).open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
        return Determinism.of_sha256(digest, mtime=os.fstat(file.fileno()).st_mtime)


# Calling a tool.  Tools are other people's code: the text of an exception (without the traceback) is logged and given to
# the model, and the loop goes on.  Cancellation is not an error and goes through.
#
# The state of the source is captured *before* the tool reads it.  If the source changes in between, it will seem to
# have changed later, and the result is kept; in the other order, a stale result would pass for fresh.


class NotCalledError(Exception):
    """The model called an unknown tool, or passed invalid input."""


class GivenUpError(Exception):
    """A tool did not answer in time."""


@attrs.frozen
class _ToolRun:
    """What the flow of a call yields: a tool or `capture` function to be run."""

    function: Function
    arguments: Mapping[str, Any]
    timeout: float | None = None


@attrs.frozen(kw_only=True)
class Caller:
    """Calls tools by name."""

    tools: Mapping[str, Tool]
    clock: Callable[[], float]

    def call(self, call: ToolCall, context: RunContext | None = None) -> ToolDone | Suspension:
        """Run the tool of a call; an async tool runs in an event loop of its own."""
        return drive(self._flow(call, context), _perform)

    async def acall(
        self, call: ToolCall, context: RunContext | None = None
    ) -> ToolDone | Suspension:
        """The same for asyncio; a sync tool runs in a thread."""
        return await adrive(self._flow(call, context), _aperform)

    def current(self, call: ToolCall) -> Determinism | None:
        """The current state of a call's source; empty if it could not be found out.

        None: the tool has no `capture`.  Never raises.
        """
        return drive(self._current(call), _perform)

    def _flow(
        self, call: ToolCall, context: RunContext | None
    ) -> Generator[_ToolRun, Any, ToolDone | Suspension]:
        started, mark = self.clock(), None
        try:
            tool, arguments = self._prepare(call)
            mark = yield from self._current(call)
            own = {tool.context: context} if tool.context else {}
            answer = yield _ToolRun(tool.call, {**arguments, **own}, tool.timeout)
            if isinstance(answer, Suspension):
                return answer
            reply = _reply(answer)
            output_parts(reply.output, "the output")  # raises for what the provider would refuse
        except Exception as error:  # noqa: BLE001 -- the tool is foreign code
            reply = _failed(call, error)
        result = self._result(call, reply, started, mark)
        refusal = _too_large(result)
        return self._result(call, _failed(call, refusal), started, None) if refusal else result

    def _current(self, call: ToolCall) -> Generator[_ToolRun, Any, Determinism | None]:
        tool = self.tools.get(call.name)
        if tool is None or tool.capture is None:
            return None
        try:
            arguments = accepted(tool.capture, tool.arguments(call))
            return _mark((yield _ToolRun(tool.capture, arguments)))
        except Exception:
            log.warning("the capture of tool %s failed", call.name, exc_info=True)
            return Determinism()

    def _prepare(self, call: ToolCall) -> tuple[Tool, dict[str, Any]]:
        tool = self.tools.get(call.name)
        if tool is None:
            names = ", ".join(self.tools) or "none at all"
            raise NotCalledError(f"there is no tool {call.name!r}; there are: {names}")
        try:
            return tool, tool.arguments(call)
        except (ValueError, TypeError) as error:
            raise NotCalledError(f"invalid input for {call.name}: {error}") from error

    def _result(
        self, call: ToolCall, reply: ToolReply, started: float, mark: Determinism | None
    ) -> ToolDone:
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
        return ToolDone(call=call, output=reply.output, is_error=reply.is_error, envelope=envelope)


def withheld(result: ToolDone) -> ToolDone:
    """The notice that the model gets instead of a confidential result that cannot be kept; the turn goes on."""
    refusal = confidential(f"what {result.call.name} returned")
    log.error("%s", refusal)
    times = result.envelope.started_at, result.envelope.ended_at
    envelope = Envelope(outcome="failure", started_at=times[0], ended_at=times[1])
    return ToolDone(call=result.call, output=refusal, is_error=True, envelope=envelope)


def _perform(run: _ToolRun) -> object:
    if inspect.iscoroutinefunction(run.function):
        return _awaited(_within(run.timeout, run.function(**run.arguments)))
    answer = run.function(**run.arguments) if run.timeout is None else _in_time(run, run.timeout)
    return _awaited(answer) if inspect.iscoroutine(answer) else answer


def _in_time(run: _ToolRun, seconds: float) -> object:
    work = in_thread(lambda: run.function(**run.arguments), "foldline-tool")
    try:
        return work.result(seconds)
    except TimeoutError:
        if work.done():  # the tool's own
            raise
        work.add_done_callback(_discard)
        raise GivenUpError(TIMED_OUT.format(seconds)) from None


async def _aperform(run: _ToolRun) -> object:
    import asyncio  # here, as in `timeline._flow_drivers`

    async def called() -> object:
        if inspect.iscoroutinefunction(run.function):
            return await run.function(**run.arguments)
        # not in the loop's own threads: its end would wait for one that was given up
        work = in_thread(lambda: run.function(**run.arguments), "foldline-tool")
        try:
            answer = await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            work.add_done_callback(_discard)
            raise
        return await answer if inspect.isawaitable(answer) else answer

    try:
        return await _within(run.timeout, called())
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise CancelledError(*error.args) from error  # cancelled within the tool, not by the caller


def _discard(work: Future[object]) -> None:
    """Close the coroutine that a function returned after its call was given up: nobody will await it."""
    if work.exception() is None and inspect.iscoroutine(answer := work.result()):
        answer.close()


async def _within(seconds: float | None, work: Coroutine[Any, Any, Any]) -> object:
    """The result of this work, which is cancelled after so many seconds."""
    import asyncio

    if seconds is None:
        return await work
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await work
    except TimeoutError:
        if not deadline.expired():  # the tool's own
            raise
        raise GivenUpError(TIMED_OUT.format(seconds)) from None


def _awaited(answer: Coroutine[Any, Any, Any]) -> object:
    """Run a coroutine to its end, even if an event loop is already running in this thread."""
    import asyncio

    try:
        return in_thread(lambda: asyncio.run(answer), "foldline-tool").result()
    except asyncio.CancelledError as error:
        raise CancelledError(*error.args) from error


def _failed(call: ToolCall, error: BaseException) -> ToolReply:
    log.info("tool %s failed", call.name, exc_info=error)
    is_ours = isinstance(error, NotCalledError | GivenUpError)
    try:
        text = str(error) if is_ours else f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 -- `__str__` is foreign code, too
        text = type(error).__name__
    outcome: ResultOutcome = "partial" if isinstance(error, GivenUpError) else "failure"
    return ToolReply(output=text, is_error=True, outcome=outcome)


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
            return ToolReply(output=as_text(answer))


def as_text(value: object) -> str:
    """A value as JSON; what has no JSON form, as its text."""
    return msgspec.json.encode(value, enc_hook=_plain).decode()


def _plain(value: object) -> Any:
    """The fields of a pydantic model; the text of any other object."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) and not isinstance(value, type) else str(value)


def _too_large(result: ToolDone) -> TooLargeError | None:
    """The error that the model gets instead of a result that is too large for a store."""
    block = ToolResult(
        id=BlockId(""),
        turn=TurnId(""),
        call_id=result.call.call_id,
        parts=output_parts(result.output, "the output"),
        envelope=result.envelope,
    )
    size = len(encode_block(block))
    if size <= RESULT_BYTES_MAX:
        return None
    advice = "return less of it, a part say, or where it can be read"
    return TooLargeError("the output", size, RESULT_BYTES_MAX, advice)


def _are_parts(items: Sequence[object]) -> bool:
    return bool(items) and all(isinstance(item, Part) for item in items)


def _mark(state: object) -> Determinism:
    if isinstance(state, Determinism):
        return state
    raise TypeError(f"a capture must return a Determinism, not {type(state).__name__}")


def _text(output: Output) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(part.text for part in output if isinstance(part, TextPart))
