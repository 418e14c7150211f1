"""The hooks of an agent, which see everything and can break nothing, and the outcome of a run."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import attrs

from blocks import AssistantCompletion, BlockId, TurnId, UsageRecorded, checked_calls
from render import Provider, Rendered
from timeline.observe._hooks import functions, listed

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
