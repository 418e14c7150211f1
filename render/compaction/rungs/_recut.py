"""A plan whose fold is cut somewhere else, because a hook wants to keep more, or less."""

from itertools import takewhile

import attrs
import msgspec

from render.compaction._apply import extractive
from render.compaction._range import plan_at
from render.compaction.rungs import _summarize
from render.compaction.rungs._ladder import PlannedCompaction, carry_out
from render.compaction.rungs._plan import Summarize
from render.policy._context import Context
from render.stages._budget import total_tokens


def recut(planned: PlannedCompaction, cut: int, context: Context) -> PlannedCompaction | None:
    """The same plan with its fold cut before the block of another version, and without what was to
    come after the fold; None: that is no legal cut, or there is no fold."""
    fold, plan = planned.fold, planned.plan
    earlier = list(takewhile(lambda p: not isinstance(p, Summarize), plan.proposals))
    before = carry_out(planned.start, earlier, context, None, None)
    found = plan_at(before, fold.context, plan.trigger, cut) if fold else None
    if fold is None or found is None:
        return None
    fold, probe = attrs.evolve(fold, range=found), extractive(found)
    after = _summarize.apply(before, fold, probe)
    tokens = total_tokens(after, context)
    made = _summarize.proposal(fold, total_tokens(before, context) - tokens)
    plan = msgspec.structs.replace(plan, proposals=(*earlier, made), tokens_after=tokens)
    return PlannedCompaction(plan=plan, fold=fold, probe=probe, start=planned.start, after=after)
