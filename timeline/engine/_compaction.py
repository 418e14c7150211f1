"""Compaction as a flow: call the hooks, call the summariser, and handle every way in which it may fail.

A summary that a model was already paid for is not asked for again.  This timeline's summaries are in its log, those
that were prepared ahead of time, too.  Those of other timelines of the same store, for equal content, are found
through the artifact store, which separates tenants and records every search: an artifact whose content is a key
(`shared_key`) names the log and the version of the summary.  It does not contain the summary, which is removed
together with its log.

`Preparation` has a summary written while the agent works, so that the compaction itself need not wait for a model:
above a soft threshold (`Policy.prepare_ratio`), a draft is made and summarised in the background; the answer becomes an
event of its own (`SummaryPrepared`).  When the compaction is due, the answer is used if its range is unchanged.
Appends in the meantime are allowed, and a restart finds the summary that was paid for.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import msgspec

import render
from blocks import (
    AccessRefusedError,
    ArtifactId,
    BlockId,
    BlocksHidden,
    Event,
    EventId,
    Provenance,
    RangeCompacted,
    Recorded,
    RungError,
    StructuredSummary,
    SummaryPrepared,
    SummaryRequested,
    SystemMessage,
    ToolResult,
    Trigger,
    TurnId,
    artifact_id,
    label_of,
    leaves,
    version_in,
)
from render import (
    LADDER,
    Context,
    View,
    compaction_due,
    decide,
    open_view,
    total_tokens,
)
from timeline._flow_drivers import Await, Begin, CallHook, Flow, blocking
from timeline._models import model_named, traced_provider
from timeline.engine._artifacts import ArtifactService
from timeline.engine._hiding import Redaction
from timeline.observe._hooks import Compacted, Compacting, Edit, Hooks
from timeline.observe._traces import Traces, spent_attributes
from timeline.summarizers._summarizer import (
    ExtractiveSummarizer,
    Summarizer,
    SummarizerWait,
    SummaryFailedError,
    SummaryRequest,
    checked_summary,
    is_free,
    model_asked,
)

if TYPE_CHECKING:
    from asyncio import Task
    from concurrent.futures import Future

    from render import CompactionDraft, CompactionTrial, ExternalFacts, Summary
    from timeline.engine._engine import Attempt, Engine

log = logging.getLogger("foldline")


KEY_TYPE: Final = "application/vnd.foldline.summary-key"
"""The MIME type is not text, so that a key is never shown to a model."""


@attrs.frozen(kw_only=True)
class Compactor:
    """Drafts and carries out compactions with `render`; it waits only for the artifact store, the summariser and the
    hooks."""

    summarizer: Summarizer = attrs.field(factory=ExtractiveSummarizer)
    artifact_service: ArtifactService
    hooks: Hooks = attrs.field(factory=Hooks)
    patience: SummarizerWait = attrs.field(factory=SummarizerWait)
    traces: Traces = attrs.field(factory=Traces)

    # The compaction.

    def compact(
        self, view: View, context: Context, attempt: Attempt, trigger: Trigger
    ) -> Flow[View]:
        """The view after a compaction that is due; if it is not carried out, the view records why.

        Raises:
            VersionConflictError: a hook has appended an event, so the draft is out of date.
        """
        is_under_way = attempt.is_nested and trigger != "forced"
        if is_under_way and total_tokens(view, context) <= context.limit:
            return view
        facts = yield from self.facts(view, context, trigger, attempt.cuts)
        trial = render.draft_compaction(view, context, trigger, facts)
        if trial and is_worth_it(trial, context) and not (yield from self.stored(view, trial)):
            facts = attrs.evolve(facts, disabled_rungs=frozenset({"externalize"}))
            trial = render.draft_compaction(view, context, trigger, facts)
        if trial is None:
            over = total_tokens(view, context) > context.limit
            return render.skip(view, "cannot_fit" if over else "no_cut", context)
        if not is_worth_it(trial, context):  # it will be skipped, so no hook or model is called
            return render.apply_compaction(view, trial, None, context)
        yield from self._tell(trial.draft, attempt)
        attempt.engine.check_current(view)
        if attempt.vetoed:
            return render.skip(view, "vetoed", context)
        return (yield from self.carry_out(view, trial, context, attempt))

    def carry_out(
        self, view: View, trial: CompactionTrial, context: Context, attempt: Attempt
    ) -> Flow[View]:
        """The view after a draft is carried out with the hooks' edits; its artifacts must be stored already. An edit
        that cannot be applied is logged and ignored."""
        for edit in attempt.edits:
            try:
                return (yield from self._edited(view, trial, edit, context, attempt))
            except NoSuchEditError as reason:
                log.warning("an edit of a compaction is ignored: %s", reason)
                view = attempt.current(view)
        view, summary = yield from self._written(view, trial, attempt)
        return render.apply_compaction(view, trial, summary, context)

    def _edited(
        self, view: View, trial: CompactionTrial, edit: Edit, context: Context, attempt: Attempt
    ) -> Flow[View]:
        """The view after a draft is carried out with a hook's edit.

        Raises:
            NoSuchEditError: the draft cannot be changed in this way, the request would not fit, or the compaction would
                free too little.
        """
        trial, summary = edited_draft(view, trial, edit, context)
        if summary is None:
            view, summary = yield from self._written(view, trial, attempt)
        if summary is not None:
            if callable(edit.summary):
                with attempt.away():
                    answer: object = yield CallHook(edit.summary, summary.summary)
                summary = attrs.evolve(summary, summary=_edited_summary(answer))
            attempt.engine.check_current(view)
        after = render.apply_compaction(view, trial, summary, context)
        tokens = total_tokens(after, context)
        if after.compaction is view.compaction or tokens > context.limit:
            raise NoSuchEditError(f"it leaves {tokens} tokens of {trial.draft.tokens_before}")
        return after

    def _written(
        self, view: View, trial: CompactionTrial, attempt: Attempt
    ) -> Flow[tuple[View, Summary | None]]:
        """The summary that a draft needs (None: it folds nothing), and the view after a model's answer is committed."""
        if trial.fitted is None:
            return view, None
        fold = trial.fitted.range
        request = SummaryRequest(range=fold, view=view, context=trial.fitted.context)
        if summary := self.prepared(request) or attempt.summary_of(fold, view):
            return view, summary
        summary = yield from self.paid_elsewhere(request, attempt.engine)
        if summary is None:
            view, summary = yield from self.summary(request, attempt, view)
        attempt.answered(fold, view, summary)
        if event := self.worth_keeping(request, summary):
            for each in with_request(event):
                view = decide(view, each)
            view = yield from attempt.keep(view)
            yield from self.share(request, event, attempt.engine)
        return view, summary

    # What it needs to know, and to store.

    def facts(
        self, view: View, context: Context, trigger: Trigger, cuts: tuple[int, ...] = ()
    ) -> Flow[ExternalFacts]:
        """The facts that a draft needs from outside the log: cuts of prepared summaries, and the current state of
        sources."""
        cuts = (*cuts, *self._prepared_cuts(view, context, trigger))
        facts = render.ExternalFacts(cuts=cuts, on_refused=_refused)
        if self.artifact_service.probe is None:
            return facts
        current = yield from self.artifact_service.current(view, context)
        return attrs.evolve(facts, current=current)

    def stored(self, view: View, trial: CompactionTrial) -> Flow[bool]:
        """Store what a draft externalizes; return whether all of it is in the artifact store."""
        if "externalize" not in trial.draft.rungs:
            return True
        return (yield from self.artifact_service.move(view, trial.draft))

    # Hooks.

    def _tell(self, draft: CompactionDraft, attempt: Attempt) -> Flow[None]:
        """Call the hooks before a compaction, once per attempt, and record their answers."""
        if attempt.is_told or attempt.is_nested:
            return
        attempt.is_told = True
        compacting = Compacting(
            before_tokens=draft.tokens_before, trigger=draft.trigger, draft=draft
        )
        for hook in self.hooks.on_before_compaction:
            with attempt.away():
                answer: object = yield CallHook(hook, compacting)
            attempt.hear(hook, answer)

    def report(
        self, decided: Sequence[Event], before: int, after: int, attempt: Attempt
    ) -> Flow[None]:
        """Call the hooks after a compaction, if one was committed; `before` and `after` are the tokens of the
        request."""
        folds = [event for event in decided if isinstance(event, RangeCompacted)]
        rungs = {e.reason for e in decided if isinstance(e, BlocksHidden)} & LADDER
        if attempt.is_nested or not (folds or rungs):
            return
        done = Compacted(
            before_tokens=before,
            after_tokens=after,
            compacted_tokens=before - after,
            trigger=folds[-1].trigger if folds else "proactive",
        )
        for hook in self.hooks.on_after_compaction:
            with attempt.away():
                yield CallHook(hook, done)

    # Summaries.

    def summary(
        self, request: SummaryRequest, attempt: Attempt, view: View
    ) -> Flow[tuple[View, Summary]]:
        """The summary, and the view after its calls are counted, each before anything can go wrong with it. A failure of
        the summariser gives a degraded summary, unless `Policy.on_failure` is "raise"."""
        fold, policy = request.range, request.context.policy
        if attempt.is_nested:
            return view, _degraded(render.extractive(fold))
        if self.is_spent(view, request.context):
            log.warning(
                "the timeline has used up its calls for summaries; from now on they are extractive"
            )
            return view, _degraded(render.extractive(fold))
        if self.is_counted:
            view = yield from attempt.count_next(view, request.context.now)
        try:
            with attempt.away():
                answer = yield from self.call_summarizer(request, view)
        except Exception as error:  # a summariser is foreign code and may raise anything
            spent = self.failed_call_cost(request, error)
            if policy.on_failure == "raise":
                yield from attempt.count(view, further_calls(spent), request.context.now)
                raise
            log.warning("summariser failed (%s); %s instead", error, policy.on_failure)
            stand_in = render.truncated if policy.on_failure == "truncate" else render.extractive
            answer = _degraded(stand_in(fold), spent)
        attempt.answered(fold, view, answer)
        further = further_calls(answer.provenance)
        return (yield from attempt.count(view, further, request.context.now)), answer

    def call_summarizer(self, request: SummaryRequest, view: View) -> Flow[Summary]:
        """The summariser's answer, without confidential text; `view` counts its first call. Errors of the summariser
        come through."""
        model = self._model(request.context)
        if not self.is_free:
            left = request.context.policy.summaries_max - view.state.summaries
            request = attrs.evolve(request, calls_max=left + 1)
        provider = traced_provider(model_named(model)) if model else ""
        with self.traces.chat(model, provider) as span:
            try:
                summary: Summary = yield self.patience.asking(self.summarizer, request)
            except SummaryFailedError as error:
                self.traces.summarized(error.provenance, provider)
                raise
            span.set_attributes(spent_attributes(summary.provenance))
            self.traces.summarized(summary.provenance, provider)
        return attrs.evolve(summary, summary=_without_secrets(summary.summary, request.view))

    def failed_call_cost(self, request: SummaryRequest, error: Exception) -> Provenance | None:
        """The cost of calls that gave no summary, as the error says or as far as the model is known; None: neither says
        which model was called, if any."""
        spent: object = getattr(error, "provenance", None)
        if isinstance(spent, Provenance):
            return spent
        model = self._model(request.context)
        return Provenance(source_hash=request.range.source_hash, model=model) if model else None

    @property
    def is_free(self) -> bool:
        """Whether the summariser calls no model."""
        return is_free(self.summarizer)

    @property
    def is_counted(self) -> bool:
        """Whether a call of the summariser counts: it is not free, and will really be called."""
        return not self.is_free and not self.patience.hangs(self.summarizer)

    def is_spent(self, view: View, context: Context) -> bool:
        """Whether the timeline has used up its calls for summaries (`Policy.summaries_max`)."""
        return not self.is_free and view.state.summaries >= context.policy.summaries_max

    def _model(self, context: Context) -> str:
        return model_asked(self.summarizer, context.model.name)

    # Summaries that this timeline has paid for.

    def worth_keeping(self, request: SummaryRequest, summary: Summary) -> SummaryPrepared | None:
        """The event that keeps a model's answer; None: no model was called, or the summary is degraded."""
        model = self._model(request.context)
        if not model or summary.degraded or summary.provenance is None:
            return None
        return SummaryPrepared(
            id=EventId(""),
            at=request.context.now,
            key=render.summary_key(request.range, request.context, model),
            cut=request.range.cut,
            summary=summary.summary,
            provenance=summary.provenance,
        )

    def prepared(self, request: SummaryRequest) -> Summary | None:
        """The summary in the log for exactly this range, model and context; None: there is none."""
        model = self._model(request.context)
        if not model:
            return None
        key = render.summary_key(request.range, request.context, model)
        for event in reversed(request.view.prepared):
            if event.key == key:
                return render.Summary(summary=event.summary, provenance=event.provenance)
        return None

    def _prepared_cuts(self, view: View, context: Context, trigger: Trigger) -> tuple[int, ...]:
        """The cuts of the ranges whose summaries are already in the log, newest first."""
        cuts: list[int] = []
        for event in reversed(view.prepared):
            fold = render.range_before(view, context, trigger, event.cut)
            if fold and self.prepared(SummaryRequest(range=fold, view=view, context=context)):
                cuts.append(event.cut)
        return tuple(cuts)

    def to_prepare(self, view: View, context: Context) -> SummaryRequest | None:
        """The request for a summary ahead of time, once the prompt exceeds `prepare_ratio`; None: nothing to
        prepare."""
        policy = context.policy
        if not self._model(context) or self.is_spent(view, context):
            return None
        if total_tokens(view, context) <= policy.prepare_ratio * context.capacity:
            return None
        oldest = view.groups[0].first if view.groups else 0
        if any(event.cut > oldest for event in view.prepared):
            return None
        facts = render.ExternalFacts(on_refused=_refused)
        trial = render.draft_compaction(view, context, "proactive", facts)
        if trial is None or trial.fitted is None:
            return None
        return SummaryRequest(range=trial.fitted.range, view=view, context=trial.fitted.context)

    # Summaries that another timeline has paid for.

    def paid_elsewhere(self, request: SummaryRequest, engine: Engine) -> Flow[Summary | None]:
        """The summary that another timeline has paid for, for equal content and the same requester; None: there is
        none."""
        key = self._shared_key(request)
        if not key:
            return None
        event = yield from blocking(self._shared_event, key, engine)
        if event is None:
            return None
        source, paid = request.range.source_hash, event.provenance
        reused = Provenance(source_hash=source, model=paid.model, prompt=paid.prompt, reused=True)
        provenance = msgspec.structs.replace(reused, stop_reason=paid.stop_reason)
        return render.Summary(summary=event.summary, provenance=provenance)

    def share(
        self, request: SummaryRequest, prepared: SummaryPrepared, engine: Engine
    ) -> Flow[None]:
        """Make a summary that is now in the log available to other timelines."""
        key = self._shared_key(request)
        for version, event in reversed(engine.view.events_since_cut):
            if key and isinstance(event, SummaryPrepared) and event.key == prepared.key:
                yield from blocking(self._enter, key, version, event, engine)
                return

    def _shared_key(self, request: SummaryRequest) -> str:
        service, model = self.artifact_service, self._model(request.context)
        if not model or service.opener is None:
            return ""
        return render.shared_key(
            request.range, request.view, request.context, model, service.reading_as
        )

    def _shared_event(self, key: str, engine: Engine) -> SummaryPrepared | None:
        service = self.artifact_service
        try:
            if (store := service.store) is None:
                return None
            about = store.describe(artifact_id(key.encode()), service.reader)
            version = version_in(about.path)
            page: Sequence[Recorded] = engine.store.read(about.timeline, after=version - 1, limit=1)
            hidden = open_view(engine.store.load_window(about.timeline)).state.withheld
        except AccessRefusedError:  # no other timeline has it
            return None
        except Exception:  # an error must not stop the summary
            log.exception(
                "could not check whether another timeline has already paid for this summary"
            )
            return None
        event = page[0][1] if page else None
        if hidden or not isinstance(event, SummaryPrepared) or event.key != about.about:
            return None  # the summary may quote hidden blocks
        return event

    def _enter(self, key: str, version: int, event: SummaryPrepared, engine: Engine) -> None:
        service = self.artifact_service
        try:
            if store := service.store:
                facts = {"timeline": engine.id, "mime": KEY_TYPE}
                store.put(key.encode(), service.description(label_of(version), event.key, **facts))
        except Exception:  # the summary is used here, shared or not
            log.exception("a summary could not be shared; other timelines will ask for their own")


