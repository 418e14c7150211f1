"""Compacting a range into a summary, in two pure steps; a model may be called between them.

    fold = range_before_tail(view, context, trigger)   # what to fold and what to keep: see `_cut`
    summary = ...                               # made by the caller, perhaps with a model
    view = apply_range(view, fold, summary, context)

Nothing is deleted: a compaction is one event that replaces a range of the log with a summary.

The summary block is the text of a summariser, merged with the earlier one and limited, plus the computed digest. A turn
that the cut splits has its own context in the block. Each later fold adds to it while the turn runs; when the turn has
ended, its context becomes history.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final

import attrs
import msgspec
from msgspec import structs

from blocks import (
    Block,
    BlockId,
    BlocksHidden,
    Carried,
    CompactionSkipped,
    Digest,
    EventId,
    Hidden,
    Naming,
    Note,
    Plan,
    Provenance,
    RangeCompacted,
    RangeSummary,
    SkipReason,
    Sources,
    StructuredSummary,
    TextPart,
    ToolCall,
    ToolResult,
    Trigger,
    TurnId,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    asks_user,
    images_of,
    numbered,
    path_at,
    path_stem,
    standing_of,
    text_of,
    version_in,
    words_of,
)
from blocks.formats import appended_texts
from render.policy._context import Context
from render.stages._budget import account, target_of, total_tokens
from render.stages._visibility import HEAD_SHARE, cut_text
from render.summary import _findings, _turns
from render.summary._actions import advance as advance_actions
from render.summary._actions import fitted as fitted_actions
from render.summary._copies import followed
from render.summary._identifiers import searched
from render.summary._merge import SummaryRoom, merge_summaries
from render.summary._prose import is_prose_line
from render.summary._quote import quoted
from render.summary._room import PageRoom
from render.summary._state import advance, fitted
from render.summary._text import computed_sections, counted, format_summary
from render.summary._text import fitted as fitted_spans
from render.summary._working_set import oldest_of, shown_lines, working_set
from render.summary._written import format_written
from render.view._fold import commit, decide
from render.view._group import Entry, Place, response_of
from render.view._view import View

# What is kept across a cut: standing instructions, pinned notes, the latest plan, and the user's texts.
#
# *Standing instructions* (rules, permissions, the working folder, lists of tools: `blocks.formats.client_text`) stand at
# the front of the request, before the summary, byte for byte as they came. The newest of each kind counts. Only if all
# together exceed their share (`standing_ratio`) are they shortened, by whole sections, lists first, then the longest.
#
# *User texts* are whole as long as all together have room in theirs (`user_ratio`). If not, these steps are taken until
# they have, in log order within each step; the first text (the task) and the newest come last in the first two:
#
# 1. pasted material inside a text (logs, reports, code) is shortened; the sentences around it stay;
# 2. a text is cut to its beginning and end;
# 3. only if they exceed the share several times: texts are cut to their beginning, and then left out, first a text that
#    begins like a newer one (a repeated harness error, "continue"), then the oldest.
#
# Pasted material is recognized by its form alone: a fenced block, or a run of lines none of which is a sentence.
#
# The log has all of them whole, and the path of each can be read.


SAID: Final = UserPrompt, UserFollowup, UserSteer
"""What the user says; a tuple, because `isinstance` is slow with a union."""

SHORT_TOKENS: Final = 110
"""Tokens of a shortened text: its first and last sentences (at least 300 characters)."""
HEAD_TOKENS: Final = 80
"""Tokens of a text that is cut a second time: its beginning only."""
HEAD_CHARACTERS: Final = 300
"""Characters at the beginning that a shortened text always keeps; texts that share them count as repeated."""
END_SHARE: Final = 1 / 3
"""Share of the user's room that the first and the newest text each keep, however little room there is."""
STEPS: Final = 8
"""Into how many steps the share is divided when a text is cut, so that a further short text changes no earlier cut."""
LEFT_OUT_RATIO: Final = 2.5
"""Shortened texts lose their end, and are then left out, only when all texts together exceed this many
times the share: in a very small window, other content gives way first."""
LABEL_TOKENS: Final = 23
"""Tokens of the label around each carried text."""
SECTION_SHARE: Final = 0.5
"""A shortened instruction ends at a blank line or heading if at least this share of its room is used by then; else at
any line."""


def is_said(entry: Entry) -> bool:
    """Whether the entry is a text of the user."""
    return entry.block.author == "user" and isinstance(entry.block, SAID)


