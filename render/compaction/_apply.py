"""Compacting a range into a summary, in two pure steps; a model may be called between them.

    plan = plan_range(view, context, trigger)   # what to fold and what to keep
    summary = ...                               # made by the caller, perhaps with a model
    view = apply_range(view, plan, summary, context)

Nothing is deleted: a compaction is one event that replaces a range of the log with a summary.

The summary block is the text of a summariser, merged with the earlier one and limited, plus the computed digest. A turn
that the cut splits has its own context in the block. Each later fold adds to it while the turn runs; when the turn has
ended, its context becomes history.

A paid summary is found again by keys, in its own timeline and in others. Both keys depend on content, schema, policy,
model and prompt version.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from math import sqrt
from typing import Any, Final

import attrs
import msgspec

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    Block,
    BlockId,
    BlocksHidden,
    CompactionSkipped,
    Digest,
    EventId,
    Naming,
    Note,
    OpaqueBlock,
    Plan,
    Provenance,
    RangeCompacted,
    RangeSummary,
    SkipReason,
    Sources,
    StructuredSummary,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    encode_block,
    path_stem,
    standing_of,
    text_of,
)
from render.compaction._carry import LABEL_TOKENS, is_said
from render.compaction._cut import RangePlan
from render.compaction._prompt import PROMPT_VERSION
from render.policy._context import Context
from render.stages._budget import corrected, fitting_of, fixed_tokens, is_cold, total_tokens
from render.summary._digest import build_digest, fit_digest
from render.summary._extractive import extract_summary, turn_context, words_of
from render.summary._identifiers import searched
from render.summary._index import IndexRoom, extend_index
from render.summary._merge import SummaryRoom, as_history, merge_summaries
from render.summary._reading import reader_of
from render.summary._text import SECTIONS, digest_sections, format_written, turns_of
from render.view._fold import commit, decide
from render.view._group import Entry, Place
from render.view._provider_blocks import response_of
from render.view._view import View

LAID_DOWN_SQUEEZE: Final = 5
"""What the user laid down shrinks once the other shares are below a fifth, and then with the root of the factor."""
WRITTEN_SQUEEZE: Final = 10
"""The context of a split turn shrinks once the other shares are below a tenth: it then has ten times their factor."""


@attrs.frozen(kw_only=True)
class Summary:
    """A summariser's answer."""

    summary: StructuredSummary
    degraded: bool = False
    provenance: Provenance | None = None


@attrs.frozen(kw_only=True, eq=False)
class FittedRange:
    """A range to fold, and the context to fold it with."""

    range: RangePlan
    context: Context = attrs.field(repr=False)
    squeeze: float = 1.0
    """The factor that the policy's shares were multiplied by in `context`."""


def fits_after(view: View, plan: RangePlan, context: Context) -> bool:
    """Whether the request after this compaction is far enough below the trigger (see `FITTING`)."""
    kept = corrected(fixed_tokens(context) + plan.kept_tokens, view, context)
    if kept > context.limit:  # the tail alone exceeds the limit: no summary can help
        return False
    return _outcome(view, plan, extractive(plan), context).tokens <= fitting_of(context)


def squeezed(context: Context, factor: float) -> Context:
    """The context with smaller shares for everything that a compaction leaves except the tail.

    The shares of the user's texts and of standing instructions shrink more slowly: they are what the user laid down.
    Of what is written, only the context of a split turn shrinks, and last: constraints and facts stay (invariant 6).
    """
    if factor == 1.0:
        return context
    policy = context.policy
    written, laid_down = (
        min(WRITTEN_SQUEEZE * factor, 1.0),
        sqrt(min(LAID_DOWN_SQUEEZE * factor, 1.0)),
    )
    smaller = attrs.evolve(
        policy,
        prefix_tokens=int(policy.prefix_tokens * written),
        digest_ratio=policy.digest_ratio * factor,
        index_ratio=policy.index_ratio * factor,
        user_ratio=policy.user_ratio * laid_down,
        standing_ratio=policy.standing_ratio * laid_down,
    )
    return attrs.evolve(context, policy=smaller)


