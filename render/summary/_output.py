"""What a tool's result says beside the output of a command: its exit status, how long it ran.

Codex puts such lines before the output, OpenHands behind it, mini-swe-agent puts it between tags.
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
"""One of these is in whatever that finds."""
_BEHIND_MAX: Final = 1000
"""Characters at the end of a result that are searched for it."""
_LEFT_OUT: Final = re.compile(
    r"(?:…|\.\.\.|\[)\W{0,3}\d+ \w+ (?:truncated|omitted|elided)|<elided_chars>|^Warning: truncated output",
    re.MULTILINE,
)
_LEFT_OUT_WORDS: Final = ("truncated", "omitted", "elided")
"""One of these is in whatever that finds."""


def output_of(text: str) -> tuple[int, int]:
    """Where the output begins in a result, and where it ends."""
    before = _BEFORE.match(text)
    start = before.end() if before else 0
    tail = max(start, len(text) - _BEHIND_MAX)
    is_plain = all(text.find(mark, tail) < 0 for mark in _BEHIND_MARKS)
    behind = None if is_plain else _BEHIND.search(text, tail)
    return start, behind.start() if behind else len(text)


def texts_of(block: Block) -> Iterator[str]:
    """The text of a block as it is searched; of a result the output apart."""
    text = text_of(block)
    for part in parts_of(text) if isinstance(block, ToolResult) else (text,):
        yield from searched(part)


def parts_of(text: str) -> Iterator[str]:
    """A result in what precedes the output, the output, and what follows it."""
    start, end = output_of(text)
    parts = (text[:start], text[start:end], text[end:])
    yield from (part for part in parts if part and not part.isspace())


def is_output(text: str) -> bool:
    """Whether a part of a result is the output."""
    return not (_BEFORE.fullmatch(text) or _BEHIND.fullmatch(text))


def is_cut(text: str) -> bool:
    """Whether an output says that a part of it is left out."""
    return any(word in text for word in _LEFT_OUT_WORDS) and bool(_LEFT_OUT.search(text))
