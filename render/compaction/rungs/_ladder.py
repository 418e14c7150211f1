"""The ladder: what a compaction tries, rung after rung, until the request is small enough.

A *rung* is an object with a name and `propose(scope)`.  It looks at the view as the rungs before left
it, and says what it would do: it proposes blocks to hide, or a range to summarise.  What is proposed is
applied at once, to a copy of the view that nobody commits, so that the next rung sees what is left and
the tokens are those of the real request.  All proposals together are the plan.

Three numbers say how far it goes:

    trigger      above it a compaction is due; with the newest round alone it must come under it
    enough       without a summary: under this share of the limit no further rung is tried
    target       with a summary: what one leaves is worth more than what later rungs would free of it

First nothing of the verbatim tail may be touched.  Where the request would not fit otherwise, all rungs
are tried again with everything but the newest round.

    planned = plan_compaction(view, context, trigger)     # pure, free of charge
    summary = ...                                         # the caller's business; may take a model
    view = apply_compaction(view, planned, summary, context)
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from blocks import CallId, Determinism, RungError, Trigger
from render.compaction._apply import FITTING, FittedRange, extractive
from render.compaction._range import range_cut, turn_cut
from render.compaction.rungs._apply_plan import PlannedCompaction, apply_proposals
from render.compaction.rungs._checked import CheckedRung
from render.compaction.rungs._clear import ClearRung
from render.compaction.rungs._drop import DropRung
from render.compaction.rungs._externalize import ExternalizeRung
from render.compaction.rungs._plan import AnyProposal, CompactionPlan, Summarize
from render.compaction.rungs._scope import RungScope
from render.compaction.rungs._summarize import SummarizeRung, range_of
from render.policy._context import Context
from render.policy._rungs import RungName
from render.stages._budget import threshold_of, total_tokens
from render.stages._rehydrate import wanted
from render.view._view import View

KnownRung: TypeAlias = ExternalizeRung | SummarizeRung | ClearRung | DropRung
RUNGS: Final[Mapping[RungName, KnownRung]] = {
    "externalize": ExternalizeRung(),
    "summarize": SummarizeRung(),
    "clear": ClearRung(),
    "drop": DropRung(),
}
"""The built-in rungs. To add one, write a file like `_clear.py`, and name it here and in `RungName`."""


def _raised(error: RungError) -> None:
    raise error


@attrs.frozen(kw_only=True)
class ExternalFacts:
    """What a caller may know besides the log."""

    cuts: tuple[int, ...] = ()
    """Versions before which everything is summarised already, best first."""
    current: Mapping[CallId, Determinism] = attrs.field(factory=dict[CallId, Determinism])
    """What the sources of replayable results look like now."""
    disabled_rungs: frozenset[str] = frozenset()
    """What is not to be proposed, and rungs that are not to be tried."""
    on_refused: Callable[[RungError], None] = _raised
    """Hears why a rung of the policy's own is left out; unless told otherwise, it is raised."""


NO_FACTS = ExternalFacts()
AGGRESSIVE: Final = frozenset({"externalize", "drop"})


def plan_compaction(
    view: View, context: Context, trigger: Trigger, known: ExternalFacts = NO_FACTS
) -> PlannedCompaction | None:
    """What a compaction would do, tried out; None: there is nothing that it could do.

    Raises:
        RungError: a rung of the policy's own failed, or proposed what may not be, and `known` does not
            say who is to hear it.
    """
    if not context.policy.compacts:
        return None
    planner = _Planner(context=context, trigger=trigger, known=known, view=view)
    planner.try_all()
    if not planner.proposals:
        return None
    plan = CompactionPlan(
        version=view.version,
        trigger=trigger,
        policy=context.policy.name,
        limit=context.limit,
        target=goal_of(context),
        tokens_before=total_tokens(view, context),
        tokens_after=total_tokens(planner.view, context),
        proposals=tuple(planner.proposals),
    )
    fitted = planner.fitted
    probe = extractive(fitted.range) if fitted else None
    return PlannedCompaction(plan=plan, fitted=fitted, probe=probe, start=view, after=planner.view)


