"""The findings by turn: their text, and how they share the room.

Newer turns get more, and each has a line. Statements are told whole or not at all, the most telling first; of a list that
is told in part it is said how many items it lost. Nothing is written anew, so what is folded again and again only gets shorter.

    t12 [v340]: All tests pass. The cause was that `parse_amount` dropped the sign.     the turn's report
      - ledger.py: ...                                                                  its list
    - [v322]: The clock is not the problem: the queue has one reader.                   what was found on the way
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import attrs
from msgspec import structs

from blocks import Finding, label_of
from render.summary._findings import best_first, density, worth
from render.summary._prose import (
    DEPENDENT,
    Piece,
    read_prose,
    sentences_of,
    shortened,
    text_of_pieces,
    tidy,
)

Counter = Callable[[str], int]

ORDER: Final = (
    "(By turn: its report, then what was found on the way to it, oldest first. Where two differ, the report and the later one"
    " hold.)"
)


def text(findings: Sequence[Finding]) -> str:
    """The section: for each turn its reports, then the rest in order."""
    turns = _turns(findings)
    told = [ORDER] if any(len(turn) > 1 for turn in turns) else []
    return "\n".join([*told, *map(_turn_text, turns)])


def _turns(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings by turn, in log order, each turn's reports first."""
    first: dict[str, int] = {}
    for finding in sorted(findings, key=attrgetter("version")):
        first.setdefault(finding.turn, finding.version)
    ordered = sorted(findings, key=lambda e: (first[e.turn], e.turn, e.kind != "report", e.version))
    return [list(turn) for _, turn in groupby(ordered, attrgetter("turn"))]


def _turn_text(turn: Sequence[Finding]) -> str:
    first, *others = turn
    return "\n".join([f"{first.turn} {_one(first)}", *(f"- {_one(each)}" for each in others)])


def _one(finding: Finding) -> str:
    """A finding with its label; its further lines are indented below the first."""
    source = f"report of {finding.source}: " if finding.source else ""
    source += "the user: " if finding.kind == "rule" else ""
    source += f"(contested in {finding.disputed}) " if finding.disputed else ""
    body = "\n  ".join(filter(None, finding.text.split("\n")))
    body += f" (and {finding.gone} more)" if finding.gone else ""
    return f"[{label_of(finding.version)}]: {source}{body}"


# Room.


ROOMS: Final = (1.0, 0.9, 0.8, 0.6, 0.4)
"""If the text is too long after all, the room is taken for so much smaller."""
CUTS: Final = (1.0, 0.9, 0.75, 0.5)
"""The same for a statement that is cut."""
LINE_TOKENS: Final = (18, 48)
"""The least and most tokens of the line that every turn has; all lines together get half of the room, if that is enough."""
NEWEST_SHARE: Final = 0.25
"""The part of what is left beyond the lines that a turn gets before older ones."""
SHARES: Final = {"report": 0.6, "agent": 0.35}
"""Shares of a turn's room for each of these, if there is more to tell; what a sub-agent reports is mostly longer than what
was found in it."""
RULES_SHARE: Final = 1 / 3
"""What the user demanded in texts that are gone has this share of the room, before all else."""
SHORT_CHARACTERS: Final = 40
"""A statement is not shortened to fewer characters, except the only one of a turn: it would say nothing."""
LIST_SHARE: Final = 1 / 3
"""A list of which less than this share would stand goes: single points of many mislead."""
MORE: Final = 99
"""A number of left-out items that is as long as most."""


def fitted(findings: Sequence[Finding], tokens_max: int, count: Counter) -> tuple[Finding, ...]:
    """The findings condensed until their text fits."""
    if count(text(findings)) <= tokens_max:
        return tuple(findings)
    rules = [each for each in findings if each.kind == "rule"]
    while rules and count(text(rules)) > RULES_SHARE * tokens_max:
        del rules[0]
    turns = _turns([each for each in findings if each.kind != "rule"])
    for share in ROOMS:
        room = int(share * tokens_max) - count(text(rules))
        told = _shared(turns, room, count) if turns else ()
        left = tuple(sorted([*rules, *told], key=attrgetter("version")))
        if count(text(left)) <= tokens_max:
            return left
    return ()


