"""When a compaction is due, and when it has failed too often to be tried again."""

from blocks import Trigger
from render.policy._context import Context
from render.stages._budget import budget_of, threshold_of, total_tokens
from render.stages._prune import is_cold
from render.view._view import View


def compaction_due(view: View, context: Context) -> Trigger | None:
    """Why a compaction is due now; None: it is not.

    Uses the same counts as the final request, so the probe and the request cannot disagree.
    """
    total = total_tokens(view, context)
    if total > threshold_of(context):
        return None if _breaker_is_open(view, total, context) else "proactive"
    cold = context.policy.cold_ratio * budget_of(context)
    if view.state.touched_at and is_cold(view, context) and total > cold:
        return None if _breaker_is_open(view, total, context) else "cold"
    return None


def _breaker_is_open(view: View, total: int, context: Context) -> bool:
    """After several failures in a row: wait until the timeline has grown, unless it must."""
    state, policy = view.state, context.policy
    if state.failures < policy.failures_max or total > context.limit:
        return False
    return total < state.failed_tokens + policy.gain_min * context.limit
