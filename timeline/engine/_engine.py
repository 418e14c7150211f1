"""The state of one timeline and its flows; it uses no threads, no event loop and no clock of its own.

The engine keeps the view of one log. A render runs the pipeline on this view and answers what it needs (a compaction,
artifacts); its decisions are events, and are committed before the request is handed out. An append makes events of
blocks. Both commit directly after the view, and catch up with the store first if it holds more.

Several timelines may write one log, in one process or in many.  The slower writer retries: a fact is appended
unchanged; what depends on the log is checked again after the other writers' events; a decision is made anew.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast
from weakref import WeakSet

import attrs
import msgspec

from blocks import (
    Answered,
    Block,
    BlockAppended,
    ClosedError,
    DataError,
    Event,
    EventId,
    ForgottenError,
    LogWindow,
    MisuseError,
    RangeExpanded,
    RangeSummary,
    Recorded,
    RequestRendered,
    SummaryPrepared,
    SummaryRequested,
    TimelineId,
    TokensCounted,
    Trigger,
    UnknownPathError,
    UsageRecorded,
    VersionConflictError,
    is_label,
    path_of,
    sealed,
    version_in,
    withheld_after,
)
from persistence import EventStore, Kept, kept_of
from render import (
    BringBack,
    Compact,
    Context,
    Decided,
    Need,
    Rendered,
    View,
    commit,
    compaction_due,
    handed_out,
    open_view,
    render,
    total_tokens,
    wanted,
)
from timeline._flow import Flow, RunBlocking
from timeline.arguments._blocks import checked_blocks
from timeline.arguments._checks import checked_time
from timeline.engine._artifacts import ArtifactService
from timeline.engine._attempt import Attempt, Made
from timeline.engine._compaction import Compactor
from timeline.engine._contest import Contest, rest_after
from timeline.engine._retention import Retention, window_until
from timeline.engine._sealing import Sealing
from timeline.engine._settings import IdFactory
from timeline.engine._sharing import summary_in, without_hidden
from timeline.engine._signal import Signal
from timeline.engine._withholding import withheld_as
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
PAGE = 2000
"""Number of events that are read from the store at once."""
NEAR_KNOWN = 1000
"""Number of the newest blocks among whose paths similar ones to an unknown path are looked for."""
PASSES_MAX = 8
"""Times that one render is repeated because its hooks and observers have appended events. Events that they append
during the last pass are not in the request."""

Teller: TypeAlias = Callable[[View, Rendered], Flow[None]]
"""Tells observers about a request, given the view before its decisions."""


@attrs.define(kw_only=True, repr=False)
class Engine:
    """The log of one timeline, the view of it in this process, and the operations on its blocks and requests.

    What stays true although it could not be committed (summaries that were paid for, and their calls) waits in
    `pending`, and is committed with the next append, or by `flush`.
    """

    id: TimelineId
    store: EventStore
    ids: IdFactory
    sealing: Sealing
    clock: Callable[[], float]
    artifact_service: ArtifactService
    compactor: Compactor = attrs.field(factory=Compactor)
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

    # Rendering.

    def render(
        self, context: Context, tell: "Teller | None" = None, *, force: bool = False
    ) -> Flow[Rendered]:
        """Render: decide, commit the decisions, and return the request.

        If hooks or observers append events meanwhile, everything is decided again, so that the request contains them.
        """
        self.check_open()
        attempt, forced, passes = Attempt(engine=self, is_nested=self.away > 0), force, 0
        decisions: tuple[Event, ...] = ()
        while True:
            if passes:
                yield from self.catch_up()
            passes += 1
            made = yield from self.repeated(partial(self._settled, context, attempt, force=forced))
            version, rendered, forced = self.view.version, made.rendered, False
            decisions += rendered.decisions
            if rendered.decisions:
                yield from self.compactor.report(
                    rendered.decisions, made.tokens, rendered.tokens, attempt
                )
            if tell is not None and not attempt.is_nested:
                with attempt.away():
                    yield from tell(made.before, rendered)
            if self.view.version == version or passes == PASSES_MAX:
                break
        yield from self.hand_out(handed_out(rendered, context))
        if len(decisions) > len(rendered.decisions):
            return attrs.evolve(rendered, decisions=decisions)
        return rendered

    def _settled(self, context: Context, attempt: Attempt, *, force: bool) -> Flow["Made"]:
        """Decide and render, and commit the decisions."""
        before, version = self.view, self.version
        stages = render(before, context)
        forced = force and attempt.is_first(before)
        decided = yield from self._driven(stages, context, attempt, force=forced)
        rendered = decided.rendered
        made = Made(before=before, tokens=decided.tokens, rendered=rendered)
        try:
            yield from self.settle(decided.view)
        except VersionConflictError:
            if attempt.is_overtaken() and (
                yield from self.settle_behind(decided.view.decisions, version)
            ):
                attempt.kept += decided.view.decisions
                attempt.made = attempt.made or made
            raise
        decisions = (*attempt.kept, *decided.view.decisions)
        attempt.kept.clear()
        # Pending events get their version only at the next commit, so they are not counted here.
        if (rendered.shown, rendered.decisions) != (self.version, decisions):
            rendered = attrs.evolve(rendered, shown=self.version, decisions=decisions)
        first = attempt.made or made
        return Made(before=first.before, tokens=first.tokens, rendered=rendered)

    def _driven(
        self,
        stages: Generator[Need, Any, Decided],
        context: Context,
        attempt: Attempt,
        *,
        force: bool,
    ) -> Flow[Decided]:
        """The result of the pipeline; this answers its requests for compactions and artifacts."""
        answer: object = None
        while True:
            try:
                need = stages.send(answer)
            except StopIteration as stop:
                return cast("Decided", stop.value)
            match need:
                case Compact(view):
                    trigger = "forced" if force else compaction_due(view, context)
                    answer = view
                    if trigger and context.policy.compacts:
                        answer = yield from self._compacted(view, context, attempt, trigger)
                case BringBack(view):
                    service, answer = self.artifact_service, ()
                    if service.opener and (named := wanted(view, context.policy)):
                        answer = yield from service.bring_back(view, context, named)

    def _compacted(
        self, view: View, context: Context, attempt: Attempt, trigger: Trigger
    ) -> Flow[View]:
        with self.traces.span("foldline.compact", {"foldline.trigger": trigger}) as span:
            after = yield from self.compactor.compact(view, context, attempt, trigger)
            if self.traces.are_on:
                sizes = {
                    "before": total_tokens(view, context),
                    "after": total_tokens(after, context),
                }
                span.set_attributes({f"foldline.tokens_{when}": n for when, n in sizes.items()})
        return after

    def hand_out(self, event: RequestRendered) -> Flow[None]:
        """Commit the fact that a request is handed out, so that a process that is killed now is remembered to have
        sent it. If the newest event says the same and is not old, nothing is recorded, here or in the log."""
        [(_, newest)] = self.view.events_since_cut[-1:] or [(0, None)]
        if isinstance(newest, RequestRendered):
            same = msgspec.structs.replace(event, id=newest.id, at=newest.at, shown=newest.shown)
            if same == newest and 0 <= event.at - newest.at < TOUCH_RATIO * event.ttl:
                return
        yield from self.commit(event)

    # Appending.

    def append(
        self,
        blocks: Sequence[Block],
        *facts: Event,
        at: float | None = None,
        fit: Fit = as_they_are,
        answers: Answered | None = None,
    ) -> Flow[int]:
        """Append blocks and further facts in one commit; `answers` is the request that the blocks answer."""
        events = self.appended(blocks, *facts, at=at, answers=answers)
        events = yield from self.sealing.sealed(events, self.view)
        try:
            return (yield from self.commit(*events, fit=fit))
        except (MisuseError, DataError):  # nothing was written
            yield from self.sealing.put_back(events)
            raise

    def append_sealed(self, events: Sequence[Event]) -> Flow[int]:
        """Append events directly after the view, with the content of confidential results in artifacts; return the
        new version.

        Raises:
            VersionConflictError: another writer was faster; see `repeated`.
        """
        sealed = yield from self.sealing.sealed(events, self.view)
        try:
            return (yield from self.append_here(sealed))
        except (MisuseError, DataError, VersionConflictError):  # nothing was written
            yield from self.sealing.put_back(sealed)
            raise

    def appended(
        self,
        blocks: Sequence[Block],
        *facts: Event,
        at: float | None = None,
        answers: Answered | None = None,
    ) -> list[Event]:
        """The events that append these blocks, followed by further facts."""
        if not blocks and not facts:
            raise MisuseError("nothing to append: give at least one block")
        now = checked_time(self.clock() if at is None else at)
        events = (
            BlockAppended(
                id=EventId(self.ids()), at=now, block=block, answers=None if index else answers
            )
            for index, block in enumerate(checked_blocks(blocks))
        )
        return [*events, *facts]

    # Committing.

    def commit(self, *events: Event, fit: Fit = as_they_are) -> Flow[int]:
        """Append events, even if other writers append meanwhile; return the new version.

        For facts that are true whatever happened before, or that `fit` adapts; not for decisions.
        """
        self.check_open()
        stamped = tuple(self._stamp(event) for event in events)
        return (yield from self.repeated(lambda: self._fitted(stamped, fit)))

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

    def flush(self) -> Flow[int]:
        """Commit the pending events."""
        return (yield from self.commit()) if self.pending else self.version

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

    def _is_durable(self, view: View) -> int:
        """Record that all of a view is durable, pending events included; return its version."""
        self.pending, self.view, self._durable, self._behind = (), view, view, False
        return view.version

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

    def _contest(self) -> Contest:
        return Contest(self.id, self.rest, self.ids)

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

    # Catching up with the store.

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

    def load(self) -> Flow[None]:
        """Read the window from the store; pending events stay pending, unless the store has them."""
        with self.traces.call("load", self.store) as span:
            window: LogWindow = yield RunBlocking(lambda: self.store.load_window(self.id))
            span.set_attributes({"foldline.events": len(window.events)})
        there = {event.id for _, event in window.events}
        self.pending = tuple(event for event in self.pending if event.id not in there)
        self._go_on_from(open_view((yield from self.sealing.opened_window(window))))
        self._behind = False

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

    def _go_on_from(self, durable: View) -> None:
        """Continue from this durable view, with the pending events after it."""
        if durable.state.withheld != self.view.state.withheld:  # a summary may quote those
            self.pending = tuple(e for e in self.pending if not isinstance(e, SummaryPrepared))
        self._durable, self.view = durable, commit(durable, *self.pending)

    @property
    def version(self) -> int:
        """The number of durable events."""
        return self.view.version - len(self.pending)

    # Closing.

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

    # Reading.

    def read(self, path: str) -> Flow[Block]:
        """The original block at a path, whether it is visible, hidden or folded; a summary without quotations of what
        is hidden on request."""
        entry = self.view.find(path)
        if entry is not None and entry.path == path:
            return entry.opened or entry.source
        from persistence import block_at

        try:
            found: Block | None = yield RunBlocking(lambda: block_at(self.store, self.id, path))
        except ForgottenError:
            if (found := self._carried(path)) is None:
                raise
        if found is None:
            raise (yield from self.unknown(path))
        if isinstance(found, RangeSummary) and self.view.state.withheld:
            log = without_hidden((yield from self.events()))
            found = summary_in(log, found.id) or found
        return (yield from self.sealing.opened_block(found))

    def _carried(self, label: str) -> Block | None:
        """The block with this version label, if the newest compaction carried it; otherwise None."""
        head = self.view.compaction.head.entries if self.view.compaction else ()
        version = version_in(label) if is_label(label) else 0
        return next((e.source for e in head if version and e.version == version), None)

    def unknown(self, path: str) -> Flow[UnknownPathError]:
        """The error for a path that does not exist; it names similar paths."""
        view, entries = self.view, self.view.entries
        head = view.compaction.head.entries if view.compaction else ()
        first = entries[0].version if entries else self.version + 1
        page: Sequence[Recorded] = yield RunBlocking(
            partial(self._page, max(0, first - 1 - NEAR_KNOWN))
        )
        blocks = (event.block for _, event in page if isinstance(event, BlockAppended))
        folded = [path_of(block) for block in blocks if block.id not in view.state.withheld]
        shown = (entry.path for entry in (*head, *entries) if entry.original is None)
        known = dict.fromkeys([*folded, *shown])
        return UnknownPathError(path, get_close_matches(path, list(known)[-NEAR_KNOWN:], n=3))

    def kept(self) -> Flow[Kept]:
        """The information about which events of the log are still stored."""
        kept: Kept = yield RunBlocking(partial(kept_of, self.store, self.id))
        return kept

    def events(self, after: int = 0) -> Flow[list[Recorded]]:
        """All events of the log that are still stored, oldest first."""
        found: list[Recorded] = []
        oldest = max(after, (yield from self.kept()).forgotten)
        while True:
            start = found[-1][0] if found else oldest
            page: Sequence[Recorded] = yield RunBlocking(partial(self._page, start))
            if not page:
                return found
            found += page

    def view_until(self, last: int, log: Sequence[Recorded], what: str) -> Flow[View]:
        """The view as it was at a version, with decisions by which the same is hidden on request as now; `log` has all
        events that are still stored.

        Raises:
            ForgottenError: the view needs events that were forgotten; `what` names the operation for the message.
        """
        view = yield from self.view_as_it_was(last, log, what)
        until = [recorded for recorded in log if recorded[0] <= last]
        return withheld_as(view, until, withheld_after(log), self.clock())

    def view_as_it_was(self, last: int, log: Sequence[Recorded], what: str) -> Flow[View]:
        """The same, with what was hidden then.

        Raises:
            ForgottenError: as `view_until`.
        """
        kept = yield from self.kept()
        window = window_until(log, last, kept, self.id, what)
        return open_view(
            attrs.evolve(window, events=(yield from self.sealing.opened(window.events)))
        )

    def _page(self, after: int) -> Sequence[Recorded]:
        return self.store.read(self.id, after=after, limit=PAGE)
