"""Tools: typed Python functions that the model may call.

@tool(durability="ephemeral")
def read_file(path: str, lines: int = 100) -> str:
    '''Read the beginning of a text file.

    Args:
        path: From the root of the repository.
        lines: How many lines at most.
    '''
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias, overload

import attrs

from blocks import Determinism, Durability, MisuseError
from render import Json
from timeline._recorder import Output
from timeline.react._signature import Signature

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DURABILITIES: Final = ("ephemeral", "anchoring", "replayable", "non-replayable")

Function: TypeAlias = Callable[..., Any]


@attrs.frozen(kw_only=True)
class ToolReply:
    """A tool's output, for tools that have more to say than the output."""

    output: Output
    is_error: bool = False
    key_fields: dict[str, Any] = attrs.field(factory=dict[str, Any])
    """Small facts that stay when the output is cleared: an exit status, a count, an id."""
    determinism: Determinism = attrs.field(factory=Determinism)
    """Of the source that was read; see `Determinism.has_changed`."""


@attrs.frozen(kw_only=True)
class Tool:
    """A function with what the model and the engine must know about it."""

    name: str
    description: str
    input_schema: Json = attrs.field(repr=False)
    call: Function
    """Sync or async; is given the checked input as keyword arguments."""
    durability: Durability = attrs.field(
        default="anchoring", validator=attrs.validators.in_(_DURABILITIES)
    )
    """What may become of its results when space is short; see `Envelope`."""
    check: Callable[[Json], Json] = attrs.field(default=dict, repr=False, eq=False)
    """Input to keyword arguments; raises ValueError or TypeError with a text for the model."""

    def __attrs_post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise MisuseError(f"a tool's name is 1 to 64 of a-z A-Z 0-9 _ -, not {self.name!r}")

    @property
    def definition(self) -> Json:
        """The tool as a request describes it."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }

    def __call__(self, *positional: Any, **named: Any) -> Any:
        """The function itself, for Python code."""
        return self.call(*positional, **named)


@overload
def tool(function: Function, /) -> Tool: ...
@overload
def tool(
    *, name: str = "", description: str = "", durability: Durability = "anchoring"
) -> Callable[[Function], Tool]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    durability: Durability = "anchoring",
) -> Tool | Callable[[Function], Tool]:
    """Make a tool of a function: its schema from the annotations, its texts from the docstring.

    Raises:
        MisuseError: a parameter whose type has no JSON, or that cannot be given by name.
    """

    def make(function: Function) -> Tool:
        signature = Signature.of(function)
        return Tool(
            name=name or str(getattr(function, "__name__", "tool")),
            description=description or signature.description,
            input_schema=signature.schema,
            call=function,
            durability=durability,
            check=signature.arguments,
        )

    return make if function is None else make(function)


def as_tool(given: Tool | Function) -> Tool:
    """A plain function is a tool, too."""
    return given if isinstance(given, Tool) else tool(given)
