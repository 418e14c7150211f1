"""The head of a compaction: what stands in the place of what it folds. What is carried past the cut, and the summary block.

*Standing instructions* (rules, permissions, the working folder, lists of tools: `blocks.formats.client_text`) stand at
the front of the request, before the summary, byte for byte as they came. The newest of each kind counts. Only if all
together exceed their share (`standing_ratio`) are they shortened: lists first, of which each item keeps its name and the
beginning of what is said of it; then the longest, by whole sections.

*User texts* are whole as long as all together have room in theirs (`user_ratio`). If not, these steps are taken until
they have, in log order within each step; the first text (the task) and the newest come last in the first two:

1. pasted material inside a text (logs, reports, code) is shortened; the sentences around it stay;
2. a text is cut to its beginning and end;
3. only if they exceed the share several times: texts are cut to their beginning, and then left out, the oldest first.

Pasted material is recognized by its form alone: a fenced block, or a run of lines none of which is a sentence.

Notes that are pinned and the latest plan are carried, too. The log has all of it whole, and each path can be read.

The *summary block* is the text of a summariser, merged with the earlier one and limited, plus the computed digest, each of
whose parts is made in `render.summary`. A turn that the cut splits has its own context in the block. Each later fold adds
to it while the turn runs; when the turn has ended, its context becomes history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final

import attrs
from msgspec.structs import replace

from blocks import (
    Block,
    BlockId,
    Carried,
    Digest,
    Note,
    Past,
    Plan,
    RangeSummary,
    StructuredSummary,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
    UserAttachment,
    asks_user,
    images_of,
    inner_call,
    numbered,
    path_at,
    text_of,
    version_in,
    words_of,
)
from blocks.formats import appended_texts
from render.policy._context import Context, PageRoom
from render.stages._budget import account, target_of, threshold_of
from render.stages._visibility import HEAD_SHARE, cut_text, each_at_most
from render.summary import _actions, _findings, _state
from render.summary._calls import Run, runs_of, without_number
from render.summary._findings import USER_TEXTS, rule_in
from render.summary._prose import FENCES, identifiers, is_prose_line, searched
from render.summary._text import computed_sections, format_summary
from render.summary._working_set import (
    followed,
    oldest_of,
    own_files,
    ranked,
    working_set,
    working_text,
)
from render.summary._written import SummaryRoom, format_written, merge_summaries
from render.view._view import Entry, Place, View, quoted

if TYPE_CHECKING:
    from render.compaction._range import FoldRange

SHORT_TOKENS: Final = 110
"""Tokens of a shortened text: its first and last sentences (at least 300 characters)."""
HEAD_TOKENS: Final = 80
"""Tokens of a text that is cut a second time: its beginning only."""
HEAD_CHARACTERS: Final = 300
"""Characters at the beginning that a shortened text always keeps."""
END_SHARE: Final = 1 / 3
"""Share of the user's room that the first and the newest text each keep, however little room there is."""
STEPS: Final = 8
"""Into how many steps the share is divided when a text is cut, so that a further short text changes no earlier cut."""
LEFT_OUT_RATIO: Final = 2.5
"""Shortened texts lose their end, and are then left out, only when all texts together exceed this many
times the share: in a very small window, other content gives way first."""
LABEL_TOKENS: Final = 23
"""Tokens of the label around each carried text."""
_REFUSED: Final = re.compile(
    r"The user (?:doesn't want to (?:proceed|take this action)[^\n]*the user said:|rejected permission[^\n]*feedback:)\s*\S"
)
"""How the result of a call begins that the user refused with words of their own: Claude Code, opencode."""
SECTION_SHARE: Final = 0.5
"""A shortened instruction ends at a blank line or heading if at least this share of its room is used by then; else at
any line."""
_ITEM: Final = re.compile(r"^[-*] (?:(?!\n[-*] |\n\n|\n#|\n</).)+", re.DOTALL | re.MULTILINE)
"""An item of a list, with the lines that go on with it. In Codex's list of skills, its file follows: `(file: …)`."""
SPANS_MAX: Final = 20
"""The most dropped spans of which a digest has a record."""
ITEM_CHARACTERS: Final = 100
"""Characters that a shortened item of a list keeps, with its name and its file."""
NAME_CHARACTERS: Final = 80
"""An item's name ends at a colon within this many characters; one without a name keeps half as many."""


