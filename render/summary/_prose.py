"""What a text shows by its form: its statements, how one is shortened without losing its sense, and its rare identifiers.

A text is taken apart into *pieces*, by form alone, so that it works in any language:

    sentence   of a paragraph; a very short one, and one that depends on the one before ("This means ..."), is joined with
               its neighbour
    lead       a heading, or a line that ends in a colon: it says what the next pieces are, and is nothing without them
    item       of a list, with its depth; lines that continue it are part of it
    row        of a table

Rules (`---`), lines without a word and code are no pieces; code of a line or two is an item.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import attrs

SEARCHED_MAX: Final = 100_000
"""Characters of a text that are searched; of a longer text, its beginning and end, which is all the agent saw."""


def searched(text: str, characters_max: int = SEARCHED_MAX) -> tuple[str, ...]:
    """The text; if it is too long, its beginning and its end."""
    if len(text) <= characters_max:
        return (text,)
    return text[: characters_max // 2], text[-characters_max // 2 :]


def table(words: str) -> frozenset[str]:
    return frozenset(words.split())


def one_line(text: str, characters_max: int) -> str:
    """The text on one line, cut to at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= characters_max else f"{line[: characters_max - 1]}…"


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
"""Code that is not longer is kept: a command, an address."""

FENCES: Final = ("```", "~~~")
_PARAGRAPH: Final = re.compile(
    r"^[^\S\n]*(```|~~~).*(?:\n(?![^\S\n]*\1).*)*(?:\n.*)?"
    r"|^(?=[^\n]*\S).*(?:\n(?=[^\n]*\S)(?![^\S\n]*(?:```|~~~)).*)*",
    re.MULTILINE,
)
"""Code with its fences, or lines of which none is blank."""
_BULLETS: Final = " \t-*+•>#0123456789.)"
_ITEM: Final = re.compile(
    r"\A(?P<indent>[ \t]*)(?:[-*+•‣◦–—]|(?P<number>\(?\w{1,3}[.)]))[ \t]+(?=\S)"
)
_HEADING: Final = re.compile(r"\A[ \t]*(?:#[ \t]+|#{2,6}[ \t]*)(?=\S)")
_EMPHASIS: Final = re.compile(r"(`[^`\n]+`)|\*\*")
"""Marks of emphasis, or code, in which they are none."""
_BOLD_LINE: Final = re.compile(r"\*\*[^*]+\*\*[:：]?\s*")
_DIRECTIVE: Final = re.compile(r"::[\w-]+\{.*\}?|</?[\w-]+>")
"""A line for a client's window, not for a reader: `::git-push{cwd="..."}`, `<proposed_plan>` (both Codex)."""
_LINK: Final = re.compile(r"\[([^\]\n]{1,200})\]\(([^()\s]{1,400})\)")
_END: Final = re.compile(r"([.!?。！？])(?:(?<=[。！？])|[*_)\"'”]*\s+(?=[^a-zß-ÿа-я]))")
"""The end of a sentence: not before a small letter, as in "e.g. this"."""
_WORDED: Final = re.compile(r"\w")
_STOPS: Final = frozenset(".!?。！？")
_MARKS: Final = _STOPS | frozenset(":;|：；")
"""After one of these, a line has ended."""
DEPENDENT: Final = re.compile(
    r"\s*\(|\W*(?:this|that|these|those|it|its|they|so|but|however|which|because|therefore|hence|otherwise|instead|both|neither"
    r"|then|and|or|also|same)\b",
    re.IGNORECASE,
)
"""How a sentence begins that needs the one before: a bracket, an English word. In other languages only shortness joins."""
_CLAUSE: Final = re.compile(
    r"(?<=[.!?])(?=\s)|(?<=[。！？])|\s*[;；,，、](?=\s)|\s+[—–-]\s+|(?<=[，、])"
)
"""Where a statement may be cut."""
_LEFT_OUT: Final = " …"
_TRAILING: Final = " …,;:：—–-([{"


@attrs.frozen
class ProsePiece:
    """A statement of a text."""

    form: Form
    text: str
    """One line, without the marks of its form."""
    depth: int = 0
    """Of an item: how deep its list is in others. Of a lead: 1 if it ends in a colon, else, as a heading before one, 0."""
    number: str = ""
    """Of an item: `1.` or `b)`; empty for a bullet."""
    block: int = 0
    """Number of its paragraph, list or table in the text."""

    @property
    def is_listed(self) -> bool:
        """Whether it is part of a list or table."""
        return self.form in ("item", "row")

    @property
    def line(self) -> str:
        """The piece with the marks of its form."""
        if self.form == "item":
            return f"{'  ' * self.depth}{self.number or '-'} {self.text}"
        return self.text


