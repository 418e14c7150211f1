"""Compacting a range into a summary, in two pure steps; a model may be called between them.

    plan = plan_range(view, context, trigger)   # what to fold and what to keep
    summary = ...                               # made by the caller, perhaps with a model
    view = apply_range(view, plan, summary, context)

Nothing is deleted: a compaction is one event that replaces a range of the log with a summary.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any, Final

import attrs
import msgspec

from blocks import (
    BlocksHidden,
    CompactionSkipped,
    EventId,
    Naming,
    Provenance,
    RangeCompacted,
    RangeSummary,
    SkipReason,
    Sources,
    StructuredSummary,
    path_stem,
    standing_of,
    text_of,
)
from render.compaction._carry import is_said
from render.compaction._cut import RangePlan
from render.compaction._summary_block import summary_block
from render.policy._context import Context
from render.stages._budget import corrected, fitting_of, fixed_tokens, total_tokens
from render.summary._extractive import extract_summary
from render.view._fold import commit, decide
from render.view._group import Entry, Place
from render.view._provider_blocks import response_of
from render.view._view import View

LAID_DOWN_SQUEEZE: Final = 5
"""What the user laid down shrinks once the other shares are below a fifth, and then with the root of the factor."""
WRITTEN_SQUEEZE: Final = 10
"""The context of a split turn shrinks once the other shares are below a tenth: it then has ten times their factor."""


@attrs.frozen(kw_only=True)
class Summary:
    """A summariser's answer."""

    summary: StructuredSummary
    degraded: bool = False
    provenance: Provenance | None = None


@attrs.frozen(kw_only=True, eq=False)
class FittedRange:
    """A range to fold, and the context to fold it with."""

    range: RangePlan
    context: Context = attrs.field(repr=False)
    squeeze: float = 1.0
    """The factor that the policy's shares were multiplied by in `context`."""


def fits_after(view: View, plan: RangePlan, context: Context) -> bool:
    """Whether the request after this compaction is far enough below the trigger (see `FITTING`)."""
    kept = corrected(fixed_tokens(context) + plan.kept_tokens, view, context)
    if kept > context.limit:  # the tail alone exceeds the limit: no summary can help
        return False
    return _outcome(view, plan, extractive(plan), context).tokens <= fitting_of(context)


def squeezed(context: Context, factor: float) -> Context:
    """The context with smaller shares for everything that a compaction leaves except the tail.

    The shares of the user's texts and of standing instructions shrink more slowly: they are what the user laid down.
    Of what is written, only the context of a split turn shrinks, and last: constraints and facts stay (invariant 6).
    """
    if factor == 1.0:
        return context
    policy = context.policy
    written, laid_down = (
        min(WRITTEN_SQUEEZE * factor, 1.0),
        sqrt(min(LAID_DOWN_SQUEEZE * factor, 1.0)),
    )
    smaller = attrs.evolve(
        policy,
        prefix_tokens=int(policy.prefix_tokens * written),
        digest_ratio=policy.digest_ratio * factor,
        index_ratio=policy.index_ratio * factor,
        user_ratio=policy.user_ratio * laid_down,
        standing_ratio=policy.standing_ratio * laid_down,
    )
    return attrs.evolve(context, policy=smaller)


def extractive(plan: RangePlan) -> Summary:
    """The summary that is made without a model; computed once per plan."""
    if not plan.extracted:
        plan.extracted.append(_extracted(plan))
    known: Summary = plan.extracted[0]
    return known


def _extracted(plan: RangePlan) -> Summary:
    whole = {carried.version for carried in plan.carried if not carried.clipped}
    own = [e for e in (*plan.given_up, *plan.folded) if not standing_of(e.source)]
    text = extract_summary(own, plan.prefix, lambda entry: entry.version in whole)
    return Summary(summary=text, provenance=Provenance(source_hash=plan.source_hash))


def truncated(plan: RangePlan) -> Summary:
    """The fallback without a summary: how many blocks were left out, and their topics."""
    topics = (text_of(entry.block).strip() for entry in plan.folded if is_said(entry))
    about = "; ".join(topic.split("\n", 1)[0][:80] for topic in topics if topic)
    state = f"[{len(plan.folded)} earlier blocks were left out without a summary" + (
        f"; they were about: {about[:600]}]" if about else "]"
    )
    return Summary(summary=StructuredSummary(state=state))


def apply_range(view: View, plan: RangePlan, summary: Summary, context: Context) -> View:
    """The view after the range is folded, regardless of how many tokens that saves."""
    return _decided(_outcome(view, plan, summary, context))


@attrs.frozen(kw_only=True, eq=False)
class _Outcome:
    """The result of applying a plan with one summary."""

    start: View
    before: View
    """As `start`, with the cuts of what is kept."""
    summary: Summary
    context: Context
    event: RangeCompacted
    after: View
    tokens: int
    """Tokens of the whole request afterwards."""


