"""Compaction in two pure halves, with room for one model call in between.

    plan = plan_compaction(view, context, trigger)   # what to fold and what to keep
    summary = ...                                     # the caller's business; may take a model
    view = apply_compaction(view, plan, summary, context)

Nothing is deleted: a compaction is one event, which says what stands for a range of the log.
"""

from collections.abc import Sequence
from hashlib import sha256

import attrs
import msgspec

from blocks import (
    BlockId,
    Carried,
    CompactionSkipped,
    Digest,
    EventId,
    Provenance,
    RangeCompacted,
    RangeSummary,
    SkipReason,
    StructuredSummary,
    Trigger,
    encode_block,
    text_of,
)
from render._budget import budget_of, fixed_tokens, total_tokens
from render._carry import LABEL_TOKENS, carry, is_said
from render._context import Context
from render._cut import find_cut, is_turn_start, latest_cut
from render._digest import build_digest, fit_digest
from render._extractive import extract_summary
from render._fold import commit, decide
from render._group import Entry, Place
from render._index import IndexBudget, build_index
from render._merge import merge_summaries
from render._ordinals import ordinals_after
from render._report import digest_sections, report_summary
from render._view import View
from render.anthropic import Encoder

KEEP_TOKENS_MIN = 400
INDEX_TOKENS_MIN = 200
FITTING = 0.95
"""Share of the budget that a compaction must come under, so that the next round fits, too."""


@attrs.frozen(kw_only=True)
class CompactionPlan:
    """What a compaction would fold, decided but not yet done. Pure data over versions."""

    version: int
    """Of the view it was made for."""
    trigger: Trigger
    start: int
    """Version of the first folded block."""
    cut: int
    """Version of the first kept block."""
    folded: tuple[Entry, ...] = attrs.field(repr=False)
    prefix: tuple[Entry, ...] = attrs.field(repr=False)
    """The folded blocks of the split turn; empty when the cut is on a turn start."""
    kept: tuple[Entry, ...] = attrs.field(repr=False)
    carried: tuple[Carried, ...] = attrs.field(repr=False)
    kept_tokens: int
    """What `kept` costs as it is shown."""
    tokens_before: int
    source_hash: str
    """Hash of the folded content and of the summary before it."""

    @property
    def is_split(self) -> bool:
        """Whether the cut goes through a turn."""
        return bool(self.prefix)


@attrs.frozen(kw_only=True)
class Summary:
    """A summariser's answer."""

    summary: StructuredSummary
    degraded: bool = False
    provenance: Provenance | None = None


def plan_compaction(
    view: View, context: Context, trigger: Trigger, keep_ratio: float | None = None
) -> CompactionPlan | None:
    """The plan, or None when no legal cut would fold anything."""
    entries = view.entries
    tokens = _entry_tokens(view, context)
    keep = _keep_tokens(context, context.policy.keep_ratio if keep_ratio is None else keep_ratio)
    cut = find_cut(entries, tokens, keep) if keep else latest_cut(entries)
    if cut is None and sum(tokens) < keep:
        cut = latest_cut(entries) if trigger == "forced" else None
    if not cut:
        return None
    folded, kept = entries[:cut], entries[cut:]
    head = view.compaction.head.entries if view.compaction else ()
    return CompactionPlan(
        version=view.version,
        trigger=trigger,
        start=folded[0].version,
        cut=kept[0].version,
        folded=tuple(folded),
        prefix=_prefix(folded, kept),
        kept=tuple(kept),
        carried=carry(head, folded, kept, context),
        kept_tokens=sum(tokens[cut:]),
        tokens_before=total_tokens(view, context),
        source_hash=_source_hash(view, folded),
    )


def fitting_plan(
    view: View, context: Context, trigger: Trigger
) -> tuple[CompactionPlan, Context] | None:
    """The plan that keeps most and still leaves a request within its budget; None: nothing to fold.

    The shares of the tail and, where that is not enough, of everything else are reduced until the
    probe fits.  The probe is the extractive summary: it is free.  The context is the one to apply
    the plan with.
    """
    best: tuple[CompactionPlan, Context] | None = None
    for keep, squeeze in ((1.0, 1.0), (0.3, 1.0), (0.0, 1.0), (0.0, 0.4), (0.0, 0.1)):
        squeezed = context if squeeze == 1.0 else _squeezed(context, squeeze)
        plan = plan_compaction(view, squeezed, trigger, keep * context.policy.keep_ratio)
        if plan is None:
            continue
        best = plan, squeezed
        after = commit(view, _event(view, plan, extractive(plan), squeezed))
        if total_tokens(after, context) <= FITTING * budget_of(context):
            break
    return best


def _squeezed(context: Context, factor: float) -> Context:
    """The context with smaller shares for what a compaction leaves besides the tail."""
    policy = context.policy
    smaller = attrs.evolve(
        policy,
        digest_ratio=policy.digest_ratio * factor,
        index_ratio=policy.index_ratio * factor,
        user_ratio=policy.user_ratio * factor,
    )
    return attrs.evolve(context, policy=smaller)


