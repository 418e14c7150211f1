"""The protocol of every store, and protocols of what a store may offer in addition.

Anything that passes `persistence.testing.StoreContract` is a store.  By default, search, `block_at` and `verify`
read a store from end to end; a store that can do better has `block_index` or `verify`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import attrs

from blocks import Event, LogWindow, Recorded, TimelineId, TurnId

if TYPE_CHECKING:
    from persistence.artifacts import ArtifactStore, KeyRing


@attrs.frozen(kw_only=True)
class TimelineInfo:
    """A timeline in the result of `EventStore.list`."""

    id: TimelineId
    version: int
    created_at: float
    """When its first event happened, in seconds since the epoch."""
    updated_at: float


@runtime_checkable
class EventStore(Protocol):
    """An append-only log per timeline; thread-safe.

    Raises, in every method after `close` or in a forked child:
        ClosedError: open the store again.
    """

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        """Append all events or none; return the new version once they are durable.

        `expected_version=0` means that the timeline must be new.  Repeating an append that has
        already happened (same event ids at the same versions) succeeds and writes nothing.

        Raises:
            VersionConflictError: `expected_version` is not the current version.
            MisuseError: `events` is empty; the version is below 0; or the id cannot name a timeline.
            TooLargeError: an event has more than 64 MB of JSON, all events together have more than 256 MB, or
                there are more than 200,000 events.
            CodecError: an event cannot be stored.
        """
        ...

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        """The compaction in force and all events from its cut on; empty for an unknown id."""
        ...

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        """At most `limit` events with a version greater than `after`, gap-free, oldest first; fewer
        if they are large, so that they fit into memory.  Only an empty page is the end of the log.

        Raises:
            MisuseError: `after` is below 0, or `limit` below 1.
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
            MisuseError: `at` is not a version of `source`; `target` cannot name a timeline.
            TimelineExistsError: `target` exists.
        """
        ...

    def list(self) -> Sequence[TimelineInfo]:
        """All timelines, oldest first."""
        ...

    def close(self) -> None:
        """Release files and threads; everything acknowledged is durable. Idempotent."""
        ...


# Optional capabilities of a store.


@attrs.frozen
class TurnChange:
    """A block whose turn differs from that of the block before it; or, if it is not a result, from that of the
    last block that was not a result; or the first block of a turn."""

    version: int
    turn: TurnId
    is_result: bool
    """Whether it is a tool result."""


class BlockIndex(Protocol):
    """Finds events by their content. It may return more events than match, but never fewer."""

    def candidates(
        self, words: Collection[str], kinds: Collection[str], timeline: TimelineId | None
    ) -> Iterable[tuple[TimelineId, Recorded]]:
        """Every `BlockAppended`, of one timeline or of all, in any order, whose block is of one of
        `kinds` (if empty, of any kind) and contains all of `words`.

        Words are case-folded, and also occur inside longer words.
        """
        ...

    def related(
        self,
        timeline: TimelineId,
        stems: Collection[str],
        *,
        after: int = 0,
        last: int | None = None,
    ) -> Iterable[Recorded]:
        """Every event that appends a block, or writes or replaces a summary, whose `path_stem` is one
        of `stems`; those with a version greater than `after`, up to `last`, oldest first."""
        ...

    def new_turns(self, timeline: TimelineId, last: int) -> Iterable[TurnChange]:
        """The first block of each turn, up to version `last`, oldest first; empty if `related` gives
        every block of the timeline anyway."""
        ...

    def turns(self, timeline: TimelineId, last: int, *, after: int = 0) -> Iterable[TurnChange]:
        """The changes of turn among the blocks with a version greater than `after`, up to `last`, oldest
        first, including the first of these blocks; empty if `new_turns` is empty."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A store that searches without reading whole logs."""

    def block_index(self) -> BlockIndex:
        """The index that `search_blocks` and `block_at` use."""
        ...


@runtime_checkable
class Watchable(Protocol):
    """A store that reports when a timeline has grown, so that followers need not wait for the next poll."""

    def watch(self, timeline_id: TimelineId, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each append to the timeline, and when the store is closed; return a function that
        ends this.

        It is only a hint: `wake` may be called without an append, late, or not at all, for example if another
        process appended (but see `HearsOthers`).  It is called from any thread; it must return at once and raise
        nothing.
        """
        ...


@runtime_checkable
class HearsOthers(Watchable, Protocol):
    """A store that may also hear of appends of other processes."""

    def hears_others(self) -> bool:
        """Whether it hears of them at the moment; polling is then only a precaution."""
        ...


@runtime_checkable
class HoldsArtifacts(Protocol):
    """A store that keeps artifacts beside its logs."""

    def artifacts(
        self, *, keys: "KeyRing | None" = None, clock: Callable[[], float] = ...
    ) -> "ArtifactStore":
        """The artifact store; confidential content is encrypted with `keys`."""
        ...


@runtime_checkable
class Copyable(Protocol):
    """A store whose events can be copied as stored bytes, even events of kinds and forms that this version would
    write differently."""

    def read_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[tuple[int, bytes]]:
        """`read`, with the JSON of each event instead of the event."""
        ...

    def append_bytes(
        self, timeline_id: TimelineId, events: Sequence[bytes], *, expected_version: int
    ) -> int:
        """`append` for events that are JSON already.

        A single event may have as many bytes as a whole append, because an older version may have stored it.

        Raises, in addition to the errors of `append`:
            CodecError: one of them is not an event.
        """
        ...


@runtime_checkable
class Checksummed(Protocol):
    """A store that keeps a checksum of each event, which reads do not compare."""

    def altered(self, timeline_id: TimelineId, after: int, last: int) -> Sequence[int]:
        """Versions greater than `after`, up to `last`, whose content is not what was written."""
        ...


@attrs.frozen(kw_only=True)
class Skim:
    """A small part of a timeline."""

    first: Sequence[Recorded] = ()
    """The oldest events that are left."""
    compaction: Recorded | None = None
    """The compaction in force."""
    window: Sequence[Recorded] = ()
    """The events of its window of the requested kinds, oldest first."""


@runtime_checkable
class Skimmable(Protocol):
    """A store that reads a small part of many timelines at a lower cost than their windows."""

    def skim(
        self, timelines: Sequence[TimelineId], first: int, kinds: Collection[str]
    ) -> Iterable[tuple[TimelineId, Skim]]:
        """For each timeline, in any order: its first `first` events, and the events of its window whose kind (such as
        `"UsageRecorded"`) is in `kinds`; nothing for an unknown timeline. Callers leave out timelines from which
        events were removed (`persistence.Retains`)."""
        ...


PROBLEMS_MAX: Final = 100
"""A report stops after this many problems: such a store is broken, and further problems repeat these."""


@attrs.frozen(kw_only=True)
class StoreProblem:
    """A problem that `verify` found."""

    timeline: str = ""
    """The timeline concerned; empty: the whole store."""
    version: int = 0
    """The version concerned; 0: the whole timeline."""
    artifact: str = ""
    """The artifact concerned; empty: none."""
    what: str


@attrs.frozen(kw_only=True)
class StoreReport:
    """The result of `verify`."""

    timelines: int = 0
    events: int = 0
    artifacts: int = 0
    problems: tuple[StoreProblem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems


@runtime_checkable
class Verifiable(Protocol):
    """A store of events or artifacts that can check its own bytes for damage."""

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        """Read everything, change nothing, and report what is damaged or inconsistent."""
        ...
