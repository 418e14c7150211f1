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

The proposals of a user's own rung are checked before they are applied:

    data       proposals are of the four kinds, and equal after a round trip through JSON
    before     they name blocks before the verbatim tail, each once, in log order
    whole      a call is dropped together with its result, and a result with its call
    allowed    they name no user text, note, plan or open call, and nothing that is already hidden
    smaller    the request is shorter afterwards

If one of these rules is broken, all proposals of the rung are ignored, and one error says why.

A plan is applied when it is new, when it was stored, or when a hook has moved its cut. Only the proposals matter then,
not the rungs that made them, so a stored plan can be applied where its rungs are unknown.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice, takewhile
from typing import Final, TypeAlias

import attrs
import msgspec

from blocks import (
    ENCRYPTED,
    BlockId,
    BlocksHidden,
    CallId,
    Determinism,
    EventId,
    RangeCompacted,
    RungError,
    ToolCall,
    ToolResult,
    Trigger,
    images_of,
    in_words,
)
from render.compaction._apply import FittedRange, Summary, apply_range, extractive, skip
from render.compaction._cut import plan_at, range_cut, turns_cut
from render.compaction.rungs._clear import ClearRung
from render.compaction.rungs._drop import DropRung, may_go
from render.compaction.rungs._externalize import ExternalizeRung, artifact_of
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
from render.compaction.rungs._scope import Found, RungScope, sensitivity_of
from render.compaction.rungs._summarize import SummarizeRung, proposal_of, range_of, restored_range
from render.policy._context import Context
from render.policy._policy import Rung, RungName
from render.stages._budget import fitting_of, threshold_of, total_tokens
from render.stages._visibility import wanted
from render.view._fold import decide
from render.view._group import Entry
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


@attrs.frozen(kw_only=True, eq=False)
class PlannedCompaction:
    """A plan with the results of trying it out, so that applying it repeats no work."""

    plan: CompactionPlan
    fitted: FittedRange | None = attrs.field(repr=False)
    """The range that the plan summarises; None if it summarises none."""
    probe: Summary | None = attrs.field(repr=False)
    """The extractive summary that the range was tried with."""
    start: View = attrs.field(repr=False)
    after: View = attrs.field(repr=False)
    """The view after the plan with the probe summary; nothing of it is committed."""


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

    def _try(self, rung: "KnownRung | CheckedRung", scope: RungScope) -> None:
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


# A user's own rung.


PROPOSALS_MAX: Final = 100_000
"""The most proposals taken from one rung, in case its iterator never ends."""


@attrs.frozen
class CheckedRung:
    """A rung that checks the proposals of another rung."""

    rung: Rung

    @property
    def name(self) -> str:
        """The name of the wrapped rung."""
        return self.rung.name

    def propose(self, scope: RungScope) -> Sequence[AnyProposal]:
        """The wrapped rung's proposals, without the disabled actions.

        Raises:
            RungError: the rung raised an exception, or its proposals break a rule.
        """
        try:
            given = list(islice(self.rung.propose(scope), PROPOSALS_MAX))
        except Exception as error:  # foreign code may raise anything
            raise RungError(self.name, f"it raised {type(error).__name__}") from error
        made = [self._data(proposal) for proposal in given]
        made = [proposal for proposal in made if action_of(proposal) not in scope.disabled]
        if fault := next(_faults(scope, made), None):
            raise RungError(self.name, fault)
        return made

    def _data(self, given: object) -> AnyProposal:
        if not isinstance(given, AnyProposal):
            raise RungError(self.name, f"it proposes {in_words(given)}")
        try:
            data: AnyProposal = msgspec.json.decode(msgspec.json.encode(given), type=AnyProposal)
        except (msgspec.MsgspecError, TypeError, ValueError, ArithmeticError) as error:
            kind = type(given).__name__
            raise RungError(self.name, f"its {kind} does not go into a plan: {error}") from error
        return data


