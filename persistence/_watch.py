"""Wakes the watchers of timelines within one process."""

from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import TypeAlias

import attrs

from blocks import TimelineId

Wake: TypeAlias = Callable[[], None]


@attrs.define(eq=False)
class Watchers:
    """The functions to call after an append; see `Watchable`."""

    _wakes: dict[TimelineId, list[Wake]] = attrs.field(
        factory=dict[TimelineId, list[Wake]], init=False, repr=False
    )
    _lock: "RLock" = attrs.field(factory=RLock, init=False, repr=False)
    """Reentrant, because the garbage collector may run inside `add` and end another watch."""

    def add(self, timeline_id: TimelineId, wake: Wake) -> Callable[[], None]:
        """Also call `wake` from now on; return an idempotent function that ends this."""

        def end() -> None:
            with self._lock, suppress(ValueError, KeyError):
                self._wakes[timeline_id].remove(wake)
                if not self._wakes[timeline_id]:
                    del self._wakes[timeline_id]

        with self._lock:
            self._wakes.setdefault(timeline_id, []).append(wake)
        return end

    def timelines(self) -> tuple[TimelineId, ...]:
        """The timelines that have a waiter."""
        with self._lock:
            return (*self._wakes,)

    def grown(self, timeline_id: TimelineId) -> None:
        """Call this after an append to the timeline."""
        self.wake(timeline_id)

    def wake(self, timeline_id: TimelineId) -> None:
        """Wake the waiters of this timeline. A waiter that registers at the same time polls afterwards anyway."""
        if timeline_id in self._wakes:
            with self._lock:
                waiting = (*self._wakes.get(timeline_id, ()),)
            for wake in waiting:
                wake()

    def closed(self) -> None:
        """Wake all waiters, because the store is closed."""
        for timeline_id in self.timelines():
            self.wake(timeline_id)