def carry(
    old: Sequence[Entry], folded: Sequence[Entry], kept: Sequence[Entry], context: Context
) -> tuple[Carried, ...]:
    """What to carry past a cut, in log order.

    `old` was carried by the last compaction, `folded` is folded by this one, `kept` stays visible.
    """
    candidates = (*old, *folded)
    notes = [e for e in candidates if isinstance(e.block, Note)]
    plans = [e for e in candidates if isinstance(e.block, Plan)][-1:]
    if plans and any(isinstance(e.block, Plan) for e in kept):
        plans = []
    pinned = [_whole(entry) for entry in (*notes, *plans)]
    answers = _answers(candidates)
    said = _bounded([e for e in candidates if is_said(e) or e.version in answers], context)
    standing = _standing([*_laid_down(candidates)], kept, context)
    return tuple(sorted((*pinned, *standing, *said), key=lambda carried: carried.version))


def _answers(entries: Sequence[Entry]) -> set[int]:
    """Versions of the results in which the user answers a tool's question; earlier ones were carried as such."""
    asked = {e.pair for e in entries if isinstance(e.block, ToolCall) and asks_user(e.block.name)}
    return {
        entry.version
        for entry in entries
        if isinstance(entry.block, ToolResult)
        and (entry.place is Place.CARRIED or (entry.place is Place.RESULT and entry.pair in asked))
    }


def _whole(entry: Entry) -> Carried:
    return Carried(
        version=entry.version,
        block=entry.source,
        ordinal=_ordinal(entry),
        clipped=entry.replacement or "",
        withheld=entry.original is not None,
    )


def _ordinal(entry: Entry) -> int:
    """The ordinal at the end of the entry's path; 0 if the path has none, or is based on the version."""
    return 0 if version_in(entry.path) else numbered(entry.path)[1]


# Standing instructions.


