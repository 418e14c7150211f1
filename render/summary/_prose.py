"""The form of a text in prose: its statements, and how they are shortened without losing their sense.

A text is taken apart into *pieces*, by form alone, so that it works in any language:

    sentence   of a paragraph; a very short one, and one that depends on the one before ("This means ..."), is joined with
               its neighbour
    lead       a heading, or a line that ends in a colon: it says what the next pieces are, and is nothing without them
    item       of a list, with its depth; lines that continue it are part of it
    row        of a table

Code, rules (`---`) and lines without a word are no pieces; code of a line or two under a lead is an item of it. A text that
was made of pieces has the same pieces again.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import attrs

from render.summary._identifiers import searched

Form: TypeAlias = Literal["sentence", "lead", "item", "row"]

TEXT_CHARACTERS: Final = 40_000
"""Characters of one text that are looked at; of a longer text, its beginning and end."""
SHORT_CHARACTERS: Final = 40
"""A sentence shorter than this ("Found the cause!") is joined with the next."""
JOINED_CHARACTERS: Final = 320
"""Sentences are not joined beyond this."""
WRAPPED_CHARACTERS: Final = 60
"""A line at least this long without an end mark goes on in the next line."""
CODE_LINES: Final = 2
CODE_CHARACTERS: Final = 200
"""Code under a lead that is not longer is kept."""
DEPTH_MAX: Final = 2
BOLD_LEVEL: Final = 7
COLON_LEVEL: Final = 8
STATEMENT_LEVEL: Final = 9
"""Levels of leads below those of headings, 1 to 6: a line that is only bold, a line that ends in a colon, and a statement
directly before a list, which has sense alone, too."""
CUT_MIN: Final = 0.6
"""A shortened statement ends at a clause if at least this share of its room is used by then; else at a word."""
STOP_MIN: Final = 0.4
"""The same for the end of a sentence."""
KNOWN: Final = 512
"""Number of texts whose pieces are cached: they can be read before the compaction that needs them."""
LETTERS_MIN: Final = 12
LETTERS_SHARE: Final = 0.8
"""A line of prose has at least this many letters, and they are at least this share of its characters besides spaces."""
PROSE_SHARE: Final = 0.6
"""Share of the lines of a text in prose that are lines of prose."""
WHOLE_SHARE: Final = 0.2
"""Share of them that are whole sentences; in code with comments there are fewer."""

_FENCES: Final = ("```", "~~~")
_ITEM: Final = re.compile(
    r"(?P<indent>[ \t]*)(?:[-*+•‣◦–—]|(?P<number>\(?\w{1,3}[.)]))[ \t]+(?=\S)"
)
_HEADING: Final = re.compile(r"[ \t]*(?:#[ \t]+|#{2,6}[ \t]*)(?=\S)")
_EMPHASIS: Final = re.compile(r"\*\*")
_BOLD_LINE: Final = re.compile(r"\*\*[^*]+\*\*[:：]?\s*")
_TABLE_RULE: Final = re.compile(r"[\s|:+=-]+")
_DIRECTIVE: Final = re.compile(r"::[\w-]+\{.*\}?|</?[\w-]+>")
"""A line for a client's window, not for a reader: `::git-push{cwd="..."}`, `<proposed_plan>` (both Codex)."""
_LINK: Final = re.compile(r"\[([^\]\n]{1,200})\]\(([^()\s]{1,400})\)")
_END: Final = re.compile(r"([.!?。！？])(?:(?<=[。！？])|[*_)\"'”]*\s+(?=[^a-zß-ÿа-я]))")
"""The end of a sentence: not before a small letter, as in "e.g. this"."""
_FRONT: Final = re.compile(r"\A\s*---\n.*?\n---\n", re.DOTALL)
"""Data before a document in Markdown."""
_WORDED: Final = re.compile(r"\w")
_MARKS: Final = frozenset(".!?:;|。！？：；")
"""After one of these, a line has ended."""
_STOPS: Final = frozenset(".!?。！？")
_COLONS: Final = (":", "：")
_DEPENDENT: Final = re.compile(
    r"\W*(?:this|that|these|those|it|its|they|so|but|however|which|because|therefore|hence|otherwise|instead|both|neither"
    r"|then|and|or|also|same)\b",
    re.IGNORECASE,
)
"""The beginning of an English sentence that has no sense without the one before. In other languages none is joined for
that reason, only for its shortness."""
_CLAUSE: Final = re.compile(
    r"(?<=[.!?])(?=\s)|(?<=[。！？])|\s*[;；](?=\s|$)|\s+[—–-]\s+|\s*[,，、](?=\s)|(?<=[，、])"
)
"""Where a statement may be cut."""
_ASIDE: Final = re.compile(r"\s*\([^()]{12,}\)")
"""A remark in parentheses, which goes first when a statement is shortened."""
_LONG_PATH: Final = re.compile(r"(?<![\w:/.~…])[~.]?/(?:[^\s/`()]++/){3,}([^\s/`()]++/[^\s/`()]++)")
"""A path of which the last two names are kept."""
_PAIRS: Final = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("«", "»"))
_EVEN: Final = ("`", '"')
_LEFT_OUT: Final = " …"
_TRAILING: Final = " …,;:：—–-([{"


