"""The protocol of every store, and what a store may offer besides.

Whatever passes `persistence.testing.StoreContract` is a store.  Search, `block_at`, `verify` read any from
end to end; one that can do better has `block_index` or `verify`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import attrs

from blocks import Event, LogWindow, Recorded, TimelineId, TurnId

if TYPE_CHECKING:
    from persistence.artifacts import ArtifactStore, KeyRing


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
    """An append-only log per timeline, safe under threads.

    Raises, whatever is called after `close` or in a forked child:
        ClosedError: open the store again.
    """

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        """Append all events or none; return the new version once they are durable.

        `expected_version=0` says that the timeline must be new.  Repeating an append that has
        already happened (same event ids at the same versions) succeeds and writes nothing.

        Raises:
            VersionConflictError: `expected_version` is not the current one.
            MisuseError: `events` is empty; a version below 0; an id that cannot name a timeline.
            TooLargeError: an event has more than 64 MB of JSON, all of them more than 256 MB, or there
                are more than 200,000.
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
        where they are large, to fit into memory.  Only an empty page is the end.

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
        """Release files and threads; whatever was acknowledged is durable. Idempotent."""
        ...


# What a store may offer besides.


@attrs.frozen
class TurnChange:
    """A block of another turn than the block before it; or one, no result, of another turn than the
    last block that was no result either; or the first of a turn."""

    version: int
    turn: TurnId
    is_result: bool
    """Whether it is a tool result."""


class BlockIndex(Protocol):
    """Finds events by what is in them. It may give more than was asked for, and never less."""

    def candidates(
        self, words: Collection[str], kinds: Collection[str], timeline: TimelineId | None
    ) -> Iterable[tuple[TimelineId, Recorded]]:
        """Every `BlockAppended`, of one timeline or of all, in any order, whose block is of one of
        `kinds` (of any, where they are empty) and says all of `words`.

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
        """The first block of each turn, up to version `last`, oldest first; nothing where `related` gives
        every block of the timeline anyway."""
        ...

    def turns(self, timeline: TimelineId, last: int, *, after: int = 0) -> Iterable[TurnChange]:
        """Where turns change among the blocks with a version greater than `after`, up to `last`, oldest
        first, with the first of these; nothing where `new_turns` gives nothing."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A store that searches without reading whole logs."""

    def block_index(self) -> BlockIndex:
        """What `search_blocks` and `block_at` ask."""
        ...


@runtime_checkable
class Watchable(Protocol):
    """A store that tells when a timeline has grown, so that who follows one need not wait to ask again."""

    def watch(self, timeline_id: TimelineId, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` each time that something was appended to the timeline, and when the store is closed;
        what is returned ends that.

        It is a hint: `wake` may be called for nothing, late, or not at all, as when another process has
        appended (but see `HearsOthers`).  It is called from any thread, returns at once and raises nothing.
        """
        ...


@runtime_checkable
class HearsOthers(Watchable, Protocol):
    """One that may hear also of what other processes append."""

    def hears_others(self) -> bool:
        """Whether it does at the moment, but for accidents: to look all the same is a precaution then."""
        ...


@runtime_checkable
class HoldsArtifacts(Protocol):
    """A store that keeps artifacts beside its logs."""

    def artifacts(
        self, *, keys: "KeyRing | None" = None, clock: Callable[[], float] = ...
    ) -> "ArtifactStore":
        """The artifacts, encrypted with `keys` where they are confidential."""
        ...


@runtime_checkable
class Copyable(Protocol):
    """A store whose events can be copied as the bytes that they are stored as, even of kinds and shapes
    that this version would write in another way."""

    def read_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[tuple[int, bytes]]:
        """What `read` gives, with the JSON of each event instead of the event."""
        ...

    def append_bytes(
        self, timeline_id: TimelineId, events: Sequence[bytes], *, expected_version: int
    ) -> int:
        """`append` of events that are JSON already.

        One of them may have as many bytes as all: what an older version has stored is copied.

        Raises, besides what `append` does:
            CodecError: one of them is no event.
        """
        ...


@runtime_checkable
class Checksummed(Protocol):
    """A store with a checksum beside each event, which reading does not compare."""

    def altered(self, timeline_id: TimelineId, after: int, last: int) -> Sequence[int]:
        """Versions behind `after` up to `last` whose content is not what was written."""
        ...


@attrs.frozen(kw_only=True)
class Skim:
    """A little of a timeline."""

    first: Sequence[Recorded] = ()
    """Its first events that are left."""
    compaction: Recorded | None = None
    """The one in force."""
    window: Sequence[Recorded] = ()
    """Of its window, the events of some kinds, oldest first."""


@runtime_checkable
class Skimmable(Protocol):
    """A store that reads a little of many timelines, at less than the price of their windows."""

    def skim(
        self, timelines: Sequence[TimelineId], first: int, kinds: Collection[str]
    ) -> Iterable[tuple[TimelineId, Skim]]:
        """Of each, in any order: its first `first` events, and of its window those of `kinds`, as in
        `"UsageRecorded"`; nothing of an unknown one. Nobody asks for those that lack events (`persistence.Retains`)."""
        ...


PROBLEMS_MAX: Final = 100
"""A report stops here: a store with so many is broken, and they repeat each other."""


@attrs.frozen(kw_only=True)
class StoreProblem:
    """One thing that is not as it should be."""

    timeline: str = ""
    """Empty: it concerns the whole file."""
    version: int = 0
    """0: it concerns the whole timeline."""
    artifact: str = ""
    """Empty: it concerns no artifact."""
    what: str


@attrs.frozen(kw_only=True)
class StoreReport:
    """What `verify` found."""

    timelines: int = 0
    events: int = 0
    artifacts: int = 0
    problems: tuple[StoreProblem, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not self.problems


@runtime_checkable
class Verifiable(Protocol):
    """A store, of events or of artifacts, that knows how its own bytes can be damaged."""

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        """Read everything, change nothing, and report what does not hold together."""
        ...