def is_worth_it(trial: CompactionTrial, context: Context) -> bool:
    """Whether a compaction frees enough tokens, according to its draft."""
    return render.gains_enough(trial.draft, trial.draft.tokens_after, context)


def further_calls(provenance: Provenance | None) -> int:
    """Calls of a model that were made for a summary after the first one."""
    return provenance.calls - 1 if provenance and provenance.model and not provenance.reused else 0


def _refused(error: RungError) -> None:
    log.warning("%s", error, exc_info=error.__cause__)


def _degraded(summary: Summary, spent: Provenance | None = None) -> Summary:
    return attrs.evolve(summary, degraded=True, provenance=spent or summary.provenance)


def with_request(event: SummaryPrepared) -> tuple[SummaryRequested | SummaryPrepared, ...]:
    """The event, behind a request without calls if the summary was not asked for here (see `SummaryRequested`)."""
    if not event.provenance.reused:
        return (event,)
    return SummaryRequested(id=EventId(""), at=event.at, calls=0), event


def _without_secrets(summary: StructuredSummary, view: View) -> StructuredSummary:
    """A model's summary without what comes only from confidential results in the view, which the model has read in its
    prompt."""
    secret = [
        msgspec.structs.replace(entry.opened, artifact=ArtifactId(""))
        for entry in view.entries
        if isinstance(entry.opened, ToolResult)
    ]
    if not secret:
        return summary
    visible = [entry.block for entry in view.entries]
    if view.compaction is not None:
        text = leaves(msgspec.to_builtins(view.compaction.event.summary))
        visible.append(SystemMessage(id=BlockId(""), turn=TurnId(""), text=text))
        visible += [entry.block for entry in view.compaction.head.entries]
    return Redaction(secret, [summary], visible).redacted(summary)


