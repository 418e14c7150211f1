"""Finding where texts mention names, and adding the worth of these names to the pieces that mention them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from render.summary._pieces import Reading, Source

SURROUNDINGS_MIN: Final = 8
"""Least number of characters besides the term: with fewer, a piece says nothing about the term."""
EARLIER: Final = 5
"""The mention of a name in the second newest text adds one part in this many of the name's worth."""
NEIGHBOUR: Final = 3, 10
"""Share of a name's worth that goes to the pieces directly before and after a mention: 3 of 10 parts."""


def spread(sources: Sequence[Source], noted: Sequence[set[str]], worths: Mapping[str, int]) -> None:
    """Add the worth of each name to the pieces that mention it in context.

    Only the two newest texts that mention a name count, and in each only the last mention: the newest text
    adds the full worth, the one before it a part (`EARLIER`). `noted` has, for each text, the names that
    count there. Worths are whole numbers, so sums do not depend on the order of a set.
    """
    last, before = set(worths), set[str]()
    for source, names in zip(reversed(sources), reversed(noted), strict=True):
        firsts, seconds = names & last, names & before
        if source.is_whole and not source.stale:
            shown = names_in_context(source.reading)
            firsts &= shown
            seconds &= shown
            if firsts or seconds:
                worth = sum(map(worths.__getitem__, firsts))
                source.add(0, worth + sum(map(worths.__getitem__, seconds)) // EARLIER)
        else:
            firsts = {term for term in firsts if _value(source, term, worths[term])}
            seconds = {term for term in seconds if _value(source, term, worths[term] // EARLIER)}
        last -= firsts
        before |= firsts
        before -= seconds


def repeated(texts: Iterable[set[str]]) -> set[str]:
    """The names that occur in more than one text."""
    once, again = set[str](), set[str]()
    for names in texts:
        again |= once & names
        once |= names
    return again


def surrounded(sources: Iterable[Source], names: set[str]) -> set[str]:
    """The names that occur in context in at least one of the texts."""
    found = set[str]()
    for source in sources:
        if source.is_whole and not source.stale:
            found |= names & names_in_context(source.reading)
        else:
            new = (names & source.names) - found
            found.update(term for term in new if _mentioned(source, term) >= 0)
    return found


def names_in_context(reading: Reading) -> set[str]:
    """The names that a text of one piece shows with enough text around their last mention; none before its names
    were looked for."""
    if reading.names is None:
        return set()
    if reading.in_context is None:
        text, names = reading.text, reading.names
        least = max(map(len, names), default=0) + SURROUNDINGS_MIN
        if _around_least(text) >= least:  # nearly every text
            reading.in_context = names
        else:
            reading.in_context = {
                term
                for term in names
                if _is_surrounded(text, text.rfind(term), len(term) + SURROUNDINGS_MIN)
            }
    return reading.in_context


def _around_least(text: str) -> int:
    """The least number of characters that a line has together with its neighbouring lines."""
    lengths = [0, *map(len, text.split("\n")), 0]
    return min(map(sum, zip(lengths, lengths[1:], lengths[2:], strict=False)))


def _mentioned(source: Source, term: str) -> int:
    """Position of the last mention of a term outside stale lines; -1 if there is none, or too little text around
    it. The text must contain the term."""
    text, least = source.text, len(term) + SURROUNDINGS_MIN
    position = text.rfind(term)
    if source.stale:
        position = _holding(source, term, position)
    if position < 0:
        return -1
    if not source.is_whole:
        number = source.piece_at(position)
        if source.pieces.ends[number] - source.pieces.starts[number] >= least:
            return position
    return position if _is_surrounded(text, position, least) else -1


def _holding(source: Source, term: str, position: int) -> int:
    """Position of the last occurrence outside stale lines, -1 if there is none. An occurrence inside a longer
    name counts. `position` is the last occurrence in the whole text."""
    while position >= 0 and source.is_stale(source.piece_at(position)):
        position = source.text.rfind(term, 0, position)
    return position


def _is_surrounded(text: str, position: int, least: int) -> bool:
    """Whether the line at a position, if necessary together with its neighbouring lines, has more than `least`
    characters."""
    start, end = text.rfind("\n", 0, position), text.find("\n", position)
    if (len(text) if end < 0 else end) - start > least:
        return True
    if start > 0:
        start = text.rfind("\n", 0, start)
    if end >= 0:
        end = text.find("\n", end + 1)
    return (len(text) if end < 0 else end) - start > least


def _value(source: Source, term: str, worth: int) -> bool:
    """Add the worth to the pieces that contain the mention, and a share of it to the pieces before and after.

    Returns whether there is a mention in context.
    """
    position = _mentioned(source, term)
    if position < 0:
        return False
    first, end = source.piece_at(position), position + len(term)
    source.add(first, worth)
    last, ends = first, source.pieces.ends
    most = len(ends) - 1
    while last < most and end > ends[last]:
        last += 1
        source.add(last, worth)
    share, of = NEIGHBOUR
    if first > 0:
        source.add(first - 1, share * worth // of)
    if last < most:
        source.add(last + 1, share * worth // of)
    return True
