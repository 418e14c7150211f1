"""The range of a compaction: where it cuts, and why; what it folds and what it keeps; and the event that folds it.

    fold = range_before_tail(view, context, trigger)   # a pure decision, before any model is called
    summary = ...                                       # made by the caller, perhaps with a model
    view = apply_range(view, fold, summary, context)

Nothing is deleted: a compaction is one event that replaces a range of the log with a summary.

Of the legal cuts, the one is taken that keeps most while the request still fits: each is tried out with the extractive
summary, with less and less of the tail and of the other shares (`SHARES`).

A cut point is a place where a compaction may separate the two. The rules of the cut, in the order in which they are
applied:

1. candidate   A cut may be before a user prompt, an assistant completion, a tool call, a turn header,
               or any other block whose author is not the system or a tool; never before a tool
               result or a summary.
2. counted     The tokens of candidates and of tool results count.
3. selection   Walk back from the end, adding counted blocks, until `keep` tokens are reached. Take
               the first candidate at or after that block. Then step back until the block before
               the cut is a counted block (or there is none: then it is the summary).

                   prompt  call  result  call  result  notice  text
                                           └── keep reached here: not a candidate
                                                           └── first candidate at or after
                                                   └── step back: a notice is not counted

4. legal       No kept result answers a folded call, no open call is folded, and the calls of one
               round stay together with the thinking that led to them, in whatever order their
               results came: providers refuse calls without it, or it without them. If the
               selected cut is not legal, the nearest legal one is taken, older ones first.
5. turn start  A cut before a turn header or a block by the user keeps its turn whole; any other
               cut splits a turn.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain
from math import sqrt
from typing import Final

import attrs
from msgspec.structs import replace

from blocks import (
    AssistantThinking,
    Block,
    BlocksHidden,
    Carried,
    CompactionSkipped,
    Event,
    EventId,
    Hidden,
    Naming,
    OpaqueBlock,
    Provenance,
    RangeCompacted,
    RangeSummary,
    SkipReason,
    Sources,
    StructuredSummary,
    ToolCall,
    ToolResult,
    Trigger,
    TurnHeader,
    UserAttachment,
    encode_block,
    path_stem,
    text_of,
)
from render.compaction._head import carry, is_user_text, replaced, summary_block
from render.policy._context import Context
from render.stages._budget import fitting_of, target_of, total_tokens
from render.stages._visibility import clipped, hide, share_of
from render.view._fold import decide
from render.view._view import Entry, Group, Place, View, response_of, verbatim

TAIL_MAX: Final = 0.8
"""Largest share of all that there is that a tail has after a compaction that was asked for."""
KEEP_TOKENS_MIN: Final = 400
"""The tail may have so many tokens, even if the fixed part leaves less."""


# The cut, and whether it is legal.


def is_candidate(block: Block) -> bool:
    """Whether a kept range may begin with this block."""
    if isinstance(block, OpaqueBlock):
        return block.author not in {"", "system", "tool"}
    return isinstance(block, TurnHeader) or block.author in {"user", "assistant"}


def is_counted(block: Block) -> bool:
    """Whether the block's tokens count towards the tokens to keep."""
    return isinstance(block, ToolResult) or is_candidate(block)


def is_turn_start(block: Block) -> bool:
    """Whether a cut before this block leaves its turn whole."""
    return isinstance(block, TurnHeader) or block.author == "user"


def find_cut(entries: Sequence[Entry], tokens: Sequence[int], keep: int) -> int | None:
    """Index of the first entry to keep (1..len(entries)-1), or None when there is nothing to fold.

    `tokens[i]` is the size of `entries[i]` as it is shown.
    """
    start = _walk_back(entries, tokens, keep)
    if start is None:
        return None
    indices = (*range(start, len(entries)), *reversed(range(start)))
    candidate = next((i for i in indices if is_candidate(entries[i].block)), 0)
    return _nearest(entries, candidate, _legal(entries))


def turns_cut(entries: Sequence[Entry], turns: int) -> int | None:
    """Index of the first entry to keep so that the newest `turns` stay whole, or None when there are no
    more. If that cut is not legal, the nearest older legal one."""
    starts: list[int] = []
    for index, entry in enumerate(entries):
        # A late result belongs to the turn of its call, but does not start that turn again.
        if isinstance(entry.block, ToolResult):
            continue
        if not starts or entry.block.turn != entries[starts[-1]].block.turn:
            starts.append(index)
    if len(starts) <= turns:
        return None
    legal = _legal(entries)
    return next((cut for cut in range(starts[-turns], 0, -1) if legal[cut]), None)


