"""Hooks: what a runtime may add around a compaction. A hook can veto; it cannot break anything."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import attrs

from render import CompactionPlan

log = logging.getLogger("foldline")

BeforeCompaction: TypeAlias = Callable[["Compacting"], "bool | Awaitable[bool | None] | None"]
AfterCompaction: TypeAlias = Callable[["Compacted"], "Any | Awaitable[Any]"]


@attrs.frozen(kw_only=True)
class Compacting:
    """A compaction is about to happen."""

    before_tokens: int
    trigger: str
    plan: CompactionPlan


@attrs.frozen(kw_only=True)
class Compacted:
    """A compaction has happened and is committed."""

    before_tokens: int
    after_tokens: int
    compacted_tokens: int
    """What left the prompt, less what stands for it."""
    trigger: str


# Not `tuple` itself: as a converter, type checkers would refuse a list of hooks.
def _before(hooks: Iterable[BeforeCompaction]) -> tuple[BeforeCompaction, ...]:
    return tuple(hooks)


def _after(hooks: Iterable[AfterCompaction]) -> tuple[AfterCompaction, ...]:
    return tuple(hooks)


@attrs.frozen(kw_only=True)
class Hooks:
    """Callables, sync or async; what they raise is logged and changes nothing.

    An async hook needs an `AsyncTimeline`; a sync one works in both.
    """

    on_before_compaction: tuple[BeforeCompaction, ...] = attrs.field(default=(), converter=_before)
    """Returning False vetoes: the compaction is skipped, unless the prompt would not fit."""
    on_after_compaction: tuple[AfterCompaction, ...] = attrs.field(default=(), converter=_after)


def call(hook: Callable[[Any], Any], argument: object) -> object:
    """What the hook returned; None when it raised or wants to be awaited."""
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
