"""The extractive summariser: deterministic, without a model.

It quotes: the user's demands and decisions in texts that are not carried whole; the agent's statements
(results, causes, decisions) and newest words; the open steps of its last step list; and of a split turn its
beginning and, if the agent said little, its calls. Files, commands, errors and names are in the digest.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeVar, cast

import attrs

from blocks import (
    AssistantCompletion,
    Decision,
    StructuredSummary,
    TextPart,
    ToolCall,
    ToolResult,
    UserFollowup,
    UserPrompt,
    UserSteer,
    Work,
    text_of,
    tool_target,
)
from render.summary._identifiers import identifiers, one_line, searched
from render.summary._text import FOUND
from render.view._group import Entry

_T = TypeVar("_T")

STATE_CHARACTERS: Final = 500
QUOTE_CHARACTERS: Final = 240
"""Characters of a user's sentence; a longer one is not taken as a demand or decision."""
QUOTES_MAX: Final = 12
"""The most demands, and the most decisions: the first half and the last half are kept."""
STEPS_MAX: Final = 8
"""The most open steps listed."""
STEP_CHARACTERS: Final = 100
DONE: Final = frozenset({"completed", "complete", "done", "cancelled", "canceled"})
"""States of a finished or cancelled step."""
SEARCHED_CHARACTERS: Final = 1_000_000
"""Characters searched in one text; of a longer text, its beginning and end."""
_DEMANDS: Final = re.compile(
    r"\b(?:must(?: not)?|never|always|do not|don't|only|no longer|required?|make sure|ensure)\b",
    re.IGNORECASE,
)
_DECIDES: Final = re.compile(
    r"\b(?:decided?|decisions?|agreed|settled on|concluded|conclusion|from now on|instead of|"
    r"(?:let's|let us|we(?:'ll| will)?) (?:use|go with|keep|take|choose|drop|switch))\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))+[.!?]*")
_MARKS: Final = ("\n", ". ", "! ", "? ")
"""Ends of sentences."""


def extract_summary(
    folded: Sequence[Entry], prefix: Sequence[Entry], is_carried: Callable[[Entry], bool]
) -> StructuredSummary:
    """The summary of `folded` blocks, made of quotations.

    `prefix` are the folded blocks of a split turn; `is_carried` says which user texts stay visible in full
    and need no quotation.
    """
    cut = [entry for entry in folded if words_of(entry) and not is_carried(entry)]
    demands = [sentence for entry in cut for sentence in _user_sentences(entry, _DEMANDS)]
    decisions = [
        Decision(decision=sentence, turn=entry.block.turn)
        for entry in cut
        for sentence in _user_sentences(entry, _DECIDES)
        if not _DEMANDS.search(sentence)
    ]
    return StructuredSummary(
        task="",
        constraints=_ends(demands),
        decisions=_ends(decisions),
        completed=tuple(
            Work(component=entry.block.turn, action=FOUND, description=statement)
            for statement, entry in statements(folded)
        ),
        state=last_words(folded, STATE_CHARACTERS),
        plan=_steps_left(folded),
        turn_context=turn_context(prefix),
    )


def _steps_left(folded: Sequence[Entry]) -> str:
    """The open steps of the newest call with a step list; empty if there is none."""
    for entry in reversed(folded):
        if isinstance(entry.block, ToolCall) and (steps := _steps(entry.block)):
            left = [f"- [{state}] {step}" for step, state in steps if state not in DONE]
            done = f"{len(steps) - len(left)} of {len(steps)} steps are done"
            return "\n".join([done, *left[:STEPS_MAX]])
    return ""


def _steps(call: ToolCall) -> list[tuple[str, str]]:
    """The steps with their states, if an argument of the call is a list of objects with a `status` and a
    text."""
    given: list[list[Any]] = [value for value in call.input.values() if isinstance(value, list)]
    for rows in given:
        tables = [cast("dict[str, Any]", row) for row in rows if isinstance(row, dict)]
        steps = [_step(table) for table in tables if "status" in table]
        if steps and len(steps) == len(rows):
            return steps
    return []


def _step(row: dict[str, Any]) -> tuple[str, str]:
    texts = [text for name, text in row.items() if name != "status" and isinstance(text, str)]
    return one_line(max(texts, key=len, default=""), STEP_CHARACTERS), str(row["status"])


def _user_sentences(entry: Entry, kind: re.Pattern[str]) -> Iterator[str]:
    """The sentences of a user's text that match the pattern and are not too long."""
    for text in searched(words_of(entry), SEARCHED_CHARACTERS):
        for sentence in _matching(kind, text):
            if len(sentence) <= QUOTE_CHARACTERS:
                yield sentence


def _matching(kind: re.Pattern[str], text: str) -> Iterator[str]:
    """The sentences that match the pattern; only the text around each match is split into sentences."""
    end = 0
    while found := kind.search(text, end):
        start = max(end, *(text.rfind(mark, end, found.start()) + 1 for mark in _MARKS))
        sentence = _SENTENCE.match(text, start)
        if sentence is None:
            break
        end = sentence.end()
        yield sentence[0].strip()


def _ends(items: Sequence[_T]) -> tuple[_T, ...]:
    """The first and the last items, without duplicates, at most `QUOTES_MAX`."""
    items = tuple(dict.fromkeys(items))
    half = QUOTES_MAX // 2
    return items if len(items) <= QUOTES_MAX else (*items[:half], *items[-half:])


