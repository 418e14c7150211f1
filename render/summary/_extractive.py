"""The extractive summariser: deterministic, without a model.

It quotes: what the user demanded and decided in texts that are not carried whole, where the agent said it
stood, and of a split turn what was asked, what was said and, where little was said, what was called.
Files, commands, errors and names are the digest's.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from blocks import (
    AssistantCompletion,
    Decision,
    StructuredSummary,
    ToolCall,
    ToolResult,
    UserFollowup,
    UserPrompt,
    UserSteer,
    text_of,
    tool_target,
)
from render.summary._artifacts import one_line
from render.summary._identifiers import searched
from render.view._group import Entry

_T = TypeVar("_T")

STATE_CHARACTERS: Final = 1200
PREFIX_CHARACTERS: Final = 900
ASKED_CHARACTERS: Final = 160
"""Of the request of a split turn, which is carried besides."""
LINE_CHARACTERS: Final = 120
"""Of a call with its result."""
TARGETS_MAX: Final = 3
"""Newest targets that are named of each tool."""
RESULTS_MAX: Final = 3
"""Newest results whose first line is quoted."""
QUOTE_CHARACTERS: Final = 240
"""Of a sentence of the user's; a longer one is no demand."""
QUOTES_MAX: Final = 12
"""Demands, and decisions: half of them the first, half of them the last."""
SEARCHED_CHARACTERS: Final = 1_000_000
"""Of one text that is searched for them: of a longer one its beginning and its end."""
_DEMAND: Final = re.compile(
    r"\b(?:must(?: not)?|never|always|do not|don't|only|no longer|required?|make sure|ensure)\b",
    re.IGNORECASE,
)
_DECISION: Final = re.compile(
    r"\b(?:decided?|decisions?|agreed|settled on|concluded|conclusion|from now on|instead of|"
    r"(?:let's|let us|we(?:'ll| will)?) (?:use|go with|keep|take|choose|drop|switch))\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w\w")
_SENTENCE: Final = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))+[.!?]*")
_MARKS: Final = ("\n", ". ", "! ", "? ")
"""What ends a sentence."""


def extract_summary(
    folded: Sequence[Entry], prefix: Sequence[Entry], is_carried: Callable[[Entry], bool]
) -> StructuredSummary:
    """What can be said about `folded` blocks by quoting them.

    `prefix` are the folded blocks of a split turn; `is_carried` tells which user texts stay
    visible whole, so that nothing is said twice.
    """
    split = {entry.version for entry in prefix}
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
        state=_last_words([e for e in folded if e.version not in split], STATE_CHARACTERS),
        turn_context=turn_context(prefix),
    )


def words_of(entry: Entry) -> str:
    """What the user said in a block, without what was attached to it."""
    block = entry.block
    return block.text if isinstance(block, UserPrompt | UserFollowup | UserSteer) else ""


def _sentences(entry: Entry, kind: re.Pattern[str]) -> Iterator[str]:
    """The sentences of a user's text that have words of this kind."""
    for text in searched(words_of(entry), SEARCHED_CHARACTERS):
        for sentence in _sentences_with(kind, text):
            if len(sentence) <= QUOTE_CHARACTERS:
                yield sentence


def _sentences_with(kind: re.Pattern[str], text: str) -> Iterator[str]:
    """The sentences in which such words are; only around those is a text looked at closely."""
    end = 0
    while found := kind.search(text, end):
        start = max(end, *(text.rfind(mark, end, found.start()) + 1 for mark in _MARKS))
        sentence = _SENTENCE.match(text, start)
        if sentence is None:
            break
        end = sentence.end()
        yield sentence[0].strip()


def _ends(items: Sequence[_T]) -> tuple[_T, ...]:
    """The first and the last of the items: what a text begins with, and what it comes to."""
    items = tuple(dict.fromkeys(items))
    half = QUOTES_MAX // 2
    return items if len(items) <= QUOTES_MAX else (*items[:half], *items[-half:])


def _last_words(entries: Sequence[Entry], characters: int) -> str:
    """The newest of what the agent said, oldest first, in at most so many characters."""
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


# A split turn.


def turn_context(prefix: Sequence[Entry]) -> str:
    """How a split turn began: what was asked, what the agent said; what it called, where it said little."""
    asked = (words_of(entry) for entry in prefix)
    request = next((line for text in asked if (line := _line(text, ASKED_CHARACTERS))), "")
    words = _last_words(prefix, PREFIX_CHARACTERS)
    parts = [f"Asked: {request}" if request else "", words]
    if len(words) < PREFIX_CHARACTERS // 4:
        parts += [_calls(prefix), *_results(prefix)]
    return "\n".join(part for part in parts if part)


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
    """The calls, each with its result if that is folded, too."""
    results = {e.pair: e.block for e in prefix if isinstance(e.block, ToolResult)}
    calls = ((e.pair, e.block) for e in prefix if isinstance(e.block, ToolCall))
    return [(call, results.get(pair)) for pair, call in calls]


def _target(call: ToolCall, answer: ToolResult | None) -> str:
    known = answer.envelope if answer else None
    return _line(tool_target(call.input, known), LINE_CHARACTERS // 2)


def _line(text: str, characters: int) -> str:
    """The first line of a text that has a word in it, without its indentation."""
    lines = text[: 10 * characters].split("\n")
    return one_line(next(filter(_WORD.search, lines), ""), characters)
