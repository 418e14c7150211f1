"""Applying a plan: a new one, a stored one, or one whose cut a hook has moved.

Only the proposals matter, not the rungs that made them, so a stored plan can be applied where its rungs are
unknown.
"""

from collections.abc import Iterable
from itertools import chain, groupby, takewhile

import attrs
import msgspec

from blocks import BlocksHidden, EventId, RangeCompacted
from render.compaction._apply import FittedRange, Summary, apply_range, extractive, skip
from render.compaction._cut import plan_at
from render.compaction.rungs._externalize import ExternalizeRung
from render.compaction.rungs._plan import (
    AnyProposal,
    CompactionPlan,
    Externalize,
    Summarize,
    action_of,
    in_force,
)
from render.compaction.rungs._scope import RungScope
from render.compaction.rungs._summarize import proposal_of, restored_range
from render.policy._context import Context
from render.stages._budget import total_tokens
from render.view._fold import decide
from render.view._view import View


@attrs.frozen(kw_only=True, eq=False)
class PlannedCompaction:
    """A plan with the results of trying it out, so that applying it repeats no work."""

    plan: CompactionPlan
    fitted: FittedRange | None = attrs.field(repr=False)
    """The range that the plan summarises; None if it summarises none."""
    probe: Summary | None = attrs.field(repr=False)
    """The extractive summary that the range was tried with."""
    start: View = attrs.field(repr=False)
    after: View = attrs.field(repr=False)
    """The view after the plan with the probe summary; nothing of it is committed."""


def apply_proposals(
    view: View,
    proposals: Iterable[AnyProposal],
    context: Context,
    fitted: FittedRange | None = None,
    summary: Summary | None = None,
) -> View:
    """The view after these proposals, with one event for each run of proposals of the same action.

    `fitted` is the range of a `Summarize` among them; without a `summary`, the extractive one is used.
    """
    for _, stretch in groupby(in_force(proposals), key=action_of):
        made = list(stretch)
        reason = made[0].hidden_as
        if reason is not None:
            hidden = tuple(chain.from_iterable(proposal.hidden for proposal in made))
            event = BlocksHidden(id=EventId(""), at=context.now, hidden=hidden, reason=reason)
            view = decide(view, event)
        elif fitted is not None:
            written = summary or extractive(fitted.range)
            view = apply_range(view, fitted.range, written, fitted.context)
    return view


def apply_compaction(
    view: View, planned: PlannedCompaction, summary: Summary | None, context: Context
) -> View:
    """The view after a compaction, or with a note that it was skipped because it gains too little.

    If the plan summarises a range and `summary` is None, the extractive summary is used. `view` is the view
    that the plan was made for, or a later one in which nothing that the plan names has changed.
    """
    plan = planned.plan
    if view is planned.start and summary in (None, planned.probe):
        after = planned.after
    else:
        after = apply_proposals(view, plan.proposals, context, planned.fitted, summary)
    tokens = total_tokens(after, context)
    if not gains_enough(plan, tokens, context):
        return skip(view, "no_gain", context, f"{plan.tokens_before} -> {tokens} tokens")
    return _measured(after, len(view.decisions), plan.tokens_before, tokens)


def _measured(view: View, first: int, before: int, after: int) -> View:
    """The view with the token counts of the whole compaction in its `RangeCompacted`, or else in its last
    `BlocksHidden`.

    `first` is the index of the compaction's first decision.
    """
    made = [e for e in view.decisions[first:] if isinstance(e, RangeCompacted | BlocksHidden)]
    if not made:
        return view
    old = next((e for e in made if isinstance(e, RangeCompacted)), made[-1])
    new = msgspec.structs.replace(old, tokens_before=before, tokens_after=after)
    known = view.compaction
    if known and known.event is old and isinstance(new, RangeCompacted):
        known = attrs.evolve(known, event=new)
    return attrs.evolve(
        view,
        decisions=tuple(new if event is old else event for event in view.decisions),
        events_since_cut=tuple(
            (version, new if event is old else event) for version, event in view.events_since_cut
        ),
        compaction=known,
    )


def gains_enough(plan: CompactionPlan, tokens_after: int, context: Context) -> bool:
    """Whether the compaction frees enough tokens; if the request would not fit, one token is enough."""
    wanted = context.policy.gain_min * plan.tokens_before
    gained = plan.tokens_before - tokens_after
    return gained >= (wanted if plan.tokens_before <= context.limit else 1)


def restore_plan(plan: CompactionPlan, view: View, context: Context) -> PlannedCompaction | None:
    """A stored plan, ready to be applied; None if it does not match this view.

    The range is planned after the proposals before it have been applied, because its digest depends on
    them.
    """
    there = {entry.block.id for entry in view.entries}
    is_here = all(there.issuperset(proposal.blocks) for proposal in plan.proposals)
    if not is_here or sum(isinstance(p, Summarize) for p in plan.proposals) > 1:
        return None
    fitted: FittedRange | None = None
    after = view
    for _, stretch in groupby(in_force(plan.proposals), key=action_of):
        made = list(stretch)
        if isinstance(made[0], Summarize):
            fitted = restored_range(made[0], after, context, plan.trigger)
            if fitted is None:
                return None
        after = apply_proposals(after, made, context, fitted)
    probe = extractive(fitted.range) if fitted else None
    return PlannedCompaction(plan=plan, fitted=fitted, probe=probe, start=view, after=after)


def recut(planned: PlannedCompaction, cut: int, context: Context) -> PlannedCompaction | None:
    """The same plan with its range cut before the block of version `cut`, and without the proposals after
    the range. None if that cut is not legal or the plan has no range."""
    fitted, plan = planned.fitted, planned.plan
    earlier = list(takewhile(lambda p: not isinstance(p, Summarize), plan.proposals))
    if fitted and any(p.first >= cut for p in earlier if isinstance(p, Externalize)):
        scope = RungScope(view=planned.start, context=context, protected=fitted.range.cut)
        whole = {p.blocks: p for p in ExternalizeRung().propose(scope)}  # with excerpts
        earlier = [whole.get(p.blocks, p) if isinstance(p, Externalize) else p for p in earlier]
    before = apply_proposals(planned.start, earlier, context)
    found = plan_at(before, fitted.context, plan.trigger, cut) if fitted else None
    if fitted is None or found is None:
        return None
    fitted, probe = attrs.evolve(fitted, range=found), extractive(found)
    after = apply_range(before, found, probe, fitted.context)
    tokens = total_tokens(after, context)
    made = proposal_of(fitted, total_tokens(before, context) - tokens)
    plan = msgspec.structs.replace(plan, proposals=(*earlier, made), tokens_after=tokens)
    return PlannedCompaction(
        plan=plan, fitted=fitted, probe=probe, start=planned.start, after=after
    )
