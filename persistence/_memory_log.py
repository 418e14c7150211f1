"""One timeline in memory: its events as bytes, its head, and what was removed of it."""

from collections.abc import Iterator, Sequence

import attrs

from blocks import Recorded, TimelineId, decode_event
from persistence._log import Head, StoredEvent
from persistence._retention import Kept, Removed


@attrs.frozen
class MemoryLog:
    """The events of one timeline that are in memory, and what is left of the removed ones.

    It never changes: each change makes another one, which the store puts in its place with one assignment. So an
    interrupt (Ctrl-C) at any moment leaves a change done or not done.
    """

    events: list[StoredEvent] = attrs.field(factory=list[StoredEvent])
    """The events from version `kept.first` on. Only those up to the head count: the list is shared with the log after
    the next append, and with an append that was interrupted."""
    head: Head = attrs.field(factory=Head)
    kept: Kept = attrs.field(factory=Kept)

    def extended(self, events: Sequence[StoredEvent]) -> "MemoryLog":
        """The log after an append; only the newest log of a timeline may be extended."""
        del self.events[
            self.head.version - self.kept.removed :
        ]  # of an append that was interrupted
        self.events.extend(events)
        return attrs.evolve(self, head=self.head.after(events))

    def since(self, after: int, last: int | None = None) -> list[StoredEvent]:
        """The events in memory with a version greater than `after`, up to `last`; None: up to the head."""
        upto = self.head.version if last is None else last
        return self.events[max(after - self.kept.removed, 0) : max(upto - self.kept.removed, 0)]


def read_log(
    log: MemoryLog, timeline: TimelineId, after: int, last: int
) -> list[tuple[int, bytes]]:
    """Versions and JSON of the events after `after` up to `last`, from memory and from archives."""
    log.kept.refuse_forgotten(timeline, after + 1)
    found: list[tuple[int, bytes]] = []
    if after < log.kept.removed:
        from persistence.archive import archived_rows

        for archive in log.kept.within(after + 1, last):
            rows = archived_rows(archive, after + 1, last)
            found += [(version, data.encode()) for version, data in rows]
    there = enumerate(log.since(after, last), max(after + 1, log.kept.first))
    return [*found, *((version, event.data) for version, event in there)]


def decoded(rows: Sequence[tuple[int, bytes]]) -> list[Recorded]:
    """The rows with their JSON decoded to events."""
    return [(version, decode_event(data)) for version, data in rows]


def rows_of(events: Sequence[StoredEvent], first: int) -> "Iterator[tuple[int, str]]":
    """Rows for an archive file; `first` is the version of the first event."""
    return ((n, event.data.decode()) for n, event in enumerate(events, first))


def removed_of(events: Sequence[StoredEvent], unused: tuple[str, ...]) -> Removed:
    """The result of removing `events`."""
    size = sum(len(event.data) for event in events)
    return Removed(events=len(events), size=size, unused=unused)
