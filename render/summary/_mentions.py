"""Where names are mentioned, and what that makes the pieces of texts worth."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from render.summary._pieces import Source

SURROUNDINGS_MIN: Final = 8
"""A piece with less than that besides a term says nothing about it."""
EARLIER: Final = 0.2
"""Of a name's worth, what the place before its last one has."""
NEIGHBOUR: Final = 0.3
"""Of a name's worth, what the pieces before and behind it have."""


def spread(
    sources: Sequence[Source],
    noted: Sequence[set[str]],
    worths: Mapping[str, float],
    ranks: Mapping[str, int],
) -> None:
    """Give the pieces that a name occurs in with something around it what it is worth: in the newest
    text the last mention, and a part of that in the one before.

    `noted`: of each text, the names that count.  Text by text, and in each by rank, so that sums are the same
    whatever the order of a set.
    """
    last, before = set(worths), set[str]()
    for source, names in zip(reversed(sources), reversed(noted), strict=True):
        firsts = names & last
        for term in sorted(firsts | (names & before), key=ranks.__getitem__):
            position = _mentioned(source, term)
            if position < 0:
                continue
            if term in firsts:
                last.discard(term)
                before.add(term)
                _value(source, position, term, worths[term])
            else:
                before.discard(term)
                _value(source, position, term, EARLIER * worths[term])


def repeated(texts: Iterable[set[str]]) -> set[str]:
    """The names that more than one text has."""
    once, again = set[str](), set[str]()
    for names in texts:
        again |= once & names
        once |= names
    return again


def surrounded(sources: Iterable[Source], names: AbstractSet[str]) -> set[str]:
    """Those of the names that occur in one of the texts with something around them."""
    found = set[str]()
    for source in sources:
        new = (names & source.names) - found
        found.update(term for term in new if _mentioned(source, term) >= 0)
    return found


def _mentioned(source: Source, term: str) -> int:
    """Where a text names a term that it has last, in what still holds (0 where it is one line); -1: with nothing
    around it, or nowhere."""
    text, least = source.text, len(term) + SURROUNDINGS_MIN
    if source.is_whole and "\n" not in text and not source.stale:  # most excerpts are one line
        return 0 if len(text) >= least else -1
    position = text.rfind(term)
    if source.stale:
        position = _holding(source, term, position)
    if position < 0:
        return -1
    if not source.is_whole:
        number = source.piece_at(position)
        if source.ends[number] - source.starts[number] >= least:
            return position
    return position if _is_surrounded(text, position, least) else -1


def _holding(source: Source, term: str, position: int) -> int:
    """Where a term occurred last, be it inside a longer name, in what still holds; `position`: in all."""
    while position >= 0 and source.is_stale(source.piece_at(position)):
        position = source.text.rfind(term, 0, position)
    return position


def _is_surrounded(text: str, position: int, least: int) -> bool:
    """Whether a position's line and the lines around it have so many characters."""
    start, end = text.rfind("\n", 0, position), text.find("\n", position)
    if (len(text) if end < 0 else end) - start > least:
        return True
    if start > 0:
        start = text.rfind("\n", 0, start)
    if end >= 0:
        end = text.find("\n", end + 1)
    return (len(text) if end < 0 else end) - start > least


def _value(source: Source, position: int, term: str, worth: float) -> None:
    """Let the pieces that a name stands in be worth more, and their neighbours."""
    if source.is_whole:
        source.add(0, worth)
        return
    first, end = source.piece_at(position), position + len(term)
    source.add(first, worth)
    last, ends, most = first, source.ends, len(source.ends) - 1
    while last < most and end > ends[last]:
        last += 1
        source.add(last, worth)
    if first > 0:
        source.add(first - 1, NEIGHBOUR * worth)
    if last < most:
        source.add(last + 1, NEIGHBOUR * worth)