def is_user_text(entry: Entry) -> bool:
    """Whether the entry is a text of the user."""
    return isinstance(entry.block, USER_TEXTS)


def carry(
    old: Sequence[Entry], folded: Sequence[Entry], tail: Sequence[Entry], context: Context
) -> tuple[Carried, ...]:
    """What to carry past a cut, in log order.

    `old` was carried by the last compaction, `folded` is folded by this one, `tail` stays visible.
    """
    candidates = (*old, *folded)
    notes = [e for e in candidates if isinstance(e.block, Note)]
    plans = [e for e in candidates if isinstance(e.block, Plan)][-1:]
    if plans and any(isinstance(e.block, Plan) for e in tail):
        plans = []
    pinned = [_whole(entry) for entry in (*notes, *plans)]
    answers = _answers(candidates)
    texts = _bounded([e for e in candidates if is_user_text(e) or e.version in answers], context)
    standing = _standing([*_laid_down(candidates)], tail, context)
    return tuple(sorted((*pinned, *standing, *texts), key=lambda carried: carried.version))


def _answers(entries: Sequence[Entry]) -> set[int]:
    """Versions of the results with words of the user: the answer to a tool's question that the client did ask, or why a call
    was refused; earlier ones were carried as such."""
    calls = ((e.pair, e.block) for e in entries if isinstance(e.block, ToolCall))
    names = ((pair, inner_call(call.name, call.input)[0]) for pair, call in calls)
    queries = {pair: name for pair, name in names if asks_user(name)}

    def is_answer(pair: str, result: ToolResult) -> bool:
        text = text_of(result)
        is_asked = pair in queries and not (result.is_error or text.startswith(queries[pair]))
        return is_asked or bool(_REFUSED.match(text))

    results = ((e, e.block) for e in entries if isinstance(e.block, ToolResult))
    return {
        e.version
        for e, block in results
        if e.place is Place.CARRIED or (e.place is Place.RESULT and is_answer(e.pair, block))
    }


def _whole(entry: Entry) -> Carried:
    return Carried(
        version=entry.version,
        block=entry.source,
        ordinal=0 if version_in(entry.path) else numbered(entry.path)[1],
        clipped=entry.replacement or "",
        withheld=entry.original is not None,
    )


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
            yield replace(entry, block=block, path=path_at(block, entry.version), replacement=None)


def replaced(entries: Sequence[Entry], tail: Sequence[Entry]) -> set[int]:
    """Versions of the standing instructions that a later one replaces; `tail` follows `entries`."""
    newest = {e.standing: e.version for e in (*entries, *tail) if e.standing}
    current = set(newest.values())
    return {e.version for e in entries if e.standing and e.version not in current}


def _standing(entries: Sequence[Entry], tail: Sequence[Entry], context: Context) -> list[Carried]:
    """The standing instructions that apply, shortened where they exceed their room."""
    gone = replaced(entries, tail)
    standing = [e for e in entries if e.standing and e.version not in gone]
    room = int(context.policy.standing_ratio * context.capacity)
    sizes = [context.counter.count(text_of(entry.block)) for entry in standing]
    lists = [_is_list(entry) for entry in standing]
    limits = _standing_limits(sizes, lists, room)
    return [
        _shortened(entry, size, limit, context)
        for entry, size, limit in zip(standing, sizes, limits, strict=True)
    ]


