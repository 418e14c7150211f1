"""What every store keeps of a log: events as bytes, and a head per timeline.

`checked_events` turns events into stored bytes, and refuses events that no store takes.  The head of a
timeline is its version and the compaction in force; a store holds nothing else of a log in memory.
A compaction leaves a *mark* (its version and its cut), and undoing it leaves another. The window
follows from the marks alone, so loading a window reads no event older than the cut, and a fork knows
the window at any earlier version.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeGuard

import attrs
import msgspec

from blocks import (
    BlockAppended,
    Event,
    LogWindow,
    MisuseError,
    RangeCompacted,
    RangeExpanded,
    Recorded,
    TimelineExistsError,
    TimelineId,
    TooLargeError,
    UnknownTimelineError,
    clean_json,
    decode_event,
    encode_event,
    kind_of,
    tag_of,
)


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event in the form in which it is stored; `data` is stored, the other fields are read from it."""

    id: str
    kind: str
    at: float
    ref: int | None
    """The cut of a `RangeCompacted`, or the version of the compaction that a `RangeExpanded` undoes; else None."""
    data: bytes
    """The event as JSON; `blocks.decode_event` reads it."""


@attrs.frozen
class Mark:
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
        )

    def cut_to(self, version: int) -> "Head":
        """The head as it was at an earlier version, for a fork."""
        marks = tuple(mark for mark in self.marks if mark.version <= version)
        return attrs.evolve(self, version=version, marks=marks)

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
    return StoredEvent(
        id=clean_json(event.id),
        kind=clean_json(kind_of(event)),
        at=float(event.at),
        ref=ref_of(event),
        data=encode_event(event),
    )


def store_bytes(data: bytes) -> StoredEvent:
    """An event that is bytes already; the bytes stay unchanged unless they are not strict JSON.

    Raises:
        CodecError: they are not an event.
    """
    stored = store_event(decode_event(data))
    try:
        msgspec.json.decode(data)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
    ):  # for example NaN, which our decoder accepts and a database does not
        return stored
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
    check_count(TimelineId(timeline_id), len(events))


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


class _Sized(Protocol):
    @property
    def data(self) -> bytes: ...


def check_count(timeline: TimelineId, count: int) -> None:
    """Refuse an append of too many events.

    Raises:
        TooLargeError: there are more than `APPEND_EVENTS_MAX`.
    """
    if count > APPEND_EVENTS_MAX:
        advice = "append them in several calls, each at the version that the one before returned"
        raise TooLargeError(
            f"an append to {timeline!r}", count, APPEND_EVENTS_MAX, advice, unit="events"
        )


def check_sizes(timeline: TimelineId, events: Sequence[_Sized], event_bytes_max: int) -> None:
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
        advice = "append them in several calls, each at the version that the one before returned"
        raise TooLargeError(f"an append to {timeline!r}", total, APPEND_BYTES_MAX, advice)


TO_AN_ARTIFACT: Final = (
    "put the content into an artifact (`artifacts.put` of the timeline) and append its id, or append"
    " it in parts"
)


def _about(data: bytes) -> str:
    """Name the event in an error message, without quoting its content."""
    event = decode_event(data)
    if not isinstance(event, BlockAppended):
        return f"{kind_of(event)} {event.id!r:.100}"
    return f"the {tag_of(event.block)} {event.block.id!r:.100}"