def extractive(plan: RangePlan) -> Summary:
    """The summary that is made without a model; computed once per plan."""
    if not plan.extracted:
        plan.extracted.append(_extracted(plan))
    known: Summary = plan.extracted[0]
    return known


def _extracted(plan: RangePlan) -> Summary:
    whole = {carried.version for carried in plan.carried if not carried.clipped}
    own = [e for e in (*plan.given_up, *plan.folded) if not standing_of(e.source)]
    text = extract_summary(own, plan.prefix, lambda entry: entry.version in whole)
    return Summary(summary=text, provenance=Provenance(source_hash=plan.source_hash))


def truncated(plan: RangePlan) -> Summary:
    """The fallback without a summary: how many blocks were left out, and their topics."""
    topics = (text_of(entry.block).strip() for entry in plan.folded if is_said(entry))
    about = "; ".join(topic.split("\n", 1)[0][:80] for topic in topics if topic)
    state = f"[{len(plan.folded)} earlier blocks were left out without a summary" + (
        f"; they were about: {about[:600]}]" if about else "]"
    )
    return Summary(summary=StructuredSummary(state=state))


def apply_range(view: View, plan: RangePlan, summary: Summary, context: Context) -> View:
    """The view after the range is folded, regardless of how many tokens that saves."""
    return _decided(_outcome(view, plan, summary, context))


@attrs.frozen(kw_only=True, eq=False)
class _Outcome:
    """The result of applying a plan with one summary."""

    start: View
    before: View
    """As `start`, with the cuts of what is kept."""
    summary: Summary
    context: Context
    event: RangeCompacted
    after: View
    tokens: int
    """Tokens of the whole request afterwards."""


def _outcome(view: View, plan: RangePlan, summary: Summary, context: Context) -> _Outcome:
    """The result of the plan with this summary; the last result is kept, because the same summary is often
    tried first."""
    for tried in plan.tried:
        if tried.start is view and tried.context is context and tried.summary == summary:
            known: _Outcome = tried
            return known
    trimmed = _trimmed(view, plan, context)
    event = compaction_event(trimmed, plan, summary, context)
    after = commit(trimmed, event)
    tokens = total_tokens(after, context)
    made = _Outcome(
        before=trimmed,
        start=view,
        summary=summary,
        context=context,
        event=event,
        after=after,
        tokens=tokens,
    )
    plan.tried[:] = [made]
    return made


def _trimmed(view: View, plan: RangePlan, context: Context) -> View:
    """The view with the results that the plan keeps cut to their share."""
    if not plan.cuts:
        return view
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=plan.cuts, reason="clipped")
    return decide(view, event)


def _decided(outcome: _Outcome) -> View:
    """The view afterwards, with the token count recorded in the event and the event among the decisions."""
    event = msgspec.structs.replace(outcome.event, tokens_after=outcome.tokens)
    known = outcome.after.compaction
    return attrs.evolve(
        outcome.after,
        compaction=known and attrs.evolve(known, event=event),
        decisions=(*outcome.before.decisions, event),
    )


def skip(view: View, reason: SkipReason, context: Context, detail: str = "") -> View:
    """The view with an event that says that a due compaction was skipped, and why."""
    tokens = total_tokens(view, context)
    event = CompactionSkipped(
        id=EventId(""), at=context.now, reason=reason, tokens=tokens, detail=detail
    )
    return decide(view, event)


