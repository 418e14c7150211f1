"""Flows: logic with slow operations is written once, as a generator; drivers carry out the operations.

A flow yields an operation and is sent its result (or has its error thrown in).  The sync driver
runs the operation in place, the async driver awaits it; the logic in between exists once.

The flow of a timeline holds the timeline's lock, but not while other people's code runs.  A hook,
an observer or a summariser may use the timeline that called it, from its own thread or task or from
another one that it waits for.  So the lock is released meanwhile, and the flow checks afterwards whether
the timeline's version has changed.
"""

import contextlib
import contextvars
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, Self, TypeAlias, TypeVar

import attrs

from timeline.observe._hooks import acall, call

_T = TypeVar("_T")

Calls: TypeAlias = Generator[Callable[[], Any], Any, _T]
"""A flow that yields functions to be called; under asyncio, their results are awaited."""


def done(do: Callable[[], Any]) -> Any:
    """Call a function that a flow of `Calls` yielded."""
    return do()


def drive(flow: Generator[Any, Any, _T], perform: Callable[[Any], Any] = done) -> _T:
    """Run a flow to its end, and return its result."""
    step: Callable[[], Any] = partial(next, flow)
    with contextlib.closing(flow):  # an interrupt leaves it unfinished
        while True:
            try:
                effect = step()
            except StopIteration as stop:
                result: _T = stop.value
                return result
            try:
                step = partial(flow.send, perform(effect))
            except Exception as error:  # noqa: BLE001 -- the flow handles it, or raises it again
                step = partial(flow.throw, error)


async def adrive(
    flow: Generator[Any, Any, _T], perform: Callable[[Any], Awaitable[Any]] = done
) -> _T:
    """Run a flow to its end, awaiting each operation, and return its result."""
    step: Callable[[], Any] = partial(next, flow)
    with contextlib.closing(flow):
        while True:
            try:
                effect = step()
            except StopIteration as stop:
                result: _T = stop.value
                return result
            try:
                step = partial(flow.send, await perform(effect))
            except Exception as error:  # noqa: BLE001 -- as above
                step = partial(flow.throw, error)


# Effects that the flow of a timeline yields.


@attrs.frozen
class RunBlocking:
    """Run something blocking, such as a commit."""

    do: Callable[[], Any]


@attrs.frozen
class AskSummarizer:
    """Call an external service: for a summary, or to count tokens."""

    ask: Callable[[], Any]
    aask: Callable[[], Awaitable[Any]]
    """The same for asyncio."""


@attrs.frozen
class CallHook:
    """Call a hook; the result is the hook's return value."""

    hook: Callable[[Any], Any]
    argument: object


@attrs.frozen
class Begin:
    """Run a flow in the background, under the same lock; the result is an object for `Await`."""

    flow: Generator[Any, Any, None]


@attrs.frozen
class Await:
    """Wait until a background flow has ended, successfully or not."""

    work: Any
    """A future, or for asyncio a task."""


@attrs.frozen
class Pause:
    """Wait for some seconds."""

    seconds: float


@attrs.frozen
class Doze:
    """Wait until something happens elsewhere; the result is the return value of the wait."""

    wait: Callable[[], Any]
    await_: Callable[[], Awaitable[Any]]
    """The same for asyncio, without blocking a thread."""


Effect: TypeAlias = RunBlocking | AskSummarizer | CallHook | Begin | Await | Pause | Doze
Flow: TypeAlias = Generator[Effect, Any, _T]


# Running a flow.


def run(flow: Flow[_T], lock: Any = None) -> _T:
    """Run a flow to its end, holding a `threading` lock except while other people's code runs."""
    with _Hold(lock) as hold:
        return drive(flow, hold.perform)


async def arun(flow: Flow[_T], lock: Any = None) -> _T:
    """The same with an `asyncio` lock."""
    async with _AsyncHold(lock) as hold:
        return await adrive(flow, partial(hold.perform, flow=flow))


@attrs.define
class _Hold:
    """One flow's hold on a lock; does nothing if there is no lock."""

    lock: Any
    _is_held: bool = attrs.field(default=False, init=False)

    def __enter__(self) -> Self:
        if self.lock is not None:
            self.lock.acquire()
            self._is_held = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_held:
            self._is_held = False
            self.lock.release()

    @contextlib.contextmanager
    def away(self) -> Generator[None]:
        """Release the lock for others.  After an interrupt the flow ends, so it does not take the lock again."""
        self.__exit__()
        try:
            yield
        except Exception:  # the flow gets the error, and needs the lock
            self.__enter__()
            raise
        self.__enter__()

    def perform(self, effect: Effect) -> object:
        match effect:
            case RunBlocking():
                return effect.do()
            case AskSummarizer():
                with self.away():
                    return effect.ask()
            case CallHook():
                with self.away():
                    return call(effect.hook, effect.argument)
            case Begin():
                return in_thread(partial(run, effect.flow, self.lock))
            case Await():
                with self.away():
                    return wait([effect.work])
            case Pause():
                time.sleep(effect.seconds)
                return None
            case Doze():
                return effect.wait()


@attrs.define
class _AsyncHold:
    """The same for asyncio."""

    lock: Any
    _is_held: bool = attrs.field(default=False, init=False)

    async def __aenter__(self) -> Self:
        if self.lock is not None:
            await self.lock.acquire()
            self._is_held = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_held:
            self._is_held = False
            self.lock.release()

    @contextlib.asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """Release the lock for others; a cancellation ends the flow, too."""
        await self.__aexit__()
        try:
            yield
        except Exception:  # the flow gets the error, and needs the lock
            await self.__aenter__()
            raise
        await self.__aenter__()

    async def perform(self, effect: Effect, flow: Flow[Any]) -> object:
        import asyncio  # here, because it takes a sixth of the library's import time

        match effect:
            case RunBlocking():
                return await _finished(effect, flow)
            case AskSummarizer():
                async with self.away():
                    return await effect.aask()
            case CallHook():
                async with self.away():
                    return await acall(effect.hook, effect.argument)
            case Begin():
                return asyncio.create_task(arun(effect.flow, self.lock))
            case Await():
                async with self.away():
                    return await asyncio.wait([effect.work])
            case Pause():
                await asyncio.sleep(effect.seconds)
                return None
            case Doze():
                return await effect.await_()


async def _finished(effect: RunBlocking, flow: Flow[Any]) -> object:
    """The result of blocking work.

    A thread cannot be cancelled.  If its task is cancelled, this waits for the thread's commit and tells the flow, so
    that the timeline knows what its store now holds.
    """
    import asyncio

    # Not a task: it would be cancelled when its loop ends, while its thread continues.
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


def in_thread(work: Callable[[], _T]) -> Future[_T]:
    """Call a function in a thread of its own, for which the process does not wait at exit."""
    answer: Future[_T] = Future()
    answer.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def answered() -> None:
        try:
            answer.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 -- raised again by the caller that waits
            answer.set_exception(error)

    threading.Thread(target=answered, name="foldline-summary", daemon=True).start()
    return answer