def text_of_pieces(pieces: Iterable[ProsePiece]) -> str:
    """The pieces as a text again; a blank line where the next would else be taken for the same paragraph or item."""
    text, before = "", None
    for piece in pieces:
        is_same = before and before.form == piece.form == "sentence" and before.block == piece.block
        between = " " if is_same else "\n" if piece.is_listed else "\n\n"
        text += f"{between}{piece.line}" if before else piece.line
        before = piece
    return text


@lru_cache(maxsize=512)
def read_prose(text: str) -> tuple[ProsePiece, ...]:
    """The pieces of a text, in order, without leads that lead to nothing."""
    pieces: list[ProsePiece] = []
    for part in searched(text, TEXT_CHARACTERS):
        for paragraph in _PARAGRAPH.finditer(part):
            pieces += _pieces(paragraph[0].split("\n"), len(pieces))
    return tuple(tidy(pieces))


def tidy(pieces: Sequence[ProsePiece]) -> list[ProsePiece]:
    """The pieces without empty ones, and without leads that lead to nothing; of an item, only the colon goes."""
    rest: list[ProsePiece] = []
    following: ProsePiece | None = None
    for piece in reversed(pieces):
        is_lead = piece.form == "lead"
        leads = following and (following.form != "lead" or piece.depth < following.depth)
        if not piece.text or (is_lead and not leads):
            following = following if is_lead else None
            continue
        is_alone = piece.form == "item" and not (following and following.depth > piece.depth)
        following = attrs.evolve(piece, text=piece.text.rstrip(":： ")) if is_alone else piece
        rest.append(following)
    return rest[::-1]


