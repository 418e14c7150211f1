"""What was found and decided, by turn: the second section of the page.

A *finding* is a text condensed to its statements (see `_prose`), with the block that it came from:

    report     the agent's last words in a turn that ended, or before the user spoke again: they sum the turn up
    found      a statement on the way: a cause, a result, a decision with its reason, a rejected alternative
    guess      one that is not sure, or a plan; it goes when a report of its turn follows
    agent      the report of a sub-agent
    document   what was read: a design, an issue, a page; the newest reading of each
    rule       a demand of the user in a text that is no longer shown whole
    now        what is just being done in the turn that goes on

A report is taken by its position alone. The other statements of the agent are judged by their form (names, numbers) and by
a few English words; the last sentence before a call mostly says what the call will do, so it must tell more. What a later
statement repeats, or takes back, goes.

The turns share the room: newer ones, and those in which much was found, get more. A turn first loses its details (remarks
in parentheses, clauses), then its least telling statements, at last all but its first one. Nothing is written anew, so
what is folded again and again only gets shorter.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Final

import attrs
from msgspec import structs

from blocks import (
    AssistantCompletion,
    Block,
    Finding,
    TextPart,
    ToolCall,
    ToolResult,
    UserFollowup,
    UserPrompt,
    UserSteer,
    asks_user,
    is_sealed,
    label_of,
    text_of,
    tool_kind,
    tool_target,
)
from render.summary._identifiers import identifiers, one_line, output_of
from render.summary._prose import (
    Piece,
    is_prose,
    is_prose_line,
    read_prose,
    sentences_of,
    shortened,
    text_of_pieces,
    tidy,
)
from render.view._group import Entry

Counter = Callable[[str], int]


def advance(
    previous: Sequence[Finding],
    entries: Sequence[Entry],
    running: str = "",
    cut: Iterable[tuple[int, Block, str]] = (),
) -> tuple[Finding, ...]:
    """The findings after these entries were folded, too.

    `running` is the turn that goes on after them, if any; `cut` are the user's texts that are no longer shown whole, each
    with its version and what is shown of it.
    """
    new = [*_said(entries, running), *_given(entries)]
    rules = [rule for version, block, shown in cut for rule in _rules(version, block, shown)]
    again = {rule.version for rule in rules}
    old = [
        _over(each, running)
        for each in previous
        if not (each.kind == "rule" and each.version in again)
    ]
    findings = sorted([*old, *new, *rules], key=attrgetter("version"))
    return tuple(_settled(findings))


def text(findings: Sequence[Finding]) -> str:
    """The section: for each turn its reports, then the rest in order."""
    return "\n".join(
        _turn_text(list(turn)) for _, turn in groupby(_by_turn(findings), attrgetter("turn"))
    )


def fitted(findings: Sequence[Finding], tokens_max: int, count: Counter) -> tuple[Finding, ...]:
    """The findings condensed until their text fits."""
    turns = [list(turn) for _, turn in groupby(_by_turn(findings), attrgetter("turn"))]
    room = tokens_max
    for _ in range(TRIES):
        if count(text(findings)) <= tokens_max:
            return tuple(findings)
        turns = _shared(turns, room, count)
        findings = [finding for turn in turns for finding in turn]
        room = int(ROOM_STEP * room)
    return ()


# The text.


LABELS: Final[Mapping[str, str]] = {
    "agent": "report of ",
    "document": "",
    "rule": "the user: ",
    "now": "now: ",
}
"""What stands before the source or text of a finding."""
ORDER: Final = ("report", "rule", "found", "guess", "agent", "document", "now")


def _by_turn(findings: Sequence[Finding]) -> list[Finding]:
    """The findings by turn, in log order, each turn's reports first and what is just being done last."""
    first: dict[str, int] = {}
    for finding in sorted(findings, key=attrgetter("version")):
        first.setdefault(finding.turn, finding.version)
    return sorted(
        findings, key=lambda each: (first[each.turn], each.turn, _place(each), each.version)
    )


def _place(finding: Finding) -> int:
    return {"report": 0, "now": 2}.get(finding.kind, 1)


