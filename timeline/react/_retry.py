"""Handling a prompt that was too long: compact, render again, try again.

The provider's own token count corrects ours, and each try is smaller than the last. If compaction cannot
help any more, the provider's error comes through.
"""

import logging
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, TypeVar, cast

from blocks import EventId, UsageRecorded
from render import Overflow, Rendered, overflow_of
from timeline._arguments import System, Tools
from timeline._flow import Calls, adrive, drive
from timeline._timeline import AsyncTimeline, Timeline
from timeline.react._asking import Use

log = logging.getLogger("foldline")
_E = TypeVar("_E")
_T = TypeVar("_T")

RETRIES_MAX = 2


def retry_with_compaction(
    timeline: Timeline,
    call: Callable[[Rendered], _T],
    *,
    system: System = None,
    tools: Tools = None,
    retries_max: int = RETRIES_MAX,
) -> _T:
    """Return what `call` returns for a rendered request; if the provider says "too long", compact and try again.

    Raises:
        any error of `call`: an overflow only if the request cannot become smaller, other errors at once.
    """
    flow = retried(timeline, partial(_once, call), system, tools, retries_max)
    answer: _T = drive(flow)
    return answer


async def aretry_with_compaction(
    timeline: AsyncTimeline,
    call: Callable[[Rendered], Awaitable[_T]],
    *,
    system: System = None,
    tools: Tools = None,
    retries_max: int = RETRIES_MAX,
) -> _T:
    """`retry_with_compaction` for an `AsyncTimeline`."""
    flow = retried(timeline, partial(_once, call), system, tools, retries_max)
    answer: _T = await adrive(flow)
    return answer


def _once(call: Callable[[Rendered], object], rendered: Rendered) -> Calls[Any]:
    return (yield lambda: call(rendered))


def retried(
    timeline: Timeline | AsyncTimeline,
    call: Callable[[Rendered], Generator[_E, Any, _T]],
    system: System,
    tools: Tools,
    retries_max: int = RETRIES_MAX,
) -> Generator[_E | Use, Any, _T]:
    """The result of the flow that `call` makes for a request; see `retry_with_compaction`."""
    rendered: Rendered = yield lambda: timeline.render(system=system, tools=tools)
    for _ in range(retries_max):
        try:
            return (yield from call(rendered))
        except Exception as error:
            overflow = overflow_in(error)
            if overflow is None:
                raise
            usage = measured(rendered, overflow)
            yield partial(timeline.learn, usage)
            smaller: Rendered = yield lambda: timeline.compact(system=system, tools=tools)
            if smaller.account.estimated >= rendered.account.estimated:
                log.warning("the prompt is too long and compaction cannot make it shorter")
                raise
            rendered = smaller
    return (yield from call(rendered))


def overflow_in(error: BaseException) -> Overflow | None:
    """The overflow that an error of a provider's client reports; None: it is another error.

    Reads the attributes that the providers' clients have in common: a status, a body, a message; in Google's client
    the first two are called `code` and `details`.
    """
    status: object = getattr(error, "status_code", getattr(error, "code", None))
    details = _details(getattr(error, "body", getattr(error, "details", None)))
    kind = details.get("code") or details.get("type") or getattr(error, "type", None) or ""
    message = details.get("message") or str(error)
    return overflow_of(status if isinstance(status, int) else None, str(kind), str(message))


def _details(body: object) -> dict[str, Any]:
    """The innermost description of the error; both providers wrap it once."""
    if not isinstance(body, dict):
        return {}
    outer = cast("dict[str, Any]", body)
    inner = outer.get("error")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else outer


def measured(rendered: Rendered, overflow: Overflow) -> UsageRecorded | None:
    """The provider's own count of a request, to correct the estimate; None: it is not known."""
    if not overflow.tokens:
        return None
    return UsageRecorded(
        id=EventId(""),
        at=0.0,
        model=rendered.model,
        uncached=overflow.tokens,
        estimated=rendered.account.estimated,
    )
