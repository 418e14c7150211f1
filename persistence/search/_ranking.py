"""How well a block answers a query, and the piece of it that shows why.

BM25 with a fixed pivot for the length and no weight for rarity: every hit has every word, and a
score that depends on nothing but the block is the same in every store and at any later time.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, islice
from typing import Final, TypeAlias

from persistence.search._query import Needle, Query

SATURATION: Final = 1.2
LENGTH_SHARE: Final = 0.75
LENGTH_PIVOT: Final = 1_000
"""The usual length of a block, in characters."""
COUNTED_MAX: Final = 32
"""The largest number of occurrences of a needle that are counted; more hardly change a score."""
INSIDE: Final = 0.5
"""The weight of an occurrence inside a longer word; others have 1."""

SNIPPET_CHARACTERS: Final = 240
_LEAD: Final = 60
"""How many characters of its line a snippet shows before the first match, at most."""
_SPANS_MAX: Final = 200

Span: TypeAlias = tuple[int, int]


def score(query: Query, folded: str) -> float:
    """How well a matching, case-folded text answers the query; 0 if the query has no words."""
    length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(folded) / LENGTH_PIVOT
    total = 0.0
    for needle in query.wanted:
        weight = _weight(needle, folded)
        total += weight * (SATURATION + 1) / (weight + SATURATION * length)
    return total


def _weight(needle: Needle, folded: str) -> float:
    return sum(
        1.0 if _is_whole(folded, span) else INSIDE
        for span in islice(needle.spans(folded), COUNTED_MAX)
    )


def _is_whole(folded: str, span: Span) -> bool:
    """Whether the span is a whole word: no letter or digit is next to it."""
    start, end = span
    before, after = folded[start - 1 : start], folded[end : end + 1]
    return not (before.isalnum() and folded[start].isalnum()) and not (
        after.isalnum() and folded[end - 1].isalnum()
    )


def snippet(query: Query, text: str) -> tuple[str, tuple[Span, ...]]:
    """The piece of a text with most of the query's needles close together, and the matches in it."""
    folded = text.casefold()
    spans = _spans(query.wanted, folded)
    first, last = _closest(spans)
    to_original = _Offsets(text, folded)
    begin = to_original.of(first)
    line = text.rfind("\n", 0, begin) + 1
    start = _word_start(text, line, begin)
    line_end = text.find("\n", to_original.end_of(last))
    end = min(start + SNIPPET_CHARACTERS, len(text) if line_end < 0 else line_end)
    if not spans and not text[start:end].strip():
        start, end = _first_words(text)
    matches = ((to_original.of(a) - start, to_original.end_of(b) - start) for a, b, _ in spans)
    inside = ((max(a, 0), min(b, end - start)) for a, b in matches)
    return text[start:end], _merged(sorted(span for span in inside if span[0] < span[1]))


def _word_start(text: str, line: int, begin: int) -> int:
    """Where the snippet begins: at a word, at most `_LEAD` characters before the first match."""
    start = max(line, begin - _LEAD)
    if start > line:
        start = text.find(" ", start, begin) + 1 or start
    while start < begin and text[start].isspace():
        start += 1
    return start


def _first_words(text: str) -> Span:
    start = len(text) - len(text.lstrip())
    line_end = text.find("\n", start)
    return start, min(start + SNIPPET_CHARACTERS, len(text) if line_end < 0 else line_end)


def _spans(needles: Sequence[Needle], folded: str) -> list[tuple[int, int, int]]:
    """Occurrences in the order of the text: start, end, index of the needle."""
    return sorted(
        (*span, index)
        for index, needle in enumerate(needles)
        for span in islice(needle.spans(folded), _SPANS_MAX)
    )


def _closest(spans: Sequence[tuple[int, int, int]]) -> Span:
    """Start and end of the first stretch with the most different needles that fits into a snippet."""
    best, most = (0, 0), 0
    for index, (start, end, _) in enumerate(spans):
        found: dict[int, int] = {}
        for _, other_end, needle in spans[index:]:
            if other_end - start > SNIPPET_CHARACTERS - _LEAD:
                break
            found.setdefault(needle, other_end)
        if max(len(found), 1) > most:
            best, most = (start, max(found.values(), default=end)), max(len(found), 1)
    return best


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Merge overlapping spans."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


class _Offsets:
    """Converts positions in a case-folded text to positions in the text: folding turns some letters into several."""

    def __init__(self, text: str, folded: str) -> None:
        self._starts: list[int] | None = None
        if not text.isascii() and not _folds_evenly(text, folded):
            self._starts = [0, *accumulate(len(letter.casefold()) for letter in text)]

    def of(self, position: int) -> int:
        """The position of the letter that is at this position of the folded text."""
        if self._starts is None:
            return position
        return min(bisect_right(self._starts, position) - 1, len(self._starts) - 1)

    def end_of(self, position: int) -> int:
        """The end of the letter that precedes this position of the folded text."""
        return self.of(position - 1) + 1 if position else 0


def _folds_evenly(text: str, folded: str) -> bool:
    """Whether every letter folds to one letter. No letter folds to none, so comparing lengths is enough."""
    return len(text) == len(folded)