@attrs.frozen
class Piece:
    """A statement of a text."""

    form: Form
    text: str
    """One line, without the marks of its form."""
    depth: int = 0
    """Of an item: how deep its list is in others. Of a lead: the level of a heading, or `COLON_LEVEL`."""
    number: str = ""
    """Of an item: `1.` or `b)`; empty for a bullet."""
    block: int = 0
    """Number of its paragraph, list or table in the text."""

    @property
    def line(self) -> str:
        """The piece with the marks of its form."""
        if self.form == "item":
            return f"{'  ' * self.depth}{self.number or '-'} {self.text}"
        return self.text


def text_of_pieces(pieces: Sequence[Piece]) -> str:
    """The pieces as a text again: the sentences of a paragraph on one line, everything else on a line of its own; a
    blank line where the next would else be taken for the same paragraph or item."""
    lines: list[str] = []
    for before, piece in pairwise([None, *pieces]):
        if piece is None:
            continue
        is_plain = piece.form in ("sentence", "lead")
        if before and before.form == piece.form == "sentence" and before.block == piece.block:
            lines[-1] += f" {piece.line}"
            continue
        if before and is_plain:
            lines.append("")
        lines.append(piece.line)
    return "\n".join(lines)


@lru_cache(maxsize=KNOWN)
def read_prose(text: str) -> tuple[Piece, ...]:
    """The pieces of a text, in order, without leads that lead to nothing."""
    found: list[Piece] = []
    for part in searched(_FRONT.sub("", text), TEXT_CHARACTERS):
        for paragraph in _paragraphs(part.split("\n")):
            found += _pieces(paragraph, len(found))
    return tuple(tidy(found))


def _paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
    """Runs of lines without a blank one; code is a run of its own, with its fences."""
    run: list[str] = []
    fence = ""
    for line in lines:
        mark = line.strip()[:3]
        if fence:
            run.append(line)
            if mark == fence:
                yield run
                run, fence = [], ""
        elif mark in _FENCES or not mark:
            if run:
                yield run
            run, fence = ([line], mark) if mark else ([], "")
        else:
            run.append(line)
    if run:
        yield run