# Edits of hooks.


class NoSuchEditError(Exception):
    """An edit cannot be carried out; the message says why."""


def edited_draft(
    view: View, trial: CompactionTrial, edit: Edit, context: Context
) -> tuple[CompactionTrial, Summary | None]:
    """The draft with a hook's cut, and the summary that the hook has given, if any.

    Raises:
        NoSuchEditError: the draft cannot be changed in this way.
    """
    if edit.keep_from is not None and trial.fitted is not None:
        names = ((e.version, (e.version, e.path, e.block.id)) for e in view.entries)
        cut = next((version for version, keys in names if edit.keep_from in keys), 0)
        changed = render.recut(trial, cut, context)
        if changed is None or changed.fitted is None:
            raise NoSuchEditError(f"no compaction may cut at {edit.keep_from!r}")
        trial = changed
    if trial.fitted is None:
        raise NoSuchEditError("this compaction folds nothing")
    if edit.summary is None or callable(edit.summary):
        return trial, None
    provenance = Provenance(source_hash=trial.fitted.range.source_hash)
    return trial, render.Summary(summary=_edited_summary(edit.summary), provenance=provenance)


def _edited_summary(summary: object) -> StructuredSummary:
    if not isinstance(summary, StructuredSummary):
        raise NoSuchEditError(
            f"a summary must be a StructuredSummary, not {type(summary).__name__}"
        )
    try:
        return checked_summary(summary)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise NoSuchEditError(f"this summary has a value that cannot be stored: {error}") from error


