"""What every store keeps of a log: events as bytes, a head per timeline, which of the oldest events are gone, and who
waits for more.

`checked_events` turns events into stored bytes, and refuses events that no store takes.  The head of a
timeline is its version and the compaction in force; a store holds nothing else of a log in memory.
A compaction leaves a *mark* (its version and its cut), and undoing it leaves another. The window
follows from the marks alone, so loading a window reads no event older than the cut, and a fork knows
the window at any earlier version.

Retention removes events:

    versions   1 .. forgotten     removed; reading them raises a `ForgottenError`
               .. first - 1       in archive files, read through the store like all others
               first .. head      in the store itself

A log loses only its oldest events, and never one that its window needs.  The marks of compactions
stay, so the version, the window and the time at which a timeline began stay the same.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from os import PathLike
from threading import RLock
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

import attrs
import msgspec

from blocks import (
    BlockAppended,
    CodecError,
    DamagedStoreError,
    Event,
    ForgottenError,
    LogWindow,
    MisuseError,
    RangeCompacted,
    RangeExpanded,
    Recorded,
    TimelineExistsError,
    TimelineId,
    TooLargeError,
    UnknownTimelineError,
    VersionConflictError,
    decode_event,
    kind_of,
    stored_form,
    tag_of,
)

if TYPE_CHECKING:
    from persistence._archive import Change


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event in the form in which it is stored; `data` is stored, the other fields are read from it."""

    id: str
    kind: str
    at: float
    ref: int | None
    """The cut of a `RangeCompacted`, or the version of the compaction that a `RangeExpanded` undoes; else None."""
    data: bytes
    """The event as JSON; `blocks.decode_event` reads it."""


class Mark(msgspec.Struct, frozen=True):
    """A `RangeCompacted` or `RangeExpanded` in the log."""

    version: int
    kind: str
    ref: int
    """The cut, or the version of the compaction that was undone."""


@attrs.frozen(kw_only=True)
class Head:
    """The end of a log; the default is the head of an empty timeline."""

    version: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0
    marks: tuple[Mark, ...] = ()
    last: str = ""
    """The id of the newest event; empty: not known."""

    def after(self, events: Sequence[StoredEvent]) -> "Head":
        """The head after `events` were appended."""
        marks = tuple(
            Mark(version, event.kind, event.ref)
            for version, event in enumerate(events, self.version + 1)
            if event.ref is not None
        )
        return Head(
            version=self.version + len(events),
            created_at=self.created_at if self.version else events[0].at,
            updated_at=events[-1].at,
            marks=self.marks + marks,
            last=events[-1].id,
        )

    def cut_to(self, version: int) -> "Head":
        """The head as it was at an earlier version, for a fork."""
        marks = tuple(mark for mark in self.marks if mark.version <= version)
        return attrs.evolve(self, version=version, marks=marks, last="")

    def in_force(self) -> Mark | None:
        """The latest compaction that was not undone."""
        standing: dict[int, Mark] = {}
        for mark in self.marks:
            if mark.kind == "RangeCompacted":
                standing[mark.version] = mark
            else:
                standing.pop(mark.ref, None)
        return next(reversed(standing.values()), None)

    def window_start(self) -> int:
        """The oldest version that the window needs."""
        mark = self.in_force()
        return max(1, min(mark.ref, mark.version)) if mark else 1

    def window(self, recorded: Sequence[Recorded]) -> LogWindow:
        """The window; `recorded` are all events from `window_start` on."""
        mark = self.in_force()
        if mark is None:
            return LogWindow(version=self.version, events=tuple(recorded))
        return LogWindow(
            version=self.version,
            compaction=next(each for each in recorded if each[0] == mark.version),
            events=tuple(each for each in recorded if each[0] >= mark.ref),
        )


def store_event(event: Event) -> StoredEvent:
    """The event as bytes.

    Raises:
        CodecError: the event holds a value that cannot be encoded.
    """
    own, kind, data = stored_form(event)
    return StoredEvent(id=own, kind=kind, at=float(event.at), ref=ref_of(event), data=data)


def store_bytes(data: bytes) -> StoredEvent:
    """An event that is bytes already; the bytes stay unchanged unless they are not strict JSON.

    Raises:
        CodecError: they are not an event.
    """
    stored = store_event(decode_event(data))
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return stored  # for example of NaN, which our decoder accepts and a database does not
    return msgspec.structs.replace(stored, data=data)


