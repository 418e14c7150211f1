"""The settings of both agents, besides a timeline and a client."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

import attrs

from blocks import Determinism, MisuseError, ToolCall, in_words
from render import Json, Rendered
from timeline._apis import api_of
from timeline._arguments import COUNT, System, checked, fixed_content
from timeline.react._calling import Caller
from timeline.react._hooks import AgentHooks
from timeline.react._tool import Function, Tool, as_tool

AnyTool: TypeAlias = "Tool | Function | Mapping[str, Any]"
"""A tool, a plain function, or the definition of one of the provider's own tools."""


def _tools(given: Iterable[AnyTool]) -> tuple[Tool | Mapping[str, Any], ...]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
        raise MisuseError(f"tools is a list of tools, not {in_words(given)}")
    return tuple(_tool(item) for item in given)


def _tool(given: Any) -> Tool | Mapping[str, Any]:
    if isinstance(given, Tool) or callable(given):
        return as_tool(given)
    if not isinstance(given, Mapping):
        raise MisuseError(
            f"a tool is a Tool, a function or a definition (a dict), not {in_words(given)}"
        )
    return cast("Mapping[str, Any]", given)


def _must_be(what: str, is_right: Callable[[Any], bool]) -> Any:
    """A validator that accepts values for which `is_right` is true."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if not is_right(value):
            raise MisuseError(f"{attribute.name} is {what}, not {in_words(value)}")

    return check


def is_kind(kind: type, what: str) -> Any:
    """A validator that accepts instances of `kind`."""
    return _must_be(what, lambda value: isinstance(value, kind))


def _whole(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    checked(value, COUNT, "an agent", attribute.name)


@attrs.frozen(kw_only=True)
class AgentSettings:
    """The settings of an agent."""

    name: str = attrs.field(default="", validator=is_kind(str, "a text"))
    """The agent's name in traces."""
    system: System = attrs.field(default=None, repr=False)
    """The system prompt: a text, or text blocks."""
    tools: tuple[Tool | Mapping[str, Any], ...] = attrs.field(default=(), converter=_tools)
    """Tools, plain functions, or definitions of the provider's own tools."""
    max_tokens: int = attrs.field(default=8000, validator=_whole)
    """Largest number of tokens in one answer."""
    rounds_max: int = attrs.field(default=100, validator=_whole)
    """Largest number of rounds in one run."""
    hooks: AgentHooks = attrs.field(
        factory=AgentHooks, validator=is_kind(AgentHooks, "AgentHooks(...)")
    )
    """Functions that the agent calls while it runs; see `AgentHooks`."""
    stream: bool = attrs.field(default=False, validator=is_kind(bool, "True or False"))
    """Whether answers are streamed; needed for `hooks.on_text` and for long answers."""
    options: Mapping[str, Any] = attrs.field(
        factory=dict[str, Any], repr=False, validator=is_kind(Mapping, "a dict of arguments")
    )
    """Further arguments of every call to the model: `thinking`, `tool_choice`, `betas`, ..."""
    clock: Callable[[], float] = attrs.field(
        default=time.time, validator=_must_be("a function", callable)
    )
    """Gives the times in the envelopes of results."""

    def __attrs_post_init__(self) -> None:
        fixed_content(self.system, self.definitions)
        names = [str(definition.get("name", "")) for definition in self.definitions]
        twice = {name for name in names if name and names.count(name) > 1}
        if twice:
            raise MisuseError(f"two tools have the name {', '.join(sorted(twice))}")

    @property
    def definitions(self) -> list[Json]:
        """The definitions of the tools, for a request."""
        return [tool.definition if isinstance(tool, Tool) else dict(tool) for tool in self.tools]

    def arguments(self, rendered: Rendered) -> Json:
        """The keyword arguments of one call to the model."""
        api = api_of(rendered.provider.name)
        return api.arguments(rendered.request(), rendered.model, self.max_tokens, self.options)

    @property
    def caller(self) -> Caller:
        """Calls the tools that are functions."""
        mine = {tool.name: tool for tool in self.tools if isinstance(tool, Tool)}
        return Caller(tools=mine, clock=self.clock)

    @property
    def probe(self) -> Callable[[ToolCall], Determinism | None]:
        """A function that returns the current state of a call's source, if its tool has a `capture`."""
        return self.caller.current
