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
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar

import msgspec

from timeline.observe._hooks import acall, call

if TYPE_CHECKING:
    from concurrent.futures import Future

_P = ParamSpec("_P")
_T = TypeVar("_T")
_E = TypeVar("_E")

Calls: TypeAlias = Generator[Callable[[], Any], Any, _T]
"""A flow that yields functions to be called; under asyncio, their results are awaited."""


def done(do: Callable[[], Any]) -> Any:
    """Call a function that a flow of `Calls` yielded."""
    return do()


def drive(
    flow: Generator[Any, Any, _T], perform: Callable[[Any], Any] = done, lock: Any = None
) -> _T:
    """Run a flow to its end, and return its result. A `threading` lock is held except while other people's code
    runs."""
    step: Callable[[], Any] = partial(next, flow)
    with contextlib.closing(flow):  # an interrupt leaves it unfinished
        while True:
            try:
                with lock or contextlib.nullcontext():
                    while not isinstance(effect := step(), _FOREIGN):
                        step = _after(flow, perform, effect)
            except StopIteration as stop:
                result: _T = stop.value
                return result
            step = _after(flow, perform, effect)


async def adrive(
    flow: Generator[Any, Any, _T], perform: Callable[[Any], Awaitable[Any]] = done, lock: Any = None
) -> _T:
    """The same, awaiting each operation, with an `asyncio` lock."""
    step: Callable[[], Any] = partial(next, flow)
    with contextlib.closing(flow):
        while True:
            try:
                async with lock or contextlib.nullcontext():
                    while not isinstance(effect := step(), _FOREIGN):
                        step = await _aafter(flow, perform, effect)
            except StopIteration as stop:
                result: _T = stop.value
                return result
            step = await _aafter(flow, perform, effect)


def play(
    flow: Generator[Any, Any, _T], perform: Callable[[Any], Generator[_E, None, Any]]
) -> Generator[_E | _T, None, None]:
    """Run a flow to its end, and pass on the events that each operation yields; the last item is the flow's result."""
    step: Callable[[], Any] = partial(next, flow)
    with contextlib.closing(flow):
        while True:
            try:
                effect = step()
            except StopIteration as stop:
                yield stop.value
                return
            try:
                step = partial(flow.send, (yield from perform(effect)))
            except Exception as error:  # noqa: BLE001 -- the flow's affair
                step = partial(flow.throw, error)


async def aplay(
    flow: Generator[Any, Any, _T], perform: Callable[[Any, list[Any]], AsyncGenerator[_E, None]]
) -> AsyncGenerator[_E | _T, None]:
    """The same for asyncio. An operation appends what it came to to the list that it is given, because an async
    generator cannot return it."""
    step: Callable[[], Any] = partial(next, flow)
    with contextlib.closing(flow):
        while True:
            try:
                effect = step()
            except StopIteration as stop:
                yield stop.value
                return
            answer: list[Any] = []
            try:
                async with contextlib.aclosing(perform(effect, answer)) as events:
                    async for event in events:
                        yield event
                step = partial(flow.send, *answer)
            except Exception as error:  # noqa: BLE001 -- as above
                step = partial(flow.throw, error)


def _after(
    flow: Generator[Any, Any, Any], perform: Callable[[Any], Any], effect: object
) -> Callable[[], Any]:
    """Perform an effect of a flow; return the flow's next step, which handles an error or raises it again."""
    try:
        return partial(flow.send, perform(effect))
    except Exception as error:  # noqa: BLE001 -- the flow's affair
        return partial(flow.throw, error)


async def _aafter(
    flow: Generator[Any, Any, Any], perform: Callable[[Any], Awaitable[Any]], effect: object
) -> Callable[[], Any]:
    try:
        return partial(flow.send, await perform(effect))
    except Exception as error:  # noqa: BLE001 -- as above
        return partial(flow.throw, error)


# Effects that the flow of a timeline yields.


class RunBlocking(msgspec.Struct, frozen=True):
    """Run something blocking, such as a commit."""

    do: Callable[[], Any]


class AskSummarizer(msgspec.Struct, frozen=True):
    """Call an external service: for a summary, or to count tokens."""

    ask: Callable[[], Any]
    aask: Callable[[], Awaitable[Any]]
    """The same for asyncio."""


class CallHook(msgspec.Struct, frozen=True):
    """Call a hook; the result is the hook's return value."""

    hook: Callable[[Any], Any]
    argument: object


class Begin(msgspec.Struct, frozen=True):
    """Run a flow in the background, under the same lock; the result is an object for `Await`."""

    flow: Generator[Any, Any, None]


class Await(msgspec.Struct, frozen=True):
    """Wait until a background flow has ended, successfully or not."""

    work: Any
    """A future, or for asyncio a task."""


class Pause(msgspec.Struct, frozen=True):
    """Wait for some seconds."""

    seconds: float


class Doze(msgspec.Struct, frozen=True):
    """Wait until something happens elsewhere; the result is the return value of the wait."""

    wait: Callable[[], Any]
    await_: Callable[[], Awaitable[Any]]
    """The same for asyncio, without blocking a thread."""


Effect: TypeAlias = RunBlocking | AskSummarizer | CallHook | Begin | Await | Pause | Doze
Flow: TypeAlias = Generator[Effect, Any, _T]


def blocking(do: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> Flow[_T]:
    """Call a function that may take long, such as a store's."""
    answer: _T = yield RunBlocking(partial(do, *args, **named))
    return answer


_FOREIGN: Final = AskSummarizer, CallHook, Await
"""Effects that run other people's code, or wait for it. The lock is released before and taken again afterwards, each
time by a `with` statement: only that cannot be interrupted (Ctrl-C) between taking a lock and noting it."""


# Running the flow of a timeline.


def run(flow: Flow[_T], lock: Any = None) -> _T:
    """Run a flow to its end, holding a `threading` lock except while other people's code runs."""
    return drive(flow, partial(_performed, lock=lock), lock)


async def arun(flow: Flow[_T], lock: Any = None) -> _T:
    """The same with an `asyncio` lock."""
    return await adrive(flow, partial(_aperformed, flow=flow, lock=lock), lock)


def _performed(effect: Effect, lock: Any) -> object:
    match effect:
        case RunBlocking():
            return effect.do()
        case AskSummarizer():
            return effect.ask()
        case CallHook():
            return call(effect.hook, effect.argument)
        case Begin():
            return in_thread(partial(run, effect.flow, lock))
        case Await():
            from concurrent.futures import wait

            return wait([effect.work])
        case Pause():
            time.sleep(effect.seconds)
            return None
        case Doze():
            return effect.wait()


async def _aperformed(effect: Effect, flow: Flow[Any], lock: Any) -> object:
    import asyncio  # here, because it takes a sixth of the library's import time

    match effect:
        case RunBlocking():
            return await _finished(effect, flow)
        case AskSummarizer():
            return await effect.aask()
        case CallHook():
            return await acall(effect.hook, effect.argument)
        case Begin():
            return asyncio.create_task(arun(effect.flow, lock))
        case Await():
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


def in_thread(work: Callable[[], _T], name: str = "foldline-summary") -> "Future[_T]":
    """Call a function in a thread of its own, for which the process does not wait at exit."""
    from concurrent.futures import Future

    answer: Future[_T] = Future()
    answer.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def answered() -> None:
        try:
            answer.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 -- raised again by the caller that waits
            answer.set_exception(error)

    threading.Thread(target=answered, name=name, daemon=True).start()
    return answer
