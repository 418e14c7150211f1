"""The summary block that replaces what is folded: its computed parts, and what a model wrote.

The block is the text of a summariser, merged with the earlier one and limited, plus the computed digest, each of whose parts
is made in `render.summary`. A turn that the cut splits has its own context in the block. Each later fold adds to it while
the turn runs; when the turn has ended, its context becomes history.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from msgspec.structs import replace

from blocks import (
    Block,
    BlockId,
    Digest,
    RangeSummary,
    StructuredSummary,
    ToolResult,
    TurnId,
    text_of,
    words_of,
)
from render.compaction._carry import LABEL_TOKENS, is_said
from render.compaction._draft import FoldRange
from render.policy._context import Context
from render.stages._budget import account, target_of
from render.summary import _findings, _turns
from render.summary._actions import advance as advance_actions
from render.summary._actions import fitted as fitted_actions
from render.summary._copies import followed
from render.summary._identifiers import searched
from render.summary._merge import SummaryRoom, merge_summaries
from render.summary._room import PageRoom
from render.summary._state import advance, fitted
from render.summary._text import computed_sections, counted, format_summary
from render.summary._text import fitted as fitted_spans
from render.summary._working_set import oldest_of, shown_lines, working_set
from render.summary._written import format_written
from render.view._view import Place, View

BESIDE_WRITTEN: Final = 1 / 3
"""Share of their room that reports have beside the findings of a model, which has read the same blocks. Statements on the
way are left to it: it knows which of them were refuted."""
PAGE_TOKENS_MIN: Final = 200
"""The page has this room even if the target leaves none."""
FOLDED_SHARE: Final = 0.5
"""The most that a page grows, as a share of what is newly folded: a page of a short talk is shorter than the talk."""


def summary_block(
    view: View, fold: FoldRange, answer: StructuredSummary, context: Context
) -> RangeSummary:
    """The block that replaces everything folded when this range is applied."""
    previous = view.compaction.event.summary if view.compaction else None
    before, room = written_before(previous, fold), SummaryRoom.of(context)
    text = merge_summaries(before, _written(answer, fold), room)
    block = RangeSummary(
        id=BlockId(f"summary.{view.version + 1}"),
        turn=fold.folded[-1].block.turn,
        covered_turn_ids=tuple(dict.fromkeys(entry.block.turn for entry in fold.folded)),
        split_turn_id=fold.kept[0].block.turn if fold.is_split else None,
        start=fold.start,
        cut=fold.cut,
        summary=text,
        digest=Digest(),
        turn_range=_turn_range(previous, fold),
        begun_turn_id=begun_turn(previous, fold),
    )
    digest = _digest(view, fold, block, context)
    return replace(block, digest=digest)


def _written(summary: StructuredSummary, fold: FoldRange) -> StructuredSummary:
    """The summariser's answer, with the user's own words first."""
    said = [" ".join(words.split()) for words in _said(fold)] if summary.constraints else []
    own, others = list[str](), list[str]()
    for index, constraint in enumerate(summary.constraints):
        words = " ".join(constraint.split())
        was_own = summary.complete and index < summary.quoted
        is_own = was_own or (words and any(words in text for text in said))
        (own if is_own else others).append(constraint)
    return replace(summary, constraints=(*own, *others), quoted=len(own))


def _said(fold: FoldRange) -> Iterator[str]:
    """All user texts that the range knows."""
    for entry in (*fold.given_up, *fold.folded, *fold.kept):
        yield from searched(words_of(entry.block))
    for item in fold.carried:
        yield from searched("" if item.withheld else text_of(item.block))


def written_before(previous: RangeSummary | None, fold: FoldRange) -> StructuredSummary | None:
    """The written part of the previous summary, without the context of a turn that has ended."""
    begun = _begun_before(previous)
    if previous is None:
        return None
    is_over = begun is not None and begun != fold.kept[0].block.turn
    return replace(previous.summary, turn_context="") if is_over else previous.summary


def _begun_before(previous: RangeSummary | None) -> TurnId | None:
    return (previous.begun_turn_id or previous.split_turn_id) if previous else None


def begun_turn(previous: RangeSummary | None, fold: FoldRange) -> TurnId | None:
    """The turn that continues after the cut, if its beginning has been folded; otherwise None."""
    turn = fold.kept[0].block.turn
    is_begun = any(e.block.turn == turn and e.place is not Place.SILENT for e in fold.folded)
    return turn if is_begun or turn == _begun_before(previous) else None


def _turn_range(previous: RangeSummary | None, fold: FoldRange) -> tuple[TurnId, ...]:
    """The oldest and the newest turn that are folded whole; late results of older turns are ignored."""
    known = (previous.turn_range or previous.covered_turn_ids) if previous else ()
    folded = (e.block.turn for e in fold.folded if not isinstance(e.block, ToolResult))
    whole = [turn for turn in (*known, *folded) if turn != fold.kept[0].block.turn]
    return (whole[0], whole[-1]) if whole else ()


def _digest(view: View, fold: FoldRange, block: RangeSummary, context: Context) -> Digest:
    """The digest for a summary: the computed parts of its page, each within its room."""
    count = cache(context.counter.count)
    previous = view.compaction.event.summary if view.compaction else None
    earlier = previous.digest if previous else Digest()
    room = _page_room(view, fold, count(format_written(block.summary)), context)
    digest = fitted_spans(counted(earlier, fold.folded), room.done, count)
    known = set(previous.covered_turn_ids if previous else ())  # a turn that was split counts once
    again = len(known.intersection(block.covered_turn_ids))
    digest = replace(digest, turns=digest.turns - again)
    digest = _with_past(digest, fold, room, block, count)
    return _with_present(digest, fold, room, count)


def _with_present(
    digest: Digest, fold: FoldRange, room: PageRoom, count: Callable[[str], int]
) -> Digest:
    """The digest with how things are now, after everything that is folded or kept."""
    at_hand = (*fold.folded, *fold.kept)
    new = [entry for entry in at_hand if entry.version > digest.seen]
    before = [entry for entry in at_hand if entry.version <= digest.seen]
    progress = fitted(advance(digest.progress, new, before), room.state, count)
    copies = followed(digest.regions, at_hand, digest.seen)
    digest = replace(digest, progress=progress, regions=())
    told = sum(count(text) for _, text in computed_sections(digest) if text)
    working = room.working_beside(told)
    regions = working_set(copies, _shown(fold), oldest_of(at_hand), working, count)
    seen = max(entry.version for entry in at_hand)
    return replace(digest, regions=regions, seen=max(seen, digest.seen))


def _with_past(
    digest: Digest,
    fold: FoldRange,
    room: PageRoom,
    block: RangeSummary,
    count: Callable[[str], int],
) -> Digest:
    """The digest with what was found and done in everything that is folded."""
    folded = [entry for entry in fold.folded if not entry.standing]
    running = fold.kept[0].block.turn
    findings = _findings.advance(digest.findings, folded, running, _no_longer_whole(fold))
    share = 1.0
    if block.summary.complete:
        share, findings = BESIDE_WRITTEN, tuple(f for f in findings if f.kind != "found")
    findings = _turns.fitted(findings, int(share * room.found), count)
    actions = advance_actions(digest.actions, folded, digest.progress.processes)
    actions = fitted_actions(actions, room.done, count)
    return replace(digest, findings=findings, actions=actions)


def _shown(fold: FoldRange) -> dict[int, frozenset[str] | None]:
    """The lines that the request shows of each kept block, by its version; None: all."""
    cut = {hidden.block: hidden.replacement for hidden in fold.cuts}
    left = {e.version: cut.get(e.block.id, e.replacement) for e in fold.kept}
    return {v: None if text is None else shown_lines(text) for v, text in left.items()}


def _no_longer_whole(fold: FoldRange) -> Iterator[tuple[int, Block, str]]:
    """The user's texts that are shortened or left out, each with its version and what is left of it."""
    for item in fold.carried:
        if item.clipped and not item.withheld:
            yield item.version, item.block, item.clipped
    carried = {item.version for item in fold.carried}
    for entry in (*fold.given_up, *fold.folded):
        if is_said(entry) and entry.version not in carried and entry.original is None:
            yield entry.version, entry.block, ""


def _page_room(view: View, fold: FoldRange, written: int, context: Context) -> PageRoom:
    """The rooms of the computed parts: by the policy, or less if the target leaves less beside the rest."""
    count, sizes = context.counter.count, account(view, context)
    carried = sum(count(c.clipped or text_of(c.block)) + LABEL_TOKENS for c in fold.carried)
    rest = context.prefix.tokens + fold.kept_tokens + carried + written
    target = (target_of(context) - sizes.prefix) / sizes.ratio  # in tokens as they are counted here
    before = count(format_summary(view.compaction.event.summary)) if view.compaction else 0
    new = sizes.estimated - rest - before
    most = min(target - rest, before + FOLDED_SHARE * new)
    return PageRoom.of(context, max(int(most), PAGE_TOKENS_MIN))