def _turn_text(turn: Sequence[Finding]) -> str:
    first, *others = turn
    lines = [f"{first.turn} {_one(first)}", *(f"- {_one(each)}" for each in others)]
    return "\n".join(lines)


def _one(finding: Finding) -> str:
    """A finding with its label; its further lines are indented below the first."""
    source = f"{finding.source}: " if finding.source else ""
    body = "\n  ".join(filter(None, finding.text.split("\n")))
    body += f" (and {finding.gone} more)" if finding.gone else ""
    return f"[{label_of(finding.version)}]: {LABELS.get(finding.kind, '')}{source}{body}"


# Room.


TRIES: Final = 6
ROOM_STEP: Final = 0.9
"""If the text is too long after all, the room is taken for so much smaller."""
LINE_CHARACTERS: Final = 140
"""Characters of the line that every turn has if there is room for one each."""
FADE_TURNS: Final = 6
"""A turn with this many turns after it gets half of what the newest gets."""
LEAST_WEIGHT: Final = 0.2
"""The oldest turns' part of it."""
REPORT_SHARE: Final = 0.6
"""Share of a turn's room for its reports, if there is more to tell."""
DOCUMENT_SHARE: Final = 0.2
"""Share of a turn's room for documents that were read, if there is more to tell."""
DETAILS: Final = (
    (400, 0, 2),
    (240, 0, 2),
    (160, 1, 2),
    (120, 2, 1),
    (90, 3, 0),
    (70, 4, 0),
    (50, 5, 0),
)
"""Steps of condensing: the most characters of each statement, the worth below which a sentence goes, and the depth below
which items go."""
LENGTH_POWER: Final = 0.4
"""Worth is divided by characters to this power, which favours short statements."""
LENGTH_MIN: Final = 60
"""Statements below this many characters are not favoured further."""
MORE: Final = 99
"""A number of left-out items that is as long as most."""
SHORT_CHARACTERS: Final = 70
"""Characters of each statement where statements must go."""
STATEMENT_TOKENS: Final = 80
"""A statement of this size is told whole or not at all; a longer one may get half of what is left."""
DOCUMENT_TOKENS_MIN: Final = 60
"""A document is not condensed to less than this."""
DOCUMENT_WEIGHT: Final = 200
"""The most tokens of documents that count for a turn's part of the room."""
LAST_WORTH: Final = 2
"""What the last sentence of a text is worth beyond its words: it often concludes."""
NEWER: Final = 1.0
"""By how much the newest statement of a turn is worth more than its oldest."""


def _shared(turns: Sequence[list[Finding]], room: int, count: Counter) -> list[list[Finding]]:
    """The turns with each in its part of the room; the oldest go if not each can have a line."""
    needs = [_size(turn, count) for turn in turns]
    lines = [_line(turn) for turn in turns]
    least = [min(_size(line, count), need) for line, need in zip(lines, needs, strict=True)]
    first = 0
    while first < len(turns) and sum(least[first:]) > room:
        first += 1
    newest = len(turns) - 1
    weights = [
        (LEAST_WEIGHT + 1 / (1 + (newest - index) / FADE_TURNS)) * _told(turn, count) ** 0.5
        for index, turn in enumerate(turns)
    ]
    limits = _parts(room, least[first:], needs[first:], weights[first:])
    shared: list[list[Finding]] = []
    spare = 0  # what newer turns left
    for turn, line, limit in reversed([*zip(turns[first:], lines[first:], limits, strict=True)]):
        shared.append(_within(turn, limit + spare, count) or line)
        spare += limit - _size(shared[-1], count)
    return shared[::-1]


def _parts(
    room: int, least: Sequence[int], needs: Sequence[int], weights: Sequence[float]
) -> list[int]:
    """How the room is divided: each its least, and of the rest by weight, up to its need."""
    limits, open_ = list(least), [i for i, need in enumerate(needs) if need > least[i]]
    left = room - sum(least)
    while open_ and left > 0:
        whole = sum(weights[i] for i in open_)
        given = {i: min(int(left * weights[i] / whole), needs[i] - limits[i]) for i in open_}
        if not any(given.values()):
            break
        for i, more in given.items():
            limits[i] += more
        left -= sum(given.values())
        open_ = [i for i in open_ if limits[i] < needs[i]]
    return limits


