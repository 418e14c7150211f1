"""A store that records all calls, and checks whether the answers can be those of one log.

A log only grows, so its version says which state a call has seen: an append took the log from one version to
another, a read or a refused append found one version.  The calls are *linearisable* (there is an order in which they
could have happened one after the other) exactly if these conditions hold, which `problems` checks:

* each acknowledged append has its events at its own positions and nowhere else, and the log has no other events
  except those of appends without an answer;
* the log at the end has the events that a read returned, at the same positions;
* if one call ended before another began, the second has not seen an older version.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import inf
from typing import TypeAlias

import attrs

from blocks import Event, LogWindow, Recorded, TimelineId, VersionConflictError
from persistence._log import TimelineInfo
from persistence._store import EventStore

_Ids: TypeAlias = tuple[str, ...]


@attrs.define(kw_only=True)
class StoreCall:
    """A call of a store, and what its caller learned."""

    timeline: TimelineId
    began: int
    """When it began; a counter is the clock."""
    ended: float = inf
    """When it ended; `inf`: it raised an error that leaves its outcome open."""
    low: float = inf
    """The version that it found; `inf`: not known."""
    high: int = 0
    """The version after it."""
    appended: _Ids = ()
    """Ids of the events to append."""
    is_done: bool = False
    """Whether it was acknowledged."""
    is_refused: bool = False
    read: tuple[tuple[int, str], ...] = ()
    """Versions and ids of the events that it returned."""


@attrs.define(eq=False)
class RecordingStore(EventStore):
    """Passes every call on to a store, from any thread, and records it."""

    store: EventStore
    calls: list[StoreCall] = attrs.field(factory=list[StoreCall], init=False, repr=False)
    _tick: Callable[[], int] = attrs.field(factory=lambda: count().__next__, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        for name, default in vars(EventStore).items():
            if not name.startswith("_") and getattr(type(self), name) is default:
                setattr(self, name, getattr(self.store, name))  # a call that is not recorded

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        call = self._begin(timeline_id)
        call.appended = tuple(event.id for event in events)
        try:
            version = self.store.append(timeline_id, events, expected_version=expected_version)
        except VersionConflictError as conflict:
            call.is_refused = True
            self._ended(call, conflict.found)
            raise
        call.is_done = True
        self._ended(call, version)
        call.low = expected_version
        return version

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        call = self._begin(timeline_id)
        window = self.store.load_window(timeline_id)
        call.read = _pairs(window.events)
        self._ended(call, window.version)
        return window

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        call = self._begin(timeline_id)
        page = self.store.read(timeline_id, after=after, limit=limit)
        call.read = _pairs(page)
        self._ended(call, page[-1][0] if page else 0)
        call.low = inf if page else after  # the page may end before the end of the log
        return page

    def head(self, timeline_id: TimelineId) -> int:
        call = self._begin(timeline_id)
        version = self.store.head(timeline_id)
        self._ended(call, version)
        return version

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        call = self._begin(target)
        version = self.store.fork(source, target, event, at=at)
        call.appended = tuple(name for _, name in _pairs(self.store.read(source, limit=at)[:at]))
        call.appended += (event.id,)
        call.is_done = True
        self._ended(call, version)
        call.low = 0
        return version

    def list(self) -> Sequence[TimelineInfo]:
        return self.store.list()

    def close(self) -> None:
        self.store.close()

    def _begin(self, timeline_id: TimelineId) -> StoreCall:
        call = StoreCall(timeline=timeline_id, began=self._tick())
        self.calls.append(call)
        return call

    def _ended(self, call: StoreCall, version: int) -> None:
        call.ended, call.low, call.high = self._tick(), version, version

    def problems(self) -> Sequence[str]:
        """Contradictions between the calls and one append-only log; empty: none. All calls must have ended."""
        names = dict.fromkeys(call.timeline for call in self.calls)
        return [problem for name in names for problem in self._problems_of(name)]

    def _problems_of(self, name: TimelineId) -> Iterator[str]:
        calls = [call for call in self.calls if call.timeline == name]
        log = {version: event.id for version, event in self.store.log(name)}
        yield from (f"{name}: {what}" for what in (*_misplaced(calls, log), *_disordered(calls)))


def _pairs(events: Iterable[Recorded]) -> tuple[tuple[int, str], ...]:
    return tuple((version, event.id) for version, event in events)


def _misplaced(calls: Sequence[StoreCall], log: Mapping[int, str]) -> Iterator[str]:
    """Events that are not at their acknowledged versions, or whose append was refused."""
    acknowledged = {name for c in calls if c.is_done for name in c.appended}
    unsettled = {name for c in calls if not (c.is_done or c.is_refused) for name in c.appended}
    for call in calls:
        first = call.high - len(call.appended) + 1
        there = tuple(log.get(first + n, "") for n in range(len(call.appended)))
        if call.is_done and there != call.appended:
            yield f"{call.appended} was acknowledged at {first}, where the log has {there}"
        for version, name in call.read:
            if log.get(version) != name:
                yield f"{name} was read at {version}, where the log has {log.get(version)}"
    for version, name in log.items():
        if name not in acknowledged | unsettled:
            yield f"{name} is in the log at {version}, and its append was refused"
    if len(set(log.values())) < len(log):
        yield "an event is in the log more than once"


def _disordered(calls: Sequence[StoreCall]) -> Iterator[str]:
    """Calls that saw an older version than a call that had ended before they began."""
    first: dict[_Ids, StoreCall] = {}
    for call in calls:
        is_append = call.appended and not call.is_refused
        if is_append and first.setdefault(call.appended, call) is not call:
            call.low = inf  # a repetition: the version that it found is not known
    ended = iter(sorted((c for c in calls if c.ended < inf), key=lambda c: c.ended))
    newest, before = 0, next(ended, None)
    for call in sorted(calls, key=lambda c: c.began):
        while before is not None and before.ended < call.began:
            newest, before = max(newest, before.high), next(ended, None)
        if call.low < newest:
            yield f"a call saw version {call.low} after another had seen {newest}"
