"""The settings of an agent: its tools, its system prompt, its limits, the type of its result."""

import time
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Any, Generic, TypeAlias, cast

import attrs

from blocks import (
    AssistantCompletion,
    BlockId,
    Determinism,
    MisuseError,
    ToolCall,
    TurnId,
    in_words,
)
from render import Json, Provider, Rendered
from timeline._apis import api_of
from timeline._arguments import COUNT, NUMBER, System, is_kind, must_be, valid
from timeline.engine._settings import fixed_content
from timeline.react._approvals import Gate
from timeline.react._events import AgentHooks, OutputT
from timeline.react._limits import Limits
from timeline.react._output import output_tool
from timeline.react._schemas import Function
from timeline.react._tools import Caller, Tool, tool

PARALLEL_MAX = 16
"""Tools of one round that run at the same time, unless the agent has another number."""


def text_in(response: object, provider: Provider) -> str:
    """All text of a response."""
    answer = provider.read(response, lambda: BlockId(""), TurnId(""))
    return "".join(b.text for b in answer.blocks if isinstance(b, AssistantCompletion))


# The settings


AnyTool: TypeAlias = "Tool | Function | Mapping[str, Any]"
"""A tool, a plain function, a `SubAgent`, or the definition of one of the provider's own tools."""


def _tools(tools: Iterable[AnyTool]) -> tuple[Tool | Mapping[str, Any], ...]:
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
        raise MisuseError(f"tools must be a list of tools, not {in_words(tools)}")
    return tuple(_tool(item) for item in tools)


def _tool(item: Any) -> Tool | Mapping[str, Any]:
    delegated: object = getattr(item, "as_tool", None)
    if callable(delegated):
        return cast("Tool", delegated())
    if isinstance(item, Tool):
        return item
    if callable(item):
        return tool(item)
    if not isinstance(item, Mapping):
        raise MisuseError(
            f"a tool must be a Tool, a function or a definition (a dict), not {in_words(item)}"
        )
    return cast("Mapping[str, Any]", item)


@attrs.frozen(kw_only=True)
class AgentSettings(Generic[OutputT]):
    """The settings of an agent; `OutputT` is the type of its run's result."""

    name: str = attrs.field(default="", validator=is_kind(str, "a text"))
    """The agent's name in traces."""
    system: System = attrs.field(default=None, repr=False)
    """The system prompt: a text, or text blocks."""
    tools: tuple[Tool | Mapping[str, Any], ...] = attrs.field(default=(), converter=_tools)
    """Tools, plain functions, or definitions of the provider's own tools."""
    max_tokens: int = attrs.field(default=8000, validator=valid(COUNT, "an agent"))
    """Largest number of tokens in one answer."""
    limits: Limits = attrs.field(factory=Limits, validator=is_kind(Limits, "Limits(...)"))
    """The most that one run may use; see `Limits`."""
    output: type[OutputT] | UnionType | None = None
    """The type of the run's result, as for a tool's parameter: the model ends the run by calling the tool `final_result`
    with such a value. None: the result is a text."""
    output_retries: int = attrs.field(default=2, validator=valid(NUMBER, "an agent"))
    """How often the model may correct a result that is not valid, or is reminded to give one."""
    parallel_max: int = attrs.field(default=PARALLEL_MAX, validator=valid(COUNT, "an agent"))
    """Tools of one round that run at the same time; 1: one after the other, in the order of the calls."""
    hooks: AgentHooks = attrs.field(
        factory=AgentHooks, validator=is_kind(AgentHooks, "AgentHooks(...)")
    )
    """Functions that the agent calls while it runs; see `AgentHooks`."""
    stream: bool = attrs.field(default=False, validator=is_kind(bool, "True or False"))
    """Whether answers are streamed: texts then arrive piece by piece. Needed for long answers."""
    options: Mapping[str, Any] = attrs.field(
        factory=dict[str, Any], repr=False, validator=is_kind(Mapping, "a dict of arguments")
    )
    """Further arguments of every call to the model: `thinking`, `tool_choice`, `betas`, ..."""
    clock: Callable[[], float] = attrs.field(
        default=time.time, validator=must_be("a function", callable)
    )
    """Gives the times in the envelopes of results, and measures `limits.seconds`."""
    result_tool: Tool | None = attrs.field(
        default=attrs.Factory(lambda self: output_tool(self.output), takes_self=True),
        init=False,
        eq=False,
        repr=False,
    )
    """The tool that takes the run's result; None: the result is a text."""

    def __attrs_post_init__(self) -> None:
        fixed_content(self.system, self.definitions)
        names = [str(definition.get("name", "")) for definition in self.definitions]
        twice = {name for name in names if name and names.count(name) > 1}
        if twice:
            raise MisuseError(
                f"two tools have the name {', '.join(sorted(twice))}; give one of them another: tool(name=...), or"
                " McpServer(prefix=...)"
            )

    @property
    def definitions(self) -> list[Json]:
        """The definitions of the tools, for a request."""
        own = (self.result_tool,) if self.result_tool else ()
        return [
            tool.definition if isinstance(tool, Tool) else dict(tool)
            for tool in (*self.tools, *own)
        ]

    @property
    def functions(self) -> dict[str, Tool]:
        """The tools that are functions, by name."""
        own = (self.result_tool,) if self.result_tool else ()
        return {tool.name: tool for tool in (*self.tools, *own) if isinstance(tool, Tool)}

    @property
    def gate(self) -> Gate:
        """Decides which open calls run, wait or are closed."""
        return Gate(self.functions)

    def arguments(self, rendered: Rendered) -> Json:
        """The keyword arguments of one call to the model."""
        api = api_of(rendered.provider.name)
        return api.arguments(rendered.request(), rendered.model, self.max_tokens, self.options)

    @property
    def caller(self) -> Caller:
        """Calls the tools that are functions."""
        return Caller(tools=self.functions, clock=self.clock)

    @property
    def probe(self) -> Callable[[ToolCall], Determinism | None]:
        """A function that returns the current state of a call's source, if its tool has a `capture`."""
        return self.caller.current
