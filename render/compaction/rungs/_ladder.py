"""The ladder: the rungs that a compaction tries one after another until the request is small enough.

A *rung* is an object with a name and a method `propose(scope)`. It sees the view as the earlier rungs left
it, and proposes blocks to hide or a range to summarise. Its proposals are applied at once to a copy of the
view that is not committed, so the next rung sees the result and all token counts are those of a real
request. All proposals together are the plan.

Three limits decide how far it goes:

    trigger      a compaction is due above it; the last pass has succeeded once the request is below it
    enough       without a summary, no further rung is tried below this share of the limit
    target       with a summary, no further rung is tried below this share of the limit

The first pass touches nothing in the verbatim tail. If the request still does not fit, all rungs are tried
again with everything but the newest round.

    planned = plan_compaction(view, context, trigger)     # pure, calls no model
    summary = ...                                         # made by the caller, perhaps with a model
    view = apply_compaction(view, planned, summary, context)
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from blocks import CallId, Determinism, RungError, Trigger
from render.compaction._apply import FittedRange, extractive
from render.compaction._cut import range_cut, turns_cut
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
from render.stages._budget import fitting_of, threshold_of, total_tokens
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
    """What a caller knows in addition to the log."""

    cuts: tuple[int, ...] = ()
    """Versions before which a summary is already prepared, best first."""
    current: Mapping[CallId, Determinism] = attrs.field(factory=dict[CallId, Determinism])
    """The current state of the sources of replayable results, as far as it was probed."""
    disabled_rungs: frozenset[str] = frozenset()
    """Actions that must not be proposed, and names of rungs that must not be tried."""
    on_refused: Callable[[RungError], None] = _raised
    """Called with the error when a user's own rung is left out; by default the error is raised."""


NO_FACTS = ExternalFacts()
AGGRESSIVE: Final = frozenset({"externalize", "drop"})


def plan_compaction(
    view: View, context: Context, trigger: Trigger, known: ExternalFacts = NO_FACTS
) -> PlannedCompaction | None:
    """The plan of a compaction, with the result of trying it; None if no rung proposes anything.

    Raises:
        RungError: a user's own rung failed or made an invalid proposal, and `known.on_refused` is not set.
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
    """Below this many tokens no further rung is tried, as long as there is no summary."""
    return _share(context, min(context.policy.enough_ratio, context.policy.target_ratio))


def _share(context: Context, ratio: float) -> int:
    return min(int(ratio * context.capacity), fitting_of(context))


def _disabled(view: View, context: Context, trigger: Trigger) -> Iterator[str]:
    """Names of disabled rungs: those that would remove artifacts again in a turn into which they come back;
    `externalize` without an artifact store; and a user's own rungs until something has been appended since
    the last compaction, so that a repeated request stays the same."""
    if wanted(view, context.policy):
        yield from AGGRESSIVE
    if not context.can_externalize:
        yield "externalize"
    if trigger != "forced" and view.groups and view.compacted > view.groups[-1].last:
        yield from (rung.name for rung in context.policy.rungs if not isinstance(rung, str))


@attrs.define(kw_only=True, eq=False)
class _Planner:
    """Tries the rungs in order, without depending on a particular rung."""

    context: Context
    trigger: Trigger
    known: ExternalFacts
    view: View
    """The view after the rungs so far."""
    proposals: list[AnyProposal] = attrs.field(factory=list[AnyProposal])
    fitted: FittedRange | None = None
    """The range to summarise; at most one per plan."""
    disabled: set[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        found = _disabled(self.view, self.context, self.trigger)
        self.disabled = {*self.known.disabled_rungs, *found}

    def try_all(self) -> None:
        """Try all rungs before the tail; if that is not enough, again with only the newest round protected."""
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
        """Whether the request is under the goal. A compaction that was asked for, or that is free because
        the cache is cold, may start under it; it continues until a summary was made, if the policy has that
        rung."""
        summarises = "summarize" in self.context.policy.rungs and self.fitted is None
        if self.trigger != "proactive" and summarises:
            return False
        return bool(self.proposals) and self._tokens <= goal

    def _try(self, rung: KnownRung | CheckedRung, scope: RungScope) -> None:
        """Ask one rung, and apply its proposals."""
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
    """Version of the first block of the verbatim tail."""
    if turns := context.policy.keep_turns:
        kept = turns_cut(view.entries, turns)
        return view.entries[kept].version if kept else 0
    cut = range_cut(view, context, trigger)
    return view.entries[cut].version if cut else _newest(view)


def _newest(view: View) -> int:
    """Version of the first block of the newest round."""
    return view.groups[-1].first if view.groups else 0
