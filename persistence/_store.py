"""The protocol of every store. Anything that passes `tests/persistence/contract.py` is one."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import attrs

from blocks import Event, LogWindow, Recorded, TimelineId


@attrs.frozen(kw_only=True)
class TimelineInfo:
    """One row of `EventStore.list`."""

    id: TimelineId
    version: int
    created_at: float
    """When its first event happened, in seconds since the epoch."""
    updated_at: float


@runtime_checkable
class EventStore(Protocol):
    """An append-only log per timeline, safe under threads."""

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        """Append all events or none; return the new version once they are durable.

        `expected_version=0` says that the timeline must be new.  Repeating an append that has
        already happened (same event ids at the same versions) succeeds and writes nothing.

        Raises:
            VersionConflictError: `expected_version` is not the current one.
            MisuseError: `events` is empty.
            CodecError: an event cannot be stored.
        """
        ...

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        """The compaction in force and all events from its cut on; empty for an unknown id."""
        ...

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        """At most `limit` events with a version greater than `after`, gap-free, oldest first.

        Fewer where they are large: a page is to fit into memory.  Only an empty one is the end.
        """
        ...

    def head(self, timeline_id: TimelineId) -> int:
        """The current version; 0 for an unknown id."""
        ...

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        """Copy the first `at` events of `source`, byte for byte, into the new timeline `target`,
        append `event` (a `TimelineForked`) and return the version of `target`; all or nothing.

        Raises:
            UnknownTimelineError: no such `source`.
            MisuseError: `at` is not a version of `source`.
            TimelineExistsError: `target` exists.
        """
        ...

    def list(self) -> Sequence[TimelineInfo]:
        """All timelines, oldest first."""
        ...

    def close(self) -> None:
        """Release files and threads; whatever was acknowledged is durable. Idempotent."""
        ...