def is_legal(entries: Sequence[Entry], cut: int) -> bool:
    """Whether the kept range may begin with this entry."""
    return 0 < cut < len(entries) and _legal(entries)[cut]


def latest_cut(entries: Sequence[Entry]) -> int | None:
    """The newest legal cut, which folds all but the last round."""
    legal = _legal(entries)
    indices = reversed(range(1, len(entries)))
    return next((i for i in indices if legal[i] and is_candidate(entries[i].block)), None)


def _walk_back(entries: Sequence[Entry], tokens: Sequence[int], keep: int) -> int | None:
    size = 0
    for index in reversed(range(len(entries))):
        if is_counted(entries[index].block):
            size += tokens[index]
            if size >= keep:
                return index
    return None


def _step_back(entries: Sequence[Entry], cut: int) -> int:
    while cut > 0 and not is_counted(entries[cut - 1].block):
        cut -= 1
    return cut


def _nearest(entries: Sequence[Entry], cut: int, legal: Sequence[bool]) -> int | None:
    """The nearest legal cut, older ones first; 0 is excluded, because it would fold nothing."""
    for index in (*reversed(range(1, cut + 1)), *range(cut + 1, len(entries))):
        if is_candidate(entries[index].block):
            stepped = _step_back(entries, index)
            for option in (stepped, index):
                if option and legal[option]:
                    return option
    return None


def _legal(entries: Sequence[Entry]) -> list[bool]:
    """For each index, whether the kept range may begin there."""
    legal = [True] * len(entries)
    checked = 0  # spans may overlap; each index is visited once
    for first, last in sorted(_spans(entries)):
        for index in range(max(first, checked) + 1, min(last + 1, len(entries))):
            legal[index] = False
        checked = max(checked, last)
    return legal


