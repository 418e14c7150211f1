"""Finding where texts mention names, and adding the worth of these names to the pieces that mention them."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from render.summary._pieces import Source

SURROUNDINGS_MIN: Final = 8
"""Least number of characters besides the term: with fewer, a piece says nothing about the term."""
EARLIER: Final = 0.2
"""Share of a name's worth that its mention in the second newest text adds."""
NEIGHBOUR: Final = 0.3
"""Share of a name's worth that goes to the pieces directly before and after a mention."""


def spread(
    sources: Sequence[Source],
    noted: Sequence[set[str]],
    worths: Mapping[str, float],
    ranks: Mapping[str, int],
) -> None:
    """Add the worth of each name to the pieces that mention it in context.

    Only the two newest texts that mention a name count, and in each only the last mention: the newest text
    adds the full worth, the one before it a share (`EARLIER`). `noted` has, for each text, the names that
    count there. Names are visited in order of rank, so that sums do not depend on the order of a set.
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
    """The names that occur in more than one text."""
    once, again = set[str](), set[str]()
    for names in texts:
        again |= once & names
        once |= names
    return again


def surrounded(sources: Iterable[Source], names: AbstractSet[str]) -> set[str]:
    """The names that occur in context in at least one of the texts."""
    found = set[str]()
    for source in sources:
        new = (names & source.names) - found
        found.update(term for term in new if _mentioned(source, term) >= 0)
    return found


def _mentioned(source: Source, term: str) -> int:
    """Position of the last mention of a term outside stale lines, or 0 if the text is a single line.

    -1 if there is no such mention, or too little text around it. The text must contain the term.
    """
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


def _value(source: Source, position: int, term: str, worth: float) -> None:
    """Add the worth to the pieces that contain the mention, and a share of it to the pieces before and after."""
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