def ref_of(event: Event) -> int | None:
    """The version in an event that changes the window; None for all other events."""
    match event:
        case RangeCompacted():
            return event.cut
        case RangeExpanded():
            return event.compaction
        case _:
            return None


# What is read back.


def events_of(timeline: TimelineId, rows: Iterable[tuple[int, bytes | str]]) -> list[Recorded]:
    """The events of these rows.

    Raises:
        DamagedStoreError: one cannot be read.
    """
    events: list[Recorded] = []
    for seq, payload in rows:
        try:
            events.append((seq, decode_event(payload)))
        except CodecError as error:
            raise damaged(timeline, f"event {seq} cannot be decoded: {error}") from error
    return events


def damaged(timeline: str, what: str) -> DamagedStoreError:
    return DamagedStoreError(
        f"timeline {timeline!r}: {what}; `foldline verify` lists all damage, restore the database"
        " from a backup, or let `foldline repair` save the rest into a new store"
    )


# Checks of arguments, the same in every store.


def checked_events(
    timeline_id: TimelineId, events: Sequence[Event], expected_version: int
) -> list[StoredEvent]:
    """The events as bytes; every `append` and `fork` must call this first.

    Raises:
        MisuseError: there are no events, or the id or the version is not valid.
        TooLargeError: an event, or all of them, have more bytes than the limits below allow.
        CodecError: an event cannot be stored.
    """
    _check_append(timeline_id, events, expected_version)
    stored = [store_event(event) for event in events]
    check_sizes(timeline_id, stored, EVENT_BYTES_MAX)
    return stored


def checked_bytes(
    timeline_id: TimelineId, events: Sequence[bytes], expected_version: int
) -> list[StoredEvent]:
    """`checked_events` for events that are bytes already; every `append_bytes` must call this first.

    Raises:
        MisuseError: as `checked_events`.
        TooLargeError: together they have more bytes than one append may have.
        CodecError: one of them is not an event.
    """
    _check_append(timeline_id, events, expected_version)
    stored = [store_bytes(data) for data in events]
    check_sizes(timeline_id, stored, APPEND_BYTES_MAX)
    return stored


NAME_BYTES_MAX = 1_000
"""Bytes of a timeline's name in UTF-8: well below what an index of any database accepts."""


def _check_append(timeline_id: TimelineId, events: Sequence[object], expected_version: int) -> None:
    if not events:
        raise MisuseError(f"an append to {timeline_id!r} needs at least one event")
    if expected_version < 0:
        raise MisuseError(f"expected_version={expected_version}: versions start at 0")
    if not timeline_id or not is_sound(timeline_id):
        raise MisuseError(f"{timeline_id!r} cannot name a timeline; use printable text")
    if len(timeline_id.encode()) > NAME_BYTES_MAX:
        raise MisuseError(
            f"{timeline_id[:40]!r}… cannot name a timeline: it has more than {NAME_BYTES_MAX} bytes"
        )
    if len(events) > APPEND_EVENTS_MAX:
        what = f"an append to {timeline_id!r}"
        raise TooLargeError(what, len(events), APPEND_EVENTS_MAX, IN_SEVERAL_CALLS, unit="events")


def is_sound(text: object) -> TypeGuard[str]:
    """Whether this is a string without lone surrogates and NUL, which files and some databases do not accept."""
    try:
        return isinstance(text, str) and b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def checked_page(after: int, limit: int) -> None:
    """Refuse an invalid page.

    Raises:
        MisuseError: `after` is negative, or `limit` is less than 1.
    """
    if after < 0 or limit < 1:
        raise MisuseError(
            f"after={after}, limit={limit}: after must be at least 0, and limit at least 1"
        )


def checked_fork(
    source: TimelineId, target: TimelineId, at: int, head_of: Callable[[TimelineId], Head]
) -> Head:
    """The head with which a fork of `source` at version `at` begins.

    Raises:
        UnknownTimelineError: no such `source`.
        MisuseError: `at` is not a version of `source`.
        TimelineExistsError: `target` exists.
    """
    head, existing = head_of(source), head_of(target)
    if not head.version:
        raise UnknownTimelineError(source)
    if not 1 <= at <= head.version:
        raise MisuseError(f"cannot fork {source!r} at {at}: its versions are 1 to {head.version}")
    if existing.version:
        raise TimelineExistsError(target, found=existing.version)
    return head.cut_to(at)


