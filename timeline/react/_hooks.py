"""Hooks of the agent's loop: they see everything, and can break nothing."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import attrs

from blocks import checked_calls
from render import Rendered
from timeline.observe._hooks import functions, listed

Hook: TypeAlias = Callable[[Any], Any]


@attrs.frozen(kw_only=True)
class SessionStarted:
    """A run begins, goes on after a crash, or goes on with a compacted prompt."""

    source: Literal["startup", "resume", "compact"]
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
    rendered: Rendered = attrs.field(repr=False)
    """The request that was answered."""
    response: Any = attrs.field(repr=False)
    """The SDK's message."""
    stop: str


@attrs.frozen(kw_only=True)
class StreamLost:
    """A response broke off: what `on_text` said of it is void. It is asked for again."""

    error: Exception


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
