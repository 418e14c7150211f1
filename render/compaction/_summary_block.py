"""The summary block of a compaction: the text of a summariser, merged and limited, plus the computed
digest.

A turn that the cut splits has its own context in the block. Each later fold adds to it while the turn runs;
when the turn has ended, its context becomes history.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from blocks import (
    BlockId,
    Digest,
    RangeSummary,
    StructuredSummary,
    ToolResult,
    TurnId,
    standing_of,
    text_of,
)
from render.compaction._carry import LABEL_TOKENS
from render.compaction._range import RangePlan
from render.policy._context import Context
from render.stages._budget import fixed_tokens, is_cold
from render.summary._digest import build_digest, fit_digest
from render.summary._extractive import turn_context, words_of
from render.summary._identifiers import searched
from render.summary._index import IndexRoom, extend_index
from render.summary._merge import SummaryRoom, as_history, merge_summaries
from render.summary._reading import reader_of
from render.summary._text import SECTIONS, digest_sections, format_written, turns_of
from render.view._group import Place
from render.view._view import View

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