@attrs.frozen(kw_only=True)
class TimelineInfo:
    """A timeline in the result of `EventStore.list`."""

    id: TimelineId
    version: int
    created_at: float
    """When its first event happened, in seconds since the epoch."""
    updated_at: float


def timeline_infos(heads: Mapping[TimelineId, Head]) -> list[TimelineInfo]:
    """The result of `list`; timelines of the same age stay in the order of `heads`."""
    infos = [
        TimelineInfo(
            id=name, version=head.version, created_at=head.created_at, updated_at=head.updated_at
        )
        for name, head in heads.items()
    ]
    return sorted(infos, key=lambda info: info.created_at)


def event_problems(version: int, event: Event, blocks: dict[str, int]) -> Iterator[str]:
    """Inconsistencies of an event; `blocks` are the block ids that occurred before, with their versions."""
    ref = ref_of(event)
    if ref is not None and not 1 <= ref <= version:
        yield f"it refers to version {ref}, which is not before it"
    if isinstance(event, BlockAppended):
        first = blocks.setdefault(event.block.id, version)
        if first != version:
            yield f"block id {event.block.id!r} was already used at version {first}"


# Size limits of stored data, the same in every store.
#
# Every database has a limit of its own (PostgreSQL 1 GB per field, or 255 MB if SQL reads its JSON; SQLite 1 GB per
# row), and none reports clearly that it was exceeded.  The limits here are lower than all of these, and higher than what
# a provider accepts in one request (32 MB).  Larger content belongs into an artifact, which is stored in pieces.


EVENT_BYTES_MAX: Final = 64_000_000
"""Bytes of the JSON of one event."""
APPEND_BYTES_MAX: Final = 256_000_000
"""Bytes of all events of one append; also of a single copied event, which an older version may have stored."""
APPEND_EVENTS_MAX: Final = 200_000
"""Events in one append."""
DESCRIPTION_BYTES_MAX: Final = 64_000
"""Bytes of the JSON of an artifact's description."""


IN_SEVERAL_CALLS: Final = (
    "append them in several calls, each at the version that the one before returned"
)
TO_AN_ARTIFACT: Final = (
    "put the content into an artifact (`artifacts.put` of the timeline) and append its id, or append"
    " it in parts"
)


def check_sizes(timeline: TimelineId, events: Sequence[StoredEvent], event_bytes_max: int) -> None:
    """Refuse events that are too large, one by one or together.

    Raises:
        TooLargeError: one event has more than `event_bytes_max` bytes, or all together more than `APPEND_BYTES_MAX`.
    """
    total = 0
    for number, event in enumerate(events, 1):
        total += len(event.data)
        if len(event.data) > event_bytes_max:
            what = f"event {number} of an append to {timeline!r} ({_about(event.data)})"
            raise TooLargeError(what, len(event.data), event_bytes_max, TO_AN_ARTIFACT)
    if total > APPEND_BYTES_MAX:
        raise TooLargeError(f"an append to {timeline!r}", total, APPEND_BYTES_MAX, IN_SEVERAL_CALLS)


def _about(data: bytes) -> str:
    """Name the event in an error message, without quoting its content."""
    event = decode_event(data)
    if not isinstance(event, BlockAppended):
        return f"{kind_of(event)} {event.id!r:.100}"
    return f"the {tag_of(event.block)} {event.block.id!r:.100}"


# Retention: which events a store may remove from a log, what it reports about them, and what it refuses.


@attrs.frozen(kw_only=True)
class ArchivedRange:
    """Events in an archive file: a row of the store's manifest."""

    first: int
    last: int
    file: str
    """Its absolute path."""
    sha256: str
    """Hash of the whole file."""


