"""The extractive summariser: deterministic, without a model.

It quotes: the user's demands and decisions in texts that are not carried whole; the agent's statements
(results, causes, decisions) and newest words; the open steps of its last step list; and of a split turn its
beginning and, if the agent said little, its calls. Files, commands, errors and names are in the digest.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar, cast

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
from render.summary._artifacts import one_line
from render.summary._identifiers import searched
from render.summary._statements import statements
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
_DEMAND: Final = re.compile(
    r"\b(?:must(?: not)?|never|always|do not|don't|only|no longer|required?|make sure|ensure)\b",
    re.IGNORECASE,
)
_DECISION: Final = re.compile(
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
    demands = [sentence for entry in cut for sentence in _sentences(entry, _DEMAND)]
    decisions = [
        Decision(decision=sentence, turn=entry.block.turn)
        for entry in cut
        for sentence in _sentences(entry, _DECISION)
        if not _DEMAND.search(sentence)
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


def _sentences(entry: Entry, kind: re.Pattern[str]) -> Iterator[str]:
    """The sentences of a user's text that match the pattern and are not too long."""
    for text in searched(words_of(entry), SEARCHED_CHARACTERS):
        for sentence in _sentences_with(kind, text):
            if len(sentence) <= QUOTE_CHARACTERS:
                yield sentence


def _sentences_with(kind: re.Pattern[str], text: str) -> Iterator[str]:
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
_WORD: Final = re.compile(r"\w\w")


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
    return one_line(next(filter(_WORD.search, lines), ""), characters)


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
