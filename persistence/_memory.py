"""A store for tests and for trying things out: a list of bytes per timeline."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

import attrs

from blocks import (
    ClosedError,
    Event,
    LogWindow,
    MisuseError,
    Recorded,
    TimelineId,
    VersionConflictError,
    decode_event,
)
from persistence._log import (
    Head,
    StoredEvent,
    checked_bytes,
    checked_events,
    checked_fork,
    checked_page,
    timeline_infos,
)
from persistence._store import StoreReport, TimelineInfo
from persistence._watch import Watchers

if TYPE_CHECKING:
    from persistence.artifacts import Artifacts, KeyRing, MemoryBackend


@attrs.define
class _Log:
    events: list[StoredEvent] = attrs.field(factory=list[StoredEvent])
    head: Head = attrs.field(factory=Head)

    def extend(self, events: Sequence[StoredEvent]) -> int:
        self.events.extend(events)
        self.head = self.head.after(events)
        return self.head.version


@attrs.define(eq=False)
class MemoryStore:
    """Keeps bytes, not objects, so that a round trip is always exercised; raises what `EventStore` says."""

    _logs: dict[TimelineId, _Log] = attrs.field(
        factory=dict[TimelineId, _Log], init=False, repr=False
    )
    _lock: Lock = attrs.field(factory=Lock, init=False, repr=False)
    _watchers: Watchers = attrs.field(factory=Watchers, init=False, repr=False)
    _closed: bool = attrs.field(default=False, init=False)
    _backend: "MemoryBackend | None" = attrs.field(default=None, init=False, repr=False)

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        stored = checked_events(timeline_id, events, expected_version)
        return self._append(timeline_id, stored, expected_version)

    def append_bytes(
        self, timeline_id: TimelineId, events: Sequence[bytes], *, expected_version: int
    ) -> int:
        stored = checked_bytes(timeline_id, events, expected_version)
        return self._append(timeline_id, stored, expected_version)

    def _append(
        self, timeline_id: TimelineId, stored: Sequence[StoredEvent], expected_version: int
    ) -> int:
        version = self._appended(timeline_id, stored, expected_version)
        self._watchers.grown(timeline_id)
        return version

    def _appended(
        self, timeline_id: TimelineId, stored: Sequence[StoredEvent], expected_version: int
    ) -> int:
        with self._lock:
            log = self._log(timeline_id)
            found = log.head.version
            if found == expected_version:
                self._logs[timeline_id] = log
                return log.extend(stored)
            there = log.events[expected_version : expected_version + len(stored)]
            if [event.id for event in there] == [event.id for event in stored]:
                return expected_version + len(stored)
            raise VersionConflictError(expected=expected_version, found=found)

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        with self._lock:
            log = self._log(timeline_id)
            head, events = log.head, log.events[log.head.window_start() - 1 :]
        return head.window(_recorded(events, head.window_start()))

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        return _recorded(self._page(timeline_id, after, limit), after + 1)

    def read_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[tuple[int, bytes]]:
        page = self._page(timeline_id, after, limit)
        return [(version, event.data) for version, event in enumerate(page, after + 1)]

    def _page(self, timeline_id: TimelineId, after: int, limit: int) -> Sequence[StoredEvent]:
        checked_page(after, limit)
        with self._lock:
            return self._log(timeline_id).events[after : after + limit]

    def head(self, timeline_id: TimelineId) -> int:
        with self._lock:
            return self._log(timeline_id).head.version

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        stored = checked_events(target, [event], 0)
        with self._lock:
            head = checked_fork(source, target, at, lambda name: self._log(name).head)
            copy = _Log(events=self._log(source).events[:at], head=head)
            version = copy.extend(stored)
            self._logs[target] = copy
        self._watchers.grown(target)
        return version

    def list(self) -> Sequence[TimelineInfo]:
        with self._lock:
            self._refuse_if_closed()
            heads = {name: log.head for name, log in self._logs.items()}
        return timeline_infos(heads)

    def artifacts(
        self,
        *,
        keys: "KeyRing | None" = None,
        clock: Callable[[], float] = time.time,
        random: Callable[[int], bytes] = os.urandom,
    ) -> "Artifacts":
        """The artifacts of this store, which last as long as it does."""
        from persistence.artifacts import Artifacts, MemoryBackend

        with self._lock:
            self._refuse_if_closed()
            self._backend = self._backend or MemoryBackend()
        return Artifacts(self._backend, keys=keys, clock=clock, random=random)

    def watch(self, timeline_id: TimelineId, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` when the timeline has grown; see `Watchable`."""
        return self._watchers.add(timeline_id, wake)

    def close(self) -> None:
        self._closed = True
        self._watchers.closed()

    def _log(self, timeline_id: TimelineId) -> _Log:
        self._refuse_if_closed()
        return self._logs.get(timeline_id) or _Log()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ClosedError("this MemoryStore is closed; make a new one")


def _recorded(events: Sequence[StoredEvent], first: int) -> list[Recorded]:
    return [(n, decode_event(event.data)) for n, event in enumerate(events, first)]


@attrs.frozen
class MemoryLocation:
    """`memory:`, where there is never a store before it is opened, nor after it is closed."""

    def exists(self) -> bool:
        return False

    def open(self) -> MemoryStore:
        return MemoryStore()

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        del keys
        raise MisuseError("nothing is left in memory: to verify; give the open store, or a file")

    def readable_copy(self, folder: Path) -> NoReturn:
        del folder
        raise MisuseError("nothing is left in memory: to repair; give a file")

    def remove(self) -> None:
        pass

    def __str__(self) -> str:
        return "memory:"


def locate(where: object) -> MemoryLocation:
    """The location that `memory:` names."""
    del where
    return MemoryLocation()
