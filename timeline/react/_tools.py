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
from concurrent.futures import CancelledError, ThreadPoolExecutor
from hashlib import file_digest
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Final,
    TypeAlias,
    TypedDict,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

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
)
from blocks import Outcome as ResultOutcome
from persistence import EVENT_BYTES_MAX
from render import Json
from timeline._arguments import Output, output_parts
from timeline._flow import adrive, drive
from timeline.engine._artifacts import confidential

log = logging.getLogger("foldline")
RESULT_BYTES_MAX = EVENT_BYTES_MAX - 1_000_000
"""Largest size in bytes of a result with its envelope; the rest of the limit is for the other fields of its event."""
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PLAIN: Final = (str, int, float, bool, type(None))
"""Types of default values that a schema can show."""
_SECTION: Final = re.compile(r"^(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_HEADING: Final = re.compile(r"^[A-Z]\w*:\s*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^(\s*)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
Function: TypeAlias = Callable[..., Any]


def _names(given: Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


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


@checked_calls()
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


@checked_calls()
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
    check: Callable[[Json], Json] = attrs.field(default=dict, repr=False, eq=False)
    """Turns the input into keyword arguments; raises ValueError or TypeError with a text for the model."""

    def __attrs_post_init__(self) -> None:
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
        MisuseError: the type of a parameter has no JSON form, or a parameter cannot be passed by name; `capture`
            needs a parameter that the tool does not have; or `target` is not a parameter of the tool.
    """

    def make(function: Function) -> Tool:
        signature = Signature.of(function)
        facts: Declared = {
            "name": str(getattr(function, "__name__", "tool")),
            "description": signature.description,
            **declared,
        }
        made = Tool(
            **facts, input_schema=signature.schema, call=function, check=signature.arguments
        )
        _check_capture(made)
        return made

    return make if function is None else make(function)


def _check_capture(made: Tool) -> None:
    parameters = made.input_schema.get("properties", {})
    missing = (
        [name for name in required(made.capture) if name not in parameters] if made.capture else []
    )
    if missing:
        raise MisuseError(
            f"tool {made.name}: its capture needs {', '.join(missing)}, "
            f"which is not a parameter of the tool ({', '.join(parameters) or 'it has none'})"
        )


def as_tool(given: Tool | Function) -> Tool:
    """The tool itself, or a tool made from a plain function."""
    return given if isinstance(given, Tool) else tool(given)


def file_state(path: str | os.PathLike[str]) -> Determinism:
    """A file's content hash and the time of its last change; a ready `capture` for `tool`.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    with Path(path).open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
        return Determinism.of_sha256(digest, mtime=os.fstat(file.fileno()).st_mtime)


# A function's signature as a JSON schema, and as a check of what the model sends.


@attrs.frozen(kw_only=True)
class Signature:
    """The parameters of a function, as a schema and as a check of its input."""

    description: str
    schema: Json
    _input: Any = attrs.field(alias="input")
    """A struct type with one field per parameter."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Signature":
        """The signature of a function.

        Raises:
            MisuseError: a parameter has a type without a JSON form, or cannot be passed by name.
        """
        name = str(getattr(function, "__name__", function))
        description, texts = _docstring(inspect.getdoc(function) or "")
        try:
            hints = get_type_hints(function, include_extras=True)
            parameters = inspect.signature(function).parameters.values()
            fields = [_field(parameter, hints, texts) for parameter in parameters]
            made = msgspec.defstruct("Input", fields, kw_only=True, forbid_unknown_fields=True)
            schema = _inlined(msgspec.json.schema(made))
        except (TypeError, NameError, ValueError) as error:
            raise MisuseError(f"tool {name}: {error}") from error
        return cls(description=description, schema=schema, input=made)

    def arguments(self, given: Json) -> Json:
        """Keyword arguments of the right types; numbers may be given as text.

        Raises:
            ValueError: the input is not valid; the message is meant for the model.
        """
        checked = msgspec.convert(given, self._input, strict=False)
        values = ((name, getattr(checked, name)) for name in checked.__struct_fields__)
        return {name: value for name, value in values if value is not msgspec.UNSET}


def accepted(function: Callable[..., Any], given: Json) -> Json:
    """The keyword arguments for which a function has parameters."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return given
    names = {parameter.name for parameter in parameters if parameter.kind in _BY_NAME}
    return {name: value for name, value in given.items() if name in names}


def required(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters without defaults, in order."""
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _field(
    parameter: inspect.Parameter, hints: dict[str, Any], texts: dict[str, str]
) -> tuple[str, Any] | tuple[str, Any, Any]:
    name = parameter.name
    if parameter.kind not in _BY_NAME:
        raise TypeError(f"parameter {name} cannot be given by name")
    kind = _described(hints.get(name, Any), texts.get(name, ""))
    if parameter.default is parameter.empty:
        return name, kind
    if isinstance(parameter.default, _PLAIN):
        return name, kind, parameter.default
    return name, kind | msgspec.UnsetType, msgspec.UNSET


def _described(kind: Any, text: str) -> Any:
    """The type with its description: from `Annotated[str, "..."]`, or else from the docstring."""
    if get_origin(kind) is Annotated:
        base, *notes = get_args(kind)
        text = next((note for note in notes if isinstance(note, str)), text)
        rest = [note for note in notes if not isinstance(note, str)]
        if any(isinstance(note, msgspec.Meta) and note.description for note in rest):
            text = ""
        for note in rest:
            base = Annotated[base, note]
        kind = base
    return Annotated[kind, msgspec.Meta(description=text)] if text else kind


def _inlined(schema: Json) -> Json:
    """The schema with its own object at the top; types that it refers to stay in `$defs`."""
    definitions: Json = schema["$defs"]
    top: Json = definitions.pop(schema["$ref"].rpartition("/")[2])
    top.pop("title", None)
    return {**top, "$defs": definitions} if definitions else top


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description in a docstring, and the text of its `Args:` section for each parameter."""
    section = _SECTION.search(text)
    if section is None:
        return text.strip(), {}
    before, after = text[: section.start()], text[section.end() :]
    heading = _HEADING.search(after)
    arguments = after[: heading.start()] if heading else after
    rest = after[heading.start() :] if heading else ""
    description = "\n\n".join(part.strip() for part in (before, rest) if part.strip())
    return description, _arguments(arguments)


def _arguments(section: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    depth, name = None, ""
    for line in section.splitlines():
        match = _ARGUMENT.match(line)
        if match and (depth is None or len(match[1]) <= depth):
            depth, name = len(match[1]), match[2]
            texts[name] = match[3].strip()
        elif name and line.strip():
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts


# Calling a tool.  Tools are other people's code: the text of an exception (without the traceback) is logged and given to
# the model, and the loop goes on.  Cancellation is not an error and goes through.
#
# The state of the source is captured *before* the tool reads it.  If the source changes in between, it will seem to
# have changed later, and the result is kept; in the other order, a stale result would pass for fresh.


class NotCalledError(Exception):
    """The model called an unknown tool, or passed invalid input."""


@attrs.frozen(kw_only=True)
class CallResult:
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

    def call(self, call: ToolCall) -> CallResult:
        """Run the tool of a call; an async tool runs in an event loop of its own."""
        return drive(self._flow(call), _perform)

    async def acall(self, call: ToolCall) -> CallResult:
        """The same for asyncio; a sync tool runs in a thread."""
        return await adrive(self._flow(call), _aperform)

    def current(self, call: ToolCall) -> Determinism | None:
        """The current state of a call's source; empty if it could not be found out.

        None: the tool has no `capture`.  Never raises.
        """
        return drive(self._current(call), _perform)

    def _flow(self, call: ToolCall) -> Generator[_Run, Any, CallResult]:
        started, mark = self.clock(), None
        try:
            tool, arguments = self._prepare(call)
            mark = yield from self._current(call)
            reply = _reply((yield _Run(tool.call, arguments)))
            output_parts(reply.output, "the output")  # raises for what the provider would refuse
        except Exception as error:  # noqa: BLE001 -- the tool is foreign code
            reply = _failed(call, error)
        result = self._result(call, reply, started, mark)
        refusal = _too_large(result)
        return self._result(call, _failed(call, refusal), started, None) if refusal else result

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

    def _prepare(self, call: ToolCall) -> tuple[Tool, dict[str, Any]]:
        tool = self.tools.get(call.name)
        if tool is None:
            names = ", ".join(self.tools) or "none at all"
            raise NotCalledError(f"there is no tool {call.name!r}; there are: {names}")
        try:
            return tool, tool.check(call.input)
        except (ValueError, TypeError) as error:
            raise NotCalledError(f"invalid input for {call.name}: {error}") from error

    def _result(
        self, call: ToolCall, reply: ToolReply, started: float, mark: Determinism | None
    ) -> CallResult:
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
        return CallResult(
            call=call, output=reply.output, is_error=reply.is_error, envelope=envelope
        )


def withheld(result: CallResult) -> CallResult:
    """The notice that the model gets instead of a confidential result that cannot be kept; the turn goes on."""
    refusal = confidential(f"what {result.call.name} returned")
    log.error("%s", refusal)
    times = result.envelope.started_at, result.envelope.ended_at
    envelope = Envelope(outcome="failure", started_at=times[0], ended_at=times[1])
    return CallResult(call=result.call, output=refusal, is_error=True, envelope=envelope)


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
    text = str(error) if isinstance(error, NotCalledError) else f"{type(error).__name__}: {error}"
    return ToolReply(output=text, is_error=True)


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


def _too_large(result: CallResult) -> TooLargeError | None:
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
    raise TypeError(f"a capture returns a Determinism, not {type(state).__name__}")


def _text(output: Output) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(part.text for part in output if isinstance(part, TextPart))
