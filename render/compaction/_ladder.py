"""The ladder: the rungs that a compaction tries one after another until the request is small enough.

The proposals of a rung (see `_ladder_steps`) are applied at once to a copy of the view that is not committed, so the next rung
sees the result and all token counts are those of a real request. All proposals together are the draft: data that holds only
ids and texts, can be shown, written as JSON and tested, and committed later while the timeline is still at the draft's
version. If several proposals name a block, the rightmost action counts:

    include < clear < summarize < externalize < drop

Three limits decide how far it goes:

    trigger      a compaction is due above it; the last pass has succeeded once the request is below it
    enough       without a summary, no further rung is tried below this share of the limit
    target       with a summary, no further rung is tried below this share of the limit

The first pass touches nothing in the verbatim tail. If the request still does not fit, all rungs are tried
again with everything but the newest round.

    trial = draft_compaction(view, context, trigger)     # pure, calls no model
    summary = ...                                         # made by the caller, perhaps with a model
    view = apply_compaction(view, trial, summary, context)

The proposals of a user's own rung are checked before they are applied:

    data       proposals are equal after a round trip through JSON; a fold comes from `summarize_before`
    before     they name blocks before the verbatim tail, each once, in log order
    whole      a call is dropped together with its result, and a result with its call
    allowed    they name no user text, note, plan or open call, and nothing that is already hidden
    smaller    the request is shorter afterwards

If one of these rules is broken, all proposals of the rung are ignored, and one error says why.

A draft is applied when it is new, when it was stored, or when a hook has moved its cut. Only the proposals matter then,
not the rungs that made them, so a stored draft can be applied where its rungs are unknown.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Final, Literal, TypeAlias, get_args

import attrs
import msgspec
from msgspec import Struct

from blocks import (
    BlockId,
    BlocksHidden,
    CallId,
    DataError,
    Determinism,
    HideReason,
    RangeCompacted,
    RungError,
    TimelineId,
    ToolCall,
    ToolResult,
    Trigger,
    images_of,
    in_words,
)
from render.compaction._ladder_steps import (
    Proposal,
    RungScope,
    ToolAnswer,
    may_go,
    newest_round,
)
from render.compaction._range import (
    FittedRange,
    Summary,
    apply_range,
    range_before,
    range_cut,
    restated,
    skip,
    squeezed,
    tried_out,
    turns_cut,
)
from render.policy._context import Context
from render.policy._policy import Rung, RungName
from render.stages._budget import fitting_of, threshold_of, total_tokens
from render.stages._visibility import hide, wanted
from render.view._view import Entry, View

# The draft.


Action: TypeAlias = Literal["include", "clear", "summarize", "externalize", "drop"]
"""What a draft does with a block; if two proposals name it, the later action in this list counts."""
PRECEDENCE: Final[Mapping[str, int]] = {name: rank for rank, name in enumerate(get_args(Action))}
HIDE_REASONS: Final[Mapping[str, HideReason]] = {
    "externalize": "externalized",
    "clear": "cleared",
    "drop": "dropped",
}
"""The reason that is recorded when the blocks of a proposal are hidden."""
DRAFT_FORMAT: Final = 1


class CompactionDraft(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """What a compaction would do to a timeline. Pure data; equal logs give equal drafts."""

    format: int = DRAFT_FORMAT
    timeline: TimelineId = TimelineId("")
    version: int
    """Version of the view that the draft was made for; it can be committed only at this version."""
    trigger: Trigger
    policy: str = ""
    limit: int = 0
    target: int = 0
    """The request should have fewer tokens than this."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Tokens of the whole request afterwards, with the extractive summary."""
    proposals: tuple[Proposal, ...] = ()
    """The proposals, in the order in which the rungs were tried."""

    def __repr__(self) -> str:
        counts = Counter(proposal.action for proposal in self.proposals)
        proposed = ", ".join(f"{rung} {count}" for rung, count in counts.items())
        return (
            f"<CompactionDraft for {self.timeline!r}, version {self.version}: "
            f"{self.tokens_before:,} to {self.tokens_after:,} tokens; {proposed or 'nothing'}>"
        )

    @property
    def actions(self) -> Mapping[BlockId, Action]:
        """The action for each named block; all other blocks are included."""
        return normalised(self.proposals)[0]

    @property
    def warnings(self) -> tuple[str, ...]:
        """One text for each block that proposals with different actions name: the actions, and which counts."""
        return normalised(self.proposals)[1]

    def action(self, block: BlockId) -> Action:
        """The action for one block."""
        return self.actions.get(block, "include")

    @property
    def rungs(self) -> tuple[str, ...]:
        """The actions that are proposed, in the order in which the rungs were tried."""
        return tuple(dict.fromkeys(proposal.action for proposal in self.proposals))

    @property
    def digest(self) -> str:
        """SHA-256 of the draft, by which events refer to it."""
        return sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def to_json(self) -> bytes:
        """The draft as JSON; equal drafts give equal bytes."""
        return msgspec.json.format(msgspec.json.encode(self, order="deterministic"))

    @classmethod
    def from_json(cls, data: bytes | str) -> "CompactionDraft":
        """The draft in a text that `to_json` gave.

        Raises:
            DataError: it is not a draft, or it has a newer format.
        """
        try:
            draft = msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise DataError(f"not a draft of a compaction: {error}") from error
        if draft.format != DRAFT_FORMAT:
            raise DataError(
                f"the draft has format {draft.format}, and this version reads format {DRAFT_FORMAT}"
            )
        return draft