def _told(turn: Sequence[Finding], count: Counter) -> int:
    """How much a turn has to tell, in tokens."""
    documents = [each for each in turn if each.kind == "document"]
    others = [each for each in turn if each.kind != "document"]
    told = min(_size(documents, count), DOCUMENT_WEIGHT) if documents else 0
    return told + (_size(others, count) if others else 0)


def _size(turn: Sequence[Finding], count: Counter) -> int:
    return count(_turn_text(turn) + "\n") + 1


def _line(turn: Sequence[Finding]) -> list[Finding]:
    """The one line of a turn: the first statement of its newest report, else its most telling finding."""
    reports = [each for each in turn if each.kind == "report"]
    best = (
        reports[-1] if reports else max(turn, key=lambda each: (_density(each.text), each.version))
    )
    pieces = read_prose(best.text)
    leads = [piece for piece in pieces if piece.form != "lead"]
    told = leads[0].text if leads else best.text
    return [
        structs.replace(best, text=shortened(one_line(told, 10 * LINE_CHARACTERS), LINE_CHARACTERS))
    ]


def _within(turn: Sequence[Finding], tokens: int, count: Counter) -> list[Finding]:
    """The turn's findings in so many tokens: its reports, then the most telling of the rest."""
    if _size(turn, count) <= tokens:
        return list(turn)
    reports = [each for each in turn if each.kind == "report"]
    others = [each for each in turn if each.kind != "report"]
    kept: list[Finding] = []
    left = tokens
    if reports:
        wanted = left - (
            0 if not others else min(int((1 - REPORT_SHARE) * left), _size(others, count))
        )
        for index, report in enumerate(reversed(reports)):
            part = max(wanted // (len(reports) - index), 0)
            if short := _condensed(report, part, count):
                kept.append(short)
                wanted -= _size([short], count)
                left -= _size([short], count)
    documents = DOCUMENT_SHARE * tokens if any(each.kind != "document" for each in turn) else tokens
    for finding in _best_first(others):
        limit = min(left, documents) if finding.kind == "document" else left
        each = limit if len(others) == 1 else max(limit // 2, min(limit, STATEMENT_TOKENS))
        if finding.kind == "document" and each < DOCUMENT_TOKENS_MIN:
            continue
        short = _condensed(finding, int(each), count)
        if short is None:
            continue
        kept.append(short)
        used = _size([short], count)
        left -= used
        documents -= used if finding.kind == "document" else 0
    return _by_turn(kept)


def _best_first(findings: Sequence[Finding]) -> list[Finding]:
    """What is just being done and rules first, then the most telling for their length, newer ones a little before."""
    last = max(len(findings) - 1, 1)
    ranked = [
        (
            (each.kind not in ("now", "rule")),
            -_density(each.text) * (1 + NEWER * index / last),
            -index,
        )
        for index, each in enumerate(findings)
    ]
    return [findings[-index] for _, _, index in sorted(ranked)]


@lru_cache(maxsize=4096)
def _density(told: str) -> float:
    """The worth of a finding for its length: that of its pieces together."""
    worths = sum(max(worth(piece.text), 0) + 0.5 for piece in read_prose(told))
    return worths / max(len(told), LENGTH_MIN) ** LENGTH_POWER


def _condensed(finding: Finding, tokens: int, count: Counter) -> Finding | None:
    """The finding in so many tokens; None if not even its first statement has room."""
    if _size([finding], count) <= tokens:
        return finding
    for step in DETAILS:
        short = structs.replace(finding, text=_without(finding.text, *step))
        if short.text and _size([short], count) <= tokens:
            return short
    return _most_telling(finding, tokens, count)


def _without(told: str, characters: int, least: int, depth: int) -> str:
    """The text with each statement in so many characters, without the sentences below a worth and the items below a
    depth; the first stays."""
    kept: list[Piece] = []
    before: Piece | None = None
    pieces = read_prose(told)
    for piece in pieces:
        is_first = before is None or before.form == "lead"
        told_worth = worth(piece.text) + LAST_WORTH * (piece is pieces[-1])
        is_telling = piece.form != "sentence" or is_first or told_worth >= least
        if is_telling and (piece.form != "item" or piece.depth <= depth):
            kept.append(attrs.evolve(piece, text=shortened(piece.text, characters)))
        before = piece
    return text_of_pieces(tidy(kept))


def _most_telling(finding: Finding, tokens: int, count: Counter) -> Finding | None:
    """The finding with its first statement and, all short, as many others as fit: the most telling sentences, then the
    items of lists from the beginning on; of a document the most telling of both."""
    pieces = read_prose(_without(finding.text, SHORT_CHARACTERS, 0, 0))
    leads = {i: _lead_of(i, pieces) for i, piece in enumerate(pieces) if piece.form != "lead"}
    ranked = sorted(leads, key=lambda index: (-_density(pieces[index].text), index))
    if finding.kind != "document":
        sentences = [index for index in ranked if pieces[index].form == "sentence"]
        ranked = [*[*leads][:1], *sentences, *leads]
    left = tokens - _size([structs.replace(finding, text="", gone=MORE)], count)
    kept: set[int] = set()
    for index in ranked:
        wanted = {index, leads[index]} - kept - {-1}
        cost = sum(count(pieces[each].line) + 2 for each in wanted)
        if cost <= left:
            kept |= wanted
            left -= cost
    gone = sum(i not in kept for i in leads if pieces[i].form in ("item", "row"))
    told = text_of_pieces(tidy([pieces[index] for index in sorted(kept)]))
    short = structs.replace(finding, text=told, gone=finding.gone + gone)
    return short if kept and _size([short], count) <= tokens else None


def _lead_of(index: int, pieces: Sequence[Piece]) -> int:
    """The index of the lead that a piece stands under; -1: none."""
    return next((each for each in range(index, -1, -1) if pieces[each].form == "lead"), -1)


# What the agent said.


WORTH_MIN: Final = 2
"""A statement on the way tells at least this much."""
TEXT_MAX: Final = 3
"""The most statements of one text on the way."""
STATEMENT_MIN: Final = 12
STATEMENT_CHARACTERS: Final = 320
NOW_CHARACTERS: Final = 160
LIST_WORTH: Final = 3
"""What a list is worth at most beyond its words."""
_SAID: Final = UserPrompt, UserFollowup, UserSteer


def _said(entries: Sequence[Entry], running: str) -> Iterator[Finding]:
    """The findings in the agent's texts, each turn's last words as its report."""
    turns: dict[str, list[Entry]] = {}
    for entry in entries:
        is_quotable = entry.original is None and not is_sealed(entry.block)
        if is_quotable and isinstance(entry.block, (AssistantCompletion, ToolCall, *_SAID)):
            turns.setdefault(entry.block.turn, []).append(entry)
    for turn, said in turns.items():
        yield from _stretches(said, is_open=turn == running)


def _stretches(said: Sequence[Entry], *, is_open: bool) -> Iterator[Finding]:
    """The findings of a turn; the user's words divide it."""
    texts: list[tuple[Entry, bool]] = []  # each with whether a call follows it
    for entry in said:
        if isinstance(entry.block, AssistantCompletion):
            if entry.block.text.strip():
                texts.append((entry, False))
        elif isinstance(entry.block, ToolCall):
            texts = [(each, True) for each, _ in texts] if texts and not texts[-1][1] else texts
        elif texts:
            yield from _stretch(texts, is_open=False)
            texts = []
    if texts:
        yield from _stretch(texts, is_open=is_open)


def _stretch(texts: Sequence[tuple[Entry, bool]], *, is_open: bool) -> Iterator[Finding]:
    closing = (
        0
        if is_open
        else next((n for n, (_, is_before) in enumerate(reversed(texts)) if is_before), len(texts))
    )
    on_the_way = texts[: len(texts) - closing]
    for entry, is_before in on_the_way:
        yield from _on_the_way(entry, is_before_call=is_before)
    last = texts[-1][0]
    told = "\n\n".join(
        entry.block.text
        for entry, _ in texts[len(texts) - closing :]
        if isinstance(entry.block, AssistantCompletion)
    )
    if report := _report(told):
        yield _finding(last, "report", report)
    elif isinstance(last.block, AssistantCompletion):
        line = shortened(one_line(last.block.text, 10 * NOW_CHARACTERS), NOW_CHARACTERS)
        yield _finding(last, "now", line)


def _finding(entry: Entry, kind: str, told: str, source: str = "") -> Finding:
    return Finding(
        turn=entry.block.turn, version=entry.version, kind=kind, text=told, source=source
    )


def _report(told: str) -> str:
    """The statements of a closing text, without offers and announcements."""
    pieces = read_prose(told)
    return text_of_pieces(list(_stated(pieces)) or pieces)


def _stated(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces without sentences that offer, greet, or only say what the agent is about to do."""
    for piece in pieces:
        if piece.form != "sentence":
            yield piece
        elif stated := [each for each in sentences_of(piece.text) if not _offers(each)]:
            yield attrs.evolve(piece, text=" ".join(stated))


def _on_the_way(entry: Entry, *, is_before_call: bool) -> Iterator[Finding]:
    """The statements of a text on the way that tell something, in their order; a list stays with its lead."""
    if not isinstance(entry.block, AssistantCompletion):
        return
    found: list[tuple[float, int, str]] = []
    pieces = read_prose(entry.block.text)
    told = [[*_stated(whole)] for whole in _wholes(pieces)]
    for index, whole in enumerate(told):
        statement = text_of_pieces(whole)
        is_last = is_before_call and index == len(told) - 1
        if len(statement) < STATEMENT_MIN or (
            is_last and statement.endswith((":", "：", "…", "..."))
        ):
            continue
        value = worth(" ".join(piece.text for piece in whole)) + (not index and len(told) > 1)
        value += min(len(whole) - 1, LIST_WORTH) - 2 * is_last
        if value >= WORTH_MIN:
            found.append((value, index, statement))
    best = sorted(found, key=lambda each: (-each[0], each[1]))[:TEXT_MAX]
    for _, _, statement in sorted(best, key=lambda each: each[1]):
        is_sure = _CAUSE.search(statement) or _RESULT.search(statement)
        is_guess = _announces(statement) or (_GUESS.search(statement) and not is_sure)
        yield _finding(entry, "guess" if is_guess else "found", statement)


def _wholes(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces that have sense alone: a sentence; a lead with what it leads to; the items of a list."""
    whole: list[Piece] = []
    for piece in pieces:
        is_part = whole and (
            (piece.form in ("item", "row") and whole[-1].form != "sentence")
            or (whole[-1].form == "lead")
        )
        if whole and not is_part:
            yield whole
            whole = []
        whole.append(piece)
    if whole:
        yield whole


# The worth of a statement.


NAMES_MAX: Final = 2
"""The most names, and the most numbers, that count."""
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\w.:%-]*")
_CAUSE: Final = re.compile(
    r"\b(?:causes?|caused|because|since|due to|reasons?|culprit|turns out|means that|that(?:'|’)?s why|root|found"
    r"|confirm(?:s|ed)|missing|wrong|incorrect|bug|issue|problem|regression|fix(?:ed)?)\b",
    re.IGNORECASE,
)
"""English words for causes and corrections: what a successor needs first, to not look for them again."""
_DECISION: Final = re.compile(
    r"\b(?:decided?|decision|instead of|rather than|reject(?:s|ed)?|chose|prefer|better|safer|simpler|should(?:n(?:'|’)t| not)"
    r"|must|policy|approach|keep|option|so that|not needed|no need)\b",
    re.IGNORECASE,
)
"""English words for decisions, their reasons and alternatives."""
_RESULT: Final = re.compile(
    r"\b(?:pass(?:es|ed)?|fail(?:s|ed|ure)?|done|committed|pushed|merged|verified|reproduced|works?|removed|renamed|reverted"
    r"|created|added|updated|succeed(?:s|ed)?|blocked|skipped|resolved|returns?|shows?|no longer|never|only)\b",
    re.IGNORECASE,
)
"""English words for results and limits."""
_GUESS: Final = re.compile(
    r"\b(?:maybe|perhaps|might|could|probably|likely|possibly|i (?:think|guess|suspect|wonder)|hmm)\b",
    re.IGNORECASE,
)
_ANNOUNCED: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|good|great|perfect|so|and|but|wait|next|now|first|then|also|interesting|finally)\b\W*)*"
    r"(?:let me|let(?:'|’)?s|let us|i(?:'|’)?(?:ll| will|m going to| am going to| need to| want to| should|d like to)\b"
    r"|(?:i(?:'|’)m|i am|we(?:'|’)re) (?:\w+ly )?(?:also |now |just |still )?\w+ing\b|still \w+ing\b"
    r"|(?:now|next),? (?:to |i |we |add|update|fix|run|implement|create|write|check|read|look|test|verify|clear|set)\b"
    r"|(?:running|checking|looking|waiting|trying|reading|continuing)\b)",
    re.IGNORECASE,
)
"""The beginning of an English sentence that says what the agent is about to do."""
_OFFER: Final = re.compile(
    r"\W*(?:(?:if (?:you|that)\b[^.?!]{0,80}|so|ok(?:ay)?|now|or|just)[,\s]+)*(?:would you like|do you want|want me to|shall i"
    r"|should i|let me know|feel free|happy to|i can (?:also )?(?:do|help|make|start|add|walk)|what would you like"
    r"|is there anything|anything else|ready (?:for|when)|you(?:'|’)re welcome|hello\b|hi\b)",
    re.IGNORECASE,
)
"""The beginning of an English offer or greeting."""