# The prefix of a split turn: how the turn began, kept while the turn continues.
#
# It has the request, the agent's first words and, if it said little, its calls and their results. The agent's
# statements are listed with those of all turns.


PREFIX_CHARACTERS: Final = 900
ASKED_CHARACTERS: Final = 160
"""Characters of the request of a split turn, which is carried in full elsewhere."""
FIRST_CHARACTERS: Final = 240
"""Characters of the agent's first words."""
LINE_CHARACTERS: Final = 120
"""Characters of the line for a call with its result."""
TARGETS_MAX: Final = 3
"""The most targets listed per tool, the newest."""
RESULTS_MAX: Final = 3
"""The most results whose first line is quoted, the newest."""
_SPELLED: Final = re.compile(r"\w\w")


def turn_context(prefix: Sequence[Entry]) -> str:
    """The beginning of a split turn: the request, the agent's first words and, if it said little, its calls
    with their newest results."""
    asked = (words_of(entry) for entry in prefix)
    request = next((line for text in asked if (line := _line(text, ASKED_CHARACTERS))), "")
    parts = [f"Asked: {request}" if request else "", _first_words(prefix)]
    if len(last_words(prefix, PREFIX_CHARACTERS)) < PREFIX_CHARACTERS // 4:
        parts += [_calls(prefix), *_results(prefix)]
    return "\n".join(part for part in parts if part)


def _first_words(prefix: Sequence[Entry]) -> str:
    said = (entry.block.text for entry in prefix if isinstance(entry.block, AssistantCompletion))
    return next((line for text in said if (line := _line(text, FIRST_CHARACTERS))), "")


def _calls(prefix: Sequence[Entry]) -> str:
    """The calls by tool, with their newest targets."""
    tools: dict[str, list[str]] = {}
    for call, answer in _answered(prefix):
        tools.setdefault(call.name, []).append(_target(call, answer))
    told: list[str] = []
    for name, targets in tools.items():
        named = list(dict.fromkeys(filter(None, reversed(targets))))[:TARGETS_MAX]
        about = f" ({'; '.join(reversed(named))})" if named else ""
        told.append(f"{name} {len(targets)}{about}")
    return f"Calls: {', '.join(told)}"[:PREFIX_CHARACTERS] if told else ""


def _results(prefix: Sequence[Entry]) -> list[str]:
    """The first lines of the newest results, each with its call."""
    answered = [(call, answer) for call, answer in _answered(prefix) if answer]
    return [
        f"{f'{call.name} {_target(call, answer)}'.strip()} -> "
        f"{_line(text_of(answer), LINE_CHARACTERS) or 'nothing'}"
        for call, answer in answered[-RESULTS_MAX:]
    ]


def _answered(prefix: Sequence[Entry]) -> list[tuple[ToolCall, ToolResult | None]]:
    """The calls, each with its result, or None if that is not folded."""
    results = {e.pair: e.block for e in prefix if isinstance(e.block, ToolResult)}
    calls = ((e.pair, e.block) for e in prefix if isinstance(e.block, ToolCall))
    return [(call, results.get(pair)) for pair, call in calls]


def _target(call: ToolCall, answer: ToolResult | None) -> str:
    known = answer.envelope if answer else None
    return _line(tool_target(call.input, known), LINE_CHARACTERS // 2)


def _line(text: str, characters: int) -> str:
    """The first line of a text that has a word, without its indentation."""
    lines = text[: 10 * characters].split("\n")
    return one_line(next(filter(_SPELLED.search, lines), ""), characters)


def words_of(entry: Entry) -> str:
    """The user's words in a block, without attachments; empty for other blocks."""
    block = entry.block
    if not isinstance(block, UserPrompt | UserFollowup | UserSteer):
        return ""
    texts = (part.text for part in block.parts if isinstance(part, TextPart))
    return "\n".join(filter(None, (block.text, *texts)))


def last_words(entries: Sequence[Entry], characters: int) -> str:
    """The agent's newest texts, oldest first, in at most so many characters."""
    kept: list[str] = []
    left = characters
    for entry in reversed(entries):
        if isinstance(entry.block, AssistantCompletion) and entry.block.text.strip():
            text = entry.block.text.strip()
            if len(text) > left:
                text = text[: max(left - 1, 0)].rstrip() + "…"
            kept.append(text)
            left -= len(text)
            if left <= characters // 4:
                break
    return "\n\n".join(reversed(kept))


# The agent's sentences that state something: a result, a cause, a decision.
#
# The worth of a sentence is computed from its words: statements, names and numbers count for it;
# announcements and guesses count against it. The word lists are short and English; in other languages only
# names, numbers and the position in the text count.


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

    def is_in(self, text: str, words: AbstractSet[str]) -> bool:
        """Whether a text with these words is of this kind."""
        return not self.words.isdisjoint(words) or bool(self.phrases.search(text))


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
)
_DENIAL: Final = _Kind(
    _words("not never nothing none only isn aren wasn doesn don didn"),
    re.compile(r"\bno longer\b"),
)
_GUESS: Final = _Kind(
    _words("maybe perhaps might could probably wait"),
    re.compile(r"\b(?:i (?:think|guess|suspect|wonder)|doesn't make sense)\b"),
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
_REASON: Final = _Kind(
    _words("because since instead otherwise"),
    re.compile(r"\b(?:so that|rather than)\b"),
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
    return bool(_OPENING.match(lower) or _UNDER_WAY.search(lower))


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
