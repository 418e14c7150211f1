"""A plan once more: one that was made earlier, or one whose range a hook wants to end somewhere else."""

from itertools import groupby, takewhile

import attrs
import msgspec

from render.compaction._apply import FittedRange, apply_range, extractive
from render.compaction._range import plan_at
from render.compaction.rungs._apply_proposals import apply_proposals
from render.compaction.rungs._ladder import PlannedCompaction
from render.compaction.rungs._plan import CompactionPlan, Summarize, action_of, in_force
from render.compaction.rungs._summarize import proposal_of, restored_range
from render.policy._context import Context
from render.stages._budget import total_tokens
from render.view._view import View


def restore_plan(plan: CompactionPlan, view: View, context: Context) -> PlannedCompaction | None:
    """A plan that was made earlier, ready to be carried out; None: it does not belong to this view.

    The range is planned where the plan reaches it: its digest tells what earlier rungs have moved.
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
    """The same plan with its range cut before the block of another version, and without what was to come
    after it; None: that is no legal cut, or there is no range."""
    fitted, plan = planned.fitted, planned.plan
    earlier = list(takewhile(lambda p: not isinstance(p, Summarize), plan.proposals))
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
