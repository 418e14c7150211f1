"""The prefix of a split turn: how the turn that the cut goes through began, for as long as it goes on.

What was asked, how the agent set about it and, where it said little, what it called and what came of
it.  What it stated is among the statements of all turns.
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
"""Of the request of a split turn, which is carried besides."""
FIRST_CHARACTERS: Final = 240
"""Of what the agent said first."""
LINE_CHARACTERS: Final = 120
"""Of a call with its result."""
TARGETS_MAX: Final = 3
"""Newest targets that are named of each tool."""
RESULTS_MAX: Final = 3
"""Newest results whose first line is quoted."""
_WORD: Final = re.compile(r"\w\w")


def turn_context(prefix: Sequence[Entry]) -> str:
    """How a split turn began: what was asked, what the agent said first; what it called, where it said
    little."""
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


def words_of(entry: Entry) -> str:
    """What the user said in a block, without what was attached to it."""
    block = entry.block
    if not isinstance(block, UserPrompt | UserFollowup | UserSteer):
        return ""
    texts = (part.text for part in block.parts if isinstance(part, TextPart))
    return "\n".join(filter(None, (block.text, *texts)))


def last_words(entries: Sequence[Entry], characters: int) -> str:
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
