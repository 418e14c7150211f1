"""A store in which the writes of a request wait until the provider has let the request in.

What is kept can be read back by an agent, so a request that the provider refuses with 401 or 403, or that it never
answers, leaves nothing.  Its events wait in memory, and whatever reads through this store finds them at their versions.
Later writes to the same timeline, such as those of a second request, wait behind them.

    a visit   one request, from its first write until it is admitted or turned away
    a line    the writes to one timeline that wait, in the order of their versions
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, RLock
from typing import Any, Final

import attrs

from blocks import (
    Event,
    LogWindow,
    Recorded,
    TimelineExistsError,
    TimelineId,
    VersionConflictError,
    window_of,
)
from persistence import EventStore, Rest, TimelineInfo

_PASSED_ON: Final = (
    *("can_remove", "keeps_artifacts", "artifacts"),
    *("trimmed", "trim", "rewrite", "remove", "erase"),
)
"""What an engine may need and waits for nothing; these go to the store itself."""


@attrs.define(eq=False)
class Visit:
    """One request, and the timelines to which it has written."""

    timelines: dict[TimelineId, None] = attrs.field(factory=dict[TimelineId, None])
    is_over: bool = False
    """Whether its writes were dropped, because it or a request that they build on was turned away."""


@attrs.frozen(eq=False)
class _Write:
    """Events that wait to be appended; or, with a source, the event that begins a fork of it."""

    visit: Visit
    before: int
    """The version after which they are appended."""
    events: tuple[Event, ...]
    source: TimelineId | None = None

    @property
    def version(self) -> int:
        return self.before + len(self.events)

    def recorded(self) -> list[Recorded]:
        return [*enumerate(self.events, self.before + 1)]


@attrs.define(eq=False)
class _Line:
    writes: list[_Write] = attrs.field(factory=list[_Write])
    lock: Any = attrs.field(factory=RLock)

    @property
    def source(self) -> TimelineId | None:
        """The timeline from which this one is still to be forked; None: it is not."""
        return self.writes[0].source if self.writes else None

    def recorded(self, after: int = 0) -> list[Recorded]:
        events = (recorded for write in self.writes for recorded in write.recorded())
        return [recorded for recorded in events if recorded[0] > after]


_VISIT: Final[ContextVar[Visit | None]] = ContextVar("visit", default=None)


@attrs.define(eq=False, slots=False)
class AdmittingStore(EventStore):
    """An `EventStore` before another one; writes outside a visit go to that one at once."""

    store: EventStore
    _lines: dict[TimelineId, _Line] = attrs.field(factory=dict[TimelineId, _Line], init=False)
    _lock: Any = attrs.field(factory=Lock, init=False)

    def __attrs_post_init__(self) -> None:
        for name in _PASSED_ON:
            setattr(self, name, getattr(self.store, name))

    # Visits.

    @contextmanager
    def visit(self) -> Generator[Visit]:
        """Inside the block, what this thread writes waits; if the block fails, it is dropped."""
        visit = Visit()
        before = _VISIT.set(visit)
        try:
            yield visit
        except BaseException:
            self.turn_away(visit)
            raise
        finally:
            _VISIT.reset(before)

    def admit(self, visit: Visit) -> bool:
        """Write what waits of a visit, and what it builds on; False: it was dropped already.

        Raises:
            FoldlineError: the store cannot take it, for example because another process has written to the timeline
                meanwhile. Turn the visit away then.
        """
        for timeline in [*visit.timelines]:
            self._written(timeline, lambda write: write.visit is visit)
        return not visit.is_over

    def _written(self, timeline: TimelineId, is_wanted: Callable[[_Write], bool]) -> None:
        """Write what waits for a timeline, up to the last wanted write."""
        with self._line(timeline) as line:
            wanted = [number for number, write in enumerate(line.writes, 1) if is_wanted(write)]
            for write in line.writes[: wanted[-1] if wanted else 0]:
                if write.source is None:
                    self.store.append(timeline, write.events, expected_version=write.before)
                else:
                    self._fork(write.source, timeline, write.events[0], write.before)
                line.writes.remove(write)

    def _fork(self, source: TimelineId, target: TimelineId, event: Event, at: int) -> int:
        self._written(source, lambda write: write.before < at)
        return self.store.fork(source, target, event, at=at)

    def turn_away(self, visit: Visit) -> None:
        """Drop what waits of a visit, and what builds on it."""
        visit.is_over = True
        for timeline in [*visit.timelines]:
            with self._line(timeline) as line:
                own = [n for n, write in enumerate(line.writes) if write.visit is visit]
                dropped = line.writes[own[0] :] if own else []
                line.writes = line.writes[: own[0]] if own else line.writes
            for write in dropped:
                write.visit.is_over = True

    @contextmanager
    def _line(self, timeline: TimelineId) -> Generator[_Line]:
        """The line of a timeline, locked; it exists while something waits in it."""
        while True:
            with self._lock:
                line = self._lines.setdefault(timeline, _Line())
            with line.lock:
                if self._lines.get(timeline) is not line:
                    continue  # another thread has just removed it
                try:
                    yield line
                finally:
                    if not line.writes:
                        self._lines.pop(timeline, None)
                return

    # The store.

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        with self._line(timeline_id) as line:
            visit = _VISIT.get() or (line.writes[-1].visit if line.writes else None)
            if visit is None:
                return self.store.append(timeline_id, events, expected_version=expected_version)
            head = self._head(timeline_id, line)
            if head != expected_version:
                raise VersionConflictError(expected=expected_version, found=head)
            line.writes.append(_Write(visit, head, tuple(events)))
            visit.timelines[timeline_id] = None
            return head + len(events)

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        visit = _VISIT.get()
        if visit is None:
            return self._fork(source, target, event, at)
        with self._line(target) as line:
            if taken := self._head(target, line):
                raise TimelineExistsError(target, found=taken)
            line.writes.append(_Write(visit, at, (event,), source))
            visit.timelines[target] = None
            return at + 1

    def head(self, timeline_id: TimelineId) -> int:
        with self._line(timeline_id) as line:
            return self._head(timeline_id, line)

    def _head(self, timeline: TimelineId, line: _Line) -> int:
        return line.writes[-1].version if line.writes else self.store.head(timeline)

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        with self._line(timeline_id) as line:
            if line.source is None:
                page = self.store.read(timeline_id, after=after, limit=limit)
            else:
                room = min(limit, line.writes[0].before - after)
                page = self.read(line.source, after=after, limit=room) if room > 0 else ()
            return page or line.recorded(after)[:limit]

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        with self._line(timeline_id) as line:
            if not line.writes:
                return self.store.load_window(timeline_id)
            if line.source is not None:
                return super().load_window(timeline_id)
            base = self.store.load_window(timeline_id)
            window = window_of((*base.events, *line.recorded()))
            return window if window.compaction else attrs.evolve(window, compaction=base.compaction)

    def kept(self, timeline_id: TimelineId) -> Rest:
        with self._line(timeline_id) as line:
            if line.source is not None:
                return self.kept(line.source).cut_to(line.writes[0].before)
            return self.store.kept(timeline_id)

    def list(self) -> Sequence[TimelineInfo]:
        return self.store.list()

    def close(self) -> None:
        self.store.close()