@lru_cache(maxsize=4096)
def worth(statement: str) -> int:
    """How much a statement tells: by its names and numbers, which every language has, and by English words."""
    named = min(len(identifiers(statement)), NAMES_MAX) + min(
        len(_NUMBER.findall(statement)), NAMES_MAX
    )
    cues = 3 * bool(_CAUSE.search(statement)) + 3 * bool(_DECISION.search(statement))
    cues += 2 * bool(_RESULT.search(statement))
    unsure = 2 * bool(_GUESS.search(statement)) + 3 * statement.endswith(("?", "？"))
    announced = _announces(statement) * (2 if _DECISION.search(statement) else 4)
    return named + cues - unsure - announced


def _announces(statement: str) -> bool:
    return bool(_ANNOUNCED.match(statement))


def _offers(statement: str) -> bool:
    has_reason = _DECISION.search(statement) or _CAUSE.search(statement)
    return bool(_OFFER.match(statement) or (_announces(statement) and not has_reason))


# What later statements do to earlier ones.


NEAR_SHARE: Final = 0.7
"""A statement repeats another if it has this share of its words."""
OPPOSITE_SHARE: Final = 0.6
"""It denies another if only one of them has a denial, and they share this share of the shorter one's words."""
WORDS_MIN: Final = 4
LOOKED_BACK: Final = 120
"""How many earlier statements a new one is compared with."""
TAKEN_BACK_SHARE: Final = 0.5
"""The same for a statement that says that something earlier was wrong."""
LETTERS_MIN: Final = 3
"""Shorter words are not compared."""
_WORD: Final = re.compile(r"\w[\w./-]*\w|\w")
_DENIAL: Final = re.compile(
    r"\b(?:not|no|never|nothing|none|cannot|without|isn|aren|wasn|doesn|don|didn|won|can)(?:'|’)?t?\b",
    re.IGNORECASE,
)
_TAKES_BACK: Final = re.compile(
    r"^\W*actually\b|\b(?:i was wrong|i misread|i was mistaken|my mistake|you(?:'|’)re (?:absolutely )?right|correction|scratch that|misdiagnos"
    r"|on second thought|not (?:actually )?the (?:cause|problem|issue))",
    re.IGNORECASE,
)
"""English words with which a statement takes back an earlier one."""
_LASTING: Final = frozenset({"report", "agent", "document", "rule"})
"""Kinds that are not compared: they are condensed, not dropped."""