def _laid_down(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries, and for each result to which a client appended instructions one more for each of them.

    They came as a part of a tool's output, and are shown as such, so that they have no more weight than they had.
    """
    for entry in entries:
        yield entry
        if not isinstance(entry.block, ToolResult) or entry.original is not None:
            continue
        for client, text in appended_texts(text_of(entry.block)):
            block = UserAttachment(
                id=entry.block.id,
                turn=entry.block.turn,
                name=client.name,
                part=TextPart(text=quoted("earlier-result", text, path=entry.path)),
                standing=client.standing,
            )
            yield structs.replace(
                entry, block=block, path=path_at(block, entry.version), replacement=None
            )


def replaced(entries: Sequence[Entry], kept: Sequence[Entry]) -> set[int]:
    """Versions of the standing instructions that a later one replaces; `kept` follows `entries`."""
    newest = {e.standing: e.version for e in (*entries, *kept) if e.standing}
    current = set(newest.values())
    return {e.version for e in entries if e.standing and e.version not in current}


def _standing(entries: Sequence[Entry], kept: Sequence[Entry], context: Context) -> list[Carried]:
    """The standing instructions that apply, shortened where they exceed their room."""
    gone = replaced(entries, kept)
    standing = [e for e in entries if e.standing and e.version not in gone]
    room = int(context.policy.standing_ratio * context.capacity)
    sizes = [context.counter.count(_standing_text(entry)) for entry in standing]
    lists = [entry.standing.startswith("list:") for entry in standing]
    limits = _standing_limits(sizes, lists, room)
    return [
        _shortened(entry, size, limit, context)
        for entry, size, limit in zip(standing, sizes, limits, strict=True)
    ]


def _standing_text(entry: Entry) -> str:
    """What is shown of an instruction if there is room: all of it, unless it is hidden on request."""
    return entry.replacement or "" if entry.original is not None else _text(entry)


def _standing_limits(sizes: Sequence[int], lists: Sequence[bool], room: int) -> list[int]:
    """The most tokens each instruction may have: lists share what the others leave, the longest give way."""
    limits = list(sizes)
    for giving_way in (lists, [True] * len(sizes)):
        if sum(limits) <= room:
            break
        others = sum(n for n, gives in zip(limits, giving_way, strict=True) if not gives)
        left = max(room - others, room // 8 if giving_way is lists else 0)
        waiting = sorted(n for n, gives in zip(limits, giving_way, strict=True) if gives)
        while waiting and waiting[0] <= left // len(waiting):
            left -= waiting.pop(0)
        most = left // len(waiting) if waiting else room
        limits = [min(n, most) if gives else n for n, gives in zip(limits, giving_way, strict=True)]
    return limits


def _shortened(entry: Entry, size: int, limit: int, context: Context) -> Carried:
    """The instruction within its limit, cut between sections, with the path of the whole."""
    carried = _whole(entry)
    if carried.withheld:
        return carried
    text = "" if size <= limit else _sections(_text(entry), size, limit, entry.path, context)
    return structs.replace(carried, clipped=text)


def _sections(text: str, size: int, limit: int, path: str, context: Context) -> str:
    """The first sections of a text that fit, and its last line if that closes an element."""
    lines = text.split("\n")
    closing = lines.pop() if lines[-1].startswith("</") else ""
    marker = f"[… shortened: {size} tokens in all; the whole text is at {path} …]"
    room = limit - context.counter.count(f"{marker}\n{closing}")
    fitting, section, used = 0, 0, 0
    for index, line in enumerate(lines):
        used += context.counter.count(line) + 1
        if used > room:
            break
        fitting = index + 1
        following = lines[index + 1] if index + 1 < len(lines) else ""
        is_end = not line.strip() or following.startswith("#")
        if is_end and used >= SECTION_SHARE * room:
            section = index + 1
    return "\n".join(filter(None, ("\n".join(lines[: section or fitting]), marker, closing)))


# The user's texts.


def _bounded(entries: Sequence[Entry], context: Context) -> list[Carried]:
    """The user's texts, within their share."""
    sizes = [_tokens(entry, context) for entry in entries]
    own = [without_pasted(_text(entry), HEAD_CHARACTERS) for entry in entries]
    count = context.counter.count
    small = [
        min(count(text), size) if text != _text(entry) else size
        for entry, text, size in zip(entries, own, sizes, strict=True)
    ]
    share = int(context.policy.user_ratio * context.capacity)
    limits = _limits(sizes, small, _giving_way([_text(entry) for entry in entries]), share)
    return [
        _clipped(entry, text, limit, context)
        for entry, text, limit in zip(entries, own, limits, strict=True)
        if limit > 0
    ]


def _giving_way(texts: Sequence[str]) -> list[int]:
    """Indices of all texts but the first and the newest, in the order in which they are left out."""
    between = range(1, len(texts) - 1)
    again = [*_begun_again(texts, HEAD_CHARACTERS), *_begun_again(texts, 0)]
    return list(dict.fromkeys([*(i for i in again if i in between), *between]))


def _begun_again(texts: Sequence[str], characters: int) -> Iterator[int]:
    """Indices of texts that begin like a newer one: the same first characters, or with 0 the same first
    line."""
    newest: dict[str, int] = {}
    for index, text in enumerate(texts):
        known = text.strip()
        begin = known[:characters] or known.partition("\n")[0]
        if begin in newest:
            yield newest[begin]
        newest[begin] = index


def _limits(
    sizes: Sequence[int], small: Sequence[int], giving_way: Sequence[int], share: int
) -> list[int]:
    """The most tokens each text may have; 0: the text is left out, and only its path remains.

    `small` are the sizes without pasted material.
    """
    limits = list(sizes)
    if sum(map(_labelled, limits)) <= share:
        return limits
    between = range(1, len(sizes) - 1)
    ends = range(len(sizes) - 1, -1, -max(len(sizes) - 1, 1))  # the newest, then the first
    most = int(LEFT_OUT_RATIO * share)
    steps = [(i, small[i], share) for i in (*between, *ends)]
    steps += [(i, SHORT_TOKENS, share) for i in between]
    steps += [(i, max(int(END_SHARE * share), SHORT_TOKENS), share) for i in ends]
    steps += [(i, HEAD_TOKENS, most) for i in giving_way if sizes[i] > SHORT_TOKENS]
    steps += [(i, 0, most) for i in giving_way]
    steps += [(i, SHORT_TOKENS, most) for i in ends] + [(i, 0, most) for i in ends[:-1]]
    left, step = sum(map(_labelled, limits)), max(share // STEPS, 1)
    for index, tokens, enough in steps:
        if left <= enough:
            continue
        is_cut = (
            0 < tokens < small[index]
        )  # anywhere, so it keeps what room there is, in coarse steps
        room = (limits[index] - (left - enough)) // step * step
        wanted = max(tokens, room) if is_cut else tokens
        left -= _labelled(limits[index])
        limits[index] = min(limits[index], wanted)
        left += _labelled(limits[index])
    return limits


def _labelled(limit: int) -> int:
    """Tokens of a text of this size with its label; 0 when it is left out."""
    return limit + LABEL_TOKENS if limit else 0


def _tokens(entry: Entry, context: Context) -> int:
    """Tokens of what could be shown: of the whole text, also where an earlier compaction had to cut it."""
    shown = entry.replacement if entry.original is not None else None
    return context.counter.count(shown or _text(entry))


def _text(entry: Entry) -> str:
    return text_of(entry.block)


def _clipped(entry: Entry, own: str, limit: int, context: Context) -> Carried:
    """The text within its limit, always made from the original and never from an earlier cut; `own` is the text
    without pasted material."""
    carried, text = _whole(entry), _text(entry)
    tokens = context.counter.count(text)
    short = ""
    if tokens > limit and len(text) > HEAD_CHARACTERS:
        short = _at(own, tokens, entry.path) if own != text else ""
        if not short or context.counter.count(own) > limit:
            short = _ends(text, tokens, limit, entry.path, context)
    if images_of(entry.block):  # images are not carried: each is replaced by a word
        short = short or text
    if carried.withheld:
        short = short or text
    return structs.replace(carried, clipped=short)


def _at(text: str, tokens: int, path: str) -> str:
    return f"{text}\n[… {tokens} tokens in all; the whole text is at {path} …]"


def _ends(text: str, tokens: int, limit: int, path: str, context: Context) -> str:
    """The beginning and the end of a text, because long texts often make their point at the end."""
    if limit > 2 * SHORT_TOKENS:
        return cut_text(text, tokens, limit, path, context)
    if limit <= HEAD_TOKENS:
        return f"{text[:HEAD_CHARACTERS]}\n[… {tokens} tokens in all …]"
    keep = min(max(int(len(text) * limit / max(tokens, 1)), 320), len(text))
    begin = max(int(keep * HEAD_SHARE), HEAD_CHARACTERS)
    head, tail = text[:begin], text[-int(keep * (1 - HEAD_SHARE)) :]
    return f"{head}\n[… cut here: {tokens} tokens in all; the whole text is at {path} …]\n{tail}"


# Pasted material.


RUN_LINES_MIN: Final = 6
"""A shorter run of lines is not worth shortening."""
END_LINES: Final = 2
"""Lines that stay at each end of a run."""
LINE_CHARACTERS: Final = 200
"""Characters that stay of such a line."""
_FENCES: Final = ("```", "~~~")


def without_pasted(text: str, begin: int = 0) -> str:
    """The text with the middle of each pasted run behind its first `begin` characters left out; the same text if it has
    no such run."""
    if begin:
        end = text.find("\n", begin) + 1
        return text[:end] + without_pasted(text[end:]) if end else text
    kept: list[str] = []
    for is_pasted, run in _runs(text.split("\n")):
        if is_pasted and len(run) >= RUN_LINES_MIN:
            left_out = len(run) - 2 * END_LINES
            kept += [_short(line) for line in run[:END_LINES]]
            kept.append(f"[… {left_out} pasted lines …]")
            kept += [_short(line) for line in run[-END_LINES:]]
        else:
            kept += run
    return "\n".join(kept)


def _runs(lines: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines, and whether they were pasted. A blank line belongs to the run before it."""
    flags: list[bool] = []
    fence = ""
    for line in lines:
        begin = line.lstrip()[:3]
        if fence:
            fence = "" if begin == fence else fence
            flags.append(True)
        elif begin in _FENCES:
            fence = begin
            flags.append(True)
        elif not begin:
            flags.append(bool(flags) and flags[-1])
        else:
            flags.append(not is_prose_line(line))
    for is_pasted, run in groupby(zip(flags, lines, strict=True), key=lambda each: each[0]):
        yield is_pasted, [line for _, line in run]


def _short(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}…"


# Application.


@attrs.frozen(kw_only=True)
class FoldRange:
    """What a compaction would fold: pure data that refers to versions of the log."""

    version: int
    """Version of the view that the range was made for."""
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


def extractive(fold: FoldRange) -> Summary:
    """The summary that is made without a model: nothing is written, the page has only its computed parts."""
    return Summary(summary=StructuredSummary(), provenance=Provenance(source_hash=fold.source_hash))


def truncated(fold: FoldRange) -> Summary:
    """The fallback without a summary: how many blocks were left out, and their topics."""
    topics = (text_of(entry.block).strip() for entry in fold.folded if is_said(entry))
    about = "; ".join(topic.split("\n", 1)[0][:80] for topic in topics if topic)
    state = f"[{len(fold.folded)} earlier blocks were left out without a summary" + (
        f"; they were about: {about[:600]}]" if about else "]"
    )
    return Summary(summary=StructuredSummary(state=state))


def apply_range(view: View, fold: FoldRange, summary: Summary, context: Context) -> View:
    """The view after the range is folded, regardless of how many tokens that saves."""
    trimmed = _trimmed(view, fold, context)
    event = compaction_event(trimmed, fold, summary, context)
    after = commit(trimmed, event)
    event = msgspec.structs.replace(event, tokens_after=total_tokens(after, context))
    return attrs.evolve(
        after,
        compaction=after.compaction and attrs.evolve(after.compaction, event=event),
        decisions=(*trimmed.decisions, event),
    )


def _trimmed(view: View, fold: FoldRange, context: Context) -> View:
    """The view with the results that the range keeps cut to their share."""
    if not fold.cuts:
        return view
    event = BlocksHidden(id=EventId(""), at=context.now, hidden=fold.cuts, reason="clipped")
    return decide(view, event)


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
    written = msgspec.structs.replace(
        summary_block(view, fold, summary.summary, context), degraded=summary.degraded
    )
    naming = _naming(view, fold.folded)
    return RangeCompacted(
        id=EventId(""),
        at=context.now,
        start=fold.start,
        cut=fold.cut,
        summary=written,
        ordinal=_summary_ordinal(view, naming, written),
        carried=fold.carried,
        state=msgspec.structs.replace(
            fold.kept[0].state,
            rounds=_rounds_before(fold.kept),
            failures=0,
            failed_tokens=0,
            sources=_sources_after(fold),
            **_named_after(naming, fold.kept),
        ),
        trigger=fold.trigger,
        tokens_before=fold.tokens_before,
        policy=context.policy.name,
        provenance=summary.provenance,
    )


def _rounds_before(kept: Sequence[Entry]) -> int:
    """Number of rounds before the first kept one; a round that the cut splits counts as not yet begun."""
    first = next((entry for entry in kept if entry.place is Place.RESPONSE), None)
    return first.round - 1 if first else kept[0].state.rounds


def _sources_after(fold: FoldRange) -> str:
    """The encoded set of foreign ids (block sources and responses) in the log before the cut."""
    sources = Sources(fold.kept[0].state.sources)
    folded = (entry.source for entry in fold.folded)
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
    return msgspec.structs.replace(block, digest=digest)


def _written(summary: StructuredSummary, fold: FoldRange) -> StructuredSummary:
    """The summariser's answer, with the user's own words first."""
    said = [" ".join(words.split()) for words in _said(fold)] if summary.constraints else []
    own, others = list[str](), list[str]()
    for index, constraint in enumerate(summary.constraints):
        words = " ".join(constraint.split())
        was_own = summary.complete and index < summary.quoted
        is_own = was_own or (words and any(words in text for text in said))
        (own if is_own else others).append(constraint)
    return msgspec.structs.replace(
        summary,
        constraints=(*own, *others),
        quoted=len(own),
    )


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
    return structs.replace(previous.summary, turn_context="") if is_over else previous.summary


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
    digest = structs.replace(digest, turns=digest.turns - again)
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
    digest = structs.replace(digest, progress=progress, regions=())
    working = room.working_beside(sum(map(count, _told(digest))))
    regions = working_set(copies, _shown(fold), oldest_of(at_hand), working, count)
    seen = max(entry.version for entry in at_hand)
    return structs.replace(digest, regions=regions, seen=max(seen, digest.seen))


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
    return structs.replace(digest, findings=findings, actions=actions)


def _told(digest: Digest) -> list[str]:
    """The computed texts of the page so far."""
    return [text for _, text in computed_sections(digest) if text]


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
    carried = _carried(fold, context) + _carried(fold, context, standing=True)
    rest = context.prefix.tokens + fold.kept_tokens + carried + written
    sizes = account(view, context)
    target = (target_of(context) - sizes.prefix) / sizes.ratio  # in tokens as they are counted here
    before = _page_tokens(view, context)
    new = sizes.estimated - rest - before
    most = min(target - rest, before + FOLDED_SHARE * new)
    return PageRoom.of(context, max(int(most), PAGE_TOKENS_MIN))


def _page_tokens(view: View, context: Context) -> int:
    """Tokens of the page in force; 0 if there is none."""
    if view.compaction is None:
        return 0
    return context.counter.count(format_summary(view.compaction.event.summary))


def _carried(fold: FoldRange, context: Context, *, standing: bool = False) -> int:
    """Tokens of the standing instructions that are carried, or of everything else that is."""
    items = (item for item in fold.carried if bool(standing_of(item.block)) == standing)
    count = context.counter.count
    return sum(count(item.clipped or text_of(item.block)) + LABEL_TOKENS for item in items)
