"""The lines of a file that a text shows, and their line numbers in the file.

Tools that show files often put a line number before each line: `   12→total = 0`. It is not part of the line.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from render.summary._changes import WORD
from render.summary._outside import Line
from render.summary._pieces import Source

_NUMBER: Final = re.compile(r"[ \t]*(\d{1,7})(?:→|\t|: |\|)")


def lines_in(source: Source) -> Sequence[Line]:
    """The lines of a source as they are in the file; lines without a word character are left out.

    The result is cached per text, because the next compaction needs most texts again.
    """
    place, known = (source.is_call, source.line), source.reading.in_file
    if known is None or known[0] != place:
        known = source.reading.in_file = place, list(_looked_for(source))
    return known[1]


def _looked_for(source: Source) -> Iterator[Line]:
    texts = source.text.split("\n")
    starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
    numbers = [] if source.is_call else numbers_in(texts, source.line)
    if not any(numbers):
        shift = source.line if not source.is_call else 0
        for place, text in enumerate(texts):
            plain = text[1:] if source.is_call and text.startswith("+") else text
            if WORD.search(plain):
                yield starts[place], shift and shift + place, plain.strip()
        return
    for place, number in enumerate(numbers):
        plain = _NUMBER.sub("", texts[place], count=1) if number else texts[place]
        if WORD.search(plain) and (number or not place):  # an excerpt may begin within a line
            yield starts[place], number or source.line, plain.strip()


def line_at(source: Source, position: int) -> int:
    """The line number in the file for a position in the text; 0 if it is not known."""
    if not source.file or source.is_call:
        return source.line
    start = source.text.rfind("\n", 0, position) + 1
    if shown := _NUMBER.match(source.text, start):
        return int(shown[1])
    return source.line and source.line + source.text.count("\n", 0, position)


def numbers_in(texts: Sequence[str], first: int) -> list[int]:
    """The line number that the text shows before each line; 0 for a line without one.

    A number counts only if it is `first`, or continues the numbering of the line before or after: other numbers at
    the start of a line belong to the line.
    """
    found = [_NUMBER.match(text) for text in texts]
    numbers = [int(each[1]) if each else -1 for each in found]
    around = zip([-1, *numbers], numbers, [*numbers[1:], -1], strict=False)
    return [
        number if number > 0 and number in {first, before + 1, after - 1} else 0
        for before, number, after in around
    ]
