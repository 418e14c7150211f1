"""A store in memory, for tests and experiments: a list of bytes per timeline."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
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
    UnknownTimelineError,
    VersionConflictError,
    decode_event,
)
from persistence._log import (
    Attempts,
    Head,
    Removed,
    Repeatable,
    Rest,
    StoredEvent,
    TimelineInfo,
    Watchers,
    checked_events,
    checked_fork,
    checked_fork_window,
    checked_marks,
    checked_rewrite,
    checked_trim,
    timeline_infos,
    unused_archives,
)
from persistence._store import EventStore, StoreLocation, StoreReport

if TYPE_CHECKING:
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
class MemoryStore(Repeatable, EventStore):
    """A store in memory. It keeps bytes, not objects, so that encoding and decoding are always exercised; it raises
    the errors of `EventStore`."""

    can_remove = keeps_artifacts = True

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
        return head.window(decoded(events))

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        return decoded(self.read_bytes(timeline_id, after=after, limit=limit))

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

    def watch(self, timeline_id: TimelineId, wake: Callable[[], None]) -> Callable[[], None]:
        return self._watchers.add(timeline_id, wake)

    # Retention.

    def kept(self, timeline_id: TimelineId) -> Rest:
        with self._lock:
            return self._log(timeline_id).rest

    def trimmed(self) -> Mapping[TimelineId, Rest]:
        with self._lock:
            self._refuse_if_closed()
            return {name: log.rest for name, log in self._logs.items() if log.rest != Rest()}

    def trim(
        self,
        timeline_id: TimelineId,
        before: int,
        *,
        archive: "str | os.PathLike[str] | None" = None,
    ) -> Removed:
        from persistence._archive import write_archive

        with self._lock:
            log = self._log(timeline_id)
            checked_trim(timeline_id, before, log.head)
            old = log.since(0, before - 1)
            began_at = log.head.created_at
            if archive is None:
                rest = log.rest.forgetting(before, began_at)
            elif old:
                rows = ((n, event.data.decode()) for n, event in enumerate(old, log.rest.first))
                archived = write_archive(archive, timeline_id, rows)
                rest = log.rest.archiving(archived, began_at)
            else:
                return Removed()
            self._logs[timeline_id] = attrs.evolve(log, events=log.since(before - 1), rest=rest)
            return removed_of(old, self._unused(log.rest))

    def rewrite(self, timeline_id: TimelineId, events: Mapping[int, Event]) -> Removed:
        from persistence._archive import rewritten

        with self._lock:
            log = self._existing(timeline_id)
            new: dict[int, StoredEvent] = {}
            for version, event in events.items():
                if not 1 <= version <= log.head.version:
                    raise MisuseError(f"timeline {timeline_id!r} has no version {version}")
                [(_, old)] = decoded(read_log(log, timeline_id, version - 1, version))
                new[version] = checked_rewrite(version, old, event)
            rest = rewritten(log.rest, timeline_id, {v: e.data.decode() for v, e in new.items()})
            there = enumerate(log.since(0), rest.first)
            stored = [new.get(version, event) for version, event in there]
            self._logs[timeline_id] = attrs.evolve(log, events=stored, rest=rest)
            return removed_of(list(new.values()), self._unused(log.rest))

    def remove(self, timeline_id: TimelineId) -> Removed:
        with self._lock:
            log = self._existing(timeline_id)
            del self._logs[timeline_id]
            return removed_of(log.since(0), self._unused(log.rest))

    def erase(self) -> tuple[str, ...]:
        """Do nothing: removed events are no longer in memory."""
        with self._lock:
            self._refuse_if_closed()
        return ()

    def _unused(self, before: Rest) -> tuple[str, ...]:
        return unused_archives(before, (log.rest for log in self._logs.values()))

    def _existing(self, timeline_id: TimelineId) -> MemoryLog:
        log = self._log(timeline_id)
        if not log.head.version:
            raise UnknownTimelineError(timeline_id)
        return log

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
        from persistence._archive import archived_rows

        for archive in log.rest.within(after + 1, last):
            rows = archived_rows(archive, after + 1, last)
            archived += [(version, data.encode()) for version, data in rows]
    there = enumerate(log.since(after, last), max(after + 1, log.rest.first))
    return [*archived, *((version, event.data) for version, event in there)]


def decoded(rows: Sequence[tuple[int, bytes]]) -> list[Recorded]:
    """The rows with their JSON decoded to events."""
    return [(version, decode_event(data)) for version, data in rows]


def removed_of(events: Sequence[StoredEvent], unused: tuple[str, ...]) -> Removed:
    """The result of removing `events`."""
    size = sum(len(event.data) for event in events)
    return Removed(events=len(events), size=size, unused=unused)


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
