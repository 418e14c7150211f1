"""Following a log: first the events after a version, then each new one, each event once and in order.

Appends of any process are found by polling the store, less often the longer nothing is appended.  The store
wakes the follower, so that there is no delay inside one process.  A store that also hears of appends of other
processes is polled only as a precaution.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from weakref import finalize

import attrs

from blocks import ClosedError, Recorded
from timeline._flow import Doze, Flow, RunBlocking
from timeline.engine._engine import Engine
from timeline.engine._signal import Signal

FOLLOW_SECONDS: Final = (0.02, 1.0)
"""Seconds between two polls of the store: at first, and after nothing has come for a while."""
PRECAUTION: Final = 10
"""Factor by which a store that reports all appends is polled less often. A lost notification then costs seconds, and
a thousand followers together poll a hundred times a second."""
PAGE: Final = 500


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
        found = self._page.popleft()
        self.version = found[0]
        return found

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
            first, longest = self._pauses()
            pause = min(max(2 * pause, first), longest)
            seconds = min(pause, left)
            waited += yield Doze(partial(wait, seconds), partial(await_, seconds))
        return self.at_hand()

    def _pauses(self) -> tuple[float, float]:
        """Seconds between two polls, at first and at most."""
        first, longest = self.interval
        if self.engine.store.hears_others():
            return longest, PRECAUTION * longest
        return first, longest

    def _look(self) -> Flow[Sequence[Recorded]]:
        read = partial(self.engine.store.read, self.engine.id, after=self._read, limit=PAGE)
        try:
            page: Sequence[Recorded] = yield RunBlocking(read)
        except ClosedError:
            if self.is_over:  # the store was closed during the poll
                return ()
            raise
        if page:
            self._read = page[-1][0]
        return page
