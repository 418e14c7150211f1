"""The findings by turn: their text, and how the turns share the room.

Newer turns, and those in which much was found, get more. A turn first loses its details (remarks in parentheses, clauses,
inner lists), then its least telling statements, at last all but its first one. Nothing is written anew, so what is folded
again and again only gets shorter.

    t12 [v340]: All tests pass. The cause was that `parse_amount` dropped the sign.     the turn's report
      - ledger.py: ...                                                                  its list, whole
    - [v322]: The clock is not the problem: the queue has one reader.                   what was found on the way
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Final

import attrs
from msgspec import structs

from blocks import Finding, label_of
from render.summary._identifiers import one_line
from render.summary._prose import Piece, read_prose, shortened, text_of_pieces, tidy
from render.summary._statements import worth

Counter = Callable[[str], int]


def text(findings: Sequence[Finding]) -> str:
    """The section: for each turn its reports, then the rest in order."""
    return "\n".join(
        _turn_text(list(turn)) for _, turn in groupby(_by_turn(findings), attrgetter("turn"))
    )


LABELS: Final[Mapping[str, str]] = {
    "agent": "report of ",
    "document": "",
    "rule": "the user: ",
    "now": "now: ",
}
"""What stands before the source or text of a finding."""


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
LINE_CHARACTERS: Final = (140, 100, 70)
"""Characters of the line that every turn has if there is room for one each: the first with which all lines together leave
`LINES_SHARE` of the room for the rest, or the last."""
LINES_SHARE: Final = 0.5
FADE_TURNS: Final = 6
"""A turn with this many turns after it gets half of what the newest gets."""
LEAST_WEIGHT: Final = 0.2
"""The oldest turns' part of it."""
REPORT_SHARE: Final = 0.6
"""Share of a turn's room for its reports, if there is more to tell."""
GIVEN_SHARES: Final = {"agent": 0.35, "document": 0.2}
"""Shares of a turn's room for the reports of sub-agents and for documents that were read, if there is more to tell: both
can be read back, and are mostly longer than what was found in them."""
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
GIVEN_TOKENS_MIN: Final = 60
"""Such a report or a document is not condensed to less than this."""
GIVEN_WEIGHT: Final = 300
"""The most tokens of such reports, and of documents, that count for a turn's part of the room."""
LAST_WORTH: Final = 2
"""What the last sentence of a text is worth beyond its words: it often concludes."""
NEWER: Final = 1.0
"""By how much the newest statement of a turn is worth more than its oldest."""


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


def _shared(turns: Sequence[list[Finding]], room: int, count: Counter) -> list[list[Finding]]:
    """The turns with each in its part of the room; the oldest go if not each can have a line."""
    needs = [_size(turn, count) for turn in turns]
    lines, least = list[list[Finding]](), list[int]()
    for characters in LINE_CHARACTERS:
        lines = [_line(turn, characters) for turn in turns]
        least = [min(_size(line, count), need) for line, need in zip(lines, needs, strict=True)]
        if sum(least) <= (1 - LINES_SHARE) * room:
            break
    kept = _with_a_line(turns, least, room)
    newest = len(turns) - 1
    weights = [
        (LEAST_WEIGHT + 1 / (1 + (newest - index) / FADE_TURNS)) * _told(turn, count) ** 0.5
        for index, turn in enumerate(turns)
    ]
    limits = _parts(room, *([of[i] for i in kept] for of in (least, needs, weights)))
    shared = [
        _within(turns[i], limit, count) or lines[i] for i, limit in zip(kept, limits, strict=True)
    ]
    sizes = [_size(turn, count) for turn in shared]
    for place in reversed(range(len(kept))):  # what is left goes to the newest that need it
        spare = room - sum(sizes)
        if sizes[place] < needs[kept[place]] and spare > 0:
            more = _within(turns[kept[place]], sizes[place] + spare, count)
            if sizes[place] < (size := _size(more, count) if more else 0):
                shared[place], sizes[place] = more, size
    return shared


def _with_a_line(turns: Sequence[Sequence[Finding]], least: Sequence[int], room: int) -> list[int]:
    """Indices of the turns that have a line: without the oldest, those with a rule of the user last."""
    has_rule = [any(each.kind == "rule" for each in turn) for turn in turns]
    kept = set(range(len(turns)))
    for index in sorted(kept, key=lambda index: (has_rule[index], index)):
        if sum(least[each] for each in kept) <= room:
            break
        kept.discard(index)
    return sorted(kept)


