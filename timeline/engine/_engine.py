"""The state of one timeline and its flows; it uses no threads, no event loop and no clock of its own.

The engine keeps the view of one log. A render runs the pipeline on this view and answers what it needs (a compaction,
artifacts); its decisions are events, and are committed before the request is handed out. An append makes events of
blocks. Both commit directly after the view, and catch up with the store first if it holds more.

Several timelines may write one log, in one process or in many.  The slower writer waits, longer after each conflict and
never in step with others, and tries again (`Engine.repeated`): a fact is appended unchanged; what depends on the log is
checked again after the other writers' events; a decision is made anew.  This starves no writer: what is retried is
short (a render that lost a conflict need not decide everything anew, see `Engine.settle_behind`), and each conflict
means that another writer succeeded.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar, cast
from weakref import WeakSet
from zlib import crc32

import attrs
import msgspec

import render
from blocks import (
    Answered,
    ArtifactId,
    Block,
    BlockAppended,
    BlockId,
    ClosedError,
    DataError,
    Event,
    EventId,
    ForgottenError,
    LogRewoundError,
    LogWindow,
    MisuseError,
    RangeCompacted,
    RangeExpanded,
    RangeSummary,
    Recorded,
    RequestRendered,
    SummaryPrepared,
    SummaryRequested,
    TimelineId,
    TokensCounted,
    ToolResult,
    Trigger,
    UnknownPathError,
    UsageRecorded,
    VersionConflictError,
    clean_json,
    is_label,
    path_of,
    sealed,
    version_in,
    window_of,
    withheld_after,
)
from persistence import EventStore, Rest
from render import Context, Rendered, View, commit, decide, open_view, total_tokens
from timeline._arguments import TIME, checked, checked_blocks
from timeline._flow_drivers import CallHook, Flow, Pause, blocking
from timeline.engine._artifacts import ArtifactService, Sealing
from timeline.engine._compaction import Compactor
from timeline.engine._following import Signal
from timeline.engine._hiding import summary_in, withheld_as, without_hidden
from timeline.engine._removal import Retention
from timeline.observe._hooks import Edit
from timeline.observe._traces import SafeSpan, Traces, compacted_attributes

if TYPE_CHECKING:
    from render import Decided, FoldRange, Need, Summary
    from timeline.observe._steps import Observer

_P = ParamSpec("_P")
_T = TypeVar("_T")
log = logging.getLogger("foldline")


IdFactory: TypeAlias = Callable[[], str]
"""Makes new ids, in the form of UUIDs."""
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
"""Number of events in which paths similar to an unknown one are looked for."""
NEAR_KNOWN = 1000
"""Number of the newest blocks among whose paths similar ones to an unknown path are looked for."""
PASSES_MAX = 8
"""Times that one render is repeated because its hooks and observers have appended events. Events that they append
during the last pass are not in the request."""
OVERTAKEN_MAX: Final = 2
"""Conflicts in one render after which its decisions are committed even if others have appended since."""
CONFLICTS_MAX: Final = 300
"""Conflicts in a row, after about fifteen seconds of waiting, before a commit gives up."""
REST_SECONDS: Final = 0.001
"""Longest wait in seconds after the first conflict, about the duration of a commit; it doubles with each conflict."""
REST_SECONDS_MAX: Final = 0.1
_STEP_FIELDS: Final = (
    *("tokens_before", "tokens_after", "tokens_freed"),
    *("blocks", "first", "last", "detail"),
)
"""The fields of a step that become attributes in a trace."""


def rest_after(name: str, conflicts: int) -> float:
    """Seconds that a writer waits after this many conflicts in a row. The wait grows with each conflict, and depends
    on the writer's name, so that different writers do not retry at the same time."""
    longest = min(REST_SECONDS * 2.0 ** min(conflicts, 10), REST_SECONDS_MAX)
    return longest * crc32(f"{name} {conflicts}".encode()) / 2**32


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
    compactor: Compactor
    retention: Retention | None = None
    """What to do with events that the window no longer needs; None: they are kept."""
    traces: Traces = attrs.field(factory=Traces)
    observers: tuple[Observer, ...] = ()
    """Receive the steps of each render."""
    rest: Callable[[str, int], float] = rest_after
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

    def __attrs_post_init__(self) -> None:  # also of a fork or a sibling
        self.traces = attrs.evolve(self.traces, timeline=self.id)
        self.compactor = attrs.evolve(self.compactor, traces=self.traces)

    # Rendering.

    def render(self, context: Context, *, force: bool = False) -> Flow[Rendered]:
        """Render, and report the steps to observers and the tracer."""
        if not self.observers and self.traces.tracer is None:
            return (yield from self._rendered(context, None, force=force))
        with self.traces.span("foldline.render", self.traces.about) as span:
            rendered = yield from self._rendered(context, span, force=force)
            totals = {
                "foldline.tokens": rendered.tokens,
                "foldline.limit": rendered.account.limit,
                "foldline.messages": len(rendered.messages),
                "foldline.cache_points": len(rendered.cache_points),
                "foldline.fits": rendered.fits,
            }
            span.set_attributes(totals | compacted_attributes(self.view))
        return rendered

    def _rendered(self, context: Context, span: SafeSpan | None, *, force: bool) -> Flow[Rendered]:
        """Decide, commit the decisions, and return the request.

        If hooks or observers append events meanwhile, everything is decided again, so that the request contains them.
        """
        self.check_open()
        attempt, forced, passes = Attempt(engine=self), force, 0
        decisions: tuple[Event, ...] = ()
        while True:
            if passes:
                yield from self.catch_up()
            passes += 1
            made = yield from self.repeated(self._settled, context, attempt, force=forced)
            version, rendered, forced = self.view.version, made.rendered, False
            decisions += rendered.decisions
            if rendered.decisions:
                yield from self.compactor.report(
                    rendered.decisions, made.tokens, rendered.tokens, attempt
                )
            if span is not None and not attempt.is_nested:
                with attempt.away():
                    yield from self._report(span, made, context, is_repeated=passes > 1)
            if self.view.version == version or passes == PASSES_MAX:
                break
        yield from self.hand_out(render.handed_out(rendered, context))
        if len(decisions) > len(rendered.decisions):
            return attrs.evolve(rendered, decisions=decisions)
        return rendered

    def _settled(self, context: Context, attempt: Attempt, *, force: bool) -> Flow[Made]:
        """Decide and render, and commit the decisions."""
        before, version = self.view, self.version
        trigger: Trigger | None = "forced" if force and attempt.is_first(before) else None
        stages = render.render(before, context, trigger)
        decided = yield from self._driven(stages, context, attempt)
        rendered = decided.rendered
        made = Made(before=before, tokens=decided.tokens, rendered=rendered)
        try:
            yield from self.settle(decided.view)
        except VersionConflictError:
            if attempt.is_overtaken() and (
                yield from self.settle_behind(decided.view.decisions, version)
            ):
                attempt.decisions += decided.view.decisions
                attempt.made = attempt.made or made
            raise
        decisions = (*attempt.decisions, *decided.view.decisions)
        attempt.decisions.clear()
        # Pending events get their version only at the next commit, so they are not counted here.
        if (rendered.shown, rendered.decisions) != (self.version, decisions):
            rendered = attrs.evolve(rendered, shown=self.version, decisions=decisions)
        return attrs.evolve(attempt.made or made, rendered=rendered)

    def _driven(
        self,
        stages: Generator[Need, Any, Decided],
        context: Context,
        attempt: Attempt,
    ) -> Flow[Decided]:
        """The result of the pipeline; this answers its requests for compactions and artifacts."""
        answer: object = None
        while True:
            try:
                need = stages.send(answer)
            except StopIteration as stop:
                return cast("Decided", stop.value)
            match need:
                case render.Compact(view, trigger):
                    answer = yield from self._compacted(view, context, attempt, trigger)
                case render.BringBack(view, named):
                    answer = yield from self.artifact_service.bring_back(view, context, named)

    def _compacted(
        self, view: View, context: Context, attempt: Attempt, trigger: Trigger
    ) -> Flow[View]:
        with self.traces.span("foldline.compact", {"foldline.trigger": trigger}) as span:
            after = yield from self.compactor.compact(view, context, attempt, trigger)
            if self.traces.are_on:
                before, now = total_tokens(view, context), total_tokens(after, context)
                sizes = {"foldline.tokens_before": before, "foldline.tokens_after": now}
                span.set_attributes(sizes)
        return after

    def _report(
        self, span: SafeSpan, made: Made, context: Context, *, is_repeated: bool
    ) -> Flow[None]:
        """Report the steps of a render to observers and the tracer, once its decisions are committed. Its result is
        reported once, however often it is repeated."""
        from timeline.observe._steps import steps_of  # here, because only an observer needs it

        for step in steps_of(self.id, made.before, made.rendered, context):
            if is_repeated and step.kind in {"rehydrated", "rendered"}:
                continue
            fields = {f"foldline.{name}": getattr(step, name) for name in _STEP_FIELDS}
            span.add_event(f"foldline.{step.kind}", fields)
            for observer in self.observers:
                yield CallHook(observer, step)

    def hand_out(self, event: RequestRendered) -> Flow[None]:
        """Commit the fact that a request is handed out, so that a process that is killed now is remembered to have
        sent it. If the newest event says the same and is not old, nothing is recorded, here or in the log."""
        [(_, newest)] = self.view.events_since_cut[-1:] or [(0, None)]
        if isinstance(newest, RequestRendered):
            same = msgspec.structs.replace(event, id=newest.id, at=newest.at, shown=newest.shown)
            if same == newest and 0 <= event.at - newest.at < TOUCH_RATIO * event.ttl:
                return
        yield from self.commit([event])

    # Appending.

    def append(self, blocks: Sequence[Block], fit: Fit) -> Flow[int]:
        """Append blocks in one commit, with the content of confidential results in artifacts; return the new version."""
        return (yield from self.append_sealed(self.appended(blocks), fit))

    def append_sealed(self, events: Sequence[Event], fit: Fit | None = None) -> Flow[int]:
        """Append events, with the content of confidential results in artifacts; return the new version. `fit` is as for
        `commit`; None: they must come directly after the view.

        Raises:
            VersionConflictError: another writer was faster; see `repeated`.
        """
        write = self.append_here if fit is None else partial(self.commit, fit=fit)
        if not any(
            isinstance(e, BlockAppended) and isinstance(e.block, ToolResult) for e in events
        ):
            return (yield from write(events))
        sealed = yield from self.sealing.sealed(events, self.view)
        try:
            return (yield from write(sealed))
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
        """The events that append these blocks, followed by further facts; `answers` is the request that they answer."""
        if not blocks and not facts:
            raise MisuseError("append() needs at least one block")
        now = checked(self.clock() if at is None else at, TIME, "append()", "at")
        events = (
            BlockAppended(
                id=EventId(self.ids()), at=now, block=block, answers=None if index else answers
            )
            for index, block in enumerate(checked_blocks(blocks))
        )
        return [*events, *map(self._stamp, facts)]

    # Committing.

    def commit(self, events: Sequence[Event], fit: Fit = as_they_are) -> Flow[int]:
        """Append events, even if other writers append meanwhile; return the new version.

        For facts that are true whatever happened before, or that `fit` adapts; not for decisions.
        """
        self.check_open()
        stamped = tuple(self._stamp(event) for event in events)
        return (yield from self.repeated(self._fitted, stamped, fit))

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

    def repeated(
        self, decide: Callable[_P, Flow[_T]], *args: _P.args, **named: _P.kwargs
    ) -> Flow[_T]:
        """Run a flow that decides and commits; after a version conflict, run it again on an up-to-date view.

        Raises:
            VersionConflictError: other writers were faster at `CONFLICTS_MAX` tries, or waiting cannot help.
        """
        name, conflicts = "", 0
        while True:
            try:
                return (yield from decide(*args, **named))
            except VersionConflictError as conflict:
                # An inner flow has given up, or the store contradicts itself.
                is_given_up = isinstance(conflict.__cause__, VersionConflictError)
                if is_given_up or conflict.expected == conflict.found:
                    raise
                conflicts += 1
                if conflicts >= CONFLICTS_MAX:
                    raise self._hopeless(conflict) from conflict
            name = name or self.ids()
            yield Pause(self.rest(name, conflicts))
            yield from self.catch_up()

    def _hopeless(self, conflict: VersionConflictError) -> VersionConflictError:
        expected, actual = conflict.expected, conflict.found
        advice = (
            f"timeline {self.id!r}: somebody else appended first {CONFLICTS_MAX} times in a row"
            f" (expected version {expected}, found {actual}); nothing of this call is written. Repeat it when"
            " fewer append at once, or give each writer a timeline of its own (fork)"
        )
        return VersionConflictError(expected=expected, found=actual, advice=advice)

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
            self.view = view
            return self.version
        try:
            yield from self._write((*self.pending, *decided), self.version)
        except VersionConflictError:
            self._hold(decided)
            raise
        version = self._is_durable(view.settled())
        if self.retention:
            yield from self.retention.after(self, decided)
        return version

    def settle_behind(self, decided: Sequence[Event], version: int) -> Flow[bool]:
        """Commit decisions made at `version`, if others have only appended since; return whether this was done.

        Such decisions concern events before that version, so later appends do not affect them. They are not committed
        if others have hidden, restored or compacted something, or undone a compaction.
        """
        stamped = [self._stamp(event) for event in decided]
        yield from self.catch_up()
        is_done = yield from self.repeated(self._settled_behind, stamped, version)
        if is_done and self.retention:
            yield from self.retention.after(self, stamped)
        return is_done

    def _settled_behind(self, decided: Sequence[Event], version: int) -> Flow[bool]:
        if self.version - version > NEWS_MAX:
            return False
        news = yield from self.read_log(version, self.version)
        if not all(isinstance(event, _PLAIN) for _, event in news):
            return False
        yield from self.append_here(decided)
        return True

    def flush(self) -> Flow[int]:
        """Commit the pending events."""
        return (yield from self.commit([])) if self.pending else self.version

    def _write(self, events: Sequence[Event], version: int) -> Flow[None]:
        if not events:
            return
        was_behind, self._behind = self._behind, True  # reset when the view has the events
        try:
            sealed_events = [sealed(event) for event in events]
            append = partial(self.store.append, self.id, sealed_events, expected_version=version)
            yield from self._stored("append", append, len(events))
            if self.traces.meter is not None:
                self.traces.committed(events)
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

    def _stored(self, name: str, call: Callable[[], _T], events: int | None = None) -> Flow[_T]:
        """The answer of the store to a call, in a span if there is a tracer. `events` is the number of events that it
        writes; None: it reads some."""
        if self.traces.tracer is None:
            return (yield from blocking(call))
        with self.traces.call(name, self.store, events or 0) as span:
            answer = yield from blocking(call)
            if events is None:
                page: Any = answer
                read = page.events if isinstance(page, LogWindow) else page
                span.set_attributes({"foldline.events": len(read)})
        return answer

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
        """Load events that other writers or an interrupted commit have appended.

        Raises:
            LogRewoundError: the store lacks events of the view.
        """
        head, last = yield from blocking(self.store.tip, self.id)
        if head <= self.version:
            self._check_seen(head, last)
        expiry = self.sealing.next_expiry
        is_old = self._behind or (expiry is not None and expiry <= self.clock())
        if is_old or head - self.version > NEWS_MAX:
            if head > self.version:
                with suppress(ForgottenError):  # what was forgotten did not go back
                    yield from self._since_seen(self.version, head)
            yield from self.load()
        elif head != self.version:
            yield from self._fold_news(head)

    def _check_seen(self, head: int, there: str) -> None:
        """Check that the log still has the newest event of the view; the log ends at version `head`, and `there` is
        the id of its event at the view's version, or of its last one."""
        own = _newest_id(self._durable) if self.version else ""
        is_there = not own or there == own or there == clean_json(own)
        if head < self.version or not is_there:
            raise LogRewoundError(self.id, seen=self.version, found=head)

    def _since_seen(self, last: int, head: int) -> Flow[list[Recorded]]:
        """The events after the view, up to version `last` of a log that ends at `head`, read together with the newest
        event of the view, which must still be there."""
        events = yield from self.read_log(max(self.version - 1, 0), last)
        if not self.version:
            return events
        self._check_seen(head, events[0][1].id if events else "")
        return events[1:]

    def load(self) -> Flow[None]:
        """Read the window from the store; pending events stay pending, unless the store has them."""
        window = yield from self._stored("load", partial(self.store.load_window, self.id))
        there = {event.id for _, event in window.events}
        self.pending = tuple(event for event in self.pending if event.id not in there)
        self._go_on_from(open_view((yield from self.sealing.opened_window(window))))
        self._behind = False

    def _fold_news(self, head: int) -> Flow[None]:
        """Fold new events of other writers without loading the window again."""
        try:
            news = yield from self._since_seen(head, head)
        except ForgottenError:  # a compaction of another writer has moved the window past them
            yield from self.load()
            return
        if any(isinstance(event, RangeExpanded) for _, event in news):
            yield from self.load()  # it shows blocks that are not in the view
        else:
            opened = yield from self.sealing.opened(news)
            self._go_on_from(commit(self._durable, *(event for _, event in opened)))

    def read_log(self, version: int, head: int) -> Flow[list[Recorded]]:
        """The events after a version, up to version `head`; fewer if the store has fewer."""
        news: list[Recorded] = []
        while version + len(news) < head:  # the store limits the size of a page
            after, limit = version + len(news), head - version - len(news)
            read = partial(self.store.read, self.id, after=after, limit=limit)
            page = yield from self._stored("read", read)
            if not page:
                break
            news += page
        return news

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
            self.artifact_service.close()

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError(f"timeline {self.id!r} is closed; open it again")

    # Reading.

    def read(self, path: str) -> Flow[Block]:
        """The original block at a path, whether it is visible, hidden or folded; a summary without quotations of what
        is hidden on request."""
        entry = self.view.find(path)
        if entry is not None and entry.path == path:
            return entry.opened or entry.source
        from persistence import block_at

        try:
            block = yield from blocking(block_at, self.store, self.id, path)
        except ForgottenError:
            if (block := self._carried(path)) is None:
                raise
        if block is None:
            raise (yield from self.unknown(path))
        if isinstance(block, RangeSummary) and self.view.state.withheld:
            log = without_hidden((yield from self.events()))
            block = summary_in(log, block.id) or block
        return (yield from self.sealing.opened_block(block))

    def _carried(self, label: str) -> Block | None:
        """The block with this version label, if the newest compaction carried it; otherwise None."""
        head = self.view.compaction.head.entries if self.view.compaction else ()
        version = version_in(label) if is_label(label) else 0
        return next((e.source for e in head if version and e.version == version), None)

    def unknown(self, path: str) -> Flow[UnknownPathError]:
        """The error for a path that does not exist; it names similar paths."""
        from difflib import get_close_matches  # here, because only an error needs it

        view, entries = self.view, self.view.entries
        head = view.compaction.head.entries if view.compaction else ()
        first = entries[0].version if entries else self.version + 1
        left, _ = yield from blocking(self.store.at_hand, self.id)
        after = max(left.forgotten, first - 1 - NEAR_KNOWN)
        page = yield from blocking(self.store.read, self.id, after=after, limit=PAGE)
        blocks = (event.block for _, event in page if isinstance(event, BlockAppended))
        folded = [path_of(block) for block in blocks if block.id not in view.state.withheld]
        shown = (entry.path for entry in (*head, *entries) if entry.original is None)
        paths = dict.fromkeys([*folded, *shown])
        return UnknownPathError(path, get_close_matches(path, list(paths)[-NEAR_KNOWN:], n=3))

    def rest_of_log(self) -> Flow[Rest]:
        """The information about which events of the log are still stored."""
        return (yield from blocking(self.store.kept, self.id))

    def events(self, after: int = 0) -> Flow[list[Recorded]]:
        """All events of the log that are still stored, oldest first."""
        return (yield from blocking(lambda: [*self.store.log(self.id, after=after)]))

    def events_at_hand(self) -> Flow[list[Recorded]]:
        """Those after the newest one that cannot be read now."""
        left, _ = yield from blocking(self.store.at_hand, self.id)
        return (yield from self.events(left.forgotten))

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
        window = window_of([recorded for recorded in log if recorded[0] <= last])
        compaction = window.compaction[1] if window.compaction else None
        first = compaction.cut if isinstance(compaction, RangeCompacted) else 1
        (yield from self.rest_of_log()).refuse_forgotten(self.id, first, what)
        if log and first < log[0][0]:  # in an archive that cannot be read, which is an error
            yield from blocking(self.store.read, self.id, after=first - 1, limit=1)
        return open_view(
            attrs.evolve(window, events=(yield from self.sealing.opened(window.events)))
        )


