"""Compactions as data: proposing a draft, committing it later, undoing it, and rewriting its summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
from msgspec.structs import replace

import render
from blocks import (
    BlocksHidden,
    BlocksRestored,
    DataError,
    Event,
    EventId,
    HideReason,
    MisuseError,
    RangeCompacted,
    RangeExpanded,
    Recorded,
    SummaryReplaced,
    VersionConflictError,
)
from render import LADDER, Context, Entry, View, decide, total_tokens
from timeline._flow_drivers import Flow
from timeline.engine._compaction import is_worth_it
from timeline.engine._engine import Attempt, Engine
from timeline.engine._hiding import as_shown, hiding
from timeline.summarizers._summarizer import Summarizer, SummaryRequest

if TYPE_CHECKING:
    from render import CompactionDraft, CompactionTrial, Summary


def propose(engine: Engine, context: Context) -> Flow[CompactionDraft]:
    """The draft for a compaction now, even if the policy's triggers are not reached; changes nothing."""
    yield from engine.flush()
    facts = yield from engine.compactor.facts(engine.view, context, "forced")
    trial = render.draft_compaction(engine.view, context, "forced", facts)
    if trial is None or not is_worth_it(trial, context):
        tokens = total_tokens(engine.view, context)
        return render.CompactionDraft(
            timeline=engine.id,
            version=engine.view.version,
            trigger="forced",
            policy=context.policy.name,
            limit=context.limit,
            tokens_before=tokens,
            tokens_after=tokens,
        )
    return msgspec.structs.replace(trial.draft, timeline=engine.id)


def commit_draft(engine: Engine, draft: CompactionDraft, context: Context) -> Flow[int]:
    """Carry out a draft at the version for which it was made; committing it again changes nothing."""
    if draft.timeline != engine.id:
        raise DataError(
            f"the draft is for timeline {draft.timeline!r}, and this is timeline {engine.id!r}"
        )
    yield from engine.flush()
    if (yield from _is_committed(engine, draft)):
        return engine.version
    if engine.version != draft.version:
        raise VersionConflictError(expected=draft.version, found=engine.version)
    trial = render.restore_draft(draft, engine.view, context) if draft.proposals else None
    if trial is None:
        raise DataError("this draft has no proposal that can be carried out here")
    if not (yield from engine.compactor.stored(engine.view, trial)):
        raise MisuseError("this draft moves content to an artifact store, which did not accept it")
    try:
        return (yield from _carry_out(engine, trial, context))
    except VersionConflictError:  # another writer was faster: load its events for the next draft
        yield from engine.load()
        if (yield from _is_committed(engine, draft)):
            return engine.version
        raise


def _carry_out(engine: Engine, trial: CompactionTrial, context: Context) -> Flow[int]:
    attempt = Attempt(engine=engine)
    view = yield from engine.compactor.carry_out(engine.view, trial, context, attempt)
    decisions = _named(trial.draft, view.decisions)
    version = yield from engine.settle(attrs.evolve(view, decisions=decisions))
    before, after = trial.draft.tokens_before, total_tokens(engine.view, context)
    yield from engine.compactor.report(decisions, before, after, attempt)
    return version


def _named(draft: CompactionDraft, decisions: tuple[Any, ...]) -> tuple[Event, ...]:
    """The events of a draft, with ids derived from the draft so that they are recognized later."""
    return tuple(replace(event, id=_event_id(draft, n)) for n, event in enumerate(decisions))


def _event_id(draft: CompactionDraft, number: int) -> EventId:
    """An id in the form of a UUID, as stores expect it."""
    name = f"{draft.digest[:28]}{number:04x}"
    return EventId(f"{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}")


def _is_committed(engine: Engine, draft: CompactionDraft) -> Flow[bool]:
    """Whether the events of this draft are in the log already."""
    if engine.version <= draft.version:
        return False
    later = yield from engine.events(draft.version)
    return any(event.id == _event_id(draft, 0) for _, event in later)


def expand(engine: Engine) -> Flow[int]:
    """Undo the newest compaction: all blocks that it removed from the prompt are visible again."""
    yield from engine.flush()
    yield from engine.load()
    version = yield from engine.repeated(_expanded, engine)
    yield from engine.load()
    return version


def _expanded(engine: Engine) -> Flow[int]:
    version = _newest(engine.view)
    if not version:
        raise MisuseError("nothing to expand: no compaction is in force")
    log = yield from engine.events()
    batch = _batch(log, version)
    before = yield from engine.view_until(batch[0][0] - 1, log, "nothing is expanded")
    undone = [*_undone(batch, before, engine.view, engine.clock())]
    # What is visible again may quote blocks that were hidden since.
    undone += [
        event
        for event in before.decisions
        if isinstance(event, BlocksHidden | SummaryReplaced) and event.redacted
    ]
    return (yield from engine.settle(reduce(decide, undone, engine.view)))


