"""Summarize: everything before a cut is folded into one summary with a digest.

Where the cut goes and what the summary says is `render.compaction._range` and `render.compaction._apply`; here it becomes a
rung of the ladder.
"""

from collections.abc import Iterable

from blocks import Trigger
from render.compaction._apply import FittedRange, Summary, apply_range, extractive, fits_after
from render.compaction._fitting import fitting_range
from render.compaction._range import plan_at
from render.compaction.rungs._plan import Summarize
from render.compaction.rungs._scope import RungScope
from render.view._view import View


def propose(scope: RungScope, trigger: Trigger, cuts: Iterable[int] = ()) -> FittedRange | None:
    """The fold, if there is anything to fold; at one of `cuts`, which are summarised already, where
    that leaves enough room."""
    view, context = scope.view, scope.context
    for cut in cuts:
        plan = plan_at(view, context, trigger, cut)
        if plan and fits_after(view, plan, context):
            return FittedRange(range=plan, context=context)
    return fitting_range(view, context, trigger)


def proposal(fold: FittedRange, tokens_freed: int) -> Summarize:
    """The fold as data."""
    folded, plan = fold.range.folded, fold.range
    return Summarize(
        blocks=tuple(entry.block.id for entry in folded),
        first=folded[0].version,
        last=folded[-1].version,
        turns=tuple(dict.fromkeys(entry.block.turn for entry in folded)),
        tokens_freed=tokens_freed,
        reason="everything before the verbatim tail",
        cut=plan.cut,
        squeeze=fold.squeeze,
        source_hash=plan.source_hash,
    )


def apply(view: View, fold: FittedRange, summary: Summary | None = None) -> View:
    """The view once the range is folded; without a summary, with the extractive one."""
    return apply_range(view, fold.range, summary or extractive(fold.range), fold.context)
