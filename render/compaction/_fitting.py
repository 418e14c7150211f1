"""Finding the fold that keeps most and leaves a request that fits."""

from collections.abc import Iterator
from typing import Final

from blocks import Trigger
from render.compaction._apply import FittedRange, fits_after, squeezed
from render.compaction._range import plan_at, plan_range, plan_turns
from render.policy._context import Context
from render.view._view import View

SHARES: Final = ((1.0, 1.0), (0.3, 1.0), (0.0, 1.0), (0.0, 0.4), (0.0, 0.1))
"""What is tried of the tail's share, and of what a compaction leaves besides."""


def fitting_range(view: View, context: Context, trigger: Trigger) -> FittedRange | None:
    """The fold that keeps most and still leaves a request within its budget; None: nothing to fold.

    The shares of the tail and, where that is not enough, of everything else are reduced until the
    probe fits.  The probe is the extractive summary: it is free.
    """
    best: FittedRange | None = None
    for found in _folds(view, context, trigger):
        best = found
        if fits_after(view, found.range, found.context):
            break
    return best


def _folds(view: View, context: Context, trigger: Trigger) -> Iterator[FittedRange]:
    """Folds that keep less and less."""
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
    """The fold of all before this version, with shares that leave a request within its budget; None: no
    legal cut."""
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
    """How many turns are kept, and the factor on what is left besides; where the cache is cold and
    the request fits anyway, there is no reason to keep fewer."""
    yield turns, 1.0
    while trigger != "cold" and turns > 1:
        turns //= 2
        yield turns, 1.0
    if trigger != "cold":
        yield from ((1, 0.4), (1, 0.1))