def in_force(proposals: Iterable[Proposal]) -> list[Proposal]:
    """The proposals in order, without those (except a summary) whose first block already has a stronger
    action."""
    done: dict[BlockId, Action] = {}
    effective: list[Proposal] = []
    for proposal in proposals:
        action = proposal.action
        before = done.get(proposal.blocks[0], "include")
        if PRECEDENCE[before] > PRECEDENCE[action] and action != "summarize":
            continue
        effective.append(proposal)
        done |= dict.fromkeys(proposal.blocks, action)
    return effective


def normalised(
    proposals: Iterable[Proposal],
) -> tuple[Mapping[BlockId, Action], tuple[str, ...]]:
    """One action for each block, and a warning for each block with several."""
    actions: dict[BlockId, Action] = {}
    warnings: list[str] = []
    for proposal in proposals:
        new = proposal.action
        for block in proposal.blocks:
            old = actions.get(block)
            if old is None or old == new:
                actions[block] = new
                continue
            actions[block] = max(old, new, key=PRECEDENCE.__getitem__)
            warnings.append(f"{block}: {old} and {new}; {actions[block]} counts")
    return actions, tuple(warnings)


# Climbing.


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


@attrs.frozen(kw_only=True, eq=False)
class CompactionTrial:
    """A draft with the results of trying it out, so that applying it repeats no work."""

    draft: CompactionDraft
    fitted: FittedRange | None = attrs.field(repr=False)
    """The range that the draft summarises; None if it summarises none."""
    start: View = attrs.field(repr=False)
    after: View = attrs.field(repr=False)
    """The view after the draft with the extractive summary; nothing of it is committed."""


def draft_compaction(
    view: View, context: Context, trigger: Trigger, facts: ExternalFacts = NO_FACTS
) -> CompactionTrial | None:
    """The draft of a compaction, with the result of trying it; None if no rung proposes anything.

    Raises:
        RungError: a user's own rung failed or made an invalid proposal, and `facts.on_refused` is not set.
    """
    if not context.policy.compacts:
        return None
    after, proposals, fitted = _climb(view, context, trigger, facts)
    if not proposals:
        return None
    draft = CompactionDraft(
        version=view.version,
        trigger=trigger,
        policy=context.policy.name,
        limit=context.limit,
        target=goal_of(context),
        tokens_before=total_tokens(view, context),
        tokens_after=total_tokens(after, context),
        proposals=tuple(proposals),
    )
    return CompactionTrial(draft=draft, fitted=fitted, start=view, after=after)


