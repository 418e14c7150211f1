"""Pasted material in a user's text: logs, reports and code, as opposed to the user's own sentences.

When there is too little room for all that the user said, pasted material is shortened before any sentence is. It is
recognized by its form alone: a fenced block, or a run of lines none of which is a sentence.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

RUN_LINES_MIN: Final = 6
"""A shorter run of lines is not worth shortening."""
END_LINES: Final = 2
"""Lines that stay at each end of a run."""
LINE_CHARACTERS: Final = 200
"""Characters that stay of such a line."""
LETTERS_MIN: Final = 12
LETTERS_SHARE: Final = 0.8
"""A sentence has at least this many letters, and they are at least this share of its characters besides spaces."""
_FENCES: Final = ("```", "~~~")
_BULLETS: Final = " \t-*+•>0123456789.)"


def without_pasted(text: str, begin: int = 0) -> str:
    """The text with the middle of each pasted run behind its first `begin` characters left out; the same text if it has
    no such run."""
    if begin:
        end = text.find("\n", begin) + 1
        return text[:end] + without_pasted(text[end:]) if end else text
    kept: list[str] = []
    for is_pasted, run in _runs(text.split("\n")):
        if is_pasted and len(run) >= RUN_LINES_MIN:
            left_out = len(run) - 2 * END_LINES
            kept += [_short(line) for line in run[:END_LINES]]
            kept.append(f"[… {left_out} pasted lines …]")
            kept += [_short(line) for line in run[-END_LINES:]]
        else:
            kept += run
    return "\n".join(kept)


def _runs(lines: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines, and whether they were pasted. A blank line belongs to the run before it."""
    flags: list[bool] = []
    fence = ""
    for line in lines:
        begin = line.lstrip()[:3]
        if fence:
            fence = "" if begin == fence else fence
            flags.append(True)
        elif begin in _FENCES:
            fence = begin
            flags.append(True)
        elif not begin:
            flags.append(bool(flags) and flags[-1])
        else:
            flags.append(not is_sentence(line))
    for is_pasted, run in groupby(zip(flags, lines, strict=True), key=lambda each: each[0]):
        yield is_pasted, [line for _, line in run]


def is_sentence(line: str) -> bool:
    """Whether a line is mostly words, as sentences and headings are."""
    characters = "".join(line.lstrip(_BULLETS).split())
    letters = sum(map(str.isalpha, characters))
    return letters >= min(LETTERS_MIN, len(characters)) and letters >= LETTERS_SHARE * len(
        characters
    )


def _short(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}…"
