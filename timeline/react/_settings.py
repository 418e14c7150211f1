"""What an agent is given, its settings and hooks, and what it gives back: the outcome of a run."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast

import attrs

from blocks import (
    AssistantCompletion,
    BlockId,
    Determinism,
    MisuseError,
    ToolCall,
    TurnId,
    UsageRecorded,
    checked_calls,
    in_words,
)
from render import Json, Provider, Rendered
from timeline._apis import api_of
from timeline._arguments import COUNT, System, checked, fixed_content
from timeline.observe._hooks import functions, listed
from timeline.react._tools import Caller, Function, Tool, as_tool

Hook: TypeAlias = Callable[[Any], Any]


@attrs.frozen(kw_only=True)
class SessionStarted:
    """A run begins, continues after a crash, or continues with a compacted prompt."""

    source: Literal["startup", "resume", "compact"]
    """Why: the run begins, continues after a crash, or continues with a compacted prompt."""
    version: int
    """The timeline's version; with source "compact", the version of the compaction."""


@attrs.frozen(kw_only=True)
class StepStarted:
    """A round is about to begin. Nothing is rendered yet, so the model will see what a hook appends now."""

    round: int
    """Number of the round in this run, from 1."""


@attrs.frozen(kw_only=True)
class StepDone:
    """A round is over: the answer and the results of its calls are in the log."""

    round: int
    """Number of the round in this run, from 1."""
    rendered: Rendered = attrs.field(repr=False)
    """The request that was answered."""
    response: Any = attrs.field(repr=False)
    """The SDK's object; for a streamed response of OpenAI, its JSON."""
    stop: str
    """The provider's stop reason."""


@attrs.frozen(kw_only=True)
class StreamLost:
    """A response broke off: discard the texts that `on_text` received from it. The agent sends the request again."""

    error: Exception
    """The error that broke it off."""


def _hooks(hooks: Iterable[Hook]) -> tuple[Hook, ...]:
    found: tuple[Hook, ...] = listed(hooks)
    return found


@checked_calls()
@attrs.frozen(kw_only=True)
class AgentHooks:
    """Functions of the caller, sync or async; an exception in one is logged and changes nothing.

    Compactions have hooks of their own (`timeline.Hooks`).  An async hook needs an
    `AsyncReactAgent`; a sync one works in both.
    """

    on_session_start: tuple[Hook, ...] = attrs.field(
        default=(), converter=_hooks, validator=functions
    )
    """Called with a `SessionStarted`."""
    before_step: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Called with a `StepStarted`."""
    after_step: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Called with a `StepDone`."""
    on_text: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Called with each piece of text as it is streamed."""
    on_lost: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Called with a `StreamLost`."""


@attrs.frozen(kw_only=True)
class Usage:
    """The tokens of all rounds of a run, as the provider reported them."""

    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def input(self) -> int:
        """Tokens of all prompts together, including those read from the cache."""
        return self.uncached + self.cache_read + self.cache_write

    def plus(self, new: UsageRecorded | None) -> "Usage":
        """The sum of these tokens and those of one more response."""
        if new is None:
            return self
        return Usage(
            uncached=self.uncached + new.uncached,
            cache_read=self.cache_read + new.cache_read,
            cache_write=self.cache_write + new.cache_write,
            output=self.output + new.output,
        )


@attrs.frozen(kw_only=True)
class Outcome:
    """How a run ended."""

    text: str
    """The texts of the agent since its last tool call."""
    stop: str
    """Why the run stopped, for every provider in Anthropic's terms: `end_turn`, `refusal`, `max_tokens`,
    `stop_sequence`, `model_context_window_exceeded` (also if the provider refused the prompt and compaction could
    not make it shorter); or our own `rounds_max`."""
    rounds: int
    usage: Usage


def text_in(response: object, provider: Provider) -> str:
    """All text of a response."""
    answer = provider.read(response, lambda: BlockId(""), TurnId(""))
    return "".join(b.text for b in answer.blocks if isinstance(b, AssistantCompletion))


# The settings


AnyTool: TypeAlias = "Tool | Function | Mapping[str, Any]"
"""A tool, a plain function, or the definition of one of the provider's own tools."""


def _tools(given: Iterable[AnyTool]) -> tuple[Tool | Mapping[str, Any], ...]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
        raise MisuseError(f"tools must be a list of tools, not {in_words(given)}")
    return tuple(_tool(item) for item in given)


def _tool(given: Any) -> Tool | Mapping[str, Any]:
    if isinstance(given, Tool) or callable(given):
        return as_tool(given)
    if not isinstance(given, Mapping):
        raise MisuseError(
            f"a tool must be a Tool, a function or a definition (a dict), not {in_words(given)}"
        )
    return cast("Mapping[str, Any]", given)


def _must_be(what: str, is_right: Callable[[Any], bool]) -> Any:
    """A validator that accepts values for which `is_right` is true."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if not is_right(value):
            raise MisuseError(f"{attribute.name} must be {what}, not {in_words(value)}")

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
