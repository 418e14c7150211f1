"""Telling who waits for a timeline to grow that it has grown, inside one process."""

from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import TypeAlias

import attrs

from blocks import TimelineId

Wake: TypeAlias = Callable[[], None]


@attrs.define(eq=False)
class Watchers:
    """Who is to be woken when something was appended; see `Watchable`."""

    _wakes: dict[TimelineId, list[Wake]] = attrs.field(
        factory=dict[TimelineId, list[Wake]], init=False, repr=False
    )
    _lock: "RLock" = attrs.field(factory=RLock, init=False, repr=False)
    """Taken again by one who ends because the garbage collector ran in `add`."""

    def add(self, timeline_id: TimelineId, wake: Wake) -> Callable[[], None]:
        """Wake this one, too; what is returned ends it, and may be called again."""

        def end() -> None:
            with self._lock, suppress(ValueError, KeyError):
                self._wakes[timeline_id].remove(wake)
                if not self._wakes[timeline_id]:
                    del self._wakes[timeline_id]

        with self._lock:
            self._wakes.setdefault(timeline_id, []).append(wake)
        return end

    def timelines(self) -> tuple[TimelineId, ...]:
        """Those that somebody waits for."""
        with self._lock:
            return (*self._wakes,)

    def grown(self, timeline_id: TimelineId) -> None:
        """Something was appended here."""
        self.wake(timeline_id)

    def wake(self, timeline_id: TimelineId) -> None:
        """Wake those who wait for this timeline; who has just begun to wait has looked since."""
        if timeline_id in self._wakes:
            with self._lock:
                waiting = (*self._wakes.get(timeline_id, ()),)
            for wake in waiting:
                wake()

    def closed(self) -> None:
        """Wake all of them: there is nothing more to wait for."""
        for timeline_id in self.timelines():
            self.wake(timeline_id)
