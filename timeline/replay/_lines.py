"""Finds the lines in a text that count as quotations: neither too short nor too long.

A viewer's line number is not part of the line: `   12→total = 0` and `total = 0` are the same line.
"""

import re
from collections.abc import Iterator
from typing import Final

CHARACTERS_MIN: Final = 20
"""Shorter lines recur by chance."""
CHARACTERS_MAX: Final = 400
"""Longer lines are usually data."""
_NUMBER = re.compile(r"\d{1,6}[→\t:|]\s*")


def quotable_lines(text: str) -> set[str]:
    """The lines of 20 to 400 characters with a letter or digit, without white space around them."""
    return {line for line in bare_lines(text) if _is_quotable(line)}


def bare_lines(text: str) -> Iterator[str]:
    """Every line without white space around it and without a viewer's line number."""
    for line in map(str.strip, text.split("\n")):
        number = _NUMBER.match(line) if line[:1].isdigit() else None
        yield line[number.end() :] if number else line


def _is_quotable(line: str) -> bool:
    return CHARACTERS_MIN <= len(line) <= CHARACTERS_MAX and any(map(str.isalnum, line))