def _climb(
    view: View, context: Context, trigger: Trigger, facts: ExternalFacts
) -> tuple[View, list[Proposal], FittedRange | None]:
    """The view after the rungs that were needed, what they propose, and the range among it."""
    rungs = context.policy.rungs
    disabled = {*facts.disabled_rungs, *_disabled(view, context, trigger)}
    proposals = list[Proposal]()
    fitted: FittedRange | None = None
    for protected, is_last_resort in (
        (_tail(view, context, trigger), False),
        (newest_round(view), True),
    ):
        for rung in rungs:
            goal = _share(context, context.policy.target_ratio) if fitted else goal_of(context)
            tokens = total_tokens(view, context)
            # A compaction that was asked for, or that is free because the cache is cold, may start under its goal; it
            # goes on until a summary is made, if the policy has that rung.
            must_fold = trigger != "proactive" and "summarize" in rungs and fitted is None
            if proposals and tokens <= goal and not must_fold:
                break
            scope = RungScope(
                view=view,
                context=context,
                protected=protected,
                missing=tokens - goal,
                is_last_resort=is_last_resort,
                current=facts.current,
                trigger=trigger,
                cuts=facts.cuts,
                disabled=frozenset(disabled),
            )
            try:
                proposed = _proposed(rung, scope)
            except RungError as error:
                facts.on_refused(error)
                continue
            for each in proposed:
                if isinstance(each, FittedRange):  # at most one in a draft
                    fitted = each
                    disabled.add("summarize")
            view = _tried(view, proposed, context)
            proposals += map(_as_data, proposed)
        if total_tokens(view, context) <= threshold_of(context):
            break
    return view, proposals, fitted


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
        yield from ("externalize", "drop")
    if not context.can_externalize:
        yield "externalize"
    if trigger != "forced" and view.groups and view.compacted > view.groups[-1].last:
        yield from (rung.name for rung in context.policy.rungs if not isinstance(rung, str))


def _tail(view: View, context: Context, trigger: Trigger) -> int:
    """Version of the first block of the verbatim tail."""
    if turns := context.policy.keep_turns:
        cut = turns_cut(view.entries, turns)
        return view.entries[cut].version if cut else 0
    cut = range_cut(view, context, trigger)
    return view.entries[cut].version if cut else newest_round(view)


_Proposed: TypeAlias = Sequence[Proposal | FittedRange]
"""What a rung proposes: blocks to hide, or one range to fold."""


def _proposed(rung: RungName | Rung, scope: RungScope) -> _Proposed:
    """What a rung proposes; nothing if it is disabled.

    Raises:
        RungError: a user's own rung raised an exception, or its proposals break a rule.
    """
    name = rung if isinstance(rung, str) else rung.name
    if name in scope.disabled:
        return ()
    return scope.proposals(rung) if isinstance(rung, str) else _checked(rung, scope)


def _as_data(proposed: Proposal | FittedRange) -> Proposal:
    """What a rung proposes, without what trying it out has given."""
    if not isinstance(proposed, FittedRange):
        return proposed
    fold, folded = proposed.range, proposed.range.folded
    return Proposal(
        action="summarize",
        blocks=tuple(entry.block.id for entry in folded),
        first=folded[0].version,
        last=folded[-1].version,
        turns=tuple(dict.fromkeys(entry.block.turn for entry in folded)),
        tokens_freed=fold.tokens_before - proposed.tokens,
        reason="everything before the verbatim tail",
        cut=fold.cut,
        squeeze=proposed.squeeze,
        source_hash=fold.source_hash,
    )


def _tried(view: View, proposed: _Proposed, context: Context) -> View:
    """The view after what a rung proposes for it."""
    folds = [each for each in proposed if isinstance(each, FittedRange)]
    if folds:
        return folds[-1].after
    return apply_proposals(view, map(_as_data, proposed), context)


# A user's own rung.


PROPOSALS_MAX: Final = 100_000
"""The most proposals taken from one rung, in case its iterator never ends."""


def _checked(rung: Rung, scope: RungScope) -> _Proposed:
    """What a user's own rung proposes, without the disabled actions.

    Raises:
        RungError: the rung raised an exception, or its proposals break a rule.
    """
    try:
        proposals = list(islice(rung.propose(scope), PROPOSALS_MAX))
    except Exception as error:  # foreign code may raise anything
        raise RungError(rung.name, f"it raised {type(error).__name__}") from error
    proposed = [_round_trip(rung.name, each) for each in proposals]
    proposed = [each for each in proposed if _as_data(each).action not in scope.disabled]
    if fault := next(_faults(scope, proposed), None):
        raise RungError(rung.name, fault)
    return proposed