# Summaries that are prepared ahead of time.


_inside: ContextVar[bool] = ContextVar("preparing", default=False)
"""Set in the flow of a preparation and in whatever it starts, so that a preparation does not wait for itself."""


@attrs.define
class Preparation:
    """Prepares summaries in the background, at most one at a time."""

    engine: Engine
    is_possible: bool = attrs.field(init=False)
    """Whether the summariser calls a model at all."""
    _work: Future[None] | Task[None] | None = attrs.field(default=None, init=False)
    _tried: int = attrs.field(default=-1, init=False)
    """Version of the compaction after which a preparation was last started."""

    def __attrs_post_init__(self) -> None:
        self.is_possible = not self.engine.compactor.is_free

    def start(self, context: Context) -> Flow[None]:
        """Start a preparation if `prepare_ratio` is exceeded and none is running; at most once between two
        compactions, even if it fails."""
        view = self.engine.view
        newest = view.compaction.version if view.compaction else 0
        if self._tried == newest or (self._work and not self._work.done()):
            return
        request = self.engine.compactor.to_prepare(view, context)
        if request:
            self._tried = newest
            self._work = yield Begin(self._prepared(request))

    def _prepared(self, request: SummaryRequest) -> Flow[None]:
        """Call the summariser, and commit the answer unless blocks were hidden meanwhile."""
        _inside.set(True)
        engine, compactor = self.engine, self.engine.compactor
        try:
            summary = yield from compactor.paid_elsewhere(request, engine)
            if summary is None:
                summary = yield from self._answer(request)
            event = compactor.worth_keeping(request, summary)
            if event:
                fit = partial(_still_useful, withheld=request.view.state.withheld)
                yield from engine.current(engine.commit(with_request(event), fit))
                yield from compactor.share(request, event, engine)
        except Exception:
            log.warning("a summary could not be prepared; the compaction will ask", exc_info=True)

    def _answer(self, request: SummaryRequest) -> Flow[Summary]:
        """The summariser's answer; all calls for it are counted."""
        engine, compactor = self.engine, self.engine.compactor
        if compactor.is_counted:
            yield from self._count(1)
        try:
            summary = yield from compactor.call_summarizer(request, engine.view)
        except Exception as error:
            yield from self._count(further_calls(compactor.failed_call_cost(request, error)))
            raise
        yield from self._count(further_calls(summary.provenance))
        return summary

    def _count(self, calls: int) -> Flow[None]:
        if calls:
            event = SummaryRequested(id=EventId(""), at=self.engine.clock(), calls=calls)
            yield from self.engine.current(self.engine.commit([event]))

    def wait(self, context: Context) -> Flow[None]:
        """If a compaction is due now, wait for the preparation, so that the same summary is not paid for twice."""
        if self._work and not self._work.done() and compaction_due(self.engine.view, context):
            yield from self.finish()
            yield from self.engine.catch_up()

    def forget(self) -> None:
        """Forget the preparation, because the event loop that it ran in is closed."""
        self._work = None

    def finish(self) -> Flow[None]:
        """Wait until the preparation has ended."""
        if self._work and not self._work.done() and not _inside.get():
            yield Await(self._work)


def _still_useful(
    view: View, events: Sequence[Event], withheld: Collection[BlockId]
) -> Sequence[Event]:
    """The events, or none if blocks were hidden meanwhile or the same summary is in the log already."""
    keys = {event.key for event in view.prepared}
    is_known = any(isinstance(e, SummaryPrepared) and e.key in keys for e in events)
    return () if is_known or view.state.withheld != withheld else events