def _over(finding: Finding, running: str) -> Finding:
    """The finding after its turn has ended: what was just being done is a statement like others."""
    is_over = finding.kind == "now" and finding.turn != running
    return structs.replace(finding, kind="guess") if is_over else finding


def _settled(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings without guesses of turns that have a report, and without statements that a later one repeats or takes
    back; of what is just being done, and of each document, the newest."""
    reported = {each.turn: each.version for each in findings if each.kind == "report"}
    newest = {_once(each): each.version for each in findings if _once(each)}
    later: list[tuple[frozenset[str], bool, bool]] = []
    kept: list[Finding] = []
    for finding in reversed(findings):
        if newest.get(_once(finding), finding.version) != finding.version:
            continue
        is_unsure = finding.kind in ("guess", "now") and finding.version < reported.get(
            finding.turn, 0
        )
        whole = _seen(finding.text)
        seen = [whole, *(_seen(piece.text) for piece in read_prose(finding.text))]
        is_gone = finding.kind not in _LASTING and any(_replaces(other, whole) for other in later)
        if not is_unsure and not is_gone:
            kept.append(finding)
            later = [*later, *seen][-LOOKED_BACK:]
    yield from _with_a_line(kept[::-1], findings)


def _once(finding: Finding) -> str:
    """What there is only one of: the document of a name, and what is being done; else empty."""
    match finding.kind:
        case "document":
            return f"document {finding.source}"
        case "now":
            return "now"
        case _:
            return ""


def _seen(statement: str) -> tuple[frozenset[str], bool, bool]:
    """The words of a statement, whether it denies something, and whether it takes something back."""
    words = frozenset(w for w in _WORD.findall(statement.casefold()) if len(w) >= LETTERS_MIN)
    return words, bool(_DENIAL.search(statement)), bool(_TAKES_BACK.search(statement))


def _replaces(
    new: tuple[frozenset[str], bool, bool], old: tuple[frozenset[str], bool, bool]
) -> bool:
    """Whether a later statement repeats an earlier one, denies it, or takes it back."""
    shared, least = len(new[0] & old[0]), min(len(new[0]), len(old[0]))
    if least < WORDS_MIN:
        return False
    if shared >= NEAR_SHARE * len(old[0]):
        return True
    most = OPPOSITE_SHARE if new[1] != old[1] else 1.0
    return shared >= (TAKEN_BACK_SHARE if new[2] else most) * least


def _with_a_line(kept: Sequence[Finding], findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings that are kept, and the newest of each turn that has none."""
    turns = {each.turn for each in kept}
    newest = {each.turn: each for each in findings if each.turn not in turns}
    yield from sorted([*kept, *newest.values()], key=attrgetter("version"))


# What others said: sub-agents, documents, the user.


REPORTING_TOOLS: Final = frozenset(
    {
        "task",
        "agent",
        "new_task",
        "delegate",
        "delegate_task",
        "wait_agent",
        "wait",
        "codebase_investigator",
    }
)
"""Tools whose results are the report of another agent, by their names in lower case: Claude Code (Task, Agent), opencode,
Qwen Code and LangChain's deepagents (task), Cline and Roo Code (new_task), OpenHands (delegate), Codex (wait_agent, wait),
Gemini CLI (codebase_investigator). A call with one of `REPORTING_KEYS` counts, too."""
REPORTING_KEYS: Final = frozenset({"subagent_type", "agent_type", "subagent"})
DOCUMENTS: Final = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".org", ".txt")
"""Endings of files in prose."""
SENTENCES_MIN: Final = 6
"""Whole sentences that an output has at least if it is a document."""
SOURCE_CHARACTERS: Final = 80
GIVEN_CHARACTERS: Final = 4_000
"""Characters of a report or document that are condensed from the beginning on; there is never room for more."""
DEMAND_CHARACTERS: Final = 240
_QUOTED: Final = (">", "<", "|")
"""Beginnings of lines that the user quotes."""
_NUMBERED: Final = re.compile(r"^[ \t]*\d{1,7}(?:→|\t|\|)", re.MULTILINE)
"""The line number that a reading tool adds."""
_ACKNOWLEDGED: Final = re.compile(
    r"\A\W*async agent launched|^agentid: .*$|<usage>.*?(?:</usage>|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""What Claude Code adds to a sub-agent's report, or gives while it runs."""
_NOTIFIED: Final = re.compile(
    r"\A\s*<task-notification>.*?<summary>(.*?)</summary>.*?(?:<result>(.*?)</result>|\Z)",
    re.DOTALL,
)
"""The report of a sub-agent that ran in the background (Claude Code); it comes in the place of the user's words."""
_DEMANDS: Final = re.compile(
    r"\b(?:must|never|always|do not|don(?:'|’)t|only|no longer|required?|make sure|ensure|prefer|should|instead|please|from now on|use)\b",
    re.IGNORECASE,
)
"""English words in which demands are made."""


def _given(entries: Sequence[Entry]) -> Iterator[Finding]:
    """The reports of sub-agents, and the documents that were read."""
    calls = {entry.pair: entry.block for entry in entries if isinstance(entry.block, ToolCall)}
    for entry in entries:
        if entry.original is not None or is_sealed(entry.block):
            continue
        call = calls.get(entry.pair) if entry.pair else None
        if isinstance(entry.block, ToolResult) and call:
            yield from _answer(entry, call, entry.block)
        elif isinstance(entry.block, _SAID) and (notified := _NOTIFIED.match(entry.block.text)):
            told = _condensed_text(notified[2] or "")
            if told:
                yield _finding(entry, "agent", told, one_line(notified[1], SOURCE_CHARACTERS))


def _answer(entry: Entry, call: ToolCall, result: ToolResult) -> Iterator[Finding]:
    if asks_user(call.name) or result.is_error:
        return
    told = text_of(result)
    start, end = output_of(told)
    told = told[start:end]
    if call.name.lower() in REPORTING_TOOLS or REPORTING_KEYS & call.input.keys():
        report = _condensed_text(_ACKNOWLEDGED.sub("", told))
        if report and is_prose(told):
            yield _finding(entry, "agent", report, _about(call))
        return
    kind, target = (
        tool_kind(call.name, call.input, result.envelope),
        tool_target(call.input, result.envelope),
    )
    is_document = (kind == "read" and target.lower().endswith(DOCUMENTS)) or kind in (
        "web",
        "command",
        "other",
    )
    if is_document:
        plain = _NUMBERED.sub("", told) if kind == "read" else told
        is_named = kind == "read"  # by its ending
        if (is_named or is_prose(plain, SENTENCES_MIN)) and (document := _condensed_text(plain)):
            yield _finding(
                entry, "document", document, one_line(target or call.name, SOURCE_CHARACTERS)
            )


def _about(call: ToolCall) -> str:
    """What a sub-agent was asked, in the call's shortest text of several words."""
    given = (value for value in call.input.values() if isinstance(value, str) and " " in value)
    return one_line(min(given, key=len, default=call.name), SOURCE_CHARACTERS)


def _condensed_text(told: str) -> str:
    """The headings and lists of a text, and the first sentence of each paragraph."""
    kept: list[Piece] = []
    length = 0
    block = -1
    for piece in read_prose(told):
        is_further = piece.form == "sentence" and piece.block == block
        block = piece.block
        if is_further:
            continue
        if length > GIVEN_CHARACTERS:
            break
        kept.append(attrs.evolve(piece, text=shortened(piece.text, DEMAND_CHARACTERS)))
        length += len(kept[-1].text)
    while kept and kept[-1].form == "lead":
        kept.pop()
    return text_of_pieces(kept)


def _rules(version: int, block: Block, shown: str) -> Iterator[Finding]:
    """The demands in the user's own sentences that are no longer shown, each with its list or command."""
    known = " ".join(shown.split())
    lines = words_of(block).split("\n")
    own = "\n".join(line for line in lines if not line.lstrip().startswith(_QUOTED))
    for pieces in _wholes(read_prose(own)):
        told = [attrs.evolve(p, text=shortened(p.text, DEMAND_CHARACTERS)) for p in pieces]
        is_demand = _DEMANDS.search(pieces[0].text) and is_prose_line(pieces[0].text)
        if is_demand and pieces[0].text not in known:
            yield Finding(turn=block.turn, version=version, kind="rule", text=text_of_pieces(told))


def words_of(block: Block) -> str:
    """The user's words in a block, without attachments; empty for other blocks."""
    if not isinstance(block, _SAID):
        return ""
    texts = (part.text for part in block.parts if isinstance(part, TextPart))
    return "\n".join(filter(None, (block.text, *texts)))
