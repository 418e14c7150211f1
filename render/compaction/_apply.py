"""Compacting a range into a summary, in two pure steps; a model may be called between them.

    plan = plan_range(view, context, trigger)   # what to fold and what to keep: see `_cut`
    summary = ...                               # made by the caller, perhaps with a model
    view = apply_range(view, plan, summary, context)

Nothing is deleted: a compaction is one event that replaces a range of the log with a summary.

The summary block is the text of a summariser, merged with the earlier one and limited, plus the computed digest. A turn
that the cut splits has its own context in the block. Each later fold adds to it while the turn runs; when the turn has
ended, its context becomes history.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import msgspec

from blocks import (
    BlockId,
    BlocksHidden,
    Carried,
    CompactionSkipped,
    Digest,
    EventId,
    Hidden,
    Naming,
    Provenance,
    RangeCompacted,
    RangeSummary,
    SkipReason,
    Sources,
    StructuredSummary,
    ToolResult,
    Trigger,
    TurnId,
    path_stem,
    standing_of,
    text_of,
)
from render.compaction._carry import LABEL_TOKENS, is_said
from render.policy._context import Context
from render.stages._budget import fixed_tokens, is_cold, total_tokens
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


@attrs.frozen(kw_only=True)
class RangePlan:
    """What a compaction would fold: pure data that refers to versions of the log."""

    version: int
    """Version of the view that the plan was made for."""
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
    cuts: tuple[Hidden, ...] = attrs.field(default=(), repr=False)
    """The cuts of the kept results that requests have shown and that exceed their share."""
    given_up: tuple[Entry, ...] = attrs.field(default=(), repr=False)
    """Entries that the last compaction carried in full and this one does not."""
    kept_tokens: int
    """Tokens of `kept` as it is shown."""
    tokens_before: int
    source_hash: str
    """Hash of the folded content (except what is hidden on request) and of the previous summary."""

    @property
    def is_split(self) -> bool:
        """Whether the cut splits a turn."""
        return bool(self.prefix)


@attrs.frozen(kw_only=True)
class Summary:
    """A summariser's answer."""

    summary: StructuredSummary
    degraded: bool = False
    provenance: Provenance | None = None


def extractive(plan: RangePlan) -> Summary:
    """The summary that is made without a model."""
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
    trimmed = _trimmed(view, plan, context)
    event = compaction_event(trimmed, plan, summary, context)
    after = commit(trimmed, event)
    event = msgspec.structs.replace(event, tokens_after=total_tokens(after, context))
    return attrs.evolve(
        after,
        compaction=after.compaction and attrs.evolve(after.compaction, event=event),
        decisions=(*trimmed.decisions, event),
    )


def _trimmed(view: View, plan: RangePlan, context: Context) -> View:
    """The view with the results that the plan keeps cut to their share."""
    if not plan.cuts:
        return view
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=plan.cuts, reason="clipped")
    return decide(view, event)


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