def _pieces(paragraph: Sequence[str], block: int) -> Iterator[ProsePiece]:
    """The pieces of a paragraph; code that is too long is empty, so that the lead before it goes."""
    if paragraph[0].strip()[:3] in FENCES:
        code = [each.strip() for each in paragraph[1:] if each.strip()[:3] not in ("", *FENCES)]
        text = "; ".join(code).replace("`", "")
        is_short = 0 < len(code) <= CODE_LINES and 0 < len(text) <= CODE_CHARACTERS
        yield ProsePiece("item", f"`{text}`" if is_short else "", block=block)
        return
    for line in _whole_lines(paragraph):
        mark = _ITEM.match(line)
        plain = plain_line(_ITEM.sub("", line))
        if mark and _WORDED.search(plain):
            depth = min(len(mark["indent"].expandtabs(4)) // 2, 2)
            yield ProsePiece("item", plain, depth, mark["number"] or "", block)
        elif line.lstrip().startswith("|"):
            yield ProsePiece("row", plain, block=block)
        elif _is_heading(line) and plain[-1:] not in "!?！？":
            number, title = _ITEM.match(plain), _ITEM.sub("", plain).rstrip(".:： ")
            name = f"#{number['number'].strip('().')} " if number and number["number"] else ""
            yield ProsePiece(
                "lead", f"{name}{title}:", block=block
            )  # by which the user may refer to it
        else:
            yield from _sentences(plain, block)


def _whole_lines(paragraph: Sequence[str]) -> list[str]:
    """The lines that say something; one that continues an item or a wrapped sentence is joined with it."""
    wholes: list[str] = []
    for line in paragraph:
        plain = line.strip()
        if not _WORDED.search(plain) or _DIRECTIVE.fullmatch(plain):
            continue
        begins = _ITEM.match(line) or _is_heading(line) or plain.startswith("|")
        whole = wholes[-1] if wholes else ""
        is_long = len(whole) >= WRAPPED_CHARACTERS and not _is_heading(whole)
        is_wrapped = is_long and whole.rstrip()[-1:] not in _MARKS
        if whole and not begins and (is_wrapped or (_ITEM.match(whole) and line[:2].isspace())):
            wholes[-1] = f"{whole} {plain}"
        else:
            wholes.append(line)
    return wholes


def _is_heading(line: str) -> bool:
    return bool(_HEADING.match(line) or _BOLD_LINE.fullmatch(line.strip()))


def plain_line(line: str) -> str:
    """The line without emphasis and heading marks; a link is its target if its text is only the target's end."""
    text = _EMPHASIS.sub(r"\1", _HEADING.sub("", line))
    return " ".join(_LINK.sub(_target, text).split())


def _target(link: re.Match[str]) -> str:
    name, target = link[1], link[2]
    return target if name.strip("`").partition(":")[0] in target else f"{name} ({target})"


def _sentences(line: str, block: int) -> Iterator[ProsePiece]:
    """The sentences of a line; the last is a lead if it ends in a colon."""
    wholes: list[str] = []
    for sentence in map(str.strip, sentences_of(line)):
        whole = wholes[-1] if wholes else ""
        is_near = len(whole) < SHORT_CHARACTERS or DEPENDENT.match(sentence)
        if whole and is_near and len(whole) + len(sentence) < JOINED_CHARACTERS:
            wholes[-1] = f"{whole} {sentence}"
        else:
            wholes.append(sentence)
    for whole, following in pairwise([*wholes, ""]):
        is_lead = not following and whole.endswith((":", "："))
        yield ProsePiece("lead" if is_lead else "sentence", whole, int(is_lead), block=block)


def sentences_of(line: str) -> list[str]:
    """The sentences of a line, each with a word in it."""
    return [each for each in _END.sub(r"\1\n", line).split("\n") if _WORDED.search(each)]


def is_prose_line(line: str) -> bool:
    """Whether at least 12 characters of a line, and four of five besides spaces, are letters, as of sentences, items and headings."""
    characters = "".join(line.lstrip(_BULLETS).split())
    letters, size = sum(map(str.isalpha, characters)), len(characters)
    return letters >= max(min(12, size), 0.8 * size)


def shortened(text: str, characters: int) -> str:
    """The statement in at most so many characters: up to the end of a clause if half of them are used by then, else of a word."""
    if len(text) <= characters:
        return text
    room = max(characters - len(_LEFT_OUT), 1)
    ends = [m.start() for m in _CLAUSE.finditer(text[: room + 1]) if m.start() >= room / 2]
    cut = (text[: ends[-1]] if ends else text[:room].rsplit(" ", 1)[0]).rstrip(_TRAILING)
    short = cut if ends and cut[-1:] in _STOPS else cut + _LEFT_OUT
    return short if cut and len(short) <= characters else text[: max(characters - 1, 0)] + "…"


def is_assent(words: str) -> bool:
    """Whether the user only agrees, or tells the agent to go on."""
    return set(re.findall(r"[^\W\d_]+", words[:400].lower())) <= _ASSENT


_ASSENT: Final = table(
    "a agree agreed ahead all also and carry continue cool correct do does done excellent exactly fine go good got"
    " great i is it just keep let lets like looks me nice no now ok okay on perfect please pls proceed right s so sounds"
    " sure t thank thanks that the then this to try up very well worked working works yeah yep yes you"
)
"""English words with which a user only agrees, or tells the agent to go on."""


# Rare identifiers: names that an agent refers to and cannot guess, of the forms below or in snake_case or camelCase.


LENGTH_MAX: Final = 160
"""Longer tokens are taken as data."""
WORD_MAX: Final = 1000
"""So are longer words, which would take long to search."""
_TOKEN: Final = re.compile(
    r"https?://[^\s\"'<>()\[\]{}`|\\,;]++"  # a URL
    r"|[A-Za-z]:\\[\w.\\-]++"  # a Windows path
    r"|(?:(?<![\w.@~+-])[\w.@~+-]++)?+(?:/[\w.@~+-]++)++"  # a path
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # a UUID
    r"|[A-Za-z_][\w-]*+(?:\.[A-Za-z_]\w*+)++"  # a dotted name
    r"|[0-9a-f]{7,}+|\d{4,}+|[A-Za-z_]\w{5,}+"  # a hash, a long number, a name
)
_INNER: Final = re.compile(r"[/\\]|\w\.\w|[^\W_]_+[^\W_]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_HASH: Final = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}")


def identifiers(text: str) -> set[str]:
    """The identifiers of a text; none contains white space."""
    words = (word for word in set(text.split()) if len(word) <= WORD_MAX)
    names = (token.rstrip(".-:/") for word in words for token in _TOKEN.findall(word))
    return set(filter(_is_rare, names))


def _is_rare(term: str) -> bool:
    least = 4 if term.isdigit() else 6  # shorter ones are everywhere
    is_coded = term.isdigit() or _HASH.fullmatch(term) or (term[:1].isdigit() and "-" in term)
    return LENGTH_MAX >= len(term) >= least and bool(is_coded or _INNER.search(term))