def goal_of(context: Context) -> int:
    """Tokens under which no further rung is tried, until there is a summary."""
    return _share(context, min(context.policy.enough_ratio, context.policy.target_ratio))


def _share(context: Context, ratio: float) -> int:
    return min(int(ratio * context.limit), int(FITTING * threshold_of(context)))


def _disabled(view: View, context: Context, trigger: Trigger) -> Iterator[str]:
    """In a turn into which artifacts come back, what would take them away again rests; without an artifact
    store, what would move content there; and a rung of the user's own, which may do a little each time,
    until something is appended: a second request is to be the first."""
    if wanted(view, context.policy):
        yield from AGGRESSIVE
    if not context.can_externalize:
        yield "externalize"
    if trigger != "forced" and view.groups and view.compacted > view.groups[-1].last:
        yield from (rung.name for rung in context.policy.rungs if not isinstance(rung, str))


@attrs.define(kw_only=True, eq=False)
class _Planner:
    """Tries one rung after the other, and knows none of them."""

    context: Context
    trigger: Trigger
    known: ExternalFacts
    view: View
    """As the rungs so far would leave it."""
    proposals: list[AnyProposal] = attrs.field(factory=list[AnyProposal])
    fitted: FittedRange | None = None
    """The range that is summarised: one at most."""
    disabled: set[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        found = _disabled(self.view, self.context, self.trigger)
        self.disabled = {*self.known.disabled_rungs, *found}

    def try_all(self) -> None:
        """First with the tail left alone, then, if need be, with the newest round only."""
        tail, newest = _tail(self.view, self.context, self.trigger), _newest(self.view)
        for protected, is_last_resort in ((tail, False), (newest, True)):
            rungs = self.context.policy.rungs
            for named, following in zip(rungs, (*rungs[1:], None), strict=True):
                rung = RUNGS[named] if isinstance(named, str) else CheckedRung(named)
                goal = self._goal
                if self._is_done(goal):
                    return
                scope = RungScope(
                    view=self.view,
                    context=self.context,
                    protected=protected,
                    missing=self._tokens - goal,
                    is_last_resort=is_last_resort,
                    current=self.known.current,
                    trigger=self.trigger,
                    cuts=self.known.cuts,
                    disabled=frozenset(self.disabled),
                    is_folded_next=following == "summarize" and following not in self.disabled,
                )
                self._try(rung, scope)
            if self._tokens <= threshold_of(self.context):
                return

    @property
    def _goal(self) -> int:
        enough = goal_of(self.context)
        return _share(self.context, self.context.policy.target_ratio) if self.fitted else enough

    @property
    def _tokens(self) -> int:
        return total_tokens(self.view, self.context)

    def _is_done(self, goal: int) -> bool:
        """Under the goal.  A compaction that somebody asked for, or that costs nothing because the
        cache is cold, may have started there: it goes on until the summary, if there is such a rung."""
        summarises = "summarize" in self.context.policy.rungs and self.fitted is None
        if self.trigger != "proactive" and summarises:
            return False
        return bool(self.proposals) and self._tokens <= goal

    def _try(self, rung: KnownRung | CheckedRung, scope: RungScope) -> None:
        """Ask one rung, and apply what it proposes."""
        if rung.name in self.disabled:
            return
        try:
            made = rung.propose(scope)
        except RungError as error:
            self.known.on_refused(error)
            return
        for proposal in made:
            if isinstance(proposal, Summarize):
                self.fitted = range_of(scope, proposal)
                self.disabled.add("summarize")
        if made:
            self.view = apply_proposals(self.view, made, self.context, self.fitted)
            self.proposals += made


def _tail(view: View, context: Context, trigger: Trigger) -> int:
    """Version from which on everything belongs to the verbatim tail."""
    if turns := context.policy.keep_turns:
        kept = turn_cut(view, context, turns)
        return view.entries[kept].version if kept else 0
    cut = range_cut(view, context, trigger)
    return view.entries[cut].version if cut else _newest(view)


def _newest(view: View) -> int:
    """Version of the first block of the newest round."""
    return view.groups[-1].first if view.groups else 0
