"""The agent's sentences that state something: a result, a cause, a decision.

The worth of a sentence is computed from its words: statements, names and numbers count for it;
announcements and guesses count against it. The word lists are short and English; in other languages only
names, numbers and the position in the text count.
"""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from typing import Final

import attrs

from blocks import AssistantCompletion
from render.summary._identifiers import identifiers, searched
from render.view._group import Entry

STATEMENT_CHARACTERS: Final = 180
"""Characters of one statement; a longer sentence is cut."""
STATEMENT_MIN: Final = 12
SHORT_CHARACTERS: Final = 40
"""A statement shorter than this ("Found the cause!") is joined with the following sentence."""
TEXT_MAX: Final = 3
"""The most statements of one text."""
LAST_MAX: Final = 6
"""The most statements of a turn's last text, which often sums up."""
WORTH_MIN: Final = 2
LENGTH_POWER: Final = 0.4
"""Worth is divided by characters to this power, which favours short statements."""
LENGTH_MIN: Final = 60
"""Statements below this many characters are not favoured further."""
NEAR_SHARE: Final = 0.6
"""A statement that shares more than this share of the shorter one's words repeats the other."""
NAMES_MAX: Final = 2
"""The most names and numbers that count."""
WORTHS_MAX: Final = 4096
"""Number of cached worths: a summary's statements are compared again at every compaction."""
JUDGED_MAX: Final = 512
"""Number of texts with cached statements: they can be judged before the compaction that needs them."""
_SEARCHED: Final = 20_000
"""Characters of one text that are searched."""


@attrs.frozen
class _Kind:
    """Words and phrases, in lower case, that make a sentence one of a kind."""

    words: frozenset[str]
    phrases: re.Pattern[str]
    parts: frozenset[str]
    """Words of which every phrase contains at least one: sentences without them need no search."""

    def is_in(self, text: str, words: AbstractSet[str]) -> bool:
        """Whether a text with these words is of this kind."""
        if not self.words.isdisjoint(words):
            return True
        return not self.parts.isdisjoint(words) and bool(self.phrases.search(text))


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_WORD: Final = re.compile(r"\w+")
_CAUSE: Final = _Kind(
    _words(
        "cause caused causes causing because found confirms confirmed reason culprit missing lack lacks mismatch"
        " mismatched mismatches misdiagnosed misdiagnosis wrong wrongly incorrect incorrectly"
    ),
    re.compile(
        r"\b(?:due to|turns out|(?:this|that|which) means|that(?:'s| is) why"
        r"|(?:the|a|an) (?:[\w-]+ ){0,2}(?:issue|problem|bug|fix|gap|insight|difference|finding|failure"
        r"|trigger|regression|risk|limitation))\b"
    ),
    _words(
        "due turns means why issue problem bug fix gap insight difference finding failure trigger regression risk"
        " limitation"
    ),
)
_RESULT: Final = _words(
    "pass passes passed fail fails failed done fixed created pushed committed merged complete completed verified"
    " reproduced works worked moved replaced renamed reverted unfixed skipped blocked added opened updated"
    " succeeds succeeded removed resolved report reports show shows return returns already"
)
_DECISION: Final = _Kind(
    _words(
        "decide decides decided decision agree agreed settled should shouldn policy better safer simpler prefer"
        " prefers preferred preference preferable must mustn separate keep keeps keeping own owns"
    ),
    re.compile(
        r"\b(?:instead of|rather than|you(?:'|’)re right|i was wrong|good (?:point|catch)"
        r"|the (?:approach|pattern|rule) is)\b"
    ),
    _words("instead rather right wrong point catch approach pattern rule"),
)
_DENIAL: Final = _Kind(
    _words("not never nothing none only isn aren wasn doesn don didn"),
    re.compile(r"\bno longer\b"),
    _words("longer"),
)
_GUESS: Final = _Kind(
    _words("maybe perhaps might could probably wait"),
    re.compile(r"\b(?:i (?:think|guess|suspect|wonder)|doesn't make sense)\b"),
    _words("think guess suspect wonder sense"),
)
_OPENING: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|good|great|perfect|so|and|but|wait|next|now|first|then|also)\b\W*)*"
    r"(?:let me|let's|let us|i(?:'|’)?(?:ll| will|m going to| am going to| need to| want to| should)\b"
    r"|(?:i(?:'|’)m|i am) \w+ing\b|now (?:i |let|add|update|fix|run|implement|the \w+ step)|would you|do you"
    r"|should i|shall i|want me)"
)
"""The beginning of an announcement, in lower case."""
_UNDER_WAY: Final = re.compile(r"\b(?:let me|still (?:\w+ing|in progress))\b")
"""An announcement anywhere, in lower case."""
_UNDER_WAY_PARTS: Final = ("let me", "still ")
"""Every match of `_UNDER_WAY` contains one of these."""
_REASON: Final = _Kind(
    _words("because since instead otherwise"),
    re.compile(r"\b(?:so that|rather than)\b"),
    _words("so rather"),
)
"""An announcement with a reason counts as a decision."""
_ASIDE: Final = re.compile(r"(?: [-–—]|;) (?=.{40})")
"""Separates an announcement from its subject."""
_FENCE: Final = re.compile(
    r"^\s*(?:```|~~~).*?(?:^\s*(?:```|~~~)\s*$|\Z)", re.MULTILINE | re.DOTALL
)
_FENCES: Final = ("```", "~~~")
_BULLET: Final = re.compile(r"^(?:[\s>#*+-]*\s)?(?:\d+[.)]\s+)?(?:\[.\]\s+)?")
_END: Final = re.compile(r"([.!?。！？])(?:(?<=[。！？])|[*_)\"'”]*\s+)")
"""The end of a sentence; it begins with the mark, because a search is fast if it begins with one of few
characters."""
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\w.:-]*")


