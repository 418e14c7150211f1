"""The timeline for asyncio: the same methods as `Timeline`, with `await`."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar, Unpack

import attrs

from blocks import MisuseError, checked_calls
from timeline._flow import Flow, RunBlocking, arun, drive
from timeline._timeline import Shell, Timeline, bound, documented_as
from timeline.engine._followers import AsyncFollower
from timeline.engine._following import Following
from timeline.engine._open import Opening
from timeline.engine._operations import Operations
from timeline.engine._settings import Options
from timeline.engine._snapshot import Shot, Snapshot
from timeline.engine._streaming import Arriving, AsyncRecording
from timeline.engine._sync import Synced

_T = TypeVar("_T")


@attrs.define(eq=False)
class _Home:
    """The event loop that a timeline is used in, and its lock there.

    A lock of asyncio works in one event loop only. Once that loop is closed, nothing in it will ever release the lock,
    and the timeline may go on in another one.
    """

    _operations: Operations
    _loop: Any = attrs.field(default=None, init=False)
    _lock: Any = attrs.field(default=None, init=False)
    _moving: Any = attrs.field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.lock()

    def lock(self) -> Any:
        """The timeline's lock.

        Raises:
            MisuseError: the timeline is in use in another event loop.
        """
        import asyncio  # here, because it takes a sixth of the library's import time

        loop = asyncio.get_running_loop()
        with self._moving:
            if self._loop is not loop:
                if self._loop is not None and not self._loop.is_closed():
                    raise MisuseError(
                        f"timeline {self._operations.engine.id!r} is in use in another event loop: call it"
                        " there (asyncio.run_coroutine_threadsafe does that from any thread), or open it"
                        " here too, with the same store (AsyncTimeline.open)"
                    )
                self._operations.preparation.forget()
                self._loop, self._lock = loop, asyncio.Lock()
            return self._lock


@checked_calls()
@attrs.define(kw_only=True, eq=False, repr=False)
class AsyncTimeline(Shell):
    """One conversation, for asyncio; see `Timeline`.

    Commits run in threads, summarisers and hooks may be coroutine functions, and calls run in
    the order in which they were made. Open a timeline with `await AsyncTimeline.open(...)`; `fork` of a snapshot
    is awaited, too.

    A timeline belongs to the event loop in which it was opened until that loop is closed; every method raises a
    `MisuseError` in another one.
    """

    _home: _Home = attrs.field(
        default=attrs.Factory(lambda self: _Home(self._operations), takes_self=True), init=False
    )

    @classmethod
    @documented_as(Timeline.open)
    async def open(cls, name: str, **options: Unpack[Options]) -> Self:
        """Open a timeline; create it if it does not exist. See `Timeline.open`."""
        opening = Opening(name, options)
        try:
            await arun(opening.flow())
        except BaseException:
            await arun(_done(opening.give_up))
            raise
        return cls(operations=opening.operations, owned=opening.owned)

    async def _run(self, flow: Flow[_T]) -> _T:
        return await arun(self._operations.engine.current(flow), self._home.lock())

    async def _shot(self, flow: Flow[Shot]) -> "Snapshot[Awaitable[AsyncTimeline]]":
        return Snapshot(shot=await self._run(flow), timeline=self)

    async def _forked(self, flow: Flow[Operations]) -> "AsyncTimeline":
        return type(self)(operations=await self._run(flow))

    async def _synced(self, flow: Flow[Synced[Operations]]) -> "Synced[AsyncTimeline]":
        found = await self._run(flow)
        same = found.timeline is self._operations
        return found.on(self if same else type(self)(operations=found.timeline))

    def _recorded(self, flow: Flow[Arriving]) -> AsyncRecording:
        return AsyncRecording(arriving=drive(flow), record=self.record)

    def _followed(self, flow: Flow[Following]) -> AsyncFollower:
        return AsyncFollower(drive(flow))

    append = bound(_run, Operations.append)
    user = bound(_run, Operations.user)
    steer = bound(_run, Operations.steer)
    followup = bound(_run, Operations.followup)
    attach = bound(_run, Operations.attach)
    record = bound(_run, Operations.record)
    recording = bound(_recorded, Operations.recording)
    sync = bound(_synced, Operations.sync)
    tool_result = bound(_run, Operations.tool_result)
    notice = bound(_run, Operations.notice)
    close_calls = bound(_run, Operations.close_calls)
    learn = bound(_run, Operations.learn)
    note = bound(_run, Operations.note)
    plan = bound(_run, Operations.plan)
    hide = bound(_run, Operations.hide)
    restore = bound(_run, Operations.restore)
    flush = bound(_run, Operations.flush)

    render = bound(_run, Operations.render)
    compact = bound(_run, Operations.compact)
    calibrate = bound(_run, Operations.calibrate)
    upgrade_summary = bound(_run, Operations.upgrade_summary)
    expand = bound(_run, Operations.expand)
    propose = bound(_run, Operations.propose)
    commit_plan = bound(_run, Operations.commit_plan)
    retain = bound(_run, Operations.retain)
    forget = bound(_run, Operations.forget)

    read = bound(_run, Operations.read)
    search = bound(_run, Operations.search)
    events = bound(_run, Operations.events)
    follow = bound(_followed, Operations.follow)
    at = bound(_run, Operations.at)
    render_at = bound(_run, Operations.render_at)
    snapshot = bound(_shot, Operations.snapshot)
    fork = bound(_forked, Operations.fork)

    async def close(self) -> None:
        """Flush; then close the store if `open` created it, even if the flush fails. Idempotent."""
        lock = self._home.lock()
        await arun(self._operations.preparation.finish())
        async with lock:
            engine = self._operations.engine
            if engine.closed:
                return
            try:
                await arun(engine.close())
            finally:
                engine.closed = True  # also if it was cancelled
                if self._owned is not None:
                    await arun(_done(self._owned.close))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _done(work: Callable[[], None]) -> Flow[None]:
    yield RunBlocking(work)
