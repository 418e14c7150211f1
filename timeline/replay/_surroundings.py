"""Finds the text around a name: its line, its neighbouring lines, or a number of characters."""

from typing import Final

from timeline.replay._lines import bare_lines

SURROUNDINGS_MIN: Final = 8
"""The least characters besides the name for surroundings to count."""
LINE_CHARACTERS: Final = 40
WIDE_CHARACTERS: Final = 150


def line_around(text: str, name: str) -> str:
    """The last occurrence with up to 40 characters of its line on each side; empty if there are too few."""
    at = text.rfind(name)
    end = at + len(name)
    start = max(_line_start(text, at), at - LINE_CHARACTERS)
    return _enough(text[start : min(_line_end(text, end), end + LINE_CHARACTERS)], name)


def wide_around(text: str, name: str) -> str:
    """The same with the neighbouring lines, up to 150 characters on each side."""
    at = text.rfind(name)
    end = at + len(name)
    first, last = _line_start(text, at), _line_end(text, end)
    before = _line_start(text, first - 1) if first else 0
    after = _line_end(text, last + 1)
    start = max(before, at - WIDE_CHARACTERS)
    return _enough(text[start : min(after, end + WIDE_CHARACTERS)], name)


def around(text: str, name: str, characters: int) -> str:
    """The last occurrence with up to `characters` on each side, across line breaks."""
    at = text.rfind(name)
    return text[max(at - characters, 0) : at + len(name) + characters]


def share_found(excerpt: str, text: str) -> float:
    """The share of an excerpt's characters that are in lines which the text also has.

    Order, indentation and a viewer's line numbers do not matter.
    """
    if excerpt in text:
        return 1.0
    lines = list(bare_lines(excerpt))
    total = sum(map(len, lines))
    return sum(len(line) for line in lines if line in text) / total if total else 0.0


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _enough(around: str, name: str) -> str:
    around = around.strip()
    return around if len(around) >= len(name) + SURROUNDINGS_MIN else ""
