"""What a run of the agent tells: hooks, which see everything and can break nothing, and its outcome."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import attrs

from blocks import AssistantCompletion, BlockId, TurnId, UsageRecorded, checked_calls
from render import Provider, Rendered
from timeline.observe._hooks import functions, listed

Hook: TypeAlias = Callable[[Any], Any]


@attrs.frozen(kw_only=True)
class SessionStarted:
    """A run begins, goes on after a crash, or goes on with a compacted prompt."""

    source: Literal["startup", "resume", "compact"]
    """Which of the three."""
    version: int
    """Of the timeline; with source "compact", of the compaction: the boundary."""


@attrs.frozen(kw_only=True)
class StepStarted:
    """A round is about to begin: nothing is rendered yet, so what is appended now will be seen."""

    round: int
    """From 1, in this run."""


@attrs.frozen(kw_only=True)
class StepDone:
    """A round is over: the answer and the results of its calls are in the log."""

    round: int
    """From 1, in this run."""
    rendered: Rendered = attrs.field(repr=False)
    """The request that was answered."""
    response: Any = attrs.field(repr=False)
    """The SDK's object; of a stream of OpenAI's, its JSON."""
    stop: str
    """Why the model stopped, as the provider put it."""


@attrs.frozen(kw_only=True)
class StreamLost:
    """A response broke off: what `on_text` said of it is void. It is asked for again."""

    error: Exception
    """What broke it off."""


def _hooks(hooks: Iterable[Hook]) -> tuple[Hook, ...]:
    found: tuple[Hook, ...] = listed(hooks)
    return found


@checked_calls()
@attrs.frozen(kw_only=True)
class AgentHooks:
    """Callables, sync or async; what they raise is logged and changes nothing.

    Compactions have hooks of their own (`timeline.Hooks`).  An async hook needs an
    `AsyncReactAgent`; a sync one works in both.
    """

    on_session_start: tuple[Hook, ...] = attrs.field(
        default=(), converter=_hooks, validator=functions
    )
    """Given a `SessionStarted`."""
    before_step: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Given a `StepStarted`."""
    after_step: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Given a `StepDone`."""
    on_text: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Given each piece of text as it is streamed."""
    on_lost: tuple[Hook, ...] = attrs.field(default=(), converter=_hooks, validator=functions)
    """Given a `StreamLost`."""


@attrs.frozen(kw_only=True)
class Usage:
    """Tokens of all rounds together, as the provider reported them."""

    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def input(self) -> int:
        """All prompts together, what came from the cache included."""
        return self.uncached + self.cache_read + self.cache_write

    def plus(self, new: UsageRecorded | None) -> "Usage":
        """With those of one more response."""
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
    """What the agent said last."""
    stop: str
    """Why the model stopped, of whatever provider in the words of Anthropic's: `end_turn`, `refusal`, `max_tokens`, `stop_sequence`,
    `model_context_window_exceeded` (also when the provider refused the prompt and compaction could
    not make it shorter); or our own `rounds_max`."""
    rounds: int
    usage: Usage


def text_in(response: object, provider: Provider) -> str:
    """All text of a response."""
    answer = provider.read(response, lambda: BlockId(""), TurnId(""))
    return "".join(b.text for b in answer.blocks if isinstance(b, AssistantCompletion))