def _keep_tokens(context: Context, keep_ratio: float) -> int:
    """Tokens of the verbatim tail: its share, less when the fixed part leaves less."""
    room = int(context.policy.target_ratio * context.limit) - fixed_tokens(context)
    share = int(keep_ratio * context.limit)
    return min(share, max(room // 2, KEEP_TOKENS_MIN)) if keep_ratio else 0


def _entry_tokens(view: View, context: Context) -> list[int]:
    encoder = Encoder(counter=context.counter, keep_thinking=context.keep_thinking)
    tokens: list[int] = []
    for group in view.groups:
        shown = encoder.shown(group)
        costs: dict[int, int] = {}
        for spot in shown.spots:
            costs[spot.version] = costs.get(spot.version, 0) + spot.tokens
        tokens += [costs.get(entry.version, 0) for entry in group.entries]
    return tokens


def _prefix(folded: Sequence[Entry], kept: Sequence[Entry]) -> tuple[Entry, ...]:
    """The folded part of the turn that the cut goes through."""
    if is_turn_start(kept[0].block):
        return ()
    return tuple(entry for entry in folded if entry.block.turn == kept[0].block.turn)


def _source_hash(view: View, folded: Sequence[Entry]) -> str:
    digest = sha256()
    if view.compaction:
        digest.update(encode_block(view.compaction.event.summary))
    for entry in folded:
        digest.update(encode_block(entry.block))
    return digest.hexdigest()


def extractive(plan: CompactionPlan) -> Summary:
    """The summary that needs no model."""
    whole = {carried.version for carried in plan.carried if not carried.clipped}
    text = extract_summary(
        plan.folded, plan.prefix, lambda entry: entry.version in whole or not is_said(entry)
    )
    return Summary(summary=text, provenance=Provenance(source_hash=plan.source_hash))


def apply_compaction(view: View, plan: CompactionPlan, summary: Summary, context: Context) -> View:
    """The view after the compaction; or with a note that it was skipped, if it gains too little."""
    event = _event(view, plan, summary, context)
    after = total_tokens(commit(view, event), context)
    gain = plan.tokens_before - after
    wanted = context.policy.gain_min * plan.tokens_before
    if gain < (wanted if plan.tokens_before <= context.limit else 1):
        return skip(view, "no_gain", context, f"{plan.tokens_before} -> {after} tokens")
    return decide(view, msgspec.structs.replace(event, tokens_after=after))


def skip(view: View, reason: SkipReason, context: Context, detail: str = "") -> View:
    """The view with a note that a compaction was due and did not happen."""
    tokens = total_tokens(view, context)
    event = CompactionSkipped(
        id=EventId(""), at=context.now, reason=reason, tokens=tokens, detail=detail
    )
    return decide(view, event)


def _event(view: View, plan: CompactionPlan, summary: Summary, context: Context) -> RangeCompacted:
    state = view.state
    return RangeCompacted(
        id=EventId(""),
        at=context.now,
        start=plan.start,
        cut=plan.cut,
        summary=_block(view, plan, summary, context),
        carried=plan.carried,
        state=msgspec.structs.replace(
            plan.kept[0].state,
            rounds=_rounds_before(plan.kept),
            failures=0,
            failed_tokens=0,
            summaries=state.summaries + bool(summary.provenance and summary.provenance.model),
            ordinals=ordinals_after(view, plan.folded, plan.kept),
        ),
        trigger=plan.trigger,
        tokens_before=plan.tokens_before,
        policy=context.policy.name,
        provenance=summary.provenance,
    )


def _rounds_before(kept: Sequence[Entry]) -> int:
    """Rounds before the first kept one: a round that the cut went through is begun again."""
    first = next((entry for entry in kept if entry.place is Place.RESPONSE), None)
    return first.round - 1 if first else kept[0].state.rounds


def _block(view: View, plan: CompactionPlan, summary: Summary, context: Context) -> RangeSummary:
    previous = view.compaction.event.summary if view.compaction else None
    count, policy = context.counter.count, context.policy
    text = merge_summaries(
        previous.summary if previous else None,
        summary.summary,
        policy.summary_tokens + (policy.prefix_tokens if plan.is_split else 0),
        count,
    )
    digest = build_digest(previous.digest if previous else Digest(), plan.folded)
    digest = fit_digest(digest, int(policy.digest_ratio * context.limit), count)
    hidden = [entry for entry in plan.kept if entry.replacement is not None]
    written = report_summary(text) + "".join(part for _, part in digest_sections(digest))
    budget = _index_budget(plan, count(written), context)
    index = build_index(digest.index, [*plan.folded, *hidden], _visible(plan), budget, count)
    return RangeSummary(
        id=BlockId(f"summary.{view.version + 1}"),
        turn=plan.folded[-1].block.turn,
        covered_turn_ids=tuple(dict.fromkeys(entry.block.turn for entry in plan.folded)),
        split_turn_id=plan.kept[0].block.turn if plan.is_split else None,
        start=plan.start,
        cut=plan.cut,
        summary=text,
        digest=msgspec.structs.replace(digest, index=index),
        degraded=summary.degraded,
    )


def _index_budget(plan: CompactionPlan, written: int, context: Context) -> IndexBudget:
    """The index's share, or what the target leaves to it when that is less."""
    policy = context.policy
    carried = sum(
        context.counter.count(item.clipped or text_of(item.block)) + LABEL_TOKENS
        for item in plan.carried
    )
    target = int(policy.target_ratio * context.limit)
    room = target - fixed_tokens(context) - plan.kept_tokens - carried - written
    tokens = max(min(int(policy.index_ratio * context.limit), room), INDEX_TOKENS_MIN)
    wide, line = int(policy.index_wide * tokens), int(policy.index_line * tokens)
    return IndexBudget(wide=wide, line=line, names=tokens - wide - line)


def _visible(plan: CompactionPlan) -> list[str]:
    return [entry.replacement or text_of(entry.block) for entry in plan.kept]
