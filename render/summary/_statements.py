"""Sentences of the agent that say something: a result, a cause, a decision.

A sentence is worth what it shows of itself: words that state something, names and numbers in it.  Words
that announce what comes next, or only guess, count against it.  The lists of words are short and of English; of other
languages, names, numbers and the place of a sentence in its text have to do.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from blocks import AssistantCompletion
from render.summary._identifiers import identifiers, searched
from render.view._group import Entry

STATEMENT_CHARACTERS: Final = 180
"""Of one statement; the rest of a longer sentence is left out."""
STATEMENT_MIN: Final = 12
SHORT_CHARACTERS: Final = 40
"""A statement as short as this ("Found the cause!") is told with the sentence that follows."""
TEXT_MAX: Final = 3
"""Statements of one text."""
LAST_MAX: Final = 6
"""Statements of the text that ends a turn: it sums up."""
WORTH_MIN: Final = 2
LENGTH_POWER: Final = 0.4
"""Worth is divided by characters to this power, so that the room holds more of them."""
LENGTH_MIN: Final = 60
"""Characters below which a statement is not worth more for being short."""
NEAR_SHARE: Final = 0.6
"""Of the words of the shorter of two statements; who shares more repeats the other."""
NAMES_MAX: Final = 2
"""Names and numbers that count."""
WORTHS_MAX: Final = 4096
"""Statements whose worth is remembered: those of a summary are compared at every compaction."""
_SEARCHED: Final = 20_000
"""Characters of one text that are looked at."""
# The first five are for statements in lower case: to ignore the case takes several times as long.
_CAUSE: Final = re.compile(
    r"\b(?:root cause|caus(?:e[ds]?|ing)|because|due to|turns out|found|confirm(?:s|ed)|reason|culprit"
    r"|(?:this|that|which) means"
    r"|that(?:'s| is) why|(?:the|a|an) (?:[\w-]+ ){0,2}"
    r"(?:issue|problem|bug|fix|gap|insight|difference|finding|failure|trigger|regression|risk"
    r"|limitation|culprit)|missing|lacks?"
    r"|mismatch(?:e[sd])?|misdiagnos\w+|wrong(?:ly)?|incorrect(?:ly)?)\b",
)
_RESULT: Final = re.compile(
    r"\b(?:pass(?:es|ed)?|fail(?:s|ed)?|done|fixed|created|pushed|committed|merged|complete[d]?"
    r"|verified|reproduced|works|worked|moved|replaced|renamed|reverted|unfixed|skipped|blocked"
    r"|added|opened|updated|succeed(?:s|ed)|succeeded|removed|resolved"
    r"|reports?|shows?|returns?|already)\b",
)
_DECISION: Final = re.compile(
    r"\b(?:decid(?:es?|ed)|decision|agreed?|settled|instead of|rather than|should(?: not|n't)?|policy"
    r"|better|safer|simpler|prefer\w*|you(?:'|’)re right|i was wrong|good (?:point|catch)"
    r"|must(?: not|n't)?|separate|keep(?:s|ing)?|owns?|the (?:approach|pattern|rule) is)\b",
)
_DENIAL: Final = re.compile(
    r"\b(?:not|never|no longer|nothing|none|only|isn't|aren't|wasn't|doesn't|don't|didn't)\b",
)
_GUESS: Final = re.compile(
    r"\b(?:maybe|perhaps|might|could|probably|i (?:think|guess|suspect|wonder)|doesn't make sense|wait)\b",
)
_INTENT: Final = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|good|great|perfect|so|and|but|wait|next|now|first|then|also)\b\W*)*"
    r"(?:let me|let's|let us|i(?:'|’)?(?:ll| will|m going to| am going to| need to| want to| should)\b"
    r"|(?:i(?:'|’)m|i am) \w+ing\b|now (?:i |let|add|update|fix|run|implement|the \w+ step)|would you|do you|should i|shall i|want me)"
    r"|\blet me\b|\bstill (?:\w+ing|in progress)\b",
    re.IGNORECASE,
)
_REASON: Final = re.compile(
    r"\b(?:because|since|so that|rather than|instead|otherwise)\b", re.IGNORECASE
)
"""What is announced with a reason has been decided."""
_ASIDE: Final = re.compile(r"(?: [-–—]|;) (?=.{40})")
"""What parts an announcement from what it is about."""
_FENCE: Final = re.compile(
    r"^\s*(?:```|~~~).*?(?:^\s*(?:```|~~~)\s*$|\Z)", re.MULTILINE | re.DOTALL
)
_BULLET: Final = re.compile(r"^(?:[\s>#*+-]*\s)?(?:\d+[.)]\s+)?(?:\[.\]\s+)?")
_END: Final = re.compile(r"(?<=[.!?])[*_)\"'”]*\s+|(?<=[。！？])")
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\w.:-]*")


def statements(entries: Sequence[Entry]) -> Iterator[tuple[str, Entry]]:
    """What the agent stated in these entries, each with the one that it was said in, in order."""
    said = [e for e in entries if isinstance(e.block, AssistantCompletion)]
    for entry, following in pairwise([*said, None]):
        if entry is not None:
            is_last = following is None or following.block.turn != entry.block.turn
            most = LAST_MAX if is_last else TEXT_MAX
            for statement in _stated(getattr(entry.block, "text", ""), most):
                yield statement, entry


@lru_cache(maxsize=WORTHS_MAX)
def worth(statement: str) -> int:
    """What a statement shows of itself; below `WORTH_MIN` it says nothing."""
    lower = statement.lower()
    kinds = 3 * bool(_CAUSE.search(lower)) + 3 * bool(_DECISION.search(lower))
    shown = kinds + 2 * bool(_RESULT.search(lower)) + bool(_DENIAL.search(lower))
    names = len(_NUMBER.findall(statement))
    if names < NAMES_MAX:  # finding names takes the longest of all
        names += len(identifiers(statement))
    asked = 3 * statement.endswith("?")
    announced = bool(_INTENT.search(statement)) and (2 if _REASON.search(statement) else 4)
    unsure = announced + 3 * bool(_GUESS.search(lower))
    return shown + min(names, NAMES_MAX) - asked - unsure


def _stated(text: str, most: int) -> list[str]:
    """The statements of a text that are worth most, in their order; its first sentence before others."""
    found = [short for short in map(_shortened, _sentences(text)) if len(short) >= STATEMENT_MIN]
    worths = [worth(statement) + (not index) for index, statement in enumerate(found)]
    best = sorted(range(len(found)), key=lambda index: (-worths[index], index))[:most]
    return [found[index] for index in sorted(best) if worths[index] >= WORTH_MIN]


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a text's prose; a very short one with the one after it, unless either only announces."""
    short = ""
    for line in _lines(text):
        for said in _END.split(line):
            sentence = _after_announcement(said)
            if short and _INTENT.search(sentence):
                yield short
                short = ""
            whole = f"{short} {sentence}".strip()
            goes_on = len(whole) < SHORT_CHARACTERS and not _INTENT.search(whole)
            short = whole if goes_on else ""
            if not short:
                yield whole
    if short:
        yield short