def _shared(turns: Sequence[list[Finding]], room: int, count: Counter) -> Iterator[Finding]:
    """The findings of the turns, each in its part of the room, from the newest on; the oldest turns go if not each can
    have a line."""
    least, most = LINE_TOKENS
    turns = turns[-max(room // least, 1) :]
    line = min(max(room // (2 * len(turns)), least), most)
    needs = [_size(turn, count) for turn in turns]
    limits = [min(need, line) for need in needs]
    left = room - sum(limits)
    for index in reversed(range(len(turns))):
        older = sum(max(need - line, 0) for need in needs[:index])
        part = max(int(max(NEWEST_SHARE, 1 / (index + 1)) * left), left - older)
        more = min(max(part, 0), needs[index] - limits[index])
        limits[index], left = limits[index] + more, left - more
    told = [_within(turn, limit, count) for turn, limit in zip(turns, limits, strict=True)]
    spare = room - sum(_size(turn, count) for turn in told)
    for index in reversed(range(len(turns))):  # what is left goes to the newest that need it
        if limits[index] < needs[index] and spare > 0:
            size = _size(told[index], count)
            told[index] = _within(turns[index], size + spare, count)
            spare -= _size(told[index], count) - size
    return (finding for turn in told for finding in turn)


def _size(turn: Sequence[Finding], count: Counter) -> int:
    return count(_turn_text(turn) + "\n") + 1 if turn else 0


def _line(turn: Sequence[Finding], tokens: int, count: Counter) -> Finding:
    """The one line of a turn: the most telling statement of its report, or else of all, with its lead; rather a whole one."""
    own = [each for each in turn if each.kind != "agent"] or turn
    told = [each for each in own if each.kind == "report"] or own
    said = [structs.replace(e, text=line, gone=0) for e in told for line in _statements(e.text)]
    whole = [each for each in said if worth(each.text) > 0 and _size([each], count) <= tokens]
    return _cut(max(whole or said, key=lambda each: density(each.text)), tokens, count)


def _statements(told: str) -> Iterator[str]:
    """Each statement of a text, with its leads on the same line, and each sentence that has sense alone."""
    pieces = read_prose(told)
    for index in _by_worth(pieces):
        above = [pieces[i].text for i in sorted(_above(index, pieces))]
        yield " ".join([*above, pieces[index].text])
        if not above and pieces[index].form == "sentence":
            alone = map(str.strip, sentences_of(pieces[index].text))
            yield from (each for each in alone if not DEPENDENT.match(each))
    if not pieces:
        yield " ".join(told.split())


def _by_worth(pieces: Sequence[Piece]) -> list[int]:
    """The indices of the statements: the first that tells something, which sums up, then the most telling."""
    told = [i for i, piece in enumerate(pieces) if piece.form != "lead"]
    first = next((i for i in told if worth(pieces[i].text) > 0), -1)
    return sorted(told, key=lambda i: (i != first, -density(pieces[i].text)))


def _cut(finding: Finding, tokens: int, count: Counter) -> Finding:
    """The finding with its text, of one statement, cut to so many tokens."""
    told = finding.text
    rest = _size([structs.replace(finding, text="")], count)
    for share in CUTS:
        short = shortened(told, int(share * len(told) * max(tokens - rest, 0) / (count(told) + 1)))
        finding = structs.replace(finding, text=short)
        if _size([finding], count) <= tokens:
            break
    return finding


def _within(turn: Sequence[Finding], tokens: int, count: Counter) -> list[Finding]:
    """The turn's findings in so many tokens: its reports, then the most telling of the rest; in the room of a line only one
    statement."""
    if _size(turn, count) <= tokens:
        return list(turn)
    first = [each for each in reversed(turn) if each.kind == "report"]
    waiting = [*first, *best_first([each for each in turn if each not in first])]
    kept: list[Finding] = []
    left = tokens
    while waiting and tokens > LINE_TOKENS[1]:
        finding = waiting.pop(0)
        beside = (1 - SHARES.get(finding.kind, 1)) * tokens
        reserve = min(int(beside), _size(waiting, count)) if waiting else 0
        if short := _condensed(finding, left - reserve, count):
            kept.append(short)
            left -= _size([short], count)
    return [e for told in _turns(kept) for e in told] or [_line(turn, tokens, count)]


def _condensed(finding: Finding, tokens: int, count: Counter) -> Finding | None:
    """The finding with as many of its statements as fit, the most telling first; None if there is no room for one."""
    if _size([finding], count) <= tokens:
        return finding
    pieces = read_prose(finding.text)
    above = {i: _above(i, pieces) for i in _by_worth(pieces)}
    left = tokens - _size([structs.replace(finding, text="")], count)
    more = count(f" (and {MORE} more)")
    kept, lists, is_out = set[int](), set[int](), False
    for index, under in above.items():
        wanted = {index, *under} - kept
        reserve = more * (pieces[index].is_listed and not lists)
        cost = sum(count(pieces[each].line) + 2 for each in wanted) + reserve
        is_telling = worth(pieces[index].text) > 0
        if cost > left:
            is_out |= is_telling
        elif is_telling or not is_out:  # what tells nothing does not stand in for what does
            kept |= wanted
            lists |= {pieces[index].block} if pieces[index].is_listed else set()
            left -= cost
    cut = {pieces[i].block for i in above if i not in kept and pieces[i].is_listed}
    for block in sorted(cut):
        items = [i for i in above if pieces[i].is_listed and pieces[i].block == block]
        if len(kept.intersection(items)) < LIST_SHARE * len(items) and len(pieces) > len(items):
            return _condensed(_without_list(finding, pieces, block), tokens, count)
    if not kept:
        short = _line([finding], tokens, count)
        is_told = finding.kind == "report" and len(short.text) >= SHORT_CHARACTERS
        return short if is_told and _size([short], count) <= tokens else None
    out = [i for i in above if i not in kept and pieces[i].is_listed and pieces[i].block in lists]
    told = text_of_pieces(tidy([pieces[i] for i in sorted(kept)]))
    short = structs.replace(finding, text=told, gone=len(out) + finding.gone * bool(lists))
    return short if _size([short], count) <= tokens else None


def _without_list(finding: Finding, pieces: Sequence[Piece], block: int) -> Finding:
    """The finding without a list; a lead that tells something says how long it was."""
    size = sum(piece.is_listed and piece.block == block for piece in pieces)
    first = next(i for i, piece in enumerate(pieces) if piece.is_listed and piece.block == block)
    left = [piece for piece in pieces if not (piece.is_listed and piece.block == block)]
    lead = pieces[first - 1] if first else None
    if lead and lead.form == "lead" and worth(lead.text) > 0:
        told = f"{lead.text.rstrip(':： ')} ({size} points)."
        left[first - 1] = attrs.evolve(lead, form="sentence", text=told, depth=0)
    return structs.replace(finding, text=text_of_pieces(tidy(left)))


def _above(index: int, pieces: Sequence[Piece]) -> set[int]:
    """The indices of what a piece stands under: the items that its list is in, a table's first row, and the lead."""
    found, depth, before = set[int](), pieces[index].depth, index - 1
    while pieces[index].is_listed and before >= 0 and pieces[before].is_listed:
        if pieces[before].depth < depth:
            found, depth = {*found, before}, pieces[before].depth
        before -= 1
    found |= {before + 1} - {index} if pieces[index].form == "row" else set()
    return {*found, before} if before >= 0 and pieces[before].form == "lead" else found