def _standing_limits(sizes: Sequence[int], lists: Sequence[bool], room: int) -> list[int]:
    """The most tokens each instruction may have: lists share what the others leave, the longest give way."""
    limits = list(sizes)
    for giving_way in (lists, [True] * len(sizes)):
        if sum(limits) <= room:
            break
        others = sum(n for n, gives in zip(limits, giving_way, strict=True) if not gives)
        left = max(room - others, room // 8 if giving_way is lists else 0)
        most = each_at_most([n for n, gives in zip(limits, giving_way, strict=True) if gives], left)
        limits = [min(n, most) if gives else n for n, gives in zip(limits, giving_way, strict=True)]
    return limits


def _shortened(entry: Entry, size: int, limit: int, context: Context) -> Carried:
    """The instruction within its limit, with the path of the whole: a list by its items, another text by its sections."""
    carried = _whole(entry)
    if carried.withheld:
        return carried
    if size <= limit:
        return replace(carried, clipped="")
    text, of_lines = text_of(entry.block), _is_list(entry)
    marker = f"[… shortened: {size} tokens in all; the whole text is at {entry.path} …]"
    if of_lines:
        text = _with_short_items(text, limit - context.counter.count(marker), context)
    return replace(carried, clipped=_sections(text, limit, marker, context, of_lines=of_lines))


def _is_list(entry: Entry) -> bool:
    return entry.standing.startswith("list:")


def _with_short_items(text: str, limit: int, context: Context) -> str:
    """The list with its longest items shortened, one after the other until it fits: first what is said of a name, then all but
    the names."""
    count, frame, items = context.counter.count, _ITEM.split(text), _ITEM.findall(text)
    over, shown = sum(count(line) + 1 for line in text.split("\n")) - limit, [*items]
    for characters in (ITEM_CHARACTERS, 0):
        for n in sorted(range(len(items)), key=lambda n: (-len(items[n]), -n)):
            if over > 0:
                before, shown[n] = shown[n], _short_item(items[n], characters)
                over -= count(before) - count(shown[n])
    return "".join(chain.from_iterable(zip(frame, [*shown, ""], strict=True)))


def _short_item(item: str, characters: int) -> str:
    """The item in about so many characters, but with its name at least; the file at its end goes after the words."""
    name = item.find(": ", 0, NAME_CHARACTERS) + 1 or NAME_CHARACTERS // 2
    file = item[begin:] if (begin := item.find(" (file: ")) >= 0 and characters else ""
    head = item[: max(characters - len(file), name)].rstrip()
    return item if len(head) + len(file) + 1 >= len(item) else f"{head}…{file}"


def _sections(text: str, limit: int, marker: str, context: Context, *, of_lines: bool) -> str:
    """The first sections of a text that fit, or lines, the marker, and the last line if that closes an element."""
    lines = text.split("\n")
    closing = lines.pop() if lines[-1].startswith("</") else ""
    room = limit - context.counter.count(f"{marker}\n{closing}")
    fitting, section, used = 0, 0, 0
    for index, line in enumerate(lines):
        used += context.counter.count(line) + 1
        if used > room:
            break
        fitting = index + 1
        following = lines[index + 1] if index + 1 < len(lines) else ""
        is_end = of_lines or not line.strip() or following.startswith("#")
        if is_end and used >= SECTION_SHARE * room:
            section = index + 1
    return "\n".join(filter(None, ("\n".join(lines[: section or fitting]), marker, closing)))


# The user's texts.


def _bounded(entries: Sequence[Entry], context: Context) -> list[Carried]:
    """The user's texts, within their share; the sizes are those of whole texts, also where an earlier compaction had to
    cut one."""
    count, texts = context.counter.count, [text_of(entry.block) for entry in entries]
    sizes = [count(text) for text in texts]
    own = [
        answers_in(text)
        if isinstance(e.block, ToolResult)
        else without_pasted(text, HEAD_CHARACTERS)
        for e, text in zip(entries, texts, strict=True)
    ]
    small = [min(count(short), size) for short, size in zip(own, sizes, strict=True)]
    share = int(context.policy.user_ratio * context.capacity)
    limits = _limits(sizes, small, share)
    return [
        _clipped(entry, text, limit, context)
        for entry, text, limit in zip(entries, own, limits, strict=True)
        if limit > 0
    ]


def _limits(sizes: Sequence[int], small: Sequence[int], share: int) -> list[int]:
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
    steps += [(i, HEAD_TOKENS, most) for i in between if sizes[i] > SHORT_TOKENS]
    steps += [(i, 0, most) for i in between]
    steps += [(i, SHORT_TOKENS, most) for i in ends] + [(i, 0, most) for i in ends[:-1]]
    left, step = sum(map(_labelled, limits)), max(share // STEPS, 1)
    for index, tokens, enough in steps:
        if left <= enough:
            continue
        is_cut = 0 < tokens < small[index]  # anywhere: it keeps what room there is, in coarse steps
        room = (limits[index] - (left - enough)) // step * step
        wanted = max(tokens, room) if is_cut else tokens
        left -= _labelled(limits[index])
        limits[index] = min(limits[index], wanted)
        left += _labelled(limits[index])
    return limits


def _labelled(limit: int) -> int:
    """Tokens of a text of this size with its label; 0 when it is left out."""
    return limit + LABEL_TOKENS if limit else 0


def _clipped(entry: Entry, own: str, limit: int, context: Context) -> Carried:
    """The text within its limit, always made from the original and never from an earlier cut; `own` is the text
    without pasted material."""
    carried, text = _whole(entry), text_of(entry.block)
    tokens = context.counter.count(text)
    short = ""
    if tokens > limit and len(text) > HEAD_CHARACTERS:
        if own != text:
            short = f"{own}\n[… {tokens} tokens in all; the whole text is at {entry.path} …]"
        if not short or context.counter.count(own) > limit:
            short = _ends(own, tokens, limit, entry.path, context)
    if carried.withheld or images_of(entry.block):  # each image is replaced by a word
        short = short or text
    return replace(carried, clipped=short)


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


# What is not the user's in a text: questions of an agent, and pasted material.


_PREVIEW: Final = re.compile(r" selected preview:\n.*?(?=, \"|\. You can now|\Z)", re.DOTALL)
_QUESTION: Final = re.compile(
    r'(?<=[:,] )"((?:(?!"=["(]).){60})(?:(?!"=["(]).){20,}"=(?=["(])', re.DOTALL
)
"""A question before its answer, and what an option had shown, in the result of a tool that asks: Claude Code, opencode."""


def answers_in(text: str) -> str:
    """The answers of the user, each with the beginning of its question."""
    return _QUESTION.sub(r'"\1…"=', _PREVIEW.sub("", text))


RUN_LINES_MIN: Final = 6
"""A shorter run of lines is not worth shortening."""
END_LINES: Final = 2
"""Lines that stay at each end of a run."""
LINE_CHARACTERS: Final = 200
"""Characters that stay of such a line."""


def without_pasted(text: str, begin: int = 0) -> str:
    """The text with the middle of each pasted run behind its first `begin` characters left out; the same text if it has
    no such run."""
    if begin:
        end = text.find("\n", begin) + 1
        return text[:end] + without_pasted(text[end:]) if end else text
    lines: list[str] = []
    for is_pasted, run in _runs(text.split("\n")):
        if is_pasted and len(run) >= RUN_LINES_MIN:
            left_out = len(run) - 2 * END_LINES
            lines += [_short(line) for line in run[:END_LINES]]
            lines.append(f"[… {left_out} pasted lines …]")
            lines += [_short(line) for line in run[-END_LINES:]]
        else:
            lines += run
    return "\n".join(lines)


def _runs(lines: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines, and whether they were pasted. A blank line belongs to the run before it."""
    flags: list[bool] = []
    fence = ""
    for line in lines:
        begin = line.lstrip()[:3]
        if fence:
            fence = "" if begin == fence else fence
            flags.append(True)
        elif begin in FENCES:
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


# The summary block.


BESIDE_WRITTEN: Final = 1 / 3
"""Share of their room that reports, and what was done, have beside the part of a model, which has read the same blocks."""
PAGE_TOKENS_MIN: Final = 200
"""The page has this room in any case."""
LEAST_SHARE: Final = 1 / 3
"""Share of its room by the policy that the report has even if the target leaves less; and the most that it then has of the room
before the next compaction is due, since a page that fills it brings that one at once."""
FOLDED_SHARE: Final = 1 / 2
"""The most that a page grows, as a share of what is newly folded: a page of a short talk is shorter than the talk."""
REPORT_SHARE: Final = 1 / 3
"""The same of what is read of it: a talk in which nothing was done shrinks by half and more."""


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
        split_turn_id=fold.tail[0].block.turn if fold.is_split else None,
        start=fold.start,
        cut=fold.cut,
        summary=text,
        digest=Digest(),
        turn_range=_turn_range(previous, fold),
        begun_turn_id=begun_turn(previous, fold),
    )
    return replace(block, digest=_digest(view, fold, block, context))


def _written(summary: StructuredSummary, fold: FoldRange) -> StructuredSummary:
    """The summariser's answer, with the user's own words first."""
    texts = [" ".join(words.split()) for words in _user_texts(fold)] if summary.constraints else []
    own, others = list[str](), list[str]()
    for index, constraint in enumerate(summary.constraints):
        words = " ".join(constraint.split())
        was_own = summary.complete and index < summary.quoted
        is_own = was_own or (words and any(words in text for text in texts))
        (own if is_own else others).append(constraint)
    return replace(summary, constraints=(*own, *others), quoted=len(own))


def _user_texts(fold: FoldRange) -> Iterator[str]:
    """All user texts that the range knows."""
    for entry in (*fold.given_up, *fold.folded, *fold.tail):
        yield from searched(words_of(entry.block))
    for item in fold.carried:
        yield from searched("" if item.withheld else text_of(item.block))


def written_before(previous: RangeSummary | None, fold: FoldRange) -> StructuredSummary | None:
    """The written part of the previous summary, without the context of a turn that has ended."""
    if previous is None:
        return None
    is_over = _begun_before(previous) not in (None, fold.tail[0].block.turn)
    return replace(previous.summary, turn_context="") if is_over else previous.summary


def _begun_before(previous: RangeSummary | None) -> TurnId | None:
    return (previous.begun_turn_id or previous.split_turn_id) if previous else None


def begun_turn(previous: RangeSummary | None, fold: FoldRange) -> TurnId | None:
    """The turn that continues after the cut, if its beginning has been folded; otherwise None."""
    turn = fold.tail[0].block.turn
    is_begun = any(e.block.turn == turn and e.place is not Place.SILENT for e in fold.folded)
    return turn if is_begun or turn == _begun_before(previous) else None


def _turn_range(previous: RangeSummary | None, fold: FoldRange) -> tuple[TurnId, ...]:
    """The oldest and the newest turn that are folded whole; late results of older turns are ignored."""
    earlier = (previous.turn_range or previous.covered_turn_ids) if previous else ()
    folded = (e.block.turn for e in fold.folded if not isinstance(e.block, ToolResult))
    whole = [turn for turn in (*earlier, *folded) if turn != fold.tail[0].block.turn]
    return (whole[0], whole[-1]) if whole else ()


def _digest(view: View, fold: FoldRange, block: RangeSummary, context: Context) -> Digest:
    """The digest for a summary: the computed parts of its page, each within its room."""
    count = cache(context.counter.count)
    previous = view.compaction.event.summary if view.compaction else None
    room = _page_room(view, fold, count(format_written(block.summary)), context)
    runs = runs_of((*fold.folded, *fold.tail))
    past, is_written = (
        _with_past(counted(previous, fold.folded), fold, runs),
        block.summary.complete,
    )
    if (
        is_written
    ):  # statements on the way are left to the model: it knows which of them were refuted
        past = replace(past, findings=tuple(e for e in past.findings if e.kind != "found"))
    digest = _fitted(past, room, count, is_written=is_written)
    whole = PageRoom.of(context.policy, context.capacity).times(1 / context.squeeze)
    if is_written or room.report < whole.report:
        held = _fitted(past, whole, count, is_written=False)
        digest = replace(digest, held=Past(findings=held.findings, actions=held.actions))
    return _with_working_set(digest, fold, runs, room, count)


def counted(previous: RangeSummary | None, folded: Sequence[Entry]) -> Digest:
    """The digest so far, with how much is folded now. It goes on from the page before, so it covers everything that is no
    longer visible; a turn that was split counts once."""
    before = previous.digest if previous else Digest()
    if held := before.held:
        before = replace(before, findings=held.findings, actions=held.actions, held=None)
    turns = {entry.block.turn for entry in folded}.difference(
        previous.covered_turn_ids if previous else ()
    )
    dropped = [entry.dropped for entry in folded if entry.dropped and not entry.artifact]
    return replace(
        before,
        blocks=before.blocks + len(folded),
        turns=before.turns + len(turns),
        rounds=before.rounds + len({entry.round for entry in folded if entry.round}),
        compactions=before.compactions + 1,
        dropped=tuple(dict.fromkeys((*before.dropped, *dropped)))[-SPANS_MAX:],
    )


def _with_past(digest: Digest, fold: FoldRange, runs: Mapping[str, Run]) -> Digest:
    """The digest with how things stand after everything that is folded or kept, and with all that was found and done in
    what is folded."""
    folded = [entry for entry in fold.folded if not entry.standing]
    new = [entry for entry in (*fold.folded, *fold.tail) if entry.version > digest.seen]
    turn, cut = fold.tail[0].block.turn, _no_longer_whole(fold)
    rules = [
        rule
        for version, block, shown in cut
        if (rule := rule_in(without_pasted(words_of(block)), shown, block.turn, version))
    ]
    return replace(
        digest,
        progress=_state.advance(digest.progress, new, runs),
        findings=_findings.advance((*digest.findings, *rules), folded, runs, turn, _named(fold)),
        actions=_actions.advance(digest.actions, folded, runs, digest.progress.processes),
    )


def _fitted(
    digest: Digest, room: PageRoom, count: Callable[[str], int], *, is_written: bool
) -> Digest:
    """The digest with as much of how things stand and of the past as there is room for. What one part leaves of its room,
    another has; beside the part of a model, each has a share."""
    progress = _state.fitted(digest.progress, room.state, count)
    if is_written:
        findings = _findings.fitted(digest.findings, int(BESIDE_WRITTEN * room.findings), count)
        actions = _actions.fitted(digest.actions, int(BESIDE_WRITTEN * room.done), count)
        return replace(digest, progress=progress, findings=findings, actions=actions)
    past = room.report - count(_state.text(progress))
    actions, findings = _actions.fitted(digest.actions, room.done, count), digest.findings
    most = past - count(_actions.text_of_actions(actions)) if room.findings else 0
    findings = _findings.fitted(findings, most, count)
    if room.done:
        left = past - count(_findings.text_of_findings(findings))
        actions = _actions.fitted(digest.actions, left, count)
    return replace(digest, progress=progress, findings=findings, actions=actions)


def _with_working_set(
    digest: Digest,
    fold: FoldRange,
    runs: Mapping[str, Run],
    room: PageRoom,
    count: Callable[[str], int],
) -> Digest:
    """The digest with the files that are being worked on, and in what the report leaves of its room, those that the agent
    wrote."""
    at_hand = (*fold.folded, *fold.tail)
    copies = followed(digest.regions, runs.values(), digest.seen)
    digest = replace(digest, regions=())
    used = sum(count(text) for _, text in computed_sections(digest) if text)
    oldest, visible = oldest_of(at_hand, room.windows), _shown(fold)
    wanted = _named(fold) | _names_in(_state.text(digest.progress))  # what the work is about
    rows = ranked(copies, visible, oldest, wanted)
    regions = working_set(copies, rows, room.working_beside(used), count)
    left = min(room.report, room.most - count(working_text(regions))) - used
    if room.working:
        regions += working_set(copies, own_files(copies, visible, oldest), left, count)
    newest = max(entry.version for entry in at_hand)
    return replace(digest, regions=regions, seen=max(newest, digest.seen))


def _named(fold: FoldRange) -> frozenset[str]:
    """The names in the user's texts."""
    carried = (item.block for item in fold.carried if not item.withheld)
    texts = [text_of(block) for block in carried if isinstance(block, USER_TEXTS)]
    texts += [text_of(entry.block) for entry in fold.tail if is_user_text(entry)]
    return frozenset(chain.from_iterable(map(_names_in, texts)))


def _names_in(text: str) -> frozenset[str]:
    return frozenset(chain.from_iterable(map(identifiers, searched(text))))


def _shown(fold: FoldRange) -> dict[int, frozenset[str] | None]:
    """The lines that the request shows of each kept block, without numbers, by its version; None: all."""
    cut = {hidden.block: hidden.replacement for hidden in fold.cuts}
    left = {e.version: cut.get(e.block.id, e.replacement) for e in fold.tail}
    return {
        version: None if text is None else frozenset(map(without_number, text.split("\n")))
        for version, text in left.items()
    }


def shortened(fold: FoldRange) -> Iterator[str]:
    """The user's texts that are shortened or left out past the cut, whole; none that is hidden."""
    return (text_of(block) for _, block, _ in _no_longer_whole(fold))


def _no_longer_whole(fold: FoldRange) -> Iterator[tuple[int, Block, str]]:
    """The user's texts that are shortened or left out, each with its version and what is left of it."""
    for item in fold.carried:
        if item.clipped and not item.withheld and isinstance(item.block, USER_TEXTS):
            yield item.version, item.block, item.clipped
    carried = {item.version for item in fold.carried}
    for entry in (*fold.given_up, *fold.folded):
        if is_user_text(entry) and entry.version not in carried and entry.original is None:
            yield entry.version, entry.block, ""


def _page_room(view: View, fold: FoldRange, written: int, context: Context) -> PageRoom:
    """The rooms of the computed parts: by the policy, or less if the target leaves less beside the rest."""
    count, sizes = context.counter.count, account(view, context)
    carried = sum(count(c.clipped or text_of(c.block)) + LABEL_TOKENS for c in fold.carried)
    lasting = context.prefix.tokens + carried + written
    rest = lasting + fold.tail_tokens
    target, due = (  # in tokens as they are counted here
        (tokens - sizes.prefix) / sizes.ratio
        for tokens in (target_of(context), threshold_of(context))
    )
    before = count(format_summary(view.compaction.event.summary)) if view.compaction else 0
    new = sizes.estimated - rest - before
    report = PageRoom.of(context.policy, context.capacity).report
    left = max(target - rest, LEAST_SHARE * min(report, due - lasting))
    most = max(int(min(left, before + FOLDED_SHARE * new)), PAGE_TOKENS_MIN)
    report_most = max(min(int(before + REPORT_SHARE * new), most), PAGE_TOKENS_MIN)
    entries = max(new + fold.tail_tokens, 1)
    free = context.capacity / sizes.ratio - (sizes.estimated - entries)
    room = PageRoom.of(context.policy, context.capacity, most, report_most)
    return attrs.evolve(room, windows=max(free / entries, 1.0))
