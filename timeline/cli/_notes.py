"""Groups notes that say the same about many lines or calls into one note."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

LINES_MAX: Final = 5
_WHERE: Final = re.compile(r"^line (\d+): ")
_VARIES: Final = re.compile(r"\b[a-z]{2}:t\S+|\b(?:call|toolu|fc|msg|rs)_\w+|\d+")
"""The parts in which two notes of one kind differ: paths, ids, numbers."""


def grouped(notes: Iterable[tuple[int, str]]) -> Iterator[str]:
    """One line for each kind of note, ordered by first occurrence.

    Each note is a line number of the file (0 for none) and a text.
    """
    found: dict[str, tuple[str, list[int], int]] = {}
    for where, text in notes:
        kind = _VARIES.sub("#", text)
        first, lines, count = found.get(kind, (text, [], 0))
        found[kind] = first, [*lines, where] if where else lines, count + 1
    for text, lines, count in found.values():
        yield _told(text, lines, count)


def of_results(notices: Iterable[str]) -> Iterator[str]:
    """The same for the notices of a replay, which begin with the line number if there is one."""
    matches = ((_WHERE.match(notice), notice) for notice in notices)
    return grouped((int(m[1]) if m else 0, n[m.end() :] if m else n) for m, n in matches)


def _told(text: str, lines: list[int], count: int) -> str:
    places = ", ".join(f"{each:,}" for each in lines[:LINES_MAX])
    more = f" and {len(lines) - LINES_MAX:,} more" if len(lines) > LINES_MAX else ""
    where = f"line{'s' if len(lines) > 1 else ''} {places}{more}: " if lines else ""
    return f"{where}{text}" if count == 1 else f"{where}{text} ({count:,} times like this)"