def compaction_event(
    view: View, plan: RangePlan, summary: Summary, context: Context
) -> RangeCompacted:
    """The `RangeCompacted` event that this compaction would record; it is not committed."""
    written = msgspec.structs.replace(
        summary_block(view, plan, summary.summary, context), degraded=summary.degraded
    )
    naming = _naming(view, plan.folded)
    return RangeCompacted(
        id=EventId(""),
        at=context.now,
        start=plan.start,
        cut=plan.cut,
        summary=written,
        ordinal=_summary_ordinal(view, naming, written),
        carried=plan.carried,
        state=msgspec.structs.replace(
            plan.kept[0].state,
            rounds=_rounds_before(plan.kept),
            failures=0,
            failed_tokens=0,
            sources=_sources_after(plan),
            **_named_after(naming, plan.kept),
        ),
        trigger=plan.trigger,
        tokens_before=plan.tokens_before,
        policy=context.policy.name,
        provenance=summary.provenance,
    )


def _rounds_before(kept: Sequence[Entry]) -> int:
    """Number of rounds before the first kept one; a round that the cut splits counts as not yet begun."""
    first = next((entry for entry in kept if entry.place is Place.RESPONSE), None)
    return first.round - 1 if first else kept[0].state.rounds


def _sources_after(plan: RangePlan) -> str:
    """The encoded set of foreign ids (block sources and responses) in the log before the cut."""
    sources = Sources(plan.kept[0].state.sources)
    folded = (entry.source for entry in plan.folded)
    names = (name for block in folded for name in (block.source, response_of(block)) if name)
    sources.add(dict.fromkeys(names))  # blocks of one response share one response name
    return sources.encoded()


# Paths stay the same across a cut: they number the blocks of one kind within a turn.


def _named_after(naming: Naming, kept: Sequence[Entry]) -> dict[str, Any]:
    """The fields of the fold's state on which the paths of blocks after the cut depend."""
    ordinals = naming.cut((entry.version, entry.source) for entry in kept)
    return {"ordinals": ordinals, "named": naming.named()}


def _summary_ordinal(view: View, naming: Naming, summary: RangeSummary) -> int:
    """Ordinal of this summary within its turn; 0 when it is not known.

    Undone compactions count as well, because their summaries had paths.
    """
    if not naming.is_counted(summary.turn):
        return 0
    stem, head = path_stem(summary), view.compaction
    earlier = [event for _, event in view.events_since_cut if isinstance(event, RangeCompacted)]
    alike = [e for e in (*([head.event] if head else []), *earlier) if path_stem(e.summary) == stem]
    if alike:
        ordinals = [event.ordinal for event in alike]
        return max(ordinals) + 1 if all(ordinals) else 0
    is_older = head is not None and head.event.state.turn == summary.turn
    return 0 if is_older else 1


def _naming(view: View, folded: Sequence[Entry]) -> Naming:
    """The naming state after every folded block."""
    naming = view.compaction.naming if view.compaction else Naming()
    naming.skip((entry.version, entry.source) for entry in folded)
    return naming


# The summary block.


INDEX_TOKENS_MIN: Final = 200
NAMING_SHARE: Final = 0.8
"""Share of the written text's tokens that is deducted from the index, because the written text names
identifiers too."""


def summary_block(
    view: View, plan: RangePlan, answer: StructuredSummary, context: Context
) -> RangeSummary:
    """The block that replaces everything folded when this plan is applied."""
    previous = view.compaction.event.summary if view.compaction else None
    text = merge_summaries(_so_far(previous, plan), _written(answer, plan), SummaryRoom.of(context))
    block = RangeSummary(
        id=BlockId(f"summary.{view.version + 1}"),
        turn=plan.folded[-1].block.turn,
        covered_turn_ids=tuple(dict.fromkeys(entry.block.turn for entry in plan.folded)),
        split_turn_id=plan.kept[0].block.turn if plan.is_split else None,
        start=plan.start,
        cut=plan.cut,
        summary=text,
        digest=Digest(),
        turn_range=_turn_range(previous, plan),
        begun_turn_id=_begun(previous, plan),
    )
    digest = _digest(view, plan, block, context)
    return msgspec.structs.replace(block, digest=digest)


