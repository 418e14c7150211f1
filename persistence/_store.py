"""The base class of every store, and the types of what a store says.

A store of your own has the five abstract methods of `EventStore` and inherits the rest, which reads a log from end to
end or says that the store cannot do this. It writes anew what it can do better.
What passes `persistence.testing.StoreContract` is a store.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self, TypeAlias, TypeVar

import attrs
import msgspec

from blocks import (
    BlockAppended,
    Event,
    LogWindow,
    MisuseError,
    Recorded,
    TimelineExistsError,
    TimelineId,
    TurnId,
    VersionConflictError,
    clean_json,
    decode_event,
    encode_event,
    kind_of,
    window_of,
)
from persistence._log import (
    Head,
    Removed,
    Rest,
    TimelineInfo,
    chain_start,
    chain_step,
    checked_events,
    checked_fork,
    checked_fork_window,
    checked_page,
    timeline_infos,
)

if TYPE_CHECKING:
    from pathlib import Path

    from persistence._copy import CopyReport
    from persistence.artifacts import ArtifactStore, KeyRing
    from persistence.search._search import Hit

_Content = TypeVar("_Content")

PAGE: Final = 2_000
"""Events in one read of the methods that read a whole log."""


class EventStore(ABC):
    """An append-only log per timeline; thread-safe. A context manager that closes the store.

    Raises, in every method after `close` or in a forked child:
        ClosedError: open the store again.
    """

    can_remove: ClassVar[bool] = False
    """Whether `trim`, `rewrite` and `remove` work."""
    keeps_artifacts: ClassVar[bool] = False
    """Whether `artifacts` works."""
    is_remote: ClassVar[bool] = False
    """Whether it is on a server, so that a reader keeps it open instead of opening it for each read."""

    # What every store has.

    @abstractmethod
    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        """Append all events or none; return the new version once they are durable.

        `expected_version=0` means that the timeline must be new.  Repeating an append that has
        already happened (same event ids at the same versions) succeeds and writes nothing. So does
        repeating one of the latest appends of this store, or one that raised an
        `OutcomeUnknownError`, with the same events at any version; the result is then the version
        after them, as before.

        Raises:
            VersionConflictError: `expected_version` is not the current version.
            MisuseError: `events` is empty; the version is below 0; or the id cannot name a timeline.
            TooLargeError: an event has more than 64 MB of JSON, all events together have more than 256 MB, or
                there are more than 200,000 events.
            CodecError: an event cannot be stored.
        """

    @abstractmethod
    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        """At most `limit` events with a version greater than `after`, gap-free, oldest first; fewer
        if they are large, so that they fit into memory.  Only an empty page is the end of the log.

        Raises:
            MisuseError: `after` is below 0, or `limit` below 1.
        """

    @abstractmethod
    def head(self, timeline_id: TimelineId) -> int:
        """The current version; 0 for an unknown id."""

    @abstractmethod
    def list(self) -> Sequence[TimelineInfo]:
        """All timelines, oldest first."""

    @abstractmethod
    def close(self) -> None:
        """Release files and threads; everything acknowledged is durable. Idempotent."""

    # The work that all stores share; for the methods of a subclass.

    checked_events = staticmethod(checked_events)
    checked_fork = staticmethod(checked_fork)
    checked_page = staticmethod(checked_page)
    timeline_infos = staticmethod(timeline_infos)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What follows from reading a log; a store with an index does it without.

    def log(
        self, timeline_id: TimelineId, *, after: int = 0, last: int | None = None
    ) -> Iterator[Recorded]:
        """The events that are left with a version greater than `after`, up to `last`, oldest first, read page by page."""
        after = max(after, self.kept(timeline_id).forgotten)
        return _paged(partial(self.read, timeline_id), after, last)

    def log_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, last: int | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """`log`, with the JSON of each event as `read_bytes` gives it."""
        after = max(after, self.kept(timeline_id).forgotten)
        return _paged(partial(self.read_bytes, timeline_id), after, last)

    def tip(self, timeline_id: TimelineId) -> tuple[int, str]:
        """The current version and the id of the event there; 0 and "" for an unknown id.

        Every operation of a `Timeline` begins with it, to find new events, and to notice a log that went back.
        """
        head = self.head(timeline_id)
        page = self.read(timeline_id, after=head - 1, limit=1) if head else ()
        return (page[0][0], clean_json(page[0][1].id)) if page else (0, "")

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        """The compaction in force and all events from its cut on; empty for an unknown id."""
        return window_of([*self.log(timeline_id, last=self.head(timeline_id))])

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        """Copy the first `at` events of `source`, byte for byte, into the new timeline `target`,
        append `event` (a `TimelineForked`) and return the version of `target`; all or nothing.

        By default this is one append, with its limits.

        Raises:
            UnknownTimelineError: no such `source`.
            MisuseError: `at` is not a version of `source`; `target` cannot name a timeline.
            TimelineExistsError: `target` exists.
        """
        checked_events(target, [event], 0)
        head = checked_fork(source, target, at, lambda name: Head(version=self.head(name)))
        checked_fork_window(source, at, head, self.kept(source))
        past = [data for _, data in self.log_bytes(source, last=at)]
        try:
            return self.append_bytes(target, [*past, encode_event(event)], expected_version=0)
        except VersionConflictError as conflict:
            raise TimelineExistsError(target, found=conflict.found) from None

    def read_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[tuple[int, bytes]]:
        """`read`, with the JSON of each event instead of the event: exactly as stored, if the store writes this and
        `append_bytes` anew, even for events of kinds and forms that this version would write differently.

        Raises:
            MisuseError: as `read`.
        """
        page = self.read(timeline_id, after=after, limit=limit)
        return [(version, encode_event(event)) for version, event in page]

    def append_bytes(
        self, timeline_id: TimelineId, events: Sequence[bytes], *, expected_version: int
    ) -> int:
        """`append` for events that are JSON already.

        A single event may have as many bytes as a whole append, because an older version may have stored it.

        Raises, in addition to the errors of `append`:
            CodecError: one of them is not an event.
        """
        return self.append(
            timeline_id, [*map(decode_event, events)], expected_version=expected_version
        )

    def skim(
        self,
        timelines: Sequence[TimelineId],
        first: int,
        kinds: Collection[str],
        always: Collection[str] = (),
    ) -> Iterable[tuple[TimelineId, "Skim"]]:
        """For each timeline, in any order: its oldest `first` events that are `at_hand`, the events of its window whose
        kind (such as `"UsageRecorded"`) is in `kinds`, and all events that are left whose kind is in `always`; for an
        unknown timeline nothing or an empty `Skim`."""
        for name in timelines:
            window, (rest, _) = self.load_window(name), self.at_hand(name)
            oldest, log = window.events[:first], iter(window.events)
            if window.compaction is not None or rest != Rest():
                oldest = tuple(self.read(name, after=rest.forgotten, limit=first))
                log = self.log(name, after=rest.forgotten) if always else iter(())
            yield (
                name,
                Skim(
                    first=oldest,
                    compaction=window.compaction,
                    window=[each for each in window.events if kind_of(each[1]) in kinds],
                    always=[each for each in log if kind_of(each[1]) in always],
                ),
            )

    def block_index(self) -> "BlockIndex":
        """The index with which `search` and `block_at` find events. It need not cover archived ones."""
        return Scan(self)

    def search(
        self,
        query: str,
        timeline: TimelineId | None = None,
        limit: int = 20,
        *,
        hidden: bool = False,
    ) -> Sequence["Hit"]:
        """The blocks of one timeline or of all that match a query, best first; of equally good ones, the newest first.

        All words must occur, in any case, also inside longer words.  `"a phrase"` must occur in this order; `-word`
        must not occur; `type:react.tool.result` and `turn:t3` restrict kind and turn.  Blocks that are hidden on
        request are found only with `hidden`; without it the answer is the same as if they were not there.  A search of
        all timelines passes over what is not `at_hand`.

        Raises:
            DamagedStoreError: an archive of the timeline that is searched alone cannot be read.
            MisuseError: the query has no search term or is too long, or the limit is not in 1..1000.
            ClosedError: the store is closed.
        """
        from persistence.search._search import search_blocks

        return search_blocks(self, query, timeline, limit, hidden=hidden)

    def copy_to(self, target: "EventStore", timelines: Iterable[str] | None = None) -> "CopyReport":
        """Copy timelines, all or the named ones, with the artifacts that they put or name, into `target`.

        Encrypted artifacts are copied without decrypting them, so no key is needed.

        Raises:
            UnknownTimelineError: there is no timeline of this name.
            DamagedStoreError: an event or an artifact cannot be read; everything else was copied, of its timeline what
                is before it.
            MisuseError: `target` has another timeline of the same name, or cannot keep a timeline whose oldest events
                are forgotten (the timelines before it were copied); or it cannot keep artifacts.
            ClosedError: one of the stores is closed.

        After any other error of a store, repeat the call to continue the copy.
        """
        from persistence._copy import copy_store

        return copy_store(self, target, timelines)

    def receipt(self) -> str:
        """What the store has now, to be kept elsewhere, for example with a backup, and given to `verify` as `expect`."""
        from persistence._receipt import receipt

        return receipt(self)

    def verify(self, *, keys: "KeyRing | None" = None) -> "StoreReport":
        """Read everything, change nothing, and report what is damaged or inconsistent; see `persistence.verify`."""
        from persistence._verify import read_through

        del keys
        return read_through(self)

    def chain(self, timeline_id: TimelineId, version: int) -> int | None:
        """A number that stands for the first `version` events of a timeline, in their order, under its name: the same in
        every store that has them.  None if there is no such version, or the oldest events were forgotten."""
        chain, last = chain_start(timeline_id), 0
        if self.kept(timeline_id).forgotten:
            return None
        for last, event in self.log(timeline_id, last=version):
            chain ^= chain_step(last, event.id)
        return chain if last == version else None

    # What only some stores can do; by default there is nothing, or an error.

    def watch(self, timeline_id: TimelineId, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each append to the timeline, and when the store is closed; return a function that
        ends this, any number of times.

        It is only a hint: `wake` may be called without an append, late, or not at all, for example if another
        process appended (but see `hears_others`).  It is called from any thread; it must return at once and raise
        nothing.
        """
        del timeline_id, wake
        return lambda: None

    def hears_others(self) -> bool:
        """Whether `watch` also hears of appends of other processes at the moment; polling is then only a precaution."""
        return False

    def artifacts(
        self, *, keys: "KeyRing | None" = None, clock: Callable[[], float] = time.time
    ) -> "ArtifactStore":
        """The artifact store beside the log; confidential content is encrypted with `keys`.

        Raises:
            MisuseError: the store keeps no artifacts.
        """
        del keys, clock
        raise MisuseError(
            "this store cannot hold artifacts; use a folder for them: open_artifacts(folder)"
        )

    def altered(self, timeline_id: TimelineId, after: int, last: int) -> Sequence[int]:
        """Versions greater than `after`, up to `last`, whose content is not what was written, by a checksum of each
        event; none if the store keeps no checksums."""
        del timeline_id, after, last
        return ()

    # Retention. A store that can remove events writes all of these anew, and `fork`; each is durable and atomic. An append
    # after which the window would begin among forgotten events then raises a `ForgottenError`.

    def kept(self, timeline_id: TimelineId) -> Rest:
        """Which part of a timeline is left; the default `Rest` for an unknown id."""
        del timeline_id
        return Rest()

    def at_hand(self, timeline_id: TimelineId) -> tuple[Rest, str]:
        """`kept`, as if what cannot be read now were forgotten: what is in an archive that is away or damaged, and what is
        older; and the reason, which is empty if all can be read."""
        from persistence._archive import at_hand

        return at_hand(self.kept(timeline_id))

    def trimmed(self) -> Mapping[TimelineId, Rest]:
        """The same for all timelines from which something was removed."""
        return {}

    def trim(
        self,
        timeline_id: TimelineId,
        before: int,
        *,
        archive: "str | PathLike[str] | None" = None,
    ) -> Removed:
        """Remove the events older than version `before`; with the folder `archive`, move them into a
        file there first.  Events that were removed earlier are no error.

        Raises:
            UnknownTimelineError: no such timeline.
            MisuseError: the window needs an event older than `before`, or there is no such folder; or the store cannot
                remove events.
            StoreError: the archive could not be written.
        """
        del timeline_id, before, archive
        raise MisuseError(CANNOT_REMOVE)

    def rewrite(self, timeline_id: TimelineId, events: Mapping[int, Event]) -> Removed:
        """Replace the events of these versions, even archived ones, by events of the same id, kind, time and ref.

        Raises:
            UnknownTimelineError: no such timeline.
            MisuseError: an event differs in one of these, or the log has no such version; or the store cannot remove
                events.
            ForgottenError: a version was forgotten.
        """
        del timeline_id, events
        raise MisuseError(CANNOT_REMOVE)

    def remove(self, timeline_id: TimelineId) -> Removed:
        """Remove a timeline; its name is free again.

        Raises:
            UnknownTimelineError: no such timeline.
            MisuseError: the store cannot remove events.
        """
        del timeline_id
        raise MisuseError(CANNOT_REMOVE)

    def erase(self) -> tuple[str, ...]:
        """Erase everything that was removed from the files of the store; return places where copies may remain
        that the store cannot reach.

        Raises:
            StoreError: this is not possible now, or its success cannot be confirmed.
        """
        return ()