def _faults(scope: RungScope, made: Sequence[AnyProposal]) -> Iterator[str]:
    """The rules that the proposals break, as texts; none if they are valid."""
    if not made:
        return
    summaries = [proposal for proposal in made if isinstance(proposal, Summarize)]
    fitted = range_of(scope, summaries[0]) if summaries else None
    if not summaries:
        yield from _faults_of_hides(scope, made)
    elif fitted is None or len(made) > 1:
        yield "a Summarize comes from summarize_before(), and alone"
    after = apply_proposals(scope.view, made, scope.context, fitted)
    if total_tokens(after, scope.context) >= total_tokens(scope.view, scope.context):
        yield "nothing is freed by it"


def _faults_of_hides(scope: RungScope, made: Sequence[AnyProposal]) -> Iterator[str]:
    named = Counter(block for proposal in made for block in proposal.blocks)
    entries, shown = _entries(scope), {found.entry.block.id: found for found in scope.answers()}
    for block, count in named.items():
        if block not in entries:
            yield f"{in_words(block)} is no block before the verbatim tail"
        if count > 1:
            yield f"{in_words(block)} is named {count} times"
    for proposal in made:
        yield from _faults_of_place(proposal, [entries[block] for block in proposal.blocks])
        if isinstance(proposal, Clear | Externalize):
            yield from _faults_of_result(proposal, shown, scope)
    dropped = [entries[block] for p in made if isinstance(p, Drop) for block in p.blocks]
    yield from _faults_of_dropped(dropped)


def _entries(scope: RungScope) -> Mapping[BlockId, Entry]:
    """The blocks that may be named: those before the tail whose id is unique in the view."""
    view = scope.view
    head = view.compaction.head.entries if view.compaction else ()
    times = Counter(entry.block.id for entry in (*head, *view.entries))
    found = (entry for group in scope.groups for entry in group.entries)
    return {entry.block.id: entry for entry in found if times[entry.block.id] == 1}


def _faults_of_place(proposal: AnyProposal, entries: Sequence[Entry]) -> Iterator[str]:
    versions = [entry.version for entry in entries]
    ends = [(proposal.first, proposal.last)]
    if isinstance(proposal, Drop):
        ends.append((proposal.entry.first, proposal.entry.last))
    if versions != sorted(versions) or set(ends) != {(versions[0], versions[-1])}:
        yield f"its blocks are not in log order, or not those of versions {ends[0]}"
    if not all(hidden.replacement.strip() for hidden in proposal.hidden[:1]):
        yield f"nothing stands for {in_words(proposal.blocks[0])}"


def _faults_of_result(
    proposal: Clear | Externalize, shown: Mapping[BlockId, Found], scope: RungScope
) -> Iterator[str]:
    block = proposal.blocks[0]
    found = shown.get(block)
    if found is None or len(proposal.blocks) > 1:
        yield f"{in_words(block)} is no tool result that is shown"
    elif isinstance(proposal, Externalize):
        sensitivity = sensitivity_of(found.result, found.policy)
        told = proposal.artifact, proposal.path, proposal.sensitivity
        if told != (artifact_of(found.result), found.entry.path, sensitivity) or images_of(
            found.result
        ):
            yield f"{in_words(block)} is another artifact, or none"
        is_kept = bool(found.result.artifact) or sensitivity not in ENCRYPTED
        if not (is_kept or scope.context.can_encrypt):
            yield f"{in_words(block)} is {sensitivity}, and there are no keys"


def _faults_of_dropped(entries: Sequence[Entry]) -> Iterator[str]:
    kept = [entry for entry in entries if not may_go(entry)]
    if kept:
        yield f"{in_words(kept[0].block.id)} is not to be dropped"
    calls = {entry.pair for entry in entries if isinstance(entry.block, ToolCall)}
    results = {e.pair for e in entries if isinstance(e.block, ToolResult)}
    if calls != results:
        yield "a call is dropped without its result, or a result without its call"


# Applying a plan.


