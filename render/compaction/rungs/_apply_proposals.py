"""Carrying out proposals.

It goes by what is proposed and not by who proposed it: a plan that was stored is carried out where the
rung that made it is not known.
"""

from collections.abc import Iterable
from itertools import chain, groupby

from blocks import BlocksHidden, EventId
from render.compaction._apply import FittedRange, Summary, apply_range, extractive
from render.compaction.rungs._plan import AnyProposal, action_of, in_force
from render.policy._context import Context
from render.view._fold import decide
from render.view._view import View


def apply_proposals(
    view: View,
    proposals: Iterable[AnyProposal],
    context: Context,
    fitted: FittedRange | None = None,
    summary: Summary | None = None,
) -> View:
    """The view after these proposals, one event for each stretch of one action.

    `fitted` is the range of a `Summarize` among them; without a summary it gets the extractive one.
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
