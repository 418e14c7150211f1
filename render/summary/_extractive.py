"""The extractive summariser: deterministic, without a model.

It quotes: the user's demands and decisions in texts that are not carried whole; the agent's statements
(results, causes, decisions) and newest words; the open steps of its last step list; and of a split turn its
beginning and, if the agent said little, its calls. Files, commands, errors and names are in the digest.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar, cast

from blocks import (
    Decision,
    StructuredSummary,
    ToolCall,
    Work,
)
from render.summary._artifacts import one_line
from render.summary._identifiers import searched
from render.summary._split_turn import last_words, turn_context, words_of
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
