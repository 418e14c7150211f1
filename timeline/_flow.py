"""One flow, two drivers: everything a timeline does is a generator that asks for what takes time.

A flow yields an `Effect` and is sent its result (or has its error thrown in).  The sync driver
does the work itself, the async one awaits it; the logic in between exists once.
"""

import contextlib
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

import attrs

from timeline import _driving
from timeline._hooks import acall, call
from timeline._summarize import Summarizer, SummaryRequest, asummarize, summarize

_T = TypeVar("_T")


@attrs.frozen
class Work:
    """Something blocking, such as a commit."""

    do: Callable[[], Any]


@attrs.frozen
class Ask:
    """A summary is needed."""

    summarizer: Summarizer
    request: SummaryRequest


@attrs.frozen
class Tell:
    """A hook is to be called; the answer is what it returned."""

    hook: Callable[[Any], Any]
    argument: object


Effect: TypeAlias = Work | Ask | Tell
Flow: TypeAlias = Generator[Effect, Any, _T]


def drive(flow: Flow[_T]) -> _T:
    """Run a flow to its end."""
    return _driving.drive(flow, _perform)


async def adrive(flow: Flow[_T]) -> _T:
    """Run a flow to its end, awaiting what it asks for."""
    return await _driving.adrive(flow, lambda effect: _aperform(effect, flow))


def _perform(effect: Effect) -> object:
    match effect:
        case Work():
            return effect.do()
        case Ask():
            return summarize(effect.summarizer, effect.request)
        case Tell():
            return call(effect.hook, effect.argument)


async def _aperform(effect: Effect, flow: Flow[Any]) -> object:
    match effect:
        case Work():
            return await _finished(effect, flow)
        case Ask():
            return await asummarize(effect.summarizer, effect.request)
        case Tell():
            return await acall(effect.hook, effect.argument)


async def _finished(effect: Work, flow: Flow[Any]) -> object:
    """What blocking work gave.

    A thread cannot be cancelled: when its task is, what it commits is waited for, and the flow is
    told, so that the timeline does not lose sight of what its store now holds.
    """
    import asyncio  # here, because it is a sixth of what importing the library would cost

    work = asyncio.ensure_future(asyncio.to_thread(effect.do))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        if work.exception() is None:
            with contextlib.suppress(StopIteration):
                flow.send(work.result())
            flow.close()
        raise