def _newest_id(view: View) -> str:
    """The id of the newest event of a view; empty: a decision made here, which got its id when it was written."""
    compaction: list[Recorded] = [(each.version, each.event) for each in (view.compaction,) if each]
    recorded = (*compaction, *view.events_since_cut[-1:])
    return next((str(e.id) for version, e in recorded if version == view.version), "")


# One render.


@attrs.frozen(kw_only=True)
class Made:
    """A rendered request whose decisions are committed."""

    before: View
    """The view before the decisions."""
    tokens: int
    """Tokens of the request before a compaction."""
    rendered: Rendered


_Answers: TypeAlias = dict[str, tuple[int, dict[BlockId, ArtifactId], "Summary"]]


@attrs.define(kw_only=True)
class Attempt:
    """The state of one render, or of another operation that may call hooks and summarisers."""

    engine: Engine
    decisions: list[Event] = attrs.field(factory=list[Event])
    """Decisions of this render that are already committed."""
    made: Made | None = None
    """The first request whose decisions were committed although others had appended since."""
    _conflicts: int = attrs.field(default=0, init=False)
    _compacted: int = attrs.field(init=False)
    """Version of the newest compaction when the attempt began."""
    is_told: bool = False
    """Whether the hooks before a compaction have been called."""
    vetoed: bool = False
    is_counted: bool = False
    """Whether the next call of the summariser is counted already: a decision was made anew before it was called."""
    edits: list[Edit] = attrs.field(factory=list[Edit])
    _summaries: _Answers = attrs.field(factory=_Answers, init=False)
    """By source hash: the cut, the blocks that were hidden on request at that time, and the summary."""
    _latest: View | None = attrs.field(default=None, init=False, repr=False)
    """The view after the last commit of `keep`."""
    is_nested: bool = attrs.field(init=False)
    """Whether another flow of this timeline is waiting for foreign code, which may have started this attempt.
    Foreign code is then not called again, because the calls could recurse without end."""

    def __attrs_post_init__(self) -> None:
        self._compacted, self.is_nested = self.engine.view.compacted, self.engine.away > 0

    @contextmanager
    def away(self) -> Generator[None]:
        """Mark the engine as waiting for foreign code inside this block."""
        self.engine.away += 1
        try:
            yield
        finally:
            self.engine.away -= 1

    def is_first(self, view: View) -> bool:
        """Whether nothing was compacted since the attempt began, by it or by others."""
        return self.made is None and view.compacted == self._compacted

    def is_overtaken(self) -> bool:
        """Count a conflict; return whether there were so many that deciding again would probably fail, too."""
        self._conflicts += 1
        return self._conflicts >= OVERTAKEN_MAX

    def keep(self, view: View) -> Flow[View]:
        """Commit the decisions of a view so far; return the view after the commit."""
        yield from self.engine.settle(view)
        self.decisions += view.decisions
        self._latest = self.engine.view
        return self._latest

    def count_next(self, view: View, now: float) -> Flow[View]:
        """Commit that the summariser is called next, once even if everything is decided anew before that; return the
        view after the commit."""
        is_counted, self.is_counted = self.is_counted, True
        view = view if is_counted else (yield from self.count(view, 1, now))
        self.is_counted = False
        return view

    def count(self, view: View, calls: int, now: float) -> Flow[View]:
        """Commit so many calls for a summary, with the decisions of a view so far; return the view after the commit."""
        if not calls:
            return view
        event = SummaryRequested(id=EventId(""), at=now, calls=calls)
        return (yield from self.keep(decide(view, event)))

    def current(self, view: View) -> View:
        """The view to continue from after an edit has failed: the one after the last `keep`, if there was one.

        Raises:
            VersionConflictError: something else was appended, too.
        """
        if self._latest is not None and self._latest is self.engine.view:
            return self._latest
        self.engine.check_current(view)
        return view

    def hear(self, hook: object, answer: object) -> None:
        """Record the answer of a hook before a compaction."""
        match answer:
            case False:
                self.vetoed = True
            case Edit():
                self.edits.append(answer)
            case None | True:
                pass
            case _:
                log.warning(
                    "hook %r returned %r, which is not a valid answer", hook, type(answer).__name__
                )

    def summary_of(self, fold: FoldRange, view: View) -> Summary | None:
        """The summariser's answer for this range; None: there is none, or the hidden blocks have changed since."""
        _, withheld, summary = self._summaries.get(fold.source_hash, (0, None, None))
        return summary if withheld == view.state.withheld else None

    def answered(self, fold: FoldRange, view: View, summary: Summary) -> None:
        """Record a summariser's answer."""
        self._summaries[fold.source_hash] = (fold.cut, view.state.withheld, summary)

    @property
    def cuts(self) -> tuple[int, ...]:
        """The cuts of the ranges that were summarised."""
        return tuple(cut for cut, _, _ in self._summaries.values())


# Ids.


def time_ordered() -> str:
    """A UUID whose first 48 bits are milliseconds since the epoch (RFC 9562, version 7)."""
    when, random = f"{time.time_ns() // 1_000_000:012x}", os.urandom(10).hex()
    variant = "89ab"[int(random[3], 16) % 4]
    return f"{when[:8]}-{when[8:]}-7{random[:3]}-{variant}{random[4:7]}-{random[7:19]}"


def counted() -> IdFactory:
    """Ids 1, 2, 3, ... in the form of UUIDs: the same on every machine."""
    from uuid import UUID  # here, because the ids of a real timeline do not need it

    numbers = count(1)
    return lambda: str(UUID(int=next(numbers)))
