"""Tools: typed Python functions that the model may call.

@tool(kind="read", target="contract", durability="ephemeral")
def show_contract(contract: str, pages: int = 10) -> str:
    '''Read the beginning of a contract.

    Args:
        contract: Its number.
        pages: How many pages at most.
    '''
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final, TypeAlias, TypedDict, Unpack, get_args, overload

import attrs
from attrs.validators import in_, instance_of, optional

from blocks import Determinism, Durability, MisuseError, Sensitivity, ToolKind, checked_calls
from blocks import Outcome as ResultOutcome
from render import Json
from timeline._arguments import Output
from timeline.react._signature import Signature, required

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

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
            raise MisuseError(f"a tool's name is 1 to 64 of a-z A-Z 0-9 _ -, not {self.name!r}")
        given = self.input_schema.get("properties", {})
        if self.target and self.target not in given:
            raise MisuseError(
                f"tool {self.name}: its target {self.target!r} is no parameter of the tool "
                f"({', '.join(given) or 'it has none'})"
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
        known: Declared = {
            "name": str(getattr(function, "__name__", "tool")),
            "description": signature.description,
            **declared,
        }
        made = Tool(
            **known, input_schema=signature.schema, call=function, check=signature.arguments
        )
        _check_capture(made)
        return made

    return make if function is None else make(function)


def _check_capture(made: Tool) -> None:
    given = made.input_schema.get("properties", {})
    missing = [name for name in required(made.capture) if name not in given] if made.capture else []
    if missing:
        raise MisuseError(
            f"tool {made.name}: its capture needs {', '.join(missing)}, "
            f"which is no parameter of the tool ({', '.join(given) or 'it has none'})"
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
