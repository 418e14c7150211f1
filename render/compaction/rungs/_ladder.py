"""Climbing the ladder: rung after rung, in the policy's order, until the request is small enough.

    externalize   large results go to the artifact store, a pointer stays
    summarize     everything before a cut is folded
    clear         results become their envelopes, as far as durability allows
    drop          whole rounds go, one line stays

Every rung works on what the one before left.  The verbatim tail is left alone; only when the request
would not fit otherwise is the ladder climbed again with everything but the newest round.

    planned = plan_compaction(view, context, trigger)     # pure, free of charge
    summary = ...                                       # the caller's business; may take a model
    view = apply_compaction(view, planned, summary, context)
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

import attrs
import msgspec

from blocks import BlocksHidden, CallId, Determinism, RangeCompacted, Trigger
from render.compaction._apply import FITTING, FittedRange, Summary, extractive, skip, squeezed
from render.compaction._range import plan_at, plan_range, plan_turns
from render.compaction.rungs import _clear, _drop, _externalize, _summarize
from render.compaction.rungs._plan import (
    AnyProposal,
    Clear,
    CompactionPlan,
    Drop,
    Externalize,
    Summarize,
    action_of,
    in_force,
)
from render.compaction.rungs._scope import RungScope
from render.policy._context import Context
from render.policy._policy import Rung
from render.stages._budget import threshold_of, total_tokens
from render.stages._rehydrate import wanted
from render.view._view import View


@attrs.frozen(kw_only=True)
class ExternalFacts:
    """What a caller may know besides the log."""

    cuts: tuple[int, ...] = ()
    """Versions before which everything is summarised already, best first."""
    current: Mapping[CallId, Determinism] = attrs.field(factory=dict[CallId, Determinism])
    """What the sources of replayable results look like now."""
    disabled_rungs: frozenset[Rung] = frozenset()
    """Rungs that are not to be tried."""


NO_FACTS = ExternalFacts()
AGGRESSIVE: Final[frozenset[Rung]] = frozenset({"externalize", "drop"})


@attrs.frozen(kw_only=True, eq=False)
class PlannedCompaction:
    """A plan, and what it was tried with: so that carrying it out repeats no work."""

    plan: CompactionPlan
    fold: FittedRange | None = attrs.field(repr=False)
    probe: Summary | None = attrs.field(repr=False)
    """The extractive summary that the fold was tried with."""
    start: View = attrs.field(repr=False)
    after: View = attrs.field(repr=False)
    """The view from `start` with the probe; nothing of it is committed."""


def plan_compaction(
    view: View, context: Context, trigger: Trigger, known: ExternalFacts = NO_FACTS
) -> PlannedCompaction | None:
    """What a compaction would do, tried out; None: there is nothing that it could do."""
    if not context.policy.compacts:
        return None
    known = attrs.evolve(known, disabled_rungs=known.disabled_rungs | _resting(view, context))
    climber = _Climber(context=context, trigger=trigger, known=known, view=view)
    climber.planned()
    if not climber.proposals:
        return None
    plan = CompactionPlan(
        version=view.version,
        trigger=trigger,
        policy=context.policy.name,
        limit=context.limit,
        target=goal_of(context),
        tokens_before=total_tokens(view, context),
        tokens_after=total_tokens(climber.view, context),
        proposals=tuple(climber.proposals),
    )
    fold = climber.fold
    return PlannedCompaction(
        plan=plan, fold=fold, probe=climber.probe, start=view, after=climber.view
    )


def _resting(view: View, context: Context) -> frozenset[Rung]:
    """In a turn into which artifacts come back, what would take them away again rests."""
    return AGGRESSIVE if wanted(view, context.policy) else frozenset()


def goal_of(context: Context) -> int:
    """Tokens under which no further rung is tried; once something was folded, the target is
    enough: what a fold leaves is worth more than what clearing and dropping would free of it."""
    return _share(context, min(context.policy.enough_ratio, context.policy.target_ratio))


def _share(context: Context, ratio: float) -> int:
    return min(int(ratio * context.limit), int(FITTING * threshold_of(context)))


@attrs.define(kw_only=True, eq=False)
class _Climber:
    context: Context
    trigger: Trigger
    known: ExternalFacts
    view: View
    proposals: list[AnyProposal] = attrs.field(factory=list[AnyProposal])
    fold: FittedRange | None = None
    probe: Summary | None = None

    def planned(self) -> None:
        """First with the tail left alone, then, if need be, with the newest round only."""
        tail, newest = _tail(self.view, self.context, self.trigger), _newest(self.view)
        for protected, is_last_resort in ((tail, False), (newest, True)):
            for rung in self.context.policy.rungs:
                goal = self._goal
                if self._is_done(goal):
                    return
                ground = RungScope(
                    view=self.view,
                    context=self.context,
                    protected=protected,
                    missing=self._tokens - goal,
                    is_last_resort=is_last_resort,
                    current=self.known.current,
                )
                if rung not in self.known.disabled_rungs:
                    self._step(rung, ground)
            if self._tokens <= threshold_of(self.context):
                return

    @property
    def _goal(self) -> int:
        enough = goal_of(self.context)
        return _share(self.context, self.context.policy.target_ratio) if self.fold else enough

    @property
    def _tokens(self) -> int:
        return total_tokens(self.view, self.context)

    def _is_done(self, goal: int) -> bool:
        """Under the goal.  A compaction that somebody asked for, or that costs nothing because the
        cache is cold, may have started there: it goes on until the fold, if there is such a rung."""
        folds = "summarize" in self.context.policy.rungs and self.fold is None
        if self.trigger != "proactive" and folds:
            return False
        return bool(self.proposals) and self._tokens <= goal

    def _step(self, rung: Rung, ground: RungScope) -> None:
        made: Sequence[AnyProposal]
        match rung:
            case "externalize":
                made = _externalize.propose(ground)
            case "clear":
                made = _clear.propose(ground)
            case "drop":
                made = _drop.propose(ground)
            case "summarize":
                made = self._fold(ground)
        if made:
            self.view = carry_out(self.view, made, self.context, self.fold, self.probe)
            self.proposals += made

    def _fold(self, ground: RungScope) -> list[AnyProposal]:
        if self.fold:
            return []
        self.fold = _summarize.propose(ground, self.trigger, self.known.cuts)
        if not self.fold:
            return []
        self.probe = extractive(self.fold.range)
        after = _summarize.apply(self.view, self.fold, self.probe)
        return [_summarize.proposal(self.fold, self._tokens - total_tokens(after, self.context))]


def _tail(view: View, context: Context, trigger: Trigger) -> int:
    """Version from which on everything belongs to the verbatim tail."""
    if turns := context.policy.keep_turns:
        kept = plan_turns(view, context, trigger, turns)
        return kept.cut if kept else 0
    plan = plan_range(view, context, trigger)
    return plan.cut if plan else _newest(view)


def _newest(view: View) -> int:
    """Version of the first block of the newest round."""
    return view.groups[-1].first if view.groups else 0


def carry_out(
    view: View,
    proposals: Sequence[AnyProposal],
    context: Context,
    fold: FittedRange | None,
    summary: Summary | None,
) -> View:
    """The view after these proposals, one event for each stretch of one rung."""
    for action, stretch in groupby(in_force(proposals), key=action_of):
        made = list(stretch)
        match action:
            case "externalize":
                moved = [p for p in made if isinstance(p, Externalize)]
                view = _externalize.apply(view, moved, context)
            case "clear":
                cleared = [p for p in made if isinstance(p, Clear)]
                view = _clear.apply(view, cleared, context)
            case "drop":
                dropped = [p for p in made if isinstance(p, Drop)]
                view = _drop.apply(view, dropped, context)
            case _:
                view = _summarize.apply(view, fold, summary) if fold and summary else view
    return view


def restore_plan(plan: CompactionPlan, view: View, context: Context) -> PlannedCompaction | None:
    """A plan that was made earlier, ready to be carried out; None: it does not belong to this view.

    The fold is planned where the plan reaches it: its digest tells what earlier rungs have moved.
    """
    there = {entry.block.id for entry in view.entries}
    is_here = all(there.issuperset(proposal.blocks) for proposal in plan.proposals)
    if not is_here or sum(isinstance(p, Summarize) for p in plan.proposals) > 1:
        return None
    fold: FittedRange | None = None
    probe: Summary | None = None
    after = view
    for _, stretch in groupby(in_force(plan.proposals), key=action_of):
        made = list(stretch)
        if isinstance(made[0], Summarize):
            fold = _fold_again(made[0], after, context, plan.trigger)
            if fold is None:
                return None
            probe = extractive(fold.range)
        after = carry_out(after, made, context, fold, probe)
    return PlannedCompaction(plan=plan, fold=fold, probe=probe, start=view, after=after)


def _fold_again(
    proposal: Summarize, view: View, context: Context, trigger: Trigger
) -> FittedRange | None:
    """The fold of a plan; None: what it would fold is not what it was."""
    within = squeezed(context, proposal.squeeze)
    found = plan_at(view, within, trigger, proposal.cut)
    if found is None or found.source_hash != proposal.source_hash:
        return None
    return FittedRange(range=found, context=within, squeeze=proposal.squeeze)


def apply_compaction(
    view: View, planned: PlannedCompaction, summary: Summary | None, context: Context
) -> View:
    """The view after a compaction; or with a note that it was skipped, if it gains too little.

    `summary` is needed where the plan folds something; `view` is the one that the plan was made for,
    or a later one of which nothing that the plan names has changed.
    """
    plan = planned.plan
    if view is planned.start and summary in (None, planned.probe):
        after = planned.after
    else:
        after = carry_out(view, plan.proposals, context, planned.fold, summary)
    tokens = total_tokens(after, context)
    if not gains_enough(plan, tokens, context):
        return skip(view, "no_gain", context, f"{plan.tokens_before} -> {tokens} tokens")
    return _measured(after, len(view.decisions), plan.tokens_before, tokens)


def _measured(view: View, first: int, before: int, after: int) -> View:
    """The view with the tokens of the whole compaction in its fold, or else in its last hide.

    `first` is the index of the compaction's first decision.
    """
    made = [e for e in view.decisions[first:] if isinstance(e, RangeCompacted | BlocksHidden)]
    if not made:
        return view
    old = next((e for e in made if isinstance(e, RangeCompacted)), made[-1])
    new = msgspec.structs.replace(old, tokens_before=before, tokens_after=after)
    known = view.compaction
    if known and known.event is old and isinstance(new, RangeCompacted):
        known = attrs.evolve(known, event=new)
    return attrs.evolve(
        view,
        decisions=tuple(new if event is old else event for event in view.decisions),
        events_since_cut=tuple(
            (version, new if event is old else event) for version, event in view.events_since_cut
        ),
        compaction=known,
    )


def gains_enough(plan: CompactionPlan, tokens_after: int, context: Context) -> bool:
    """Whether a compaction is worth it; where the request would not fit, every token is."""
    wanted = context.policy.gain_min * plan.tokens_before
    gained = plan.tokens_before - tokens_after
    return gained >= (wanted if plan.tokens_before <= context.limit else 1)