@attrs.frozen(kw_only=True)
class Rest:
    """Which part of a log is left; the default is the whole log."""

    forgotten: int = 0
    """The newest forgotten version; 0: none."""
    archives: tuple[ArchivedRange, ...] = ()
    """Oldest first; they follow one another without a gap, up to `first`."""
    began_at: float = 0.0
    """When the first event of the timeline happened; 0: nothing was removed."""
    anchor: int = attrs.field(default=0, eq=False)
    """If events were forgotten: the chain after them, in stores that have one, see below."""

    @property
    def first(self) -> int:
        """The oldest version in the store itself."""
        return (self.archives[-1].last if self.archives else self.forgotten) + 1

    @property
    def removed(self) -> int:
        """Events that are no longer in the store itself."""
        return self.first - 1

    def archiving(self, archive: ArchivedRange, began_at: float) -> "Rest":
        """The same after the oldest events were moved to one more archive file."""
        return attrs.evolve(self, archives=(*self.archives, archive), began_at=began_at)

    def forgetting(self, before: int, began_at: float) -> "Rest":
        """The same after the events older than `before` were forgotten.

        An archive file is given up as a whole or not at all.
        """
        archives = tuple(archive for archive in self.archives if archive.last >= before)
        last = before - 1 if not archives else archives[0].first - 1
        forgotten = max(last, self.forgotten)
        return attrs.evolve(self, forgotten=forgotten, archives=archives, began_at=began_at)

    def cut_to(self, version: int) -> "Rest":
        """What is left of a fork at a version."""
        archives = (
            attrs.evolve(archive, last=min(archive.last, version))
            for archive in self.archives
            if archive.first <= version
        )
        return attrs.evolve(self, archives=tuple(archives))

    def within(self, first: int, last: int) -> Iterator[ArchivedRange]:
        """The archives that hold some of these versions."""
        return (a for a in self.archives if a.first <= last and first <= a.last)

    def refuse_forgotten(self, timeline: TimelineId, first: int, what: str = "") -> None:
        """Check that no event from version `first` on was forgotten; `what` begins the message of the error.

        Raises:
            ForgottenError: the event of version `first` was forgotten.
        """
        if first <= self.forgotten:
            raise ForgottenError(timeline, self.forgotten + 1, what)


@attrs.frozen(kw_only=True)
class Removed:
    """The result of a removal."""

    events: int = 0
    """The number of events that were removed or replaced."""
    size: int = 0
    """Bytes of the JSON of those that were not in archives."""
    unused: tuple[str, ...] = ()
    """Archive files to which this store no longer refers; the caller decides whether to delete them."""


def checked_trim(timeline: TimelineId, before: int, head: Head) -> None:
    """Refuse a `trim` that would remove events that the window needs; every store's `trim` must call this first.

    Raises:
        UnknownTimelineError: the timeline has no events.
        MisuseError: `before` is not a version, or is greater than the start of the window.
    """
    if not head.version:
        raise UnknownTimelineError(timeline)
    if not 1 <= before <= head.window_start():
        raise MisuseError(
            f"cannot remove the events before version {before} of {timeline!r}: its window begins"
            f" at version {head.window_start()}"
        )


def checked_marks(timeline: TimelineId, head: Head, rest: Rest) -> None:
    """Refuse an append after which the window would begin among forgotten events; `head` is the head after it.

    Raises:
        ForgottenError: it would.
    """
    rest.refuse_forgotten(timeline, head.window_start(), "nothing was appended")


def checked_fork_window(source: TimelineId, at: int, head: Head, rest: Rest) -> None:
    """Refuse a fork whose window was forgotten; `head` is the head with which the fork begins.

    Raises:
        ForgottenError: the window at version `at` needs forgotten events.
    """
    rest.refuse_forgotten(source, head.window_start(), f"cannot fork {source!r} at {at}")


def checked_rewrite(version: int, old: Event, new: Event) -> StoredEvent:
    """The new event as bytes; every `rewrite` must call this.

    Raises:
        MisuseError: it is not the same event with other content.
    """
    for name, of in (("id", old.id), ("kind", kind_of(old)), ("ref", ref_of(old)), ("at", old.at)):
        stored = {"id": new.id, "kind": kind_of(new), "ref": ref_of(new), "at": new.at}[name]
        if of != stored:
            raise MisuseError(
                f"event {version} has the {name} {of!r}, which must not change, but {stored!r} was given"
            )
    return store_event(new)


# The chain of a timeline: a number that stands for all its events, in their order, under its name.
#
#     chain of no events      chain_start(name)
#     chain after an event    the chain before it, XOR chain_step(version, id of the event)
#     link of an event        the chain after it, XOR content_hash(its JSON)
#
# A store keeps the link beside each event, and the chain after the newest one in the *head* of the timeline, which is
# written in the same transaction.  So a link depends on the name of the timeline, on the version, on the content, and on
# everything before it: an event that is altered, moved, swapped, renamed or from another history has another link, and
# if the newest events are missing, the chain does not end as the head says.
#
# XOR, so that a server can extend a chain in the statement that inserts the events, without telling anybody its end; so
# that a fork keeps its links except for one constant; and so that an event can get other content (`EventStore.rewrite`)
# without a change of any link after it.  The id of an event never changes.
#
# The hash is BLAKE2b of the standard library with 64 bits: it costs a microsecond per kilobyte, two different histories
# have the same chain once in 2^64 cases, and 64 bits are an integer of every database.  This detects accidents.  It is no
# protection against somebody who computes the numbers anew.