def _round_trip(name: str, proposed: object) -> Proposal | FittedRange:
    """A proposal as it comes back from JSON."""
    if isinstance(proposed, FittedRange):
        return proposed
    if not isinstance(proposed, Proposal):
        raise RungError(name, f"it proposes {in_words(proposed)}, not a Proposal")
    try:
        return msgspec.json.decode(msgspec.json.encode(proposed), type=Proposal)
    except (msgspec.MsgspecError, TypeError, ValueError, ArithmeticError) as error:
        raise RungError(name, f"its proposal cannot be stored in a draft: {error}") from error


def _faults(scope: RungScope, proposed: _Proposed) -> Iterator[str]:
    """The rules that the proposals break, as texts; none if they are valid."""
    if not proposed:
        return
    data = [_as_data(each) for each in proposed]
    if all(each.action != "summarize" for each in data):
        yield from _faults_of_hides(scope, data)
    elif [getattr(each, "start", None) for each in proposed] != [scope.view]:
        yield "a fold must come from summarize_before() and be the only proposal"
    after = _tried(scope.view, proposed, scope.context)
    if total_tokens(after, scope.context) >= total_tokens(scope.view, scope.context):
        yield "it frees no tokens"


def _faults_of_hides(scope: RungScope, proposals: Sequence[Proposal]) -> Iterator[str]:
    """The rules that proposals to hide blocks break, in order; a rule may rely on those before it."""
    head = scope.view.compaction.head.entries if scope.view.compaction else ()
    times = Counter(entry.block.id for entry in (*head, *scope.view.entries))
    before = (entry for group in scope.groups for entry in group.entries)
    entries = {entry.block.id: entry for entry in before if times[entry.block.id] == 1}
    for block, count in Counter(b for each in proposals for b in each.blocks).items():
        if block not in entries:
            yield f"{in_words(block)} is not a block before the verbatim tail"
        if count > 1:
            yield f"{in_words(block)} is named {count} times"
    for each in proposals:
        versions = [entries[block].version for block in each.blocks]
        ends = [(each.first, each.last)]
        if each.entry:
            ends.append((each.entry.first, each.entry.last))
        if versions != sorted(versions) or set(ends) != {(min(versions), max(versions))}:
            yield f"its blocks are not in log order, or not those of versions {ends[0]}"
        if not each.replacement.strip():
            yield f"the replacement for {in_words(each.blocks[0])} is empty"
    results = {answer.entry.block.id: answer for answer in scope.answers()}
    for each in proposals:
        first = each.blocks[0]
        if each.action == "drop":
            continue
        if first not in results or len(each.blocks) > 1:
            yield f"{in_words(first)} is not a visible tool result"
        elif each.action == "externalize":
            yield from _faults_of_artifact(each, results[first], scope.context)
    dropped = (block for each in proposals if each.action == "drop" for block in each.blocks)
    yield from _faults_of_drop([entries[block] for block in dropped])


def _faults_of_artifact(proposal: Proposal, answer: ToolAnswer, context: Context) -> Iterator[str]:
    block = in_words(proposal.blocks[0])
    wanted = answer.artifact, answer.entry.path, answer.sensitivity
    named = proposal.artifact, proposal.path, proposal.sensitivity
    if named != wanted or images_of(answer.result):
        yield f"{block} does not match the artifact, path or sensitivity in the proposal"
    if not answer.may_be_stored(context):
        yield f"{block} is {answer.sensitivity}, and there are no keys"


def _faults_of_drop(dropped: Sequence[Entry]) -> Iterator[str]:
    """A pair goes together, and what a user wrote stays."""
    for entry in dropped:
        if not may_go(entry):
            yield f"{in_words(entry.block.id)} must not be dropped"
    calls = {entry.pair for entry in dropped if isinstance(entry.block, ToolCall)}
    results = {entry.pair for entry in dropped if isinstance(entry.block, ToolResult)}
    if calls != results:
        yield "a call is dropped without its result, or a result without its call"


# Applying a draft.


def apply_proposals(view: View, proposals: Iterable[Proposal], context: Context) -> View:
    """The view after these blocks are hidden, with one event for each run of proposals of the same action."""
    for action, run in groupby(in_force(proposals), key=attrgetter("action")):
        if action in HIDE_REASONS:
            hidden = chain.from_iterable(proposal.hidden for proposal in run)
            view = hide(view, hidden, HIDE_REASONS[action], context)
    return view