def _parts(
    room: int, least: Sequence[int], needs: Sequence[int], weights: Sequence[float]
) -> list[int]:
    """How the room is divided: each its least, and of the rest by weight, up to its need."""
    limits = list(least)
    waiting: list[int] = [i for i, need in enumerate(needs) if need > least[i]]
    left = room - sum(least)
    while waiting and left > 0:
        whole = sum(weights[i] for i in waiting)
        given = {i: min(int(left * weights[i] / whole), needs[i] - limits[i]) for i in waiting}
        if not any(given.values()):
            break
        for i, more in given.items():
            limits[i] += more
        left -= sum(given.values())
        waiting = [i for i in waiting if limits[i] < needs[i]]
    return limits


def _told(turn: Sequence[Finding], count: Counter) -> int:
    """How much a turn has to tell, in tokens."""
    given = [[each for each in turn if each.kind == kind] for kind in GIVEN_SHARES]
    own = [each for each in turn if each.kind not in GIVEN_SHARES]
    told = sum(min(_size(each, count), GIVEN_WEIGHT) for each in given if each)
    return told + (_size(own, count) if own else 0)


def _size(turn: Sequence[Finding], count: Counter) -> int:
    return count(_turn_text(turn) + "\n") + 1


def _line(turn: Sequence[Finding], characters: int) -> list[Finding]:
    """The one line of a turn: a rule of the user; the first statement of its newest report; or its most telling finding."""
    for kind in ("rule", "report"):
        if chosen := [each for each in turn if each.kind == kind]:
            best = chosen[-1]
            break
    else:
        best = max(turn, key=lambda each: (_density(each.text), each.version))
    first = _first(read_prose(best.text))
    told = shortened(first.text if first else one_line(best.text, characters), characters)
    return [structs.replace(best, text=told)]


def _first(pieces: Sequence[Piece]) -> Piece | None:
    """The statement that stands for a text: its first sentence, else its first item."""
    told = [piece for piece in pieces if piece.form != "lead"]
    return next((piece for piece in told if piece.form == "sentence"), told[0] if told else None)


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
    is_given = all(each.kind in GIVEN_SHARES for each in turn)
    shares = {kind: int((1 if is_given else of) * tokens) for kind, of in GIVEN_SHARES.items()}
    for finding in _best_first(others):
        limit = min(left, shares.get(finding.kind, left))
        each = limit if len(others) == 1 else max(limit // 2, min(limit, STATEMENT_TOKENS))
        if finding.kind in shares and each < GIVEN_TOKENS_MIN:
            continue
        if short := _condensed(finding, each, count):
            kept.append(short)
            used = _size([short], count)
            left -= used
            if finding.kind in shares:
                shares[finding.kind] -= used
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
    """The finding with its first statement and, all short, as many others as fit: the most telling sentences and lists, a
    list from the beginning on; of a document the most telling sentences and items."""
    pieces = read_prose(_without(finding.text, SHORT_CHARACTERS, 0, 0))
    leads = {i: _lead_of(i, pieces) for i, piece in enumerate(pieces) if piece.form != "lead"}
    values = {i: _density(pieces[i].text) for i in leads}
    if (
        finding.kind != "document"
    ):  # the items of a list from the beginning on, with the worth of its best
        values |= {i: max(values[n] for n in run) for run in _lists(pieces) for i in run}
    first = _first(pieces)
    ranked = sorted(leads, key=lambda i: (pieces[i] is not first, -values[i], i))
    left = tokens - _size([structs.replace(finding, text="", gone=MORE)], count)
    kept: set[int] = set()
    for index in ranked:
        wanted = {index, leads[index]} - kept - {-1}
        cost = sum(count(pieces[each].line) + 2 for each in wanted)
        if cost <= left:
            kept |= wanted
            left -= cost
    items = [i for i in leads if pieces[i].form in ("item", "row") and finding.kind != "document"]
    gone = sum(i not in kept for i in items)
    told = text_of_pieces(tidy([pieces[index] for index in sorted(kept)]))
    short = structs.replace(finding, text=told, gone=finding.gone + gone)
    return short if kept and _size([short], count) <= tokens else None


def _lists(pieces: Sequence[Piece]) -> Iterator[list[int]]:
    """The indices of the items or rows of each list or table."""
    numbered = groupby(enumerate(pieces), key=lambda each: each[1].form in ("item", "row"))
    return ([index for index, _ in run] for is_list, run in numbered if is_list)


def _lead_of(index: int, pieces: Sequence[Piece]) -> int:
    """The index of the lead that a piece stands under: directly, or in its list; -1: none."""
    before = index - 1
    if pieces[index].form != "sentence":
        while before >= 0 and pieces[before].form in ("item", "row"):
            before -= 1
    return before if before >= 0 and pieces[before].form == "lead" else -1