def _written(summary: StructuredSummary, plan: RangePlan) -> StructuredSummary:
    """The summariser's answer, with the user's own words first; a split turn always gets a context."""
    said = [" ".join(words.split()) for words in _said(plan)] if summary.constraints else []
    own, others = list[str](), list[str]()
    for constraint in summary.constraints:
        words = " ".join(constraint.split())
        (own if words and any(words in text for text in said) else others).append(constraint)
    return msgspec.structs.replace(
        summary,
        constraints=(*own, *others),
        quoted=len(own),
        turn_context=summary.turn_context or turn_context(plan.prefix),
    )


def _said(plan: RangePlan) -> Iterator[str]:
    """All user texts that the plan knows."""
    for entry in (*plan.given_up, *plan.folded, *plan.kept):
        yield from searched(words_of(entry))
    for item in plan.carried:
        yield from searched("" if item.withheld else text_of(item.block))


def _so_far(previous: RangeSummary | None, plan: RangePlan) -> StructuredSummary | None:
    """The previous summary; the context of a turn that has ended is moved to its history."""
    begun = _begun_before(previous)
    if previous is None:
        return None
    is_over = begun is not None and begun != plan.kept[0].block.turn
    return as_history(previous.summary, str(begun)) if is_over else previous.summary


def _begun_before(previous: RangeSummary | None) -> TurnId | None:
    return (previous.begun_turn_id or previous.split_turn_id) if previous else None


def _begun(previous: RangeSummary | None, plan: RangePlan) -> TurnId | None:
    """The turn that continues after the cut, if its beginning has been folded; otherwise None."""
    turn = plan.kept[0].block.turn
    is_begun = any(e.block.turn == turn and e.place is not Place.SILENT for e in plan.folded)
    return turn if is_begun or turn == _begun_before(previous) else None


def _turn_range(previous: RangeSummary | None, plan: RangePlan) -> tuple[TurnId, ...]:
    """The oldest and the newest turn that are folded whole; late results of older turns are ignored."""
    known = (previous.turn_range or previous.covered_turn_ids) if previous else ()
    folded = (e.block.turn for e in plan.folded if not isinstance(e.block, ToolResult))
    whole = [turn for turn in (*known, *folded) if turn != plan.kept[0].block.turn]
    return (whole[0], whole[-1]) if whole else ()


def _digest(view: View, plan: RangePlan, block: RangeSummary, context: Context) -> Digest:
    """The digest for a summary; its index gets the remaining room."""
    count, policy = context.counter.count, context.policy
    previous = view.compaction.event.summary if view.compaction else None
    earlier = previous.digest if previous else Digest()
    digest = build_digest(earlier, plan.folded, policy.tools)
    known = set(previous.covered_turn_ids if previous else ())  # a turn that was split counts once
    again = len(known.intersection(block.covered_turn_ids))
    digest = msgspec.structs.replace(digest, turns=digest.turns - again)
    free = context.capacity - fixed_tokens(context) - _carried(plan, context, standing=True)
    room = int(policy.index_commands * policy.index_ratio * max(free, 0))
    digest = fit_digest(digest, int(policy.digest_ratio * context.capacity), count, room)
    hidden = [e for e in plan.kept if e.replacement is not None and e.original is None]
    sections = tuple(digest_sections(digest, turns_of(block)))
    written = count(format_written(block.summary))
    computed = count("".join(part for _, part in sections))
    apart = count(dict(sections)[SECTIONS["commands"]]) if room else 0
    share = int(policy.index_ratio * max(free, 0)) - int(NAMING_SHARE * written) - apart
    tokens = _index_tokens(plan, share, written + computed, context)
    index_room = _index_room(tokens, context, is_cold=is_cold(view, context))
    sources = [e for e in (*plan.given_up, *plan.folded, *hidden) if not standing_of(e.source)]
    index = extend_index(
        digest.index, sources, _visible(plan), index_room, reader_of(view, context)
    )
    return msgspec.structs.replace(digest, index=index)