def _outcome(view: View, plan: RangePlan, summary: Summary, context: Context) -> _Outcome:
    """The result of the plan with this summary; the last result is kept, because the same summary is often
    tried first."""
    for tried in plan.tried:
        if tried.start is view and tried.context is context and tried.summary == summary:
            known: _Outcome = tried
            return known
    trimmed = _trimmed(view, plan, context)
    event = compaction_event(trimmed, plan, summary, context)
    after = commit(trimmed, event)
    tokens = total_tokens(after, context)
    made = _Outcome(
        before=trimmed,
        start=view,
        summary=summary,
        context=context,
        event=event,
        after=after,
        tokens=tokens,
    )
    plan.tried[:] = [made]
    return made


def _trimmed(view: View, plan: RangePlan, context: Context) -> View:
    """The view with the results that the plan keeps cut to their share."""
    if not plan.cuts:
        return view
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=plan.cuts, reason="clipped")
    return decide(view, event)


def _decided(outcome: _Outcome) -> View:
    """The view afterwards, with the token count recorded in the event and the event among the decisions."""
    event = msgspec.structs.replace(outcome.event, tokens_after=outcome.tokens)
    known = outcome.after.compaction
    return attrs.evolve(
        outcome.after,
        compaction=known and attrs.evolve(known, event=event),
        decisions=(*outcome.before.decisions, event),
    )


def skip(view: View, reason: SkipReason, context: Context, detail: str = "") -> View:
    """The view with an event that says that a due compaction was skipped, and why."""
    tokens = total_tokens(view, context)
    event = CompactionSkipped(
        id=EventId(""), at=context.now, reason=reason, tokens=tokens, detail=detail
    )
    return decide(view, event)


def compaction_event(
    view: View, plan: RangePlan, summary: Summary, context: Context
) -> RangeCompacted:
    """The `RangeCompacted` event that this compaction would record; it is not committed."""
    written = msgspec.structs.replace(
        summary_block(view, plan, summary.summary, context), degraded=summary.degraded
    )
    naming = _naming(view, plan.folded)
    return RangeCompacted(
        id=EventId(""),
        at=context.now,
        start=plan.start,
        cut=plan.cut,
        summary=written,
        ordinal=_summary_ordinal(view, naming, written),
        carried=plan.carried,
        state=msgspec.structs.replace(
            plan.kept[0].state,
            rounds=_rounds_before(plan.kept),
            failures=0,
            failed_tokens=0,
            sources=_sources_after(plan),
            **_named_after(naming, plan.kept),
        ),
        trigger=plan.trigger,
        tokens_before=plan.tokens_before,
        policy=context.policy.name,
        provenance=summary.provenance,
    )


def _rounds_before(kept: Sequence[Entry]) -> int:
    """Number of rounds before the first kept one; a round that the cut splits counts as not yet begun."""
    first = next((entry for entry in kept if entry.place is Place.RESPONSE), None)
    return first.round - 1 if first else kept[0].state.rounds


def _sources_after(plan: RangePlan) -> str:
    """The encoded set of foreign ids (block sources and responses) in the log before the cut."""
    sources = Sources(plan.kept[0].state.sources)
    folded = (entry.source for entry in plan.folded)
    names = (name for block in folded for name in (block.source, response_of(block)) if name)
    sources.add(dict.fromkeys(names))  # blocks of one response share one response name
    return sources.encoded()


# Paths stay the same across a cut: they number the blocks of one kind within a turn.


def _named_after(naming: Naming, kept: Sequence[Entry]) -> dict[str, Any]:
    """The fields of the fold's state on which the paths of blocks after the cut depend."""
    ordinals = naming.cut((entry.version, entry.source) for entry in kept)
    return {"ordinals": ordinals, "named": naming.named()}


def _summary_ordinal(view: View, naming: Naming, summary: RangeSummary) -> int:
    """Ordinal of this summary within its turn; 0 when it is not known.

    Undone compactions count as well, because their summaries had paths.
    """
    if not naming.is_counted(summary.turn):
        return 0
    stem, head = path_stem(summary), view.compaction
    earlier = [event for _, event in view.events_since_cut if isinstance(event, RangeCompacted)]
    alike = [e for e in (*([head.event] if head else []), *earlier) if path_stem(e.summary) == stem]
    if alike:
        ordinals = [event.ordinal for event in alike]
        return max(ordinals) + 1 if all(ordinals) else 0
    is_older = head is not None and head.event.state.turn == summary.turn
    return 0 if is_older else 1


def _naming(view: View, folded: Sequence[Entry]) -> Naming:
    """The naming state after every folded block."""
    naming = view.compaction.naming if view.compaction else Naming()
    naming.skip((entry.version, entry.source) for entry in folded)
    return naming
