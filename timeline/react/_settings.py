"""What both agents are given besides a timeline and a client."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import attrs
from attrs.validators import ge

from blocks import Determinism, MisuseError, ToolCall
from render import Json, Rendered
from timeline._settings import System
from timeline.react._calling import Caller
from timeline.react._hooks import AgentHooks
from timeline.react._tool import Function, Tool, as_tool

AnyTool: TypeAlias = "Tool | Function | Mapping[str, Any]"
"""A tool, a plain function, or the definition of one of the provider's own tools."""


def _tools(given: Iterable[AnyTool]) -> tuple[Tool | Mapping[str, Any], ...]:
    return tuple(
        as_tool(item) if isinstance(item, Tool) or callable(item) else item for item in given
    )


@attrs.frozen(kw_only=True)
class AgentSettings:
    """How an agent works."""

    system: System = None
    tools: tuple[Tool | Mapping[str, Any], ...] = attrs.field(default=(), converter=_tools)
    """Tools, plain functions, or definitions of the provider's own tools."""
    max_tokens: int = attrs.field(default=8000, validator=ge(1))
    """Of one answer."""
    rounds_max: int = attrs.field(default=100, validator=ge(1))
    """Rounds of one run."""
    hooks: AgentHooks = attrs.field(factory=AgentHooks)
    stream: bool = False
    """Whether answers are streamed, for `hooks.on_text` and for long ones."""
    options: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    """Further arguments of every call to the model: `thinking`, `tool_choice`, `betas`, ..."""
    clock: Callable[[], float] = time.time
    """For the envelopes of results."""

    def __attrs_post_init__(self) -> None:
        names = [str(definition.get("name", "")) for definition in self.definitions]
        twice = {name for name in names if name and names.count(name) > 1}
        if twice:
            raise MisuseError(f"two tools have the name {', '.join(sorted(twice))}")

    @property
    def definitions(self) -> list[Json]:
        """The tools as a request describes them."""
        return [tool.definition if isinstance(tool, Tool) else dict(tool) for tool in self.tools]

    def arguments(self, rendered: Rendered) -> Json:
        """The keyword arguments of one call to the model."""
        return {**self.options, **rendered.anthropic(max_tokens=self.max_tokens)}

    @property
    def caller(self) -> Caller:
        """Who calls the tools that are functions."""
        mine = {tool.name: tool for tool in self.tools if isinstance(tool, Tool)}
        return Caller(tools=mine, clock=self.clock)

    @property
    def probe(self) -> Callable[[ToolCall], Determinism | None]:
        """Says what the source of a call looks like now, where its tool has a `capture`."""
        return self.caller.current