def _spans(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """Ranges of indices that no cut may enter, except before the first: from the first thinking or call of a round that
    has calls to its last result, including late results."""
    spans: dict[int, tuple[int, int]] = {}
    thoughts: dict[int, int] = {}
    rounds: dict[str, int] = {}
    newest = max((entry.round for entry in entries), default=0)
    answered = {entry.pair for entry in entries if entry.place is Place.RESULT}
    for index, entry in enumerate(entries):
        block = entry.block
        if isinstance(block, AssistantThinking):
            thoughts.setdefault(entry.round, index)
        elif isinstance(block, ToolCall) or verbatim(block) is not None:
            begin = thoughts.get(entry.round, index)
            first, last = spans.get(entry.round, (begin, index))
            is_open = False
            if isinstance(block, ToolCall):
                rounds[block.call_id] = entry.round
                is_open = entry.round == newest and entry.pair not in answered
            spans[entry.round] = (first, max(last, len(entries) if is_open else index))
        elif isinstance(block, ToolResult) and entry.place is not Place.ORPHAN:
            number = rounds.get(block.call_id)
            if number is not None:
                first, last = spans[number]
                spans[number] = (first, max(last, index))
    return list(spans.values())


# The range of one fold.


@attrs.frozen(kw_only=True)
class FoldRange:
    """What a compaction would fold: pure data that refers to versions of the log."""

    version: int
    """Version of the view that the range was made for."""
    trigger: Trigger
    start: int
    """Version of the first folded block."""
    cut: int
    """Version of the first block of the tail."""
    folded: tuple[Entry, ...] = attrs.field(repr=False)
    tail: tuple[Entry, ...] = attrs.field(repr=False)
    carried: tuple[Carried, ...] = attrs.field(repr=False)
    cuts: tuple[Hidden, ...] = attrs.field(default=(), repr=False)
    """The cuts of results in the tail that requests have shown and that exceed their share."""
    given_up: tuple[Entry, ...] = attrs.field(default=(), repr=False)
    """Entries that the last compaction carried in full and this one does not."""
    is_split: bool
    """Whether the cut splits a turn."""
    tail_tokens: int
    """Tokens of `tail` as it is shown."""
    tokens_before: int
    source_hash: str
    """Hash of the folded content (except what is hidden on request) and of the previous summary."""


def range_before_tail(
    view: View, context: Context, trigger: Trigger, keep_ratio: float | None = None
) -> FoldRange | None:
    """The range, or None when no legal cut would fold anything."""
    cut = range_cut(view, context, trigger, keep_ratio)
    return _range_at(view, context, trigger, cut) if cut else None


def range_cut(
    view: View,
    context: Context,
    trigger: Trigger,
    keep_ratio: float | None = None,
) -> int | None:
    """Index of the first block to keep; None: no cut."""
    entries = view.entries
    policy = context.policy
    ratio = policy.keep_ratio if keep_ratio is None else keep_ratio
    if policy.keep_messages is not None and policy.keep_ratio:  # each block counts as one
        sizes = [1] * len(entries)
        keep = int(policy.keep_messages * ratio / policy.keep_ratio)
    else:
        sizes = _kept_sizes(view, context)
        keep = _keep_tokens(context, ratio)
    # Beside a tail of most there is, a compaction that was asked for would gain nothing: it folds all but the newest.
    is_little = trigger == "forced" and TAIL_MAX * sum(sizes) < keep
    return find_cut(entries, sizes, keep) if keep and not is_little else latest_cut(entries)


def range_before(view: View, context: Context, trigger: Trigger, version: int) -> FoldRange | None:
    """The range whose first kept block has this version, or None if that cut is not legal."""
    entries = view.entries
    index = next((i for i, entry in enumerate(entries) if entry.version == version), 0)
    return _range_at(view, context, trigger, index) if is_legal(entries, index) else None


def _range_at(view: View, context: Context, trigger: Trigger, cut: int) -> FoldRange:
    entries = view.entries
    folded, tail = entries[:cut], entries[cut:]
    head = view.compaction.head.entries if view.compaction else ()
    carried = carry(head, folded, tail, context)
    whole = {item.version for item in carried if not item.clipped}
    gone = {*whole, *replaced((*head, *folded), tail)}
    given_up = (
        e
        for e in head
        if e.replacement is None and e.version not in gone and not isinstance(e.block, RangeSummary)
    )
    cuts = _cuts(view, context, tail[0].version)
    as_cut = {v: {"replacement": c.replacement, "hidden_as": "clipped"} for v, c in cuts.items()}
    running = tail[0].block.turn
    return FoldRange(
        version=view.version,
        trigger=trigger,
        start=folded[0].version,
        cut=tail[0].version,
        folded=tuple(folded),
        tail=tuple(replace(e, **as_cut[e.version]) if e.version in cuts else e for e in tail),
        is_split=not is_turn_start(tail[0].block) and any(e.block.turn == running for e in folded),
        cuts=tuple(cuts.values()),
        carried=carried,
        given_up=tuple(given_up),
        tail_tokens=sum(_kept_sizes(view, context)[cut:]),
        tokens_before=total_tokens(view, context),
        source_hash=_source_hash(view, folded),
    )


def _keep_tokens(context: Context, keep_ratio: float) -> int:
    """Tokens of the verbatim tail: its share, or less if the fixed part leaves less room."""
    room = target_of(context) - context.prefix.tokens
    share = int(keep_ratio * context.capacity)
    return min(share, max(room // 2, KEEP_TOKENS_MIN)) if keep_ratio else 0


def _kept_sizes(view: View, context: Context) -> list[int]:
    """Tokens of each entry as a compaction keeps it: results that a request has shown are cut to their share."""
    share = share_of(context)
    return [share if is_cut else tokens for _, tokens, is_cut in _sized(view, context)]


def _cuts(view: View, context: Context, first: int) -> dict[int, Hidden]:
    """The cuts, by version, of the results from `first` on that a request has shown and that exceed their share."""
    share = share_of(context)
    return {
        entry.version: clipped(entry, tokens, share, context)
        for entry, tokens, is_cut in _sized(view, context)
        if is_cut and entry.version >= first
    }


def _sized(view: View, context: Context) -> Iterator[tuple[Entry, int, bool]]:
    """Each entry with its tokens, and whether a compaction cuts it: requests have shown all but what is new in the newest
    round."""
    share, newest = share_of(context), view.groups[-1] if view.groups else None
    last = max(newest.sealed, newest.first - 1) if newest else 0
    for entry, tokens in zip(view.entries, _entry_tokens(view, context), strict=True):
        is_content = isinstance(entry.block, ToolResult | UserAttachment) and not entry.standing
        is_seen = entry.version <= last and entry.replacement is None
        yield entry, tokens, tokens > share and is_seen and is_content


def _entry_tokens(view: View, context: Context) -> list[int]:
    encoder = context.encoder

    def sizes(group: Group) -> list[int]:
        piece = encoder.shown(group)
        return [piece.tokens_of(entry.version) for entry in group.entries]

    each = view.group_memo.each(("entry tokens", encoder.key), view.groups, sizes)
    return list(chain.from_iterable(each))


def _source_hash(view: View, folded: Sequence[Entry]) -> str:
    digest = sha256()
    if view.compaction:
        digest.update(encode_block(view.compaction.event.summary))
    for entry in folded:
        digest.update(encode_block(entry.block))
    return digest.hexdigest()


# A range, folded.


@attrs.frozen(kw_only=True)
class Summary:
    """A summariser's answer."""

    summary: StructuredSummary
    degraded: bool = False
    provenance: Provenance | None = None


def extractive(fold: FoldRange) -> Summary:
    """The summary that is made without a model: nothing is written, the page has only its computed parts."""
    return Summary(summary=StructuredSummary(), provenance=Provenance(source_hash=fold.source_hash))


def truncated(fold: FoldRange) -> Summary:
    """The fallback without a summary: how many blocks were left out, and their topics."""
    topics = (text_of(entry.block).strip() for entry in fold.folded if is_user_text(entry))
    about = "; ".join(topic.split("\n", 1)[0][:80] for topic in topics if topic)
    state = f"[{len(fold.folded)} earlier blocks were left out without a summary" + (
        f"; they were about: {about[:600]}]" if about else "]"
    )
    return Summary(summary=StructuredSummary(state=state))


def apply_range(view: View, fold: FoldRange, summary: Summary, context: Context) -> View:
    """The view after the range is folded, regardless of how many tokens that saves."""
    if fold.cuts:
        view = hide(view, fold.cuts, "clipped", context)
    event = compaction_event(view, fold, summary, context)
    after = decide(view, event)
    return restated(after, event, replace(event, tokens_after=total_tokens(after, context)))


def restated(view: View, old: Event, new: RangeCompacted | BlocksHidden) -> View:
    """The view with a decision in another's place, of which it differs in token counts."""
    compaction = view.compaction
    if compaction and compaction.event is old and isinstance(new, RangeCompacted):
        compaction = attrs.evolve(compaction, event=new)
    events_since_cut = ((n, new if event is old else event) for n, event in view.events_since_cut)
    return attrs.evolve(
        view,
        decisions=tuple(new if event is old else event for event in view.decisions),
        events_since_cut=tuple(events_since_cut),
        compaction=compaction,
    )


def skip(view: View, reason: SkipReason, context: Context, detail: str = "") -> View:
    """The view with an event that says that a due compaction was skipped, and why."""
    tokens = total_tokens(view, context)
    event = CompactionSkipped(
        id=EventId(""), at=context.now, reason=reason, tokens=tokens, detail=detail
    )
    return decide(view, event)


def compaction_event(
    view: View, fold: FoldRange, summary: Summary, context: Context
) -> RangeCompacted:
    """The `RangeCompacted` event that this compaction would record; it is not committed."""
    block = replace(summary_block(view, fold, summary.summary, context), degraded=summary.degraded)
    naming = view.compaction.naming if view.compaction else Naming()
    naming.skip((entry.version, entry.source) for entry in fold.folded)
    return RangeCompacted(
        id=EventId(""),
        at=context.now,
        start=fold.start,
        cut=fold.cut,
        summary=block,
        ordinal=_summary_ordinal(view, naming, block),
        carried=fold.carried,
        state=replace(
            fold.tail[0].state,
            rounds=_rounds_before(fold.tail),
            failures=0,
            failed_tokens=0,
            sources=_sources_after(fold),
            ordinals=naming.cut((entry.version, entry.source) for entry in fold.tail),
            named=naming.named(),
        ),
        trigger=fold.trigger,
        tokens_before=fold.tokens_before,
        policy=context.policy.name,
        provenance=summary.provenance,
    )


def _rounds_before(tail: Sequence[Entry]) -> int:
    """Number of rounds before the first of the tail; a round that the cut splits counts as not yet begun."""
    first = next((entry for entry in tail if entry.place is Place.RESPONSE), None)
    return first.round - 1 if first else tail[0].state.rounds


def _sources_after(fold: FoldRange) -> str:
    """The encoded set of foreign ids (block sources and responses) in the log before the cut."""
    sources = Sources(fold.tail[0].state.sources)
    folded = (entry.source for entry in fold.folded)
    names = (name for block in folded for name in (block.source, response_of(block)) if name)
    sources.add(dict.fromkeys(names))  # blocks of one response share one response name
    return sources.encoded()


# Paths stay the same across a cut: they number the blocks of one kind within a turn.


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


# The range that fits.


LAID_DOWN_SQUEEZE: Final = 5
"""What the user laid down shrinks once the other shares are below a fifth, and then with the root of the factor."""
WRITTEN_SQUEEZE: Final = 10
"""The context of a split turn shrinks once the other shares are below a tenth: it then has ten times their factor."""
SHARES: Final = (
    (1.0, 1.0),
    (0.3, 1.0),
    (0.0, 1.0),
    (0.0, 0.4),
    (0.0, 0.1),
    (0.0, 0.02),
    (0.0, 0.004),
)
"""Factors to try, in order: on the share of the tail, and on the other shares of a compaction."""


@attrs.frozen(kw_only=True, eq=False)
class FittedRange:
    """A range to fold, tried out with the extractive summary; nothing of it is committed."""

    range: FoldRange
    context: Context = attrs.field(repr=False)
    """The context to fold it with."""
    squeeze: float = 1.0
    """The factor that the policy's shares were multiplied by in `context`."""
    start: View = attrs.field(repr=False)
    """The view before."""
    probe: Summary = attrs.field(repr=False)
    """The extractive summary."""
    after: View = attrs.field(repr=False)
    """The view afterwards, with that summary."""

    @property
    def tokens(self) -> int:
        """Tokens of the whole request afterwards."""
        return total_tokens(self.after, self.context)

    @property
    def fits(self) -> bool:
        """Whether that is far enough below the trigger (see `FITTING`)."""
        return self.tokens <= fitting_of(self.context)


def tried_out(view: View, fold: FoldRange, context: Context, squeeze: float = 1.0) -> FittedRange:
    """The range with the result of folding it."""
    probe = extractive(fold)
    after = apply_range(view, fold, probe, context)
    return FittedRange(
        range=fold, context=context, squeeze=squeeze, start=view, probe=probe, after=after
    )


def fitting_range(view: View, context: Context, trigger: Trigger) -> FittedRange | None:
    """The fold that keeps most and still leaves a request within its budget; None when there is nothing to fold.

    The shares of the tail, and then of everything else, are reduced until the request fits with the extractive summary.
    """
    return _first_fitting(_ranges(view, context, trigger))


def fitted_at(view: View, context: Context, trigger: Trigger, cut: int) -> FittedRange | None:
    """The fold of everything before this version, with shares reduced until the request fits; None if the cut is not legal."""
    return _first_fitting(
        tried_out(view, fold, within, squeeze)
        for squeeze in dict.fromkeys(squeeze for _, squeeze in SHARES)
        if (fold := range_before(view, within := squeezed(context, squeeze), trigger, cut))
    )


def _first_fitting(tries: Iterable[FittedRange]) -> FittedRange | None:
    """The first that fits, or else the last."""
    last = None
    for last in tries:
        if last.fits:
            break
    return last


def _ranges(view: View, context: Context, trigger: Trigger) -> Iterator[FittedRange]:
    """Possible folds, each keeping less than the one before."""
    policy = context.policy
    if policy.keep_turns:
        for turns, squeeze in _turn_shares(policy.keep_turns, trigger):
            if cut := turns_cut(view.entries, turns):
                within = squeezed(context, squeeze)
                yield tried_out(view, _range_at(view, within, trigger, cut), within, squeeze)
        if trigger == "cold":
            return
    for keep, squeeze in SHARES:
        within = squeezed(context, squeeze)
        if fold := range_before_tail(view, within, trigger, keep * policy.keep_ratio):
            yield tried_out(view, fold, within, squeeze)


def _turn_shares(turns: int, trigger: Trigger) -> Iterator[tuple[int, float]]:
    """Pairs of the number of turns to keep and the factor on the other shares. If the cache is cold and the
    request fits, fewer turns are never tried."""
    yield turns, 1.0
    while trigger != "cold" and turns > 1:
        turns //= 2
        yield turns, 1.0
    if trigger != "cold":
        yield from ((1, 0.4), (1, 0.1))


def squeezed(context: Context, factor: float) -> Context:
    """The context with smaller shares for everything that a compaction leaves except the tail.

    The shares of the user's texts and of standing instructions shrink more slowly: they are what the user laid down.
    Of what is written, only the context of a split turn shrinks, and last: constraints and facts stay (invariant 6).
    """
    if factor == 1.0:
        return context
    policy = context.policy
    written = min(WRITTEN_SQUEEZE * factor, 1.0)
    laid_down = sqrt(min(LAID_DOWN_SQUEEZE * factor, 1.0))
    smaller = attrs.evolve(
        policy,
        prefix_tokens=int(policy.prefix_tokens * written),
        page_tokens=int(policy.page_tokens * factor),
        working_ratio=policy.working_ratio * factor,
        user_ratio=policy.user_ratio * laid_down,
        standing_ratio=policy.standing_ratio * laid_down,
    )
    return attrs.evolve(context, policy=smaller, squeeze=factor)
