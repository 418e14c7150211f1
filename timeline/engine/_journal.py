"""A timeline's access to its log: the view, the pending events, and committing them.

Several timelines may write one log, in one process or in many.  The slower writer retries: a fact is appended
unchanged; what depends on the log is checked again after the other writers' events; a decision is made anew.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar
from weakref import WeakSet

import attrs
import msgspec

from blocks import (
    BlockAppended,
    ClosedError,
    DataError,
    Event,
    EventId,
    LogWindow,
    MisuseError,
    RangeExpanded,
    Recorded,
    RequestRendered,
    SummaryPrepared,
    SummaryRequested,
    TimelineId,
    TokensCounted,
    UsageRecorded,
    VersionConflictError,
    sealed,
)
from persistence import EventStore
from render import View, commit, open_view
from timeline._flow import Flow, RunBlocking
from timeline.engine._contest import Contest, rest_after
from timeline.engine._retention import Retention
from timeline.engine._sealing import Sealing
from timeline.engine._settings import IdFactory
from timeline.engine._signal import Signal
from timeline.observe._traces import Traces

_T = TypeVar("_T")
Fit: TypeAlias = Callable[[View, Sequence[Event]], Sequence[Event]]
"""Adapts events to the view after which they are appended; a `MisuseError` says that they do not fit there."""


def as_they_are(_: View, events: Sequence[Event]) -> Sequence[Event]:
    """A `Fit` for events that are true whatever happened before."""
    return events


_PLAIN: Final = (
    BlockAppended,
    RequestRendered,
    SummaryPrepared,
    SummaryRequested,
    UsageRecorded,
    TokensCounted,
)
"""Events that do not change earlier events."""
TOUCH_RATIO: Final = 0.1
"""A request that is handed out again is recorded again after this share of the time for which the provider caches it."""
NEWS_MAX: Final = 512
"""Largest number of new events by other writers that are folded; if there are more, the window is loaded."""


@attrs.define(kw_only=True, repr=False)
class Journal:
    """The log of one timeline, and the view of it in this process.

    What stays true although it could not be committed (summaries that were paid for, and their calls) waits in
    `pending`, and is committed with the next append, or by `flush`.
    """

    id: TimelineId
    store: EventStore
    ids: IdFactory
    sealing: Sealing
    retention: Retention = attrs.field(factory=Retention)
    traces: Traces = attrs.field(factory=Traces)
    rest: Callable[[str, int], float] = rest_after
    """Seconds that a writer with this name waits after this many conflicts in a row."""
    view: View = attrs.field(factory=View, init=False)
    pending: tuple[Event, ...] = attrs.field(default=(), init=False)
    closed: bool = attrs.field(default=False, init=False)
    away: int = attrs.field(default=0, init=False)
    """Number of flows that wait for foreign code; the lock is free meanwhile."""
    followers: WeakSet[Signal] = attrs.field(factory=WeakSet[Signal], init=False, repr=False)
    """The followers of this timeline object, which end when it is closed."""
    _durable: View = attrs.field(factory=View, init=False)
    """The view without the pending events."""
    _behind: bool = attrs.field(default=False, init=False)
    """Whether the store may hold more than the view, for example after an interrupted commit; `load` resets it."""

    def load(self) -> Flow[None]:
        """Read the window from the store; pending events stay pending, unless the store has them."""
        with self.traces.call("load", self.store) as span:
            window: LogWindow = yield RunBlocking(lambda: self.store.load_window(self.id))
            span.set_attributes({"foldline.events": len(window.events)})
        there = {event.id for _, event in window.events}
        self.pending = tuple(event for event in self.pending if event.id not in there)
        self._go_on_from(open_view((yield from self.sealing.opened_window(window))))
        self._behind = False

    def _go_on_from(self, durable: View) -> None:
        """Continue from this durable view, with the pending events after it."""
        if durable.state.withheld != self.view.state.withheld:  # a summary may quote those
            self.pending = tuple(e for e in self.pending if not isinstance(e, SummaryPrepared))
        self._durable, self.view = durable, commit(durable, *self.pending)

    def current(self, flow: Flow[_T]) -> Flow[_T]:
        """Run a flow after the view was brought up to date with the store."""
        if not self.closed:
            yield from self.catch_up()
        return (yield from flow)

    def catch_up(self) -> Flow[None]:
        """Load events that other writers or an interrupted commit have appended."""
        head: int = yield RunBlocking(partial(self.store.head, self.id))
        if self._behind or self.sealing.is_out_of_date or not 0 <= head - self.version <= NEWS_MAX:
            yield from self.load()
        elif head != self.version:
            yield from self._fold_news(head)

    def _fold_news(self, head: int) -> Flow[None]:
        """Fold new events of other writers without loading the window again."""
        news = yield from self._news(self.version, head)
        if any(isinstance(event, RangeExpanded) for _, event in news):
            yield from self.load()  # it shows blocks that are not in the view
        else:
            self._go_on_from(commit(self._durable, *(event for _, event in news)))

    def _news(self, version: int, head: int) -> Flow[Sequence[Recorded]]:
        """The events after a version, up to version `head`; fewer if the store has fewer."""
        news: list[Recorded] = []
        while version + len(news) < head:  # the store limits the size of a page
            after, limit = version + len(news), head - version - len(news)
            with self.traces.call("read", self.store) as span:
                page: Sequence[Recorded] = yield RunBlocking(
                    partial(self.store.read, self.id, after=after, limit=limit)
                )
                span.set_attributes({"foldline.events": len(page)})
            if not page:
                break
            news += page
        return (yield from self.sealing.opened(news))

    @property
    def version(self) -> int:
        """The number of durable events."""
        return self.view.version - len(self.pending)

    def commit(self, *events: Event, fit: Fit = as_they_are) -> Flow[int]:
        """Append events, even if other writers append meanwhile; return the new version.

        For facts that are true whatever happened before, or that `fit` adapts; not for decisions.
        """
        self.check_open()
        stamped = tuple(self._stamp(event) for event in events)
        return (yield from self.repeated(lambda: self._fitted(stamped, fit)))

    def _is_durable(self, view: View) -> int:
        """Record that all of a view is durable, pending events included; return its version."""
        self.pending, self.view, self._durable, self._behind = (), view, view, False
        return view.version

    def _fitted(self, events: Sequence[Event], fit: Fit) -> Flow[int]:
        """Append events, as adapted by `fit`, directly after the view."""
        try:
            fitted = fit(self.view, events)
        except MisuseError:  # the view may lack new events
            yield from self.catch_up()
            fitted = fit(self.view, events)
        return (yield from self.append_here(fitted))

    def append_here(self, events: Sequence[Event]) -> Flow[int]:
        """Append events directly after the view; return the new version.

        Raises:
            VersionConflictError: another writer was faster; see `repeated`.
        """
        self.check_open()
        yield from self._write((*self.pending, *events), self.version)
        return self._is_durable(commit(self.view, *events))

    def _write(self, events: Sequence[Event], version: int) -> Flow[None]:
        if not events:
            return
        was_behind, self._behind = self._behind, True  # reset when the view has the events
        try:
            written, append = [sealed(event) for event in events], self.store.append
            with self.traces.call("append", self.store, len(events)):
                yield RunBlocking(partial(append, self.id, written, expected_version=version))
        except (VersionConflictError, MisuseError, DataError):  # nothing was written
            self._behind = was_behind
            raise
        except Exception:  # such as a full disk; paid summaries stay pending
            self._hold(events)
            raise

    def repeated(self, decide: Callable[[], Flow[_T]]) -> Flow[_T]:
        """Run a flow that decides and commits; after a version conflict, run it again on an up-to-date view.

        Raises:
            VersionConflictError: other writers were faster at every try.
        """
        contest = self._contest()
        while True:
            try:
                return (yield from decide())
            except VersionConflictError as conflict:
                yield from contest.lost(conflict)
            yield from self.catch_up()

    def _contest(self) -> Contest:
        return Contest(self.id, self.rest, self.ids)

    def _hold(self, events: Iterable[Event]) -> None:
        """Keep pending for the next commit what stays true: paid summaries, and calls for summaries."""
        waiting, kinds = {event.id for event in self.pending}, SummaryPrepared | SummaryRequested
        paid = [e for e in events if isinstance(e, kinds) and e.id not in waiting]
        self.pending = (*self.pending, *paid)
        self.view = commit(self.view, *paid)

    def _stamp(self, event: Event) -> Event:
        if event.id or not isinstance(event, msgspec.Struct):
            return event
        return msgspec.structs.replace(event, id=EventId(self.ids()))

    def flush(self) -> Flow[int]:
        """Commit the pending events."""
        return (yield from self.commit()) if self.pending else self.version

    def close(self) -> Flow[None]:
        """Commit the pending events, and close even if this fails."""
        try:
            if self.pending:
                yield from self.current(self.flush())
        finally:
            self.closed = True
            for signal in tuple(self.followers):
                signal.say()

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError(f"timeline {self.id!r} is closed; open it again to go on")

    def check_current(self, view: View) -> None:
        """Check that a view differs from the current one only by its own decisions.

        Raises:
            ClosedError: the timeline was closed meanwhile.
            VersionConflictError: something was appended here meanwhile, for example by a hook.
        """
        self.check_open()
        version = view.version - len(view.decisions)
        if version != self.view.version:
            raise VersionConflictError(expected=version, found=self.view.version)

    def settle(self, view: View) -> Flow[int]:
        """Commit the decisions of a view after the pending events; return the new version."""
        decided = tuple(self._stamp(event) for event in view.decisions)
        try:
            self.check_current(view)
        except VersionConflictError:
            is_true = self.view.state.withheld == view.state.withheld
            self._hold(e for e in decided if is_true or not isinstance(e, SummaryPrepared))
            raise
        if not decided:
            self.view = view.settled()
            return self.version
        try:
            yield from self._write((*self.pending, *decided), self.version)
        except VersionConflictError:
            self._hold(decided)
            raise
        version = self._is_durable(view.settled())
        yield from self.retention.after(self.store, self.id, decided)
        return version

    def settle_behind(self, decided: Sequence[Event], version: int) -> Flow[bool]:
        """Commit decisions made at `version`, if others have only appended since; return whether this was done.

        Such decisions concern events before that version, so later appends do not affect them. They are not committed
        if others have hidden, restored or compacted something, or undone a compaction.
        """
        stamped, contest = [self._stamp(event) for event in decided], self._contest()
        while True:
            yield from self.catch_up()
            if self.version - version > NEWS_MAX:
                return False
            news = yield from self._news(version, self.version)
            if not all(isinstance(event, _PLAIN) for _, event in news):
                return False
            try:
                yield from self.append_here(stamped)
            except VersionConflictError as conflict:
                yield from contest.lost(conflict)
            else:
                yield from self.retention.after(self.store, self.id, stamped)
                return True

    def hand_out(self, event: RequestRendered) -> Flow[None]:
        """Commit the fact that a request is handed out, so that a process that is killed now is remembered to have
        sent it. If the newest event says the same and is not old, nothing is recorded, here or in the log."""
        [(_, newest)] = self.view.events_since_cut[-1:] or [(0, None)]
        if isinstance(newest, RequestRendered):
            same = msgspec.structs.replace(event, id=newest.id, at=newest.at, shown=newest.shown)
            if same == newest and 0 <= event.at - newest.at < TOUCH_RATIO * event.ttl:
                return
        yield from self.commit(event)