def _pieces(paragraph: Sequence[str], block: int) -> Iterator[Piece]:
    """The pieces of a paragraph; code that is too long is a lead to nothing, so that the lead before it goes."""
    if paragraph[0].strip()[:3] in _FENCES:
        yield _code(paragraph[1:], block)
        return
    lines = [*_joined_lines(paragraph)]
    for line, following in pairwise([*lines, ""]):
        mark = _ITEM.match(line)
        plain = plain_line(line[mark.end() :] if mark else line)
        if mark and _WORDED.search(plain):
            depth = min(len(mark["indent"].expandtabs(4)) // 2, DEPTH_MAX)
            yield Piece("item", plain, depth, mark["number"] or "", block)
        elif line.lstrip().startswith("|"):
            if not _TABLE_RULE.fullmatch(line):
                yield Piece("row", plain, block=block)
        elif _is_heading(line) and plain[-1:] not in "!?！？":
            number = _ITEM.match(plain)
            title = plain[number.end() if number else 0 :].rstrip(".:： ")
            yield Piece("lead", f"{title}:", _level(line), block=block)
        else:
            *first, last = [*_sentences(plain, block)] or [None]
            yield from filter(None, first)
            if last and last.form == "sentence" and _ITEM.match(following):
                last = attrs.evolve(last, form="lead", depth=STATEMENT_LEVEL)
            if last:
                yield last


def _code(lines: Sequence[str], block: int) -> Piece:
    code = [line.strip() for line in lines if line.strip() and line.strip()[:3] not in _FENCES]
    text = "; ".join(code)
    is_short = code and len(code) <= CODE_LINES and len(text) <= CODE_CHARACTERS
    return Piece("item", f"`{text.replace('`', '')}`" if is_short else "", block=block)


def _joined_lines(paragraph: Sequence[str]) -> Iterator[str]:
    """The lines that say something; one that continues an item or a wrapped sentence is joined with it."""
    whole = ""
    for line in paragraph:
        plain = line.strip()
        if not _WORDED.search(plain) or _DIRECTIVE.fullmatch(plain):
            continue
        begins = _ITEM.match(line) or _is_heading(line) or plain.startswith("|")
        goes_on = whole and not begins and (_goes_on(whole) or _continues(whole, line))
        if goes_on:
            is_head = _ITEM.match(whole) and not _goes_on(whole) and whole[-1:] not in _MARKS
            whole = f"{whole} — {plain}" if is_head else f"{whole} {plain}"
            continue
        if whole:
            yield whole
        whole = line
    if whole:
        yield whole


def _goes_on(line: str) -> bool:
    """Whether a line is a wrapped one, which goes on in the next."""
    is_long = len(line) >= WRAPPED_CHARACTERS and not _is_heading(line)
    return is_long and line.rstrip()[-1:] not in _MARKS


def _continues(item: str, line: str) -> bool:
    """Whether an indented line is part of the item before it."""
    return bool(_ITEM.match(item)) and line[:2].isspace()


def _is_heading(line: str) -> bool:
    return bool(_HEADING.match(line) or _BOLD_LINE.fullmatch(line.strip()))


def _level(heading: str) -> int:
    """The level of a heading; one that is only bold is below all others."""
    marks = _HEADING.match(heading)
    return marks[0].count("#") if marks else BOLD_LEVEL


def plain_line(line: str) -> str:
    """The line without emphasis and heading marks; a link is its target if its text is only the target's end."""
    text = _EMPHASIS.sub("", _HEADING.sub("", line, count=1))
    return " ".join(_LINK.sub(_target, text).split())


def _target(link: re.Match[str]) -> str:
    name, target = link[1], link[2]
    return target if name.strip("`").partition(":")[0] in target else f"{name} ({target})"


def _sentences(line: str, block: int) -> Iterator[Piece]:
    """The sentences of a line; the last is a lead if it ends in a colon."""
    whole = ""
    for sentence in sentences_of(line):
        is_near = len(whole) < SHORT_CHARACTERS or _DEPENDENT.match(sentence)
        if whole and is_near and len(whole) + len(sentence) < JOINED_CHARACTERS:
            whole = f"{whole} {sentence.strip()}"
            continue
        if whole:
            yield Piece("sentence", whole, block=block)
        whole = sentence.strip()
    if whole:
        is_lead = whole.endswith(_COLONS)
        yield (
            Piece("lead", whole, COLON_LEVEL, block=block)
            if is_lead
            else Piece("sentence", whole, block=block)
        )


def sentences_of(line: str) -> list[str]:
    """The sentences of a line, each with a word in it."""
    return [each for each in _END.sub(r"\1\n", line).split("\n") if _WORDED.search(each)]


def tidy(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces without empty ones, and without leads that nothing follows but left-out code or a further heading; an
    item is such a lead, too, if it ends in a colon."""
    kept: list[Piece] = []
    following: Piece | None = None
    for piece in reversed(pieces):
        if piece.depth == STATEMENT_LEVEL and not (following and following.form == "item"):
            following = attrs.evolve(piece, form="sentence", depth=0)
            kept.append(following)
            continue
        is_lead = piece.form == "lead"
        if not piece.text or (is_lead and not _leads_to(piece, following)):
            following = following if is_lead else None
            continue
        is_alone = piece.form == "item" and not (following and following.depth > piece.depth)
        following = attrs.evolve(piece, text=piece.text.rstrip(":： ")) if is_alone else piece
        kept.append(following)
    return kept[::-1]


def _leads_to(lead: Piece, following: Piece | None) -> bool:
    if following is None or following.form != "lead":
        return following is not None
    return lead.depth < COLON_LEVEL <= following.depth


def is_prose_line(line: str, share: float = LETTERS_SHARE) -> bool:
    """Whether a line is mostly words, as sentences and headings are: letters have this share of it."""
    characters = "".join(line.split())
    letters = sum(map(str.isalpha, characters))
    return letters >= min(LETTERS_MIN, len(characters)) and letters >= share * len(characters)


def is_prose(text: str, lines_min: int = 1) -> bool:
    """Whether a text is prose: most of its lines are headings, items and sentences, and many different ones, at least
    `lines_min`, are long and end as sentences do."""
    lines = [line for line in text[:TEXT_CHARACTERS].split("\n") if line.strip()]
    told = [line for line in lines if is_prose_line(line.lstrip(" \t-*+•>#0123456789.)"))]
    whole = {
        line for line in told if len(line) >= SHORT_CHARACTERS and line.rstrip()[-1:] in _STOPS
    }
    is_told = len(told) >= PROSE_SHARE * len(lines) and len(whole) >= WHOLE_SHARE * len(lines)
    return is_told and len(whole) >= lines_min


def shortened(text: str, characters: int) -> str:
    """The statement in at most so many characters: with the ends of long paths only, without remarks in parentheses, then
    up to the end of a clause, else of a word; no bracket or quotation stays open."""
    if len(text) <= characters:
        return text
    text = _LONG_PATH.sub(r"…/\1", text.removesuffix(_LEFT_OUT))
    aside = _ASIDE.search(text, min(characters // 3, 40))
    while aside and len(text) > characters:
        text = text[: aside.start()].rstrip() + text[aside.end() :]
        aside = _ASIDE.search(text, aside.start())
    if len(text) <= characters:
        return text
    room = max(characters - 2, 1)
    ends = [m.start() for m in _CLAUSE.finditer(text[: room + 1])]
    ends = [n for n in ends if n >= (STOP_MIN if text[n - 1 : n] in _STOPS else CUT_MIN) * room]
    for end in reversed(ends):
        cut = text[:end].rstrip(_TRAILING)
        if not _is_open(cut):
            return cut if cut[-1:] in _STOPS else cut + _LEFT_OUT
    cut = text[:room].rsplit(" ", 1)[0] if " " in text[1:room] else text[:room]
    while (start := _is_open(cut)) and cut:
        cut = cut[: start - 1]
    return (
        cut.rstrip(_TRAILING) + _LEFT_OUT
        if cut.strip(_TRAILING)
        else text[: max(characters - 1, 0)] + "…"
    )


def _is_open(text: str) -> int:
    """Where the first bracket or quotation begins that is not closed, counted from 1; 0 if none is open."""
    places = [text.rfind(mark) + 1 for mark in _EVEN if text.count(mark) % 2]
    places += [
        text.rfind(left) + 1 for left, right in _PAIRS if text.count(left) > text.count(right)
    ]
    return min(places, default=0)