def _index_tokens(plan: RangePlan, share: int, report: int, context: Context) -> int:
    """Tokens for the index: its share, or less if the target leaves less room beside the rest."""
    policy = context.policy
    carried = _carried(plan, context) + _carried(plan, context, standing=True)
    target = int(policy.target_ratio * context.capacity)
    room = target - fixed_tokens(context) - plan.kept_tokens - carried - report
    least = min(int(policy.index_ratio * context.capacity), INDEX_TOKENS_MIN)
    return max(min(share, room), least)


def _carried(plan: RangePlan, context: Context, *, standing: bool = False) -> int:
    """Tokens of the standing instructions that are carried, or of everything else that is."""
    items = (item for item in plan.carried if bool(standing_of(item.block)) == standing)
    count = context.counter.count
    return sum(count(item.clipped or text_of(item.block)) + LABEL_TOKENS for item in items)


def _index_room(tokens: int, context: Context, *, is_cold: bool) -> IndexRoom:
    policy = context.policy
    return IndexRoom(
        total=tokens,
        layer=int(policy.index_layer * tokens),
        rebuilt=int(policy.index_rebuilt * tokens),
        is_cold=is_cold,
    )


def _visible(plan: RangePlan) -> list[str]:
    """The texts that the model still sees after the compaction."""
    carried = [text_of(item.block) for item in plan.carried if not item.clipped]
    return [*carried, *(entry.replacement or text_of(entry.block) for entry in plan.kept)]


# The keys of a paid summary.


def summary_key(plan: RangePlan, context: Context, model: str) -> str:
    """Key of a prepared summary, so that the same range is never paid for twice.

    It covers content, schema, policy, model and prompt version, and nothing that differs between machines.
    """
    return _key(plan.source_hash, plan, context, model)


def shared_key(plan: RangePlan, view: View, context: Context, model: str, reader: str) -> str:
    """Key of a summary that another timeline with the same content may use: like `summary_key`, but without
    block ids and times.

    `reader` is the requester for whom the summary is stored and found. If it is empty, everything else that
    the model is shown must be the same, too.
    """
    digest = sha256(reader.encode(errors="surrogatepass") + b"\n")
    if view.compaction:
        digest.update(encode_block(view.compaction.event.summary))
    for entry in plan.folded if reader else (*plan.folded, *plan.kept):
        digest.update(b"%d " % entry.version + encode_block(_unnamed(entry.block)))
    if not reader:
        for item in view.compaction.event.carried if view.compaction else ():
            digest.update(encode_block(_unnamed(item.block)))
        digest.update(msgspec.json.encode([context.system, context.tools, context.model.name]))
    return _key(digest.hexdigest(), plan, context, model)


def _unnamed(block: Block) -> Block:
    """The block without the fields that differ when the same content is logged again."""
    match block:
        case OpaqueBlock():
            return OpaqueBlock(block.tag, {**block.fields, "id": ""})
        case TurnHeader():
            return msgspec.structs.replace(block, id=BlockId(""), source="", started_at=0.0)
        case ToolResult():
            known = msgspec.structs.replace(block.envelope, started_at=0.0, ended_at=0.0)
            return msgspec.structs.replace(block, id=BlockId(""), source="", envelope=known)
        case AssistantThinking() | AssistantCompletion() | ToolCall() | Note() | Plan():
            return msgspec.structs.replace(block, id=BlockId(""), source="", response="")
        case _:
            return msgspec.structs.replace(block, id=BlockId(""), source="")


def _key(content: str, plan: RangePlan, context: Context, model: str) -> str:
    policy = context.policy
    parts: list[Any] = [
        content,
        StructuredSummary().schema,
        [policy.summary_tokens, policy.prefix_tokens],
        plan.is_split,
        model,
        PROMPT_VERSION,
    ]
    return sha256(msgspec.json.encode(parts)).hexdigest()
