"""Summarize: everything before a cut is replaced by one summary with a digest.

Of the legal cuts (`render.compaction._cut`), it takes the one that keeps most while the request still fits.
The content of the summary is made in `render.compaction._apply`.
"""

from collections.abc import Iterator
from typing import Final

from blocks import Trigger
from render.compaction._apply import FittedRange, apply_range, extractive, fits_after, squeezed
from render.compaction._cut import plan_at, plan_range, plan_turns
from render.compaction.rungs._plan import Summarize
from render.compaction.rungs._scope import RungScope
from render.policy._context import Context
from render.stages._budget import total_tokens
from render.view._view import View

SHARES: Final = (
    (1.0, 1.0),
    (0.3, 1.0),
    (0.0, 1.0),
    (0.0, 0.4),
    (0.0, 0.1),
    (0.0, 0.02),
    (0.0, 0.004),
)
"""Factors to try, in order: on the share of the tail, and on the other shares of a compaction."""


class SummarizeRung:
    """Proposes the largest tail that fits, or a range that is already summarised if that leaves enough
    room."""

    name = "summarize"

    def propose(self, scope: RungScope) -> list[Summarize]:
        """One `Summarize`, or none if there is no range."""
        fitted = _summarised(scope) or fitting_range(scope.view, scope.context, scope.trigger)
        return [_proposed(scope, fitted)] if fitted else []


def _summarised(scope: RungScope) -> FittedRange | None:
    for cut in scope.cuts:
        plan = plan_at(scope.view, scope.context, scope.trigger, cut)
        if plan and fits_after(scope.view, plan, scope.context):
            return FittedRange(range=plan, context=scope.context)
    return None


def summarize_before(scope: RungScope, cut: int) -> Summarize | None:
    """The proposal to summarise everything before the block of version `cut`; None if that cut is not legal
    or lies in the verbatim tail."""
    if cut > scope.protected:
        return None
    fitted = fitted_at(scope.view, scope.context, scope.trigger, cut)
    return _proposed(scope, fitted) if fitted else None


def _proposed(scope: RungScope, fitted: FittedRange) -> Summarize:
    """The proposal for a range; the scope keeps the range."""
    scope.ranges.append(fitted)
    after = apply_range(scope.view, fitted.range, extractive(fitted.range), fitted.context)
    before = total_tokens(scope.view, scope.context)
    return proposal_of(fitted, before - total_tokens(after, scope.context))


def proposal_of(fitted: FittedRange, tokens_freed: int) -> Summarize:
    """The proposal for a range."""
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
    """The range that a proposal of this scope was made from; None if it was made elsewhere."""
    wanted = proposal.cut, proposal.squeeze, proposal.source_hash
    known = (r for r in scope.ranges if (r.range.cut, r.squeeze, r.range.source_hash) == wanted)
    return next(known, None)


def restored_range(
    proposal: Summarize, view: View, context: Context, trigger: Trigger
) -> FittedRange | None:
    """The range of a stored proposal; None if its content has changed."""
    within = squeezed(context, proposal.squeeze)
    found = plan_at(view, within, trigger, proposal.cut)
    if found is None or found.source_hash != proposal.source_hash:
        return None
    return FittedRange(range=found, context=within, squeeze=proposal.squeeze)


# The range.


def fitting_range(view: View, context: Context, trigger: Trigger) -> FittedRange | None:
    """The fold that keeps most and still leaves a request within its budget; None when there is nothing to
    fold.

    The shares of the tail, and then of everything else, are reduced until the request fits with the
    extractive summary. If none fits, the smallest fold.
    """
    best: FittedRange | None = None
    for found in _folds(view, context, trigger):
        best = found
        if fits_after(view, found.range, found.context):
            break
    return best


def _folds(view: View, context: Context, trigger: Trigger) -> Iterator[FittedRange]:
    """Possible folds, each keeping less than the one before."""
    policy = context.policy
    if policy.keep_turns:
        for turns, squeeze in _turn_shares(policy.keep_turns, trigger):
            within = squeezed(context, squeeze)
            if plan := plan_turns(view, within, trigger, turns):
                yield FittedRange(range=plan, context=within, squeeze=squeeze)
        if trigger == "cold":
            return
    for keep, squeeze in SHARES:
        within = squeezed(context, squeeze)
        if plan := plan_range(view, within, trigger, keep * policy.keep_ratio):
            yield FittedRange(range=plan, context=within, squeeze=squeeze)


def fitted_at(view: View, context: Context, trigger: Trigger, cut: int) -> FittedRange | None:
    """The fold of everything before this version, with shares reduced until the request fits; None if the
    cut is not legal."""
    best: FittedRange | None = None
    for squeeze in sorted({squeeze for _, squeeze in SHARES}, reverse=True):
        within = squeezed(context, squeeze)
        plan = plan_at(view, within, trigger, cut)
        if plan is None:
            return None
        best = FittedRange(range=plan, context=within, squeeze=squeeze)
        if fits_after(view, plan, within):
            break
    return best


def _turn_shares(turns: int, trigger: Trigger) -> Iterator[tuple[int, float]]:
    """Pairs of the number of turns to keep and the factor on the other shares. If the cache is cold and the
    request fits, fewer turns are never tried."""
    yield turns, 1.0
    while trigger != "cold" and turns > 1:
        turns //= 2
        yield turns, 1.0
    if trigger != "cold":
        yield from ((1, 0.4), (1, 0.1))
