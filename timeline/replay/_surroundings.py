"""What stands around a name in a text: its line, or its line and the neighbouring ones."""

from typing import Final

SURROUNDINGS_MIN: Final = 8
"""Characters besides the name; with fewer they say nothing about it."""
LINE_CHARACTERS: Final = 40
WIDE_CHARACTERS: Final = 150


def line_around(text: str, name: str) -> str:
    """The last occurrence with up to 40 characters of its line on each side; empty: too little."""
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


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _enough(around: str, name: str) -> str:
    around = around.strip()
    return around if len(around) >= len(name) + SURROUNDINGS_MIN else ""