def _undone(batch: list[Recorded], before: View, view: View, now: float) -> Iterator[Event]:
    """The events that undo a compaction. Blocks that were hidden before it, or on request since, stay hidden."""
    hidden = {h.block for _, e in batch if isinstance(e, BlocksHidden) for h in e.hidden}
    hidden -= {e.block.id for e in view.entries if e.hidden_as not in {*LADDER, "clipped"}}
    then = [e for e in before.entries if e.block.id in hidden and e.replacement is not None]
    restored = hidden - {entry.block.id for entry in then}
    if restored:
        blocks = tuple(e.block.id for e in before.entries if e.block.id in restored)
        yield BlocksRestored(id=EventId(""), at=now, blocks=blocks)
    withheld = view.state.withheld
    for reason, entries in groupby(then, key=_reason):
        again = (as_shown(entry, entry) for entry in entries)
        hides = [
            replace(h, artifact=h.artifact or withheld.get(h.block, h.artifact)) for h in again
        ]
        yield hiding(now, hides, reason)
    for version, event in batch:
        if isinstance(event, RangeCompacted):
            yield RangeExpanded(id=EventId(""), at=now, compaction=version)


def _reason(entry: Entry) -> HideReason:
    return entry.hidden_as or "requested"


def _newest(view: View) -> int:
    """Version of the newest compaction in force: of its `RangeCompacted`, or of another event if it folded nothing."""
    fold = view.compaction.version if view.compaction else 0
    shown = {entry.block.id for entry in view.entries if entry.hidden_as in LADDER}
    hides = (
        version
        for version, event in reversed(view.events_since_cut)
        if isinstance(event, BlocksHidden)
        and _is_rung(event)
        and any(hidden.block in shown for hidden in event.hidden)
    )
    return max(fold, next(hides, 0))


def _batch(log: list[Recorded], version: int) -> list[Recorded]:
    """The events that one compaction committed, given one of them."""
    at = next((event.at for other, event in log if other == version), 0.0)
    index = next(i for i, (other, _) in enumerate(log) if other == version)
    following = [*(event for _, event in log[1:]), None]
    parts = [_is_part(event, after, at) for (_, event), after in zip(log, following, strict=True)]
    first = index - len([*takewhile(bool, reversed(parts[:index]))])
    last = index + len([*takewhile(bool, parts[index + 1 :])])
    return log[first : last + 1]


def _is_part(event: Event, following: Event | None, at: float) -> bool:
    """Whether a compaction at this time has committed the event: a fold, a rung, or what a fold cut of its tail."""
    if event.at != at or isinstance(event, RangeCompacted):
        return event.at == at
    is_cut = isinstance(event, BlocksHidden) and event.reason == "clipped"
    return _is_rung(event) or (is_cut and isinstance(following, RangeCompacted))


def _is_rung(event: Event) -> bool:
    return isinstance(event, BlocksHidden) and event.reason in LADDER and not event.redacted


def upgrade(engine: Engine, context: Context, summarizer: Summarizer | None) -> Flow[bool]:
    """Rewrite the current summary from its source; return whether it has changed."""
    compaction = engine.view.compaction
    if compaction is None:
        return False
    version, log = compaction.version - 1, (yield from engine.events())
    before = yield from engine.view_until(version, log, "no summary is written anew")
    before = attrs.evolve(before, version=version, decisions=())
    # At the time of the compaction, so that the same range is found.
    context = attrs.evolve(context, now=compaction.event.at)
    target = render.fitted_at(before, context, compaction.event.trigger, compaction.event.cut)
    if target is None:
        return False
    request = SummaryRequest(range=target.range, view=before, context=target.context)
    attempt = Attempt(engine=engine)
    summary, paid = yield from engine.repeated(_rewritten, engine, request, summarizer, attempt)
    if summary is None:
        return False
    rewrite = render.compaction_event(before, target.range, summary, target.context)
    if rewrite.summary == compaction.event.summary:
        return False
    withheld = engine.view.state.withheld
    event = SummaryReplaced(
        id=EventId(""),
        at=engine.clock(),
        compaction=compaction.version,
        summary=rewrite.summary,
        provenance=summary.provenance,
    )

    def fit(view: View, events: Sequence[Event]) -> Sequence[Event]:
        """Drop the event if it may quote a block that was hidden meanwhile, or if the summary is no longer current."""
        if view.state.withheld != withheld:
            return ()
        is_current = view.compaction and view.compaction.version == event.compaction
        return events if is_current else events[:-1]

    yield from engine.commit([*paid, event], fit)
    now = engine.view.compaction
    return now is not None and now.event.summary == rewrite.summary


def _rewritten(
    engine: Engine, request: SummaryRequest, summarizer: Summarizer | None, attempt: Attempt
) -> Flow[tuple[Summary | None, list[Event]]]:
    """A summary that is not degraded (None: it could not be written), and the event that keeps a paid one."""
    compactor, view = engine.compactor, engine.view
    if summarizer is not None:
        compactor = attrs.evolve(compactor, summarizer=summarizer)
    existing = compactor.prepared(attrs.evolve(request, view=view))
    existing = existing or (yield from compactor.paid_elsewhere(request, engine))
    if existing or compactor.is_spent(view, request.context):
        return existing, []
    withheld = view.state.withheld
    summary = attempt.summary_of(request.range, view)
    if summary is None:
        _, summary = yield from compactor.summary(request, attempt, view)
    if engine.view.state.withheld != withheld:  # the summary may quote hidden blocks
        return None, []
    paid = compactor.worth_keeping(request, summary)
    return None if summary.degraded else summary, [paid] if paid else []
