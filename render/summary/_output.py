"""The lines that a tool adds around a command's output: exit status, duration.

Codex adds them before the output, OpenHands after it, and mini-swe-agent puts the output between tags.
"""

import re
from collections.abc import Iterator
from typing import Final

from blocks import Block, ToolResult, text_of
from render.summary._identifiers import searched

_BEFORE: Final = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process \w+ with|Original token count|Exit code)\b[^\n]*\n){1,8}Output:\n"
    r"(?:Warning: truncated output[^\n]*\n)?(?:Total output lines:[^\n]*\n+)?"
    r"|<returncode>-?\d+</returncode>\n<output>\n",
)
_BEHIND: Final = re.compile(
    r"\n?</output>\s*\Z|(?:\n\[(?:The command completed with exit code|Command finished with exit code"
    r"|Current working directory:|Python interpreter:)[^\n]*\])+\s*\Z"
    r"|\nShell cwd was reset to [^\n]*\s*\Z"
)
_BEHIND_MARKS: Final = ("</output>", "\n[", "\nShell cwd")
"""Every match of `_BEHIND` contains one of these."""
_BEHIND_MAX: Final = 1000
"""Characters at the end of a result that are searched with `_BEHIND`."""
_LEFT_OUT: Final = re.compile(
    r"(?:…|\.\.\.|\[)\W{0,3}\d+ \w+ (?:truncated|omitted|elided)|<elided_chars>|^Warning: truncated output",
    re.MULTILINE,
)
_LEFT_OUT_WORDS: Final = ("truncated", "omitted", "elided")
"""Every match of `_LEFT_OUT` contains one of these."""


def output_of(text: str) -> tuple[int, int]:
    """The start and end of the output within a result."""
    before = _BEFORE.match(text)
    start = before.end() if before else 0
    tail = max(start, len(text) - _BEHIND_MAX)
    is_plain = all(text.find(mark, tail) < 0 for mark in _BEHIND_MARKS)
    behind = None if is_plain else _BEHIND.search(text, tail)
    return start, behind.start() if behind else len(text)


def texts_of(block: Block) -> Iterator[str]:
    """The texts of a block that are searched; a result is divided by `parts_of`."""
    text = text_of(block)
    for part in parts_of(text) if isinstance(block, ToolResult) else (text,):
        yield from searched(part)


def parts_of(text: str) -> Iterator[str]:
    """The non-empty parts of a result: the lines before the output, the output, the lines after it."""
    start, end = output_of(text)
    parts = (text[:start], text[start:end], text[end:])
    yield from (part for part in parts if part and not part.isspace())


def is_output(text: str) -> bool:
    """Whether a part of a result is the output."""
    return not (_BEFORE.fullmatch(text) or _BEHIND.fullmatch(text))


def is_cut(text: str) -> bool:
    """Whether an output says that a part of it was left out."""
    return any(word in text for word in _LEFT_OUT_WORDS) and bool(_LEFT_OUT.search(text))