def apply_proposals(
    view: View,
    proposals: Iterable[AnyProposal],
    context: Context,
    fitted: FittedRange | None = None,
    summary: Summary | None = None,
) -> View:
    """The view after these proposals, with one event for each run of proposals of the same action.

    `fitted` is the range of a `Summarize` among them; without a `summary`, the extractive one is used.
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


def apply_compaction(
    view: View, planned: PlannedCompaction, summary: Summary | None, context: Context
) -> View:
    """The view after a compaction, or with a note that it was skipped because it gains too little.

    If the plan summarises a range and `summary` is None, the extractive summary is used. `view` is the view
    that the plan was made for, or a later one in which nothing that the plan names has changed.
    """
    plan = planned.plan
    if view is planned.start and summary in (None, planned.probe):
        after = planned.after
    else:
        after = apply_proposals(view, plan.proposals, context, planned.fitted, summary)
    tokens = total_tokens(after, context)
    if not gains_enough(plan, tokens, context):
        return skip(view, "no_gain", context, f"{plan.tokens_before} -> {tokens} tokens")
    return _measured(after, len(view.decisions), plan.tokens_before, tokens)


def _measured(view: View, first: int, before: int, after: int) -> View:
    """The view with the token counts of the whole compaction in its `RangeCompacted`, or else in its last
    `BlocksHidden`.

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
    """Whether the compaction frees enough tokens; if the request would not fit, one token is enough."""
    wanted = context.policy.gain_min * plan.tokens_before
    gained = plan.tokens_before - tokens_after
    return gained >= (wanted if plan.tokens_before <= context.limit else 1)


def restore_plan(plan: CompactionPlan, view: View, context: Context) -> PlannedCompaction | None:
    """A stored plan, ready to be applied; None if it does not match this view.

    The range is planned after the proposals before it have been applied, because its digest depends on
    them.
    """
    there = {entry.block.id for entry in view.entries}
    is_here = all(there.issuperset(proposal.blocks) for proposal in plan.proposals)
    if not is_here or sum(isinstance(p, Summarize) for p in plan.proposals) > 1:
        return None
    fitted: FittedRange | None = None
    after = view
    for _, stretch in groupby(in_force(plan.proposals), key=action_of):
        made = list(stretch)
        if isinstance(made[0], Summarize):
            fitted = restored_range(made[0], after, context, plan.trigger)
            if fitted is None:
                return None
        after = apply_proposals(after, made, context, fitted)
    probe = extractive(fitted.range) if fitted else None
    return PlannedCompaction(plan=plan, fitted=fitted, probe=probe, start=view, after=after)


def recut(planned: PlannedCompaction, cut: int, context: Context) -> PlannedCompaction | None:
    """The same plan with its range cut before the block of version `cut`, and without the proposals after
    the range. None if that cut is not legal or the plan has no range."""
    fitted, plan = planned.fitted, planned.plan
    earlier = list(takewhile(lambda p: not isinstance(p, Summarize), plan.proposals))
    if fitted and any(p.first >= cut for p in earlier if isinstance(p, Externalize)):
        scope = RungScope(view=planned.start, context=context, protected=fitted.range.cut)
        whole = {p.blocks: p for p in ExternalizeRung().propose(scope)}  # with excerpts
        earlier = [whole.get(p.blocks, p) if isinstance(p, Externalize) else p for p in earlier]
    before = apply_proposals(planned.start, earlier, context)
    found = plan_at(before, fitted.context, plan.trigger, cut) if fitted else None
    if fitted is None or found is None:
        return None
    fitted, probe = attrs.evolve(fitted, range=found), extractive(found)
    after = apply_range(before, found, probe, fitted.context)
    tokens = total_tokens(after, context)
    made = proposal_of(fitted, total_tokens(before, context) - tokens)
    plan = msgspec.structs.replace(plan, proposals=(*earlier, made), tokens_after=tokens)
    return PlannedCompaction(
        plan=plan, fitted=fitted, probe=probe, start=planned.start, after=after
    )