def _after_announcement(sentence: str) -> str:
    """A sentence without a clause at its beginning that only announces ("Let me see - ...")."""
    first, *others = _ASIDE.split(sentence, 1)
    if others and _INTENT.search(first) and not _INTENT.search(others[0]):
        return others[0]
    return sentence


def _lines(text: str) -> Iterator[str]:
    """The lines of a text that are prose, without code, tables and the marks of lists."""
    for piece in searched(text, _SEARCHED):
        for line in _FENCE.sub("", piece).splitlines():
            plain = _BULLET.sub("", line).replace("**", "").strip()
            if plain and not plain.startswith(("|", "```")):
                yield plain


def _shortened(sentence: str) -> str:
    line = " ".join(sentence.split())
    if len(line) <= STATEMENT_CHARACTERS:
        return line
    return line[:STATEMENT_CHARACTERS].rsplit(" ", 1)[0] + " …"


def by_worth(told: Sequence[str]) -> Iterator[int]:
    """Indices of statements, those first that are worth most for their length, of equals the newest; one that
    nearly repeats another comes after all others."""
    worths = [worth(each) / max(len(each), LENGTH_MIN) ** LENGTH_POWER for each in told]
    last, seen = list[int](), list[frozenset[str]]()
    for index in sorted(range(len(told)), key=lambda index: (-worths[index], -index)):
        words = frozenset(told[index].casefold().split())
        if any(_is_near(words, known) for known in seen):
            last.append(index)
        else:
            yield index
        seen.append(words)
    yield from last


def _is_near(words: frozenset[str], known: frozenset[str]) -> bool:
    return len(words & known) > NEAR_SHARE * min(len(words), len(known))
