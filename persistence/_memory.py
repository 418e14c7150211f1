"""A store in memory, for tests and experiments: a list of bytes per timeline."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

import attrs

from blocks import (
    ClosedError,
    Event,
    LogWindow,
    MisuseError,
    TimelineId,
    UnknownTimelineError,
    VersionConflictError,
)
from persistence._log import (
    Attempts,
    Head,
    OwnStore,
    Removed,
    Rest,
    StoredEvent,
    TimelineInfo,
    Watchers,
    checked_events,
    checked_fork,
    checked_fork_window,
    checked_marks,
    events_of,
    timeline_infos,
)
from persistence._store import EventStore, StoreLocation, StoreReport

if TYPE_CHECKING:
    from persistence._archive import Change
    from persistence.artifacts import ArtifactStore, KeyRing, MemoryBackend


@attrs.frozen
class MemoryLog:
    """The events of one timeline that are in memory, and what is left of the removed ones.

    It never changes: each change makes another one, which the store puts in its place with one assignment. So an
    interrupt (Ctrl-C) at any moment leaves a change done or not done.
    """

    events: list[StoredEvent] = attrs.field(factory=list[StoredEvent])
    """The events from version `rest.first` on. Only those up to the head count: the list is shared with the log after
    the next append, and with an append that was interrupted."""
    head: Head = attrs.field(factory=Head)
    rest: Rest = attrs.field(factory=Rest)

    def extended(self, events: Sequence[StoredEvent], head: Head) -> "MemoryLog":
        """The log after an append, with the head after it; only the newest log of a timeline may be extended."""
        old = self.head.version - self.rest.removed
        self.events[old:] = events  # in place of those of an append that was interrupted
        return attrs.evolve(self, head=head)

    def since(self, after: int, last: int | None = None) -> list[StoredEvent]:
        """The events in memory with a version greater than `after`, up to `last`; None: up to the head."""
        upto = self.head.version if last is None else last
        return self.events[max(after - self.rest.removed, 0) : max(upto - self.rest.removed, 0)]


@attrs.define(eq=False)
class MemoryStore(OwnStore, EventStore):
    """A store in memory. It keeps bytes, not objects, so that encoding and decoding are always exercised; it raises
    the errors of `EventStore`."""

    _logs: dict[TimelineId, MemoryLog] = attrs.field(
        factory=dict[TimelineId, MemoryLog], init=False, repr=False
    )
    _lock: Lock = attrs.field(factory=Lock, init=False, repr=False)
    _attempts: Attempts = attrs.field(factory=Attempts, init=False, repr=False)
    _watchers: Watchers = attrs.field(factory=Watchers, init=False, repr=False)
    _closed: bool = attrs.field(default=False, init=False)
    _backend: "MemoryBackend | None" = attrs.field(default=None, init=False, repr=False)

    def _append(self, timeline: TimelineId, stored: Sequence[StoredEvent], expected: int) -> int:
        last = expected + len(stored)
        with self._lock:
            log = self._log(timeline)
            version = log.head.version
            if version == expected:
                head = log.head.after(stored)
                checked_marks(timeline, head, log.rest)
                self._logs[timeline] = log.extended(stored, head)
            else:
                there = log.since(expected, last)
                if [event.id for event in there] != [event.id for event in stored]:
                    raise VersionConflictError(expected=expected, found=version)
        self._watchers.grown(timeline)
        return last

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        with self._lock:
            log = self._log(timeline_id)
            head = log.head
            events = read_log(log, timeline_id, head.window_start() - 1, head.version)
        return head.window(events_of(timeline_id, events))

    def _bytes(self, timeline: TimelineId, after: int, limit: int) -> list[tuple[int, bytes]]:
        with self._lock:
            log = self._log(timeline)
            return read_log(log, timeline, after, min(after + limit, log.head.version))

    def head(self, timeline_id: TimelineId) -> int:
        with self._lock:
            return self._log(timeline_id).head.version

    def tip(self, timeline_id: TimelineId) -> tuple[int, str]:
        with self._lock:
            head = self._log(timeline_id).head
        return head.version, head.last

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        stored = checked_events(target, [event], 0)
        with self._lock:
            head = checked_fork(source, target, at, lambda name: self._log(name).head)
            log = self._log(source)
            checked_fork_window(source, at, head, log.rest)
            copy = MemoryLog(events=log.since(0, at), head=head, rest=log.rest.cut_to(at))
            self._logs[target] = copy = copy.extended(stored, head.after(stored))
        self._watchers.grown(target)
        return copy.head.version

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
    ) -> "ArtifactStore":
        """The artifacts of this store, which last as long as it does."""
        from persistence.artifacts import ArtifactStore, MemoryBackend

        with self._lock:
            self._refuse_if_closed()
            self._backend = self._backend or MemoryBackend()
        return ArtifactStore(self._backend, keys=keys, clock=clock, random=random)

    # Retention.

    def kept(self, timeline_id: TimelineId) -> Rest:
        with self._lock:
            return self._log(timeline_id).rest

    def trimmed(self) -> Mapping[TimelineId, Rest]:
        with self._lock:
            self._refuse_if_closed()
            return {name: log.rest for name, log in self._logs.items() if log.rest != Rest()}

    def _changed(self, timeline: TimelineId, change: "Change") -> Removed:
        with self._lock:
            log = self._log(timeline)
            if not log.head.version:
                raise UnknownTimelineError(timeline)
            parts = log.events, log.head, log.rest
            return change(HeldLog(*parts, timeline=timeline, logs=self._logs))

    def erase(self) -> tuple[str, ...]:
        """Do nothing: removed events are no longer in memory."""
        with self._lock:
            self._refuse_if_closed()
        return ()

    def close(self) -> None:
        self._closed = True
        self._watchers.closed()

    def _log(self, timeline_id: TimelineId) -> MemoryLog:
        self._refuse_if_closed()
        return self._logs.get(timeline_id) or MemoryLog()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ClosedError("this MemoryStore is closed; make a new one")


def read_log(
    log: MemoryLog, timeline: TimelineId, after: int, last: int
) -> list[tuple[int, bytes]]:
    """Versions and JSON of the events after `after` up to `last`, from memory and from archives."""
    log.rest.refuse_forgotten(timeline, after + 1)
    archived: list[tuple[int, bytes]] = []
    if after < log.rest.removed:
        from persistence._archive import archived_within

        rows = archived_within(log.rest, after + 1, last)
        archived = [(version, data.encode()) for version, data in rows]
    there = enumerate(log.since(after, last), max(after + 1, log.rest.first))
    return [*archived, *((version, event.data) for version, event in there)]


@attrs.frozen(kw_only=True)
class HeldLog(MemoryLog):
    """A `HeldTimeline` in memory, while its store is locked."""

    timeline: TimelineId
    logs: dict[TimelineId, MemoryLog]

    def rows(self, after: int, last: int) -> list[tuple[int, bytes]]:
        return read_log(self, self.timeline, after, last)

    def chain(self, version: int) -> int:
        del version
        return 0  # chains are not kept

    def trim(self, before: int, rest: Rest) -> tuple[int, int]:
        self._put(self.since(before - 1), rest)
        return _extent(self.since(0, before - 1))

    def rewrite(self, rest: Rest, events: Mapping[int, StoredEvent]) -> None:
        there = enumerate(self.since(0), rest.first)
        self._put([events.get(version, event) for version, event in there], rest)

    def remove(self) -> tuple[int, int]:
        del self.logs[self.timeline]
        return _extent(self.since(0))

    def all_rests(self) -> Iterable[Rest]:
        return (log.rest for log in self.logs.values())

    def _put(self, events: list[StoredEvent], rest: Rest) -> None:
        self.logs[self.timeline] = MemoryLog(events=events, head=self.head, rest=rest)


def _extent(events: Sequence[StoredEvent]) -> tuple[int, int]:
    """The number of events, and the bytes of their JSON."""
    return len(events), sum(len(event.data) for event in events)


@attrs.frozen
class MemoryLocation(StoreLocation):
    """The location `memory:`, where a store exists only while it is open."""

    def exists(self) -> bool:
        return False

    def open(self) -> MemoryStore:
        return MemoryStore()

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        del keys
        raise MisuseError(
            "a closed store in memory cannot be verified; give the open store, or a file"
        )

    def readable_copy(self, folder: Path) -> NoReturn:
        del folder
        raise MisuseError("a store in memory cannot be repaired; give a file")

    def __str__(self) -> str:
        return "memory:"


def locate(where: object) -> MemoryLocation:
    """The location `memory:`."""
    del where
    return MemoryLocation()
