"""Following a log: first the events after a version, then each new one, each event once and in order.

Appends of any process are found by polling the store, less often the longer nothing is appended.  The store
wakes the follower, so that there is no delay inside one process.  A store that also hears of appends of other
processes is polled only as a precaution.  Each poll asks for the id of the newest event, and new events are read together
with the one before them, so that a log that went back is noticed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Self
from weakref import finalize

import attrs

from blocks import ClosedError, ForgottenError, LogRewoundError, Recorded
from timeline._flow_drivers import Doze, Flow, arun, blocking, run

if TYPE_CHECKING:
    from timeline.engine._engine import Engine


FOLLOW_SECONDS: Final = (0.02, 1.0)
"""Seconds between two polls of the store: at first, and after nothing has come for a while."""
PRECAUTION: Final = 10
"""Factor by which a store that reports all appends is polled less often. A lost notification then costs seconds, and
a thousand followers together poll a hundred times a second."""
PAGE: Final = 500


@attrs.define(eq=False)
class Signal:
    """A signal that wakes waiting threads and asyncio tasks; it may be given from any thread."""

    _event: threading.Event = attrs.field(factory=threading.Event, init=False)
    _listener: Callable[[], object] | None = attrs.field(default=None, init=False)

    def say(self) -> None:
        """Give the signal."""
        self._event.set()
        if listener := self._listener:
            with contextlib.suppress(RuntimeError):  # the event loop was closed
                listener()

    def forget(self) -> None:
        """Reset the signal."""
        self._event.clear()

    def wait(self, seconds: float) -> float:
        """Wait for the signal, at most this many seconds; return the seconds waited."""
        start = time.monotonic()
        self._event.wait(seconds)
        return time.monotonic() - start

    async def await_(self, seconds: float) -> float:
        """The same for asyncio, without blocking a thread."""
        import asyncio

        start, event = time.monotonic(), asyncio.Event()
        self._listener = partial(asyncio.get_running_loop().call_soon_threadsafe, event.set)
        try:
            if not self._event.is_set():
                async with asyncio.timeout(seconds):
                    await event.wait()
        except TimeoutError:
            pass
        finally:
            self._listener = None
        return time.monotonic() - start


@attrs.define(kw_only=True, eq=False)
class Following:
    """A follower of a log. `version` is the version of the last event that it returned."""

    engine: Engine
    version: int
    timeout: float | None
    interval: tuple[float, float]
    _signal: Signal = attrs.field(factory=Signal, init=False)
    _page: deque[Recorded] = attrs.field(factory=deque[Recorded], init=False)
    _read: int = attrs.field(default=0, init=False)
    _newest: str = attrs.field(default="", init=False)
    """The id of the event at version `_read`; empty: not known yet."""
    _closed: bool = attrs.field(default=False, init=False)
    _end: Callable[[], object] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._read = self.version
        self.engine.followers.add(self._signal)
        end = self.engine.store.watch(self.engine.id, self._signal.say)
        self._end = finalize(self, end)  # also runs if the follower is garbage-collected

    @property
    def is_over(self) -> bool:
        """Whether the follower or its timeline was closed."""
        return self._closed or self.engine.closed

    def close(self) -> None:
        """End the follower; a thread that waits for the next event gets None. Idempotent, callable from any thread."""
        self._closed = True
        self._signal.say()
        self._end()

    def at_hand(self) -> Recorded | None:
        """The next event, if it was read already."""
        if self.is_over or not self._page:
            return None
        record = self._page.popleft()
        self.version = record[0]
        return record

    def next(self) -> Flow[Recorded | None]:
        """The next event; None: the follower is closed, or nothing came for `timeout` seconds."""
        waited = pause = 0.0
        while not self._page:
            self._signal.forget()  # first, so that no signal is lost
            if self.is_over:
                return None
            self._page.extend((yield from self._look()))
            if self._page:
                break
            left = float("inf") if self.timeout is None else self.timeout - waited
            if left <= 0:
                self.close()
                return None
            wait, await_ = self._signal.wait, self._signal.await_
            first, longest = self.interval
            if self.engine.store.hears_others():
                first, longest = longest, PRECAUTION * longest
            pause = min(max(2 * pause, first), longest)
            seconds = min(pause, left)
            waited += yield Doze(partial(wait, seconds), partial(await_, seconds))
        return self.at_hand()

    def _look(self) -> Flow[Sequence[Recorded]]:
        """The next events.

        Raises:
            LogRewoundError: the log has no longer the newest event that was read before.
        """
        try:
            head, there = yield from blocking(self.engine.store.tip, self.engine.id)
            if head <= self._read:
                self._check_read(head, there)
                return ()
            page = yield from self._since_read(head)
        except ClosedError:
            if self.is_over:  # the store was closed during the poll
                return ()
            raise
        if page:
            self._read, self._newest = page[-1][0], page[-1][1].id
        return page

    def _since_read(self, head: int) -> Flow[Sequence[Recorded]]:
        """New events, read together with the newest one that was read before."""
        read = partial(self.engine.store.read, self.engine.id, limit=PAGE)
        if self._read:
            with contextlib.suppress(ForgottenError):  # perhaps only that one
                page = yield from blocking(read, after=self._read - 1)
                self._check_read(head, page[0][1].id if page else "")
                if news := page[1:]:  # else the old one is as large as a page
                    return news
        return (yield from blocking(read, after=self._read))

    def _check_read(self, head: int, there: str) -> None:
        """Check the event that the log has at the version of the newest one that was read, or at its end."""
        if self._read and (head < self._read or there != (self._newest or there)):
            raise LogRewoundError(self.engine.id, seen=self._read, found=head)
        self._newest = there


# What the shells return.


@attrs.define(eq=False)
class _Followed:
    _following: Following

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._following.engine.id!r}: version {self.version}>"

    @property
    def version(self) -> int:
        """Version of the last event that the iterator returned: `follow(after=version)` continues from there."""
        return self._following.version

    def close(self) -> None:
        """End the iteration, even while a thread waits for the next event. Idempotent, callable from any thread."""
        self._following.close()


class Follower(_Followed):
    """An iterator over events with their versions, closed at the end of a `with` block."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Recorded:
        record = self._following.at_hand() or run(self._following.next())
        if record is None:
            raise StopIteration
        return record

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncFollower(_Followed):
    """A `Follower` for `async for` and `async with`."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Recorded:
        record = self._following.at_hand() or await arun(self._following.next())
        if record is None:
            raise StopAsyncIteration
        return record

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