CANNOT_REMOVE: Final = "this store cannot remove events"


def _paged(
    read: Callable[..., Sequence[tuple[int, _Content]]], after: int, last: int | None
) -> Iterator[tuple[int, _Content]]:
    """Everything with a version greater than `after`, up to `last`, that `read(after=..., limit=...)` gives."""
    while last is None or after < last:
        page = read(after=after, limit=PAGE if last is None else min(PAGE, last - after))
        if not page:
            return
        yield from page
        after = page[-1][0]


# What a store says.


class Skim(msgspec.Struct, frozen=True, kw_only=True):
    """A small part of a timeline."""

    first: Sequence[Recorded] = ()
    """The oldest events that are left."""
    compaction: Recorded | None = None
    """The compaction in force."""
    window: Sequence[Recorded] = ()
    """The events of its window of the requested kinds, oldest first."""
    always: Sequence[Recorded] = ()
    """All events that are left of the kinds that are wanted from the whole log, oldest first."""


Kinds: TypeAlias = tuple[Collection[str], Collection[str]]
"""The kinds of events that are wanted from the window, and those that are wanted from the whole log."""


class TurnChange(msgspec.Struct, frozen=True):
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


@attrs.frozen
class Scan:
    """The `BlockIndex` of a store that has none: it reads logs from end to end and returns every event that is in the
    store itself, and `related` also archived ones."""

    _store: EventStore

    def candidates(
        self, words: Collection[str], kinds: Collection[str], timeline: TimelineId | None
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        del words, kinds
        for name in [timeline] if timeline else [info.id for info in self._store.list()]:
            for recorded in self.related(name, (), after=self._store.kept(name).removed):
                if isinstance(recorded[1], BlockAppended):
                    yield name, recorded

    def related(
        self,
        timeline: TimelineId,
        stems: Collection[str],
        *,
        after: int = 0,
        last: int | None = None,
    ) -> Iterator[Recorded]:
        del stems
        return self._store.log(timeline, after=after, last=last)

    def new_turns(self, timeline: TimelineId, last: int) -> Iterable[TurnChange]:
        del timeline, last  # `related` returns all blocks anyway
        return ()

    def turns(self, timeline: TimelineId, last: int, *, after: int = 0) -> Iterable[TurnChange]:
        del timeline, last, after
        return ()


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


class StoreLocation(ABC):
    """The place that a path or a URL names, whether a store exists there or not; `str` of it is for people.

    By default it has no files: there is nothing to copy, and any number of stores may be open.
    """

    opens_once: ClassVar[bool] = False
    """Whether a process can have only one store of it open; `is_open_as` recognizes it."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether a store exists here."""

    @abstractmethod
    def open(self) -> EventStore:
        """Open the store; create it if it does not exist.

        Raises:
            StoreError: it cannot be opened, for instance because another process has it open.
            DamagedStoreError: it is damaged, or acknowledged events are missing.
            MisuseError: it is not a store.
        """

    @abstractmethod
    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        """Read a store that is not open, change nothing, and report what is damaged or inconsistent.

        Raises:
            StoreLockedError: another process has it open.
            MisuseError: there is no store.
        """

    def is_open_as(self, store: EventStore) -> bool:
        """Whether this is the open store of this location."""
        del store
        return False

    def readable_copy(self, folder: "Path") -> "tuple[StoreLocation, str]":
        """Copy a store that is not open into an empty folder, so that the copy can be opened; return the copy and a
        sentence about what had to be left out, which is empty if nothing was.

        Raises:
            StoreLockedError: another process has it open.
            DamagedStoreError: no part of it can be opened.
        """
        del folder
        return self, ""

    def is_writable(self) -> bool:
        """Whether the operating system permits writing to the existing store and its folder."""
        return True

    def moment(self, folder: "Path") -> "StoreLocation":
        """Copy the store as it is now into an empty folder, even while another process has it open.

        Raises:
            StoreLockedError: this process has it open; or other processes rewrite it all the time.
            StoreError: the operating system denies reading.
        """
        del folder
        return self

    def remove(self) -> None:  # noqa: B027 -- other clients may use what is there by now
        """Remove a store that was created by `open` but not used, and is closed again."""
