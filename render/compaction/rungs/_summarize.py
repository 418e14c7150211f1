"""Summarize: everything before a cut becomes one summary with a digest.

Where the cut goes is a matter of `render.compaction._range` and `_fitting`, what the summary says one of
`render.compaction._apply`; here both become a proposal.
"""

from blocks import Trigger
from render.compaction._apply import FittedRange, apply_range, extractive, fits_after, squeezed
from render.compaction._fitting import fitted_at, fitting_range
from render.compaction._range import plan_at
from render.compaction.rungs._plan import Summarize
from render.compaction.rungs._scope import RungScope
from render.policy._context import Context
from render.stages._budget import total_tokens
from render.view._view import View


class SummarizeRung:
    """Proposes the range that keeps most; one that is summarised already, where that leaves enough room."""

    name = "summarize"

    def propose(self, scope: RungScope) -> list[Summarize]:
        """The range, if there is one."""
        fitted = _summarised(scope) or fitting_range(scope.view, scope.context, scope.trigger)
        return [_proposed(scope, fitted)] if fitted else []


def _summarised(scope: RungScope) -> FittedRange | None:
    for cut in scope.cuts:
        plan = plan_at(scope.view, scope.context, scope.trigger, cut)
        if plan and fits_after(scope.view, plan, scope.context):
            return FittedRange(range=plan, context=scope.context)
    return None


def summarize_before(scope: RungScope, cut: int) -> Summarize | None:
    """The proposal to summarise everything before the block of this version; None: no legal cut, or one
    in the verbatim tail."""
    if cut > scope.protected:
        return None
    fitted = fitted_at(scope.view, scope.context, scope.trigger, cut)
    return _proposed(scope, fitted) if fitted else None


def _proposed(scope: RungScope, fitted: FittedRange) -> Summarize:
    """A range as data; the scope remembers what it was made of."""
    scope.ranges.append(fitted)
    after = apply_range(scope.view, fitted.range, extractive(fitted.range), fitted.context)
    before = total_tokens(scope.view, scope.context)
    return proposal_of(fitted, before - total_tokens(after, scope.context))


def proposal_of(fitted: FittedRange, tokens_freed: int) -> Summarize:
    """A range as data."""
    blocks, plan = fitted.range.folded, fitted.range
    return Summarize(
        blocks=tuple(entry.block.id for entry in blocks),
        first=blocks[0].version,
        last=blocks[-1].version,
        turns=tuple(dict.fromkeys(entry.block.turn for entry in blocks)),
        tokens_freed=tokens_freed,
        reason="everything before the verbatim tail",
        cut=plan.cut,
        squeeze=fitted.squeeze,
        source_hash=plan.source_hash,
    )


def range_of(scope: RungScope, proposal: Summarize) -> FittedRange | None:
    """The range that a proposal was made of; None: it was made of none in this scope."""
    wanted = proposal.cut, proposal.squeeze, proposal.source_hash
    known = (r for r in scope.ranges if (r.range.cut, r.squeeze, r.range.source_hash) == wanted)
    return next(known, None)


def restored_range(
    proposal: Summarize, view: View, context: Context, trigger: Trigger
) -> FittedRange | None:
    """The range of a proposal that was made earlier; None: it is not what it was."""
    within = squeezed(context, proposal.squeeze)
    found = plan_at(view, within, trigger, proposal.cut)
    if found is None or found.source_hash != proposal.source_hash:
        return None
    return FittedRange(range=found, context=within, squeeze=proposal.squeeze)