ALTERED: Final = "it is not what was written here: its content is another, or the event itself is, says its checksum"
"""What `verify` says of an event whose link is wrong."""


def chain_start(timeline: str) -> int:
    """The chain of a timeline without events; a signed number of 64 bits, as every result here."""
    return content_hash(timeline.encode())


def chain_step(version: int, event_id: str) -> int:
    """What an event adds to the chain."""
    return content_hash(f"{version} {event_id}".encode())


def content_hash(data: bytes | str) -> int:
    """The hash of the JSON of an event, even if somebody has stored it by hand as another type."""
    data = data.encode() if isinstance(data, str) else data
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def extended(chain: int, after: int, events: Iterable[StoredEvent]) -> tuple[list[int], int]:
    """The links of events that follow version `after`, and the chain after them."""
    links: list[int] = []
    for version, event in enumerate(events, after + 1):
        chain ^= chain_step(version, event.id)
        links.append(chain ^ content_hash(event.data))
    return links, chain


def xor(left: str, right: str) -> str:
    """SQL of two integers that every database computes the same way, whether it has an operator for it or not."""
    return f"(({left} | {right}) - ({left} & {right}))"


@attrs.define
class Walk:
    """Follows the chain of a timeline, event by event, and tells which links are not as they should be.

    After a link that is wrong, the event there may be wrong or only its link; both chains are then followed, so that what
    comes after is not reported as well.
    """

    _chains: Sequence[int] = ()
    """The chains that may be right; none: unknown, after something that is missing."""

    @classmethod
    def of(cls, timeline: str, rest: Rest) -> "Walk":
        """A walk that begins with the oldest event that was not forgotten."""
        return cls((rest.anchor if rest.forgotten else chain_start(timeline),))

    @property
    def end(self) -> int | None:
        """The chain after the last event; None: it is not known for sure."""
        return self._chains[0] if len(self._chains) == 1 else None

    def lose(self) -> None:
        """Note that an event is missing, or cannot be read."""
        self._chains = ()

    def step(self, addition: int) -> None:
        """Pass an event that has no link, because it is in an archive; `addition` is its `step`."""
        self._chains = tuple(chain ^ addition for chain in self._chains)

    def passes(self, addition: int, chain: int | None) -> bool:
        """Pass an event, after which the chain is `chain`, its link says (None: it has no link); return whether this is
        right."""
        self.step(addition)
        if chain is None:
            return False
        if self._chains and chain not in self._chains:
            self._chains = (*self._chains, chain)
            return False
        self._chains = (chain,)
        return True

    def ends_in(self, chain: int) -> bool:
        """Whether this may be the chain after the last event."""
        return not self._chains or chain in self._chains


LinkedRow: TypeAlias = tuple[int, bytes, int]
"""A version, the JSON of the event, and its link."""


def chain_at(
    timeline: TimelineId, rest: Rest, version: int, row: Callable[[int], Sequence[LinkedRow]]
) -> int | None:
    """The chain after a version, told from a row and the archives between; None if there is no such row, or it cannot be
    read.  `row` reads the row of a version.

    Raises:
        DamagedStoreError: an archive cannot be read.
    """
    from persistence._archive import archived_events

    if version <= rest.forgotten:
        return Walk.of(timeline, rest).end
    for seq, data, link in row(max(version, rest.first)):
        chain = link ^ content_hash(data)
        if seq > version:
            try:
                chain ^= chain_step(seq, decode_event(data).id)
            except CodecError:
                return None
            for archive in rest.within(version + 1, rest.removed):
                for number, event in archived_events(archive, version + 1, archive.last):
                    chain ^= chain_step(number, event.id)
        return chain
    return None


# Who waits for a log to grow.


Wake: TypeAlias = Callable[[], None]


@attrs.define(eq=False)
class Watchers:
    """The functions to call after an append; see `EventStore.watch`."""

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


RECENT_MAX: Final = 100
UNKNOWN_MAX: Final = 10_000
Notes: TypeAlias = dict[tuple[TimelineId, str], int]
"""The versions that appends expected, by the timeline and the id of the first event."""


