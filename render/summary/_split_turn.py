"""The prefix of a split turn: how the turn began, kept while the turn continues.

It has the request, the agent's first words and, if it said little, its calls and their results. The agent's
statements are listed with those of all turns.
"""

import re
from collections.abc import Sequence
from typing import Final

from blocks import (
    AssistantCompletion,
    TextPart,
    ToolCall,
    ToolResult,
    UserFollowup,
    UserPrompt,
    UserSteer,
    text_of,
    tool_target,
)
from render.summary._artifacts import one_line
from render.view._group import Entry

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