def statements(entries: Sequence[Entry]) -> Iterator[tuple[str, Entry]]:
    """The agent's statements, each with its entry, in order."""
    said = [e for e in entries if isinstance(e.block, AssistantCompletion)]
    for entry, following in pairwise([*said, None]):
        if entry is not None:
            is_last = following is None or following.block.turn != entry.block.turn
            most = LAST_MAX if is_last else TEXT_MAX
            for statement in _stated(getattr(entry.block, "text", ""), most):
                yield statement, entry


@lru_cache(maxsize=WORTHS_MAX)
def worth(statement: str) -> int:
    """The worth of a statement; below `WORTH_MIN` it is ignored."""
    lower, marked = statement.lower(), _marked(statement)
    words = {*lower.split(), *_WORD.findall(marked.lower())}
    kinds = 3 * _CAUSE.is_in(lower, words) + 3 * _DECISION.is_in(lower, words)
    shown = kinds + 2 * (not _RESULT.isdisjoint(words)) + _DENIAL.is_in(lower, words)
    asked = 3 * statement.endswith("?")
    announced = _announces(statement) and (2 if _REASON.is_in(lower, words) else 4)
    unsure = announced + 3 * _GUESS.is_in(lower, words)
    names = len(_NUMBER.findall(marked))
    if names < NAMES_MAX:  # the slowest step
        names += len(identifiers(marked))
    return shown + min(names, NAMES_MAX) - asked - unsure


def _marked(text: str) -> str:
    """The words of a text that are not just lower-case letters; all names and numbers are among them."""
    return " ".join([word for word in text.split() if not (word.isalpha() and word.islower())])


def _announces(text: str) -> bool:
    """Whether a sentence says what the agent is about to do."""
    lower = text.lower()
    if _OPENING.match(lower):
        return True
    return any(part in lower for part in _UNDER_WAY_PARTS) and bool(_UNDER_WAY.search(lower))


def _stated(text: str, most: int) -> list[str]:
    """The best statements of a text, in their order."""
    found = judged(text)
    best = sorted(range(len(found)), key=lambda index: (-found[index][1], index))[:most]
    return [found[index][0] for index in sorted(best)]


def judged(text: str) -> Sequence[tuple[str, int]]:
    """All statements of a text with their worth, in order; the first sentence gets a bonus."""
    return _judged(searched(text, _SEARCHED))


@lru_cache(maxsize=JUDGED_MAX)
def _judged(pieces: tuple[str, ...]) -> Sequence[tuple[str, int]]:
    found = [short for short in map(_shortened, _sentences(pieces)) if len(short) >= STATEMENT_MIN]
    worths = [worth(statement) + (not index) for index, statement in enumerate(found)]
    return [each for each in zip(found, worths, strict=True) if each[1] >= WORTH_MIN]


def _sentences(pieces: Sequence[str]) -> Iterator[str]:
    """The sentences of the prose in the pieces of a text; a very short one is joined with the next, unless either only
    announces."""
    short = ""
    for line in _lines(pieces):
        for said in _END.sub(r"\1\n", line).split("\n"):
            sentence = _after_announcement(said)
            if short and _announces(sentence):
                yield short
                short = ""
            whole = f"{short} {sentence}".strip()
            goes_on = len(whole) < SHORT_CHARACTERS and not _announces(whole)
            short = whole if goes_on else ""
            if not short:
                yield whole
    if short:
        yield short


def _after_announcement(sentence: str) -> str:
    """The sentence without a leading clause that only announces ("Let me see - ...")."""
    first, *others = _ASIDE.split(sentence, 1)
    if others and _announces(first) and not _announces(others[0]):
        return others[0]
    return sentence


def _lines(pieces: Sequence[str]) -> Iterator[str]:
    """The prose lines, without code, tables and list markers."""
    for piece in pieces:
        prose = _FENCE.sub("", piece) if any(mark in piece for mark in _FENCES) else piece
        for line in prose.splitlines():
            plain = _BULLET.sub("", line, 1).replace("**", "").strip()
            if plain and not plain.startswith(("|", "```")):
                yield plain


def _shortened(sentence: str) -> str:
    line = " ".join(sentence.split())
    if len(line) <= STATEMENT_CHARACTERS:
        return line
    return line[:STATEMENT_CHARACTERS].rsplit(" ", 1)[0] + " …"


def by_worth(told: Sequence[str]) -> Iterator[int]:
    """Indices of statements, best worth for their length first, newest first among equals; one that nearly
    repeats another comes last."""
    worths = [worth(each) / max(len(each), LENGTH_MIN) ** LENGTH_POWER for each in told]
    last, seen = list[int](), list[tuple[frozenset[str], float]]()
    for index in sorted(range(len(told)), key=lambda index: (-worths[index], -index)):
        words = frozenset(told[index].casefold().split())
        most = NEAR_SHARE * len(words)
        if any((shared := len(words & known)) > most or shared > other for known, other in seen):
            last.append(index)
        else:
            yield index
        seen.append((words, most))
    yield from last