def apply_compaction(
    view: View, trial: CompactionTrial, summary: Summary | None, context: Context
) -> View:
    """The view after a compaction, or with a note that it was skipped because it gains too little.

    If the draft summarises a range and `summary` is None, the extractive summary is used. `view` is the view
    that the draft was made for, or a later one in which nothing that the draft names has changed.
    """
    draft, fitted = trial.draft, trial.fitted
    if view is trial.start and (fitted is None or summary in (None, fitted.probe)):
        after = trial.after
    else:
        before, behind = _around_the_fold(draft)
        after = apply_proposals(view, before, context)
        if fitted:
            after = apply_range(after, fitted.range, summary or fitted.probe, fitted.context)
        after = apply_proposals(after, behind, context)
    tokens = total_tokens(after, context)
    if not gains_enough(draft, tokens, context):
        return skip(view, "no_gain", context, f"{draft.tokens_before} -> {tokens} tokens")
    return _measured(after, len(view.decisions), draft.tokens_before, tokens)


def _around_the_fold(draft: CompactionDraft) -> tuple[list[Proposal], list[Proposal]]:
    """The proposals in force before the summary, and those behind it; all are before it if there is none."""
    proposals = in_force(draft.proposals)
    fold = next((n for n, p in enumerate(proposals) if p.action == "summarize"), len(proposals))
    return proposals[:fold], proposals[fold + 1 :]


def _measured(view: View, first: int, before: int, after: int) -> View:
    """The view with the token counts of the whole compaction in its `RangeCompacted`, or else in its last
    `BlocksHidden`.

    `first` is the index of the compaction's first decision.
    """
    events = [e for e in view.decisions[first:] if isinstance(e, RangeCompacted | BlocksHidden)]
    if not events:
        return view
    old = next((e for e in events if isinstance(e, RangeCompacted)), events[-1])
    new = msgspec.structs.replace(old, tokens_before=before, tokens_after=after)
    return restated(view, old, new)


def gains_enough(draft: CompactionDraft, tokens_after: int, context: Context) -> bool:
    """Whether the compaction frees enough tokens; if the request would not fit, one token is enough."""
    wanted = context.policy.gain_min * draft.tokens_before
    gained = draft.tokens_before - tokens_after
    return gained >= (wanted if draft.tokens_before <= context.limit else 1)


def restore_draft(draft: CompactionDraft, view: View, context: Context) -> CompactionTrial | None:
    """A stored draft, ready to be applied; None if it does not match this view.

    The range is chosen after the proposals before it have been applied, because its digest depends on them.
    """
    there = {entry.block.id for entry in view.entries}
    folds = [proposal for proposal in draft.proposals if proposal.action == "summarize"]
    is_here = all(there.issuperset(proposal.blocks) for proposal in draft.proposals)
    if not is_here or len(folds) > 1:
        return None
    before, behind = _around_the_fold(draft)
    after, fitted = apply_proposals(view, before, context), None
    for proposal in folds:
        within = squeezed(context, proposal.squeeze)
        fold = range_before(after, within, draft.trigger, proposal.cut)
        if fold is None or fold.source_hash != proposal.source_hash:  # its content has changed
            return None
        fitted = tried_out(after, fold, within, proposal.squeeze)
        after = apply_proposals(fitted.after, behind, context)
    return CompactionTrial(draft=draft, fitted=fitted, start=view, after=after)


def recut(trial: CompactionTrial, cut: int, context: Context) -> CompactionTrial | None:
    """The same draft with its range cut before the block of version `cut`, and without the proposals after
    the range. None if that cut is not legal or the draft has no range."""
    fitted, draft = trial.fitted, trial.draft
    if fitted is None:
        return None
    fold = next(n for n, p in enumerate(draft.proposals) if p.action == "summarize")
    earlier = draft.proposals[:fold]
    before = apply_proposals(trial.start, earlier, context)
    new_range = range_before(before, fitted.context, draft.trigger, cut)
    if new_range is None:
        return None
    fitted = tried_out(before, new_range, fitted.context, fitted.squeeze)
    proposals = (*earlier, _as_data(fitted))
    draft = msgspec.structs.replace(draft, proposals=proposals, tokens_after=fitted.tokens)
    return CompactionTrial(draft=draft, fitted=fitted, start=trial.start, after=fitted.after)
