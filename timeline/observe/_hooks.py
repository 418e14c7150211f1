"""Hooks: functions of the caller that run before and after a compaction. A hook can veto and edit; it cannot
break anything, and it may use the timeline that called it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs

from blocks import ArgumentError, StructuredSummary, checked_calls, in_words

if TYPE_CHECKING:
    from render import CompactionDraft

log = logging.getLogger("foldline")
Answer: TypeAlias = "bool | Edit | None"
BeforeCompaction: TypeAlias = Callable[["Compacting"], "Answer | Awaitable[Answer]"]
AfterCompaction: TypeAlias = Callable[["Compacted"], "Any | Awaitable[Any]"]


@attrs.frozen(kw_only=True)
class Compacting:
    """A compaction is about to happen."""

    before_tokens: int
    """Tokens of the whole request now."""
    trigger: str
    """The reason: `proactive`, `cold` or `forced`."""
    draft: CompactionDraft
    """What the compaction would do."""


EditSummary: TypeAlias = "Callable[[StructuredSummary], Any]"


@attrs.frozen(kw_only=True)
class Edit:
    """A hook's changes to a compaction.

    An edit that cannot be applied (a cut that is not legal, a summary of a wrong type, a request that would not
    fit or would gain too little) is logged, and the compaction goes on without it.
    """

    keep_from: int | str | None = None
    """The first block to keep: its version, path or id. None: as in the draft."""
    summary: StructuredSummary | EditSummary | None = None
    """The summary of the folded blocks, so that no summariser is called; or a function that takes the summariser's
    summary and returns the one to commit (it may be async in an `AsyncTimeline`)."""


@attrs.frozen(kw_only=True)
class Compacted:
    """A compaction was committed."""

    before_tokens: int
    """Tokens of the whole request before it."""
    after_tokens: int
    """Tokens of the whole request after it."""
    compacted_tokens: int
    """Tokens that left the prompt, less the tokens of their replacements."""
    trigger: str
    """The reason: `proactive`, `cold` or `forced`."""


# Not `tuple` itself: as a converter, type checkers would refuse a list of hooks.
def _before(hooks: Iterable[BeforeCompaction]) -> tuple[BeforeCompaction, ...]:
    return cast("tuple[BeforeCompaction, ...]", listed(hooks))


def _after(hooks: Iterable[AfterCompaction]) -> tuple[AfterCompaction, ...]:
    return cast("tuple[AfterCompaction, ...]", listed(hooks))


def listed(hooks: Any) -> Any:
    """A list as a tuple; other values are returned unchanged, for `functions` to refuse."""
    items: Iterable[Any] = hooks
    return tuple(items) if isinstance(hooks, Iterable) and not isinstance(hooks, str) else hooks


def functions(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    """A validator: hooks must be a list of functions."""
    hooks: Iterable[Any] = value
    if not isinstance(value, tuple) or not all(map(callable, hooks)):
        raise ArgumentError(f"{attribute.name} must be a list of functions, not {in_words(value)}")


@checked_calls
@attrs.frozen(kw_only=True)
class Hooks:
    """Functions of the caller, sync or async; an exception in one is logged and changes nothing.

    An async hook needs an `AsyncTimeline`; a sync one works in both.
    """

    on_before_compaction: tuple[BeforeCompaction, ...] = attrs.field(
        default=(), converter=_before, validator=functions
    )
    """Called with a `Compacting`. Returning an `Edit` changes the compaction; returning False vetoes it. If the prompt
    does not fit without the compaction, the render says `CannotFit`."""
    on_after_compaction: tuple[AfterCompaction, ...] = attrs.field(
        default=(), converter=_after, validator=functions
    )
    """Called with a `Compacted`, after the commit."""


def refuse_async(hooks: Hooks) -> None:
    """Check the hooks of a timeline that is not async.

    Raises:
        ArgumentError: one of them is a coroutine function.
    """
    for hook in (*hooks.on_before_compaction, *hooks.on_after_compaction):
        if inspect.iscoroutinefunction(hook):
            raise ArgumentError(f"hooks: {hook!r} is async; open the timeline with AsyncTimeline")


def call(hook: Callable[[Any], Any], argument: object) -> object:
    """The hook's return value; None if it raised or returned an awaitable."""
    try:
        answer = hook(argument)
    except Exception:
        log.exception("hook %r failed; the compaction is not affected", hook)
        return None
    if inspect.iscoroutine(answer):
        answer.close()
        log.error("hook %r is async and this timeline is not; use AsyncTimeline", hook)
        return None
    return answer


async def acall(hook: Callable[[Any], Any], argument: object) -> object:
    """The same for hooks that may be async."""
    try:
        answer = hook(argument)
        return await answer if inspect.isawaitable(answer) else answer
    except Exception:
        log.exception("hook %r failed; the compaction is not affected", hook)
        return None
