"""What a timeline knows of its log: the view, what waits to be committed, and how it is committed.

Several timelines may write one log.  Who was slower repeats: a fact as it is, at whatever version the
log is then; a decision is made anew, from a fresh view.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias, TypeVar

import attrs
import msgspec

from blocks import (
    ClosedError,
    DataError,
    Event,
    EventId,
    LogWindow,
    MisuseError,
    RequestRendered,
    StoreError,
    SummaryPrepared,
    TimelineId,
    VersionConflictError,
)
from persistence import EventStore
from render import View, commit, open_view
from timeline._flow import Flow, RunBlocking
from timeline.engine._precedence import Contest, Precedence, precedence_in, rest_after
from timeline.engine._settings import IdFactory

log = logging.getLogger("foldline")

_T = TypeVar("_T")
Check: TypeAlias = Callable[[View], None]
"""Raises a `MisuseError` where a view says that what is to be appended must not be."""


def _precedence_of(journal: "Journal") -> Precedence:
    return precedence_in(journal.store, journal.id)


@attrs.define(kw_only=True, repr=False)
class Journal:
    """The log of one timeline, seen from here.

    A rendered request is a fact (`RequestRendered`), but not one worth a commit of its own: it
    waits in `pending` and goes with the next append, or with `flush`.
    """

    id: TimelineId
    store: EventStore
    ids: IdFactory
    rest: Callable[[int], float] = rest_after
    """Seconds to wait after so many conflicts in a row."""
    view: View = attrs.field(factory=View, init=False)
    pending: tuple[Event, ...] = attrs.field(default=(), init=False)
    closed: bool = attrs.field(default=False, init=False)
    away: int = attrs.field(default=0, init=False)
    """Flows that wait for other people's code; the lock is free meanwhile."""
    _behind: bool = attrs.field(default=False, init=False)
    """The store may hold more than the view: a commit was interrupted, say. Cured by `load`."""
    _precedence: Precedence = attrs.field(
        default=attrs.Factory(_precedence_of, takes_self=True),
        init=False,
        repr=False,
    )

    def load(self) -> Flow[None]:
        """Read the window from the store; what is pending stays pending, unless it is there."""
        window: LogWindow = yield RunBlocking(lambda: self.store.load_window(self.id))
        there = {event.id for _, event in window.events}
        self.pending = tuple(event for event in self.pending if event.id not in there)
        fresh = open_view(window)
        if (
            fresh.state.withheld != self.view.state.withheld
        ):  # a summary may quote what is hidden now
            self.pending = tuple(e for e in self.pending if not isinstance(e, SummaryPrepared))
        self.view = commit(fresh, *self.pending)
        self._behind = False

    def current(self, flow: Flow[_T]) -> Flow[_T]:
        """Do it with a view that holds what the store holds."""
        if not self.closed:
            yield from self.catch_up()
        return (yield from flow)

    def catch_up(self) -> Flow[None]:
        """Load what others have appended, and what an interrupted commit may have."""
        head: int = yield RunBlocking(partial(self.store.head, self.id))
        if self._behind or head != self.version:
            yield from self.load()

    @property
    def version(self) -> int:
        """Events that are durable."""
        return self.view.version - len(self.pending)

    def commit(self, *events: Event, check: Check | None = None) -> Flow[int]:
        """Append events, whoever else appends meanwhile; return the new version.

        For facts that are true whatever happened before, or that `check` finds so: not for decisions.
        """
        self.check_open()
        stamped = tuple(self._stamp(event) for event in events)
        if check is not None:
            return (yield from self.repeated(lambda: self._checked(stamped, check)))
        before = self.version
        after = yield from self._insist((*self.pending, *stamped))
        if after == before + len(self.pending) + len(stamped):
            self._is_durable(commit(self.view, *stamped))
        else:  # others have appended, too
            self.pending = ()
            yield from self._load_now_or_later()
        return after

    def _is_durable(self, view: View) -> int:
        """All of a view is in the store, with what was pending; its version."""
        self.pending, self.view, self._behind = (), view, False
        return view.version

    def _checked(self, events: Sequence[Event], check: Check) -> Flow[int]:
        """Append events where nothing in the view speaks against it."""
        try:
            check(self.view)
        except MisuseError:  # it may be true of what others have appended
            yield from self.catch_up()
            check(self.view)
        yield from self._write((*self.pending, *events), self.version)
        return self._is_durable(commit(self.view, *events))

    def _insist(self, events: Sequence[Event]) -> Flow[int]:
        """Append events, at whatever version the log is then; the new version.

        What a conflict found is what is expected next, so nothing is done between two attempts
        that others could use to be faster again; and each conflict is somebody else's success.
        """
        version = self.version
        with self._contest() as contest:
            while True:
                if self._precedence.holder is not None:
                    yield from contest.hold_back()
                try:
                    yield from self._write(events, version)
                    return version + len(events)
                except VersionConflictError as conflict:
                    if conflict.found == version:  # a store that contradicts itself
                        raise
                    version = conflict.found
                yield from contest.lost()

    def _load_now_or_later(self) -> Flow[None]:
        """Load what others have appended: at once, or, if the store cannot now, before the next flow.

        What was to be committed is durable, so nobody may be told that it was not.
        """
        self._behind = True
        try:
            yield from self.load()
        except StoreError as error:
            log.warning("timeline %r is to be loaded again: %s", self.id, error)

    def _write(self, events: Sequence[Event], version: int) -> Flow[None]:
        if not events:
            return
        was_behind, self._behind = self._behind, True  # until the view says what was written
        try:
            yield RunBlocking(lambda: self.store.append(self.id, events, expected_version=version))
        except (VersionConflictError, MisuseError, DataError):  # certainly not written
            self._behind = was_behind
            raise
        except Exception:  # the disk is full, say: what was paid for goes with the next commit
            self._hold(events)
            raise

    def repeated(self, decide: Callable[[], Flow[_T]]) -> Flow[_T]:
        """Decide and commit under the version decided on; anew from a fresh view after a conflict.

        Raises:
            VersionConflictError: somebody appended each time, though asked to hold back.
        """
        with self._contest() as contest:
            while True:
                if self._precedence.holder is not None:
                    yield from contest.hold_back()
                try:
                    return (yield from decide())
                except VersionConflictError:
                    if contest.is_hopeless:
                        raise
                yield from contest.lost()
                yield from self.load()

    @contextmanager
    def _contest(self) -> Generator[Contest]:
        contest = Contest(self._precedence, self.rest)
        try:
            yield contest
        finally:
            if self._precedence.holder is not None:
                contest.leave()

    def _hold(self, events: Iterable[Event]) -> None:
        """Let what was paid for wait for the next commit: it is true whatever else happened."""
        waiting = {event.id for event in self.pending}
        paid = [e for e in events if isinstance(e, SummaryPrepared) and e.id not in waiting]
        self.pending = (*self.pending, *paid)
        self.view = commit(self.view, *paid)

    def _stamp(self, event: Event) -> Event:
        if event.id or not isinstance(event, msgspec.Struct):
            return event
        return msgspec.structs.replace(event, id=EventId(self.ids()))

    def flush(self) -> Flow[int]:
        """Commit what waits."""
        return (yield from self.commit()) if self.pending else self.version

    def close(self) -> Flow[None]:
        """Commit what waits, and be closed whether that went well or not."""
        try:
            if self.pending:
                yield from self.current(self.flush())
        finally:
            self.closed = True

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError(f"timeline {self.id!r} is closed; open it again to go on")

    def check_current(self, view: View) -> None:
        """Whether a view is what this one has become by decisions alone.

        Raises:
            ClosedError: the timeline was closed meanwhile.
            VersionConflictError: something was appended here while it was decided, by a hook say.
        """
        self.check_open()
        version = view.version - len(view.decisions)
        if version != self.view.version:
            raise VersionConflictError(expected=version, found=self.view.version)

    def settle(self, view: View) -> Flow[int]:
        """Commit the decisions of a view, with what was pending before them; the new version."""
        decided = tuple(self._stamp(event) for event in view.decisions)
        try:
            self.check_current(view)
        except VersionConflictError:
            if self.view.state.withheld == view.state.withheld:
                self._hold(decided)
            raise
        if not decided:
            self.view = view.settled()
            return self.version
        try:
            yield from self._write((*self.pending, *decided), self.version)
        except VersionConflictError:
            self._hold(decided)
            raise
        return self._is_durable(view.settled())

    def remember(self, event: RequestRendered) -> None:
        stamped = self._stamp(event)
        self.pending = (*self.pending, stamped)
        self.view = commit(self.view, stamped)
