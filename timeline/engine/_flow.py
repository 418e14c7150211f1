"""One flow, two drivers: everything a timeline does is a generator that asks for what takes time.

A flow yields an `Effect` and is sent its result (or has its error thrown in).  The sync driver
does the work itself, the async one awaits it; the logic in between exists once.
"""

import contextlib
import contextvars
import random
import time
from collections.abc import Callable, Generator
from concurrent.futures import wait
from functools import partial
from typing import Any, TypeAlias, TypeVar

import attrs

from timeline import _driving
from timeline.engine._lock import AsyncHold, Hold
from timeline.observe._hooks import acall, call
from timeline.summarizers._patience import Patience, in_thread
from timeline.summarizers._summarizer import Summarizer, SummaryRequest

_T = TypeVar("_T")


@attrs.frozen
class RunBlocking:
    """Something blocking, such as a commit."""

    do: Callable[[], Any]


@attrs.frozen
class AskSummarizer:
    """A summary is needed."""

    patience: Patience
    summarizer: Summarizer
    request: SummaryRequest


@attrs.frozen
class CallHook:
    """A hook is to be called; the answer is what it returned."""

    hook: Callable[[Any], Any]
    argument: object


@attrs.frozen
class Begin:
    """A flow is to run in the background, under the same lock; the answer is what `Await` waits for."""

    flow: Generator[Any, Any, None]


@attrs.frozen
class Await:
    """What was begun is to end first, however it ends."""

    work: Any
    """A future, or for asyncio a task."""


@attrs.frozen
class Pause:
    """Nothing is to be done for a while."""

    seconds: float


REST_SECONDS = 0.001
"""About what a commit takes."""
REST_SECONDS_MAX = 0.1


def rest_after(conflicts: int) -> float:
    """How long to wait after so many conflicts in a row: longer each time, and never in step."""
    longest = min(REST_SECONDS * 2 ** min(conflicts, 10), REST_SECONDS_MAX)
    return random.uniform(0, longest)  # noqa: S311 -- no secret


Effect: TypeAlias = RunBlocking | AskSummarizer | CallHook | Begin | Await | Pause
Flow: TypeAlias = Generator[Effect, Any, _T]


def drive(flow: Flow[_T], lock: Any = None) -> _T:
    """Run a flow to its end, holding a lock but while other people's code is called."""
    with Hold(lock) as hold:
        return _driving.drive(flow, lambda effect: _perform(effect, hold))


async def adrive(flow: Flow[_T], lock: Any = None) -> _T:
    """Run a flow to its end, awaiting what it asks for."""
    async with AsyncHold(lock) as hold:
        return await _driving.adrive(flow, lambda effect: _aperform(effect, flow, hold))


def _perform(effect: Effect, hold: Hold) -> object:
    match effect:
        case RunBlocking():
            return effect.do()
        case AskSummarizer():
            with hold.away():
                return effect.patience.ask(effect.summarizer, effect.request)
        case CallHook():
            with hold.away():
                return call(effect.hook, effect.argument)
        case Begin():
            return in_thread(partial(drive, effect.flow, hold.lock))
        case Await():
            with hold.away():
                return wait([effect.work])
        case Pause():
            time.sleep(effect.seconds)
            return None


async def _aperform(effect: Effect, flow: Flow[Any], hold: AsyncHold) -> object:
    import asyncio  # here, because it is a sixth of what importing the library would cost

    match effect:
        case RunBlocking():
            return await _finished(effect, flow)
        case AskSummarizer():
            async with hold.away():
                return await effect.patience.aask(effect.summarizer, effect.request)
        case CallHook():
            async with hold.away():
                return await acall(effect.hook, effect.argument)
        case Begin():
            return asyncio.create_task(adrive(effect.flow, hold.lock))
        case Await():
            async with hold.away():
                return await asyncio.wait([effect.work])
        case Pause():
            await asyncio.sleep(effect.seconds)
            return None


async def _finished(effect: RunBlocking, flow: Flow[Any]) -> object:
    """What blocking work gave.

    A thread cannot be cancelled: when its task is, what it commits is waited for, and the flow is
    told, so that the timeline does not lose sight of what its store now holds.
    """
    import asyncio

    # No task: one that runs when its loop ends would be cancelled, and its thread left alone.
    context = contextvars.copy_context()
    work = asyncio.get_running_loop().run_in_executor(None, context.run, effect.do)
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