@attrs.define(eq=False)
class Attempts:
    """The latest appends of one store, so that one whose caller did not learn the outcome can be repeated at any version:
    the connection broke during the commit, or an interrupt came.

    An append is either at the version that it expected first or nowhere, so one look there tells whether it happened.
    """

    _unknown: Notes = attrs.field(factory=Notes, init=False)
    """Appends that failed with another error than a conflict."""
    _recent: Notes = attrs.field(factory=Notes, init=False)
    """The latest ones, also successful ones: an interrupt may have come on the way back to the caller."""
    _older: Notes = attrs.field(factory=Notes, init=False)

    def settled(
        self,
        timeline: TimelineId,
        stored: list[StoredEvent],
        expected: int,
        append: Callable[[TimelineId, list[StoredEvent], int], int],
        read: Callable[[TimelineId, int, int], Sequence[tuple[int, bytes]]],
    ) -> int:
        """The version after these events: of an earlier append of the same, or else the answer of `append`; `read` is
        that of bytes, by version and number."""
        key = timeline, stored[0].id
        for notes in (self._unknown, self._recent, self._older):
            before = notes.get(key, expected)
            if before != expected and _is_there(timeline, before, stored, read):
                return before + len(stored)
        self._recent[key] = expected
        if len(self._recent) > RECENT_MAX:
            self._older, self._recent = self._recent, {}
        try:
            version = append(timeline, stored, expected)
        except VersionConflictError:
            self._recent.pop(key, None)
            raise
        except BaseException:
            self._unknown[key] = expected
            while len(self._unknown) > UNKNOWN_MAX:
                self._unknown.pop(next(iter(self._unknown)), None)
            raise
        if self._unknown:
            self._unknown.pop(key, None)
        return version


def _is_there(
    timeline: TimelineId,
    before: int,
    stored: list[StoredEvent],
    read: Callable[[TimelineId, int, int], Sequence[tuple[int, bytes]]],
) -> bool:
    due, there = [event.data for event in stored], list[bytes]()
    with suppress(ForgottenError):  # not these: nobody repeats an append so late
        while page := read(timeline, before + len(there), len(due) - len(there)):
            there += [data for _, data in page]
            if len(there) == len(due):
                break
    return there == due


class OwnStore(ABC):
    """What all stores of this package share: an append whose caller did not learn the outcome can be repeated, events
    can be removed, and appends wake watchers."""

    can_remove = keeps_artifacts = True
    _attempts: Attempts
    _watchers: Watchers

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        stored = checked_events(timeline_id, events, expected_version)
        return self._attempts.settled(
            timeline_id, stored, expected_version, self._append, self._bytes
        )

    def append_bytes(
        self, timeline_id: TimelineId, events: Sequence[bytes], *, expected_version: int
    ) -> int:
        stored = checked_bytes(timeline_id, events, expected_version)
        return self._attempts.settled(
            timeline_id, stored, expected_version, self._append, self._bytes
        )

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        return events_of(timeline_id, self.read_bytes(timeline_id, after=after, limit=limit))

    def read_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[tuple[int, bytes]]:
        checked_page(after, limit)
        return self._bytes(timeline_id, after, limit)

    def watch(self, timeline_id: TimelineId, wake: Wake) -> Callable[[], None]:
        return self._watchers.add(timeline_id, wake)

    def trim(
        self, timeline_id: TimelineId, before: int, *, archive: "str | PathLike[str] | None" = None
    ) -> Removed:
        from persistence._archive import trim

        return self._changed(timeline_id, partial(trim, before=before, archive=archive))

    def rewrite(self, timeline_id: TimelineId, events: Mapping[int, Event]) -> Removed:
        from persistence._archive import rewrite

        return self._changed(timeline_id, partial(rewrite, events=events))

    def remove(self, timeline_id: TimelineId) -> Removed:
        from persistence._archive import remove

        return self._changed(timeline_id, remove)

    @abstractmethod
    def _append(self, timeline: TimelineId, stored: list[StoredEvent], expected: int) -> int:
        """Append these events, as `append` says."""

    @abstractmethod
    def _bytes(self, timeline: TimelineId, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """What `read_bytes` returns, of a valid page."""

    @abstractmethod
    def _changed(self, timeline: TimelineId, change: "Change") -> Removed:
        """The result of `change` of an existing timeline; its changes are one commit."""
