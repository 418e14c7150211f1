"""What an index is made of, bought piece by piece: the best first for its tokens, as long as they last."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import attrs

from blocks import label_of
from render.summary._pieces import Source
from render.summary._reading import Reader
from render.summary._text import file_heading

SURROUNDINGS_MIN: Final = 8
"""A piece with less than that besides a term says nothing about it."""
USES_MAX: Final = 4
"""An agent that wrote a name four times knows it; more says nothing more."""
REPEATED: Final = 0.5
"""What it adds to a name's worth that several texts say it."""
UNUSED: Final = 0.35
"""What a name is worth that the agent has not written."""
EARLIER: Final = 0.2
"""Of a name's worth, what the place before its last one has."""
NEIGHBOUR: Final = 0.3
"""Of a name's worth, what the pieces before and behind it have."""
OWN: Final = 1.5
"""What a line that the agent has written is worth by itself, when it is new."""
OWN_CHARACTERS: Final = 60
"""A short text of the agent's that is one piece is worth a line for each so many characters."""
OWN_MIN: Final = 20
"""Characters of a line that is worth anything by itself."""
BARE: Final = 0.7
"""Of a name's worth, what its being listed has."""
HALF_AGE: Final = 400
"""Versions after which everything is worth half as much."""
SIZE_POWER: Final = 0.8
"""Worth is divided by tokens to this power: what is long is not quite as dear as it is long."""
CHARACTERS_PER_TOKEN: Final = 3.6
"""For ranking; what is bought is counted."""
LABEL_TOKENS: Final = 2
"""The brackets around a label, and the end of its line."""


@attrs.frozen(kw_only=True)
class IndexBudget:
    """What an index may have, and whether names alone may be bought for it."""

    tokens: int
    is_naming: bool = True


@attrs.define(eq=False)
class Known:
    """What is known about identifiers while the index is built.

    By name, in dictionaries of their own: an object for each of thousands of names would be work for the
    garbage collector.
    """

    uses: dict[str, int]
    seen: dict[str, int]
    sources: defaultdict[str, list[Source]] = attrs.field(
        factory=lambda: defaultdict[str, list[Source]](list)
    )
    """Texts that a name occurs in, in the order in which they were read."""

    def add(self, names: set[str]) -> int:
        """Know of these names; how many of them are new."""
        new = names.difference(self.uses)
        self.uses.update(dict.fromkeys(new, 0))
        self.seen.update(dict.fromkeys(new, 0))
        return len(new)


_NOWHERE: Final[Sequence[Source]] = ()
_BITS: Final = 32
_NUMBERS: Final = (1 << _BITS) - 1
_NAMES: Final = 0
"""In place of a source, where what is on offer is a name."""

_Offers: TypeAlias = dict[int, float]
"""By place and number, newest first (see `_offer`): worth for its size, negative so that the best comes first.
Numbers only: thousands of tuples would be work for the garbage collector."""


@attrs.define(kw_only=True, eq=False)
class Market:
    """What is on offer, and what was bought."""

    sources: Sequence[Source]
    ranked: Sequence[str]
    known: Known
    reader: Reader
    lines: set[str]
    """Lines that are there anyway, without white space around them."""
    bare: dict[str, int] = attrs.field(factory=dict[str, int])
    """Names that are listed, and what each cost."""
    _is_naming: bool = True
    """Whether names are listed, too."""
    _shown: set[str] = attrs.field(factory=set[str])
    """Names in what was bought."""
    _labels: set[int] = attrs.field(factory=set[int])
    """Versions of the blocks that something of was bought: the pieces of one stand under one label."""
    _files: set[str] = attrs.field(factory=set[str])
    """Files that something of was bought: the pieces of one stand under one heading."""

    def buy(self, budget: IndexBudget) -> None:
        """Buy what is worth most for its tokens, as long as it can be paid for."""
        self._is_naming = budget.is_naming
        offers: _Offers = dict(self._names(is_naming=budget.is_naming))
        self._value_own_lines()
        offers.update(self._pieces())
        left = budget.tokens
        for offer in sorted(sorted(offers), key=offers.__getitem__):
            if left <= 0:
                break
            place, number = (offer >> _BITS) & _NUMBERS, offer & _NUMBERS
            if place == _NAMES:
                if self.ranked[number] not in self._shown:
                    left -= self._list(self.ranked[number], left)
            elif (source := self.sources[place - 1]).costs[number] <= left:
                left -= self._cut(source, number, left)

    def _names(self, *, is_naming: bool) -> Iterator[tuple[int, float]]:
        """Give the pieces that hold names their worth; offer the names that nothing visible shows."""
        newest, known = self._newest(), self.known
        for rank, term in enumerate(self.ranked):
            seen, sources = known.seen[term], known.sources.get(term, _NOWHERE)
            worth = UNUSED + min(known.uses[term], USES_MAX) + REPEATED * (len(sources) > 1)
            worth *= _decay(newest - seen)
            if sources and not _spread(term, sources, worth):
                continue
            if is_naming and (not sources or sources[-1].path):
                size = len(term) / CHARACTERS_PER_TOKEN + 1
                yield _offer(seen, _NAMES, rank), -BARE * worth / size**SIZE_POWER

    def _newest(self) -> int:
        return max((source.seen for source in self.sources), default=0)

    def _value_own_lines(self) -> None:
        """Let what the agent gave to tools be worth something by itself."""
        newest = self._newest()
        for source in self.sources:
            if not source.is_call:
                continue
            worth = OWN * _decay(newest - source.seen)
            if source.is_whole:
                source.add(0, worth * max(1.0, len(source.text) / OWN_CHARACTERS))
                continue
            for number in range(len(source.starts)):
                piece = source.piece(number)
                if len(piece) >= OWN_MIN and piece.strip() not in source.superseded:
                    source.add(number, worth)

    def _pieces(self) -> Iterator[tuple[int, float]]:
        for place, source in enumerate(self.sources, 1):
            first, starts, ends = _offer(source.seen, place, 0), source.starts, source.ends
            for number, worth in source.worth.items():
                size = (ends[number] - starts[number]) / CHARACTERS_PER_TOKEN + 1
                yield first + number, -worth / size**SIZE_POWER

    def _list(self, term: str, left: int) -> int:
        """List a name that nothing shows; what it cost."""
        if (cost := self.reader.count(term) + 1) > left:
            return 0
        self.bare[term] = cost
        return cost

    def _cut(self, source: Source, number: int, left: int) -> int:
        """Choose a piece; what it cost, less what names in it had cost."""
        text = source.piece(number)
        line = text.strip()
        if not line or line in self.lines or _is_beyond(line, left):
            return 0
        is_new = bool(source.file) and source.file not in self._files
        room = left - self._heading(source, is_new=is_new)
        if _is_beyond(line, room):
            return 0
        cost = source.costs[number] or self.reader.cost(source, number)
        if cost > room:
            return 0
        source.choose(number)
        self._files.add(source.file)
        self._labels.add(source.seen)
        self.lines.add(line)
        if not self._is_naming:
            return left - room + cost
        shown = f"{source.file}\n{text}" if is_new else text
        terms = self.reader.names(shown) & self.known.uses.keys()
        self._shown.update(terms)
        given_back = sum(self.bare.pop(term) for term in terms & self.bare.keys())
        return left - room + cost - given_back

    def _heading(self, source: Source, *, is_new: bool) -> int:
        """What a piece costs besides itself: the heading of its file and its label, where nothing else stands
        under them yet."""
        heading = self.reader.count(f"{file_heading(source.file)}\n") if is_new else 0
        if source.seen in self._labels:
            return heading
        return heading + self.reader.count(label_of(source.seen)) + LABEL_TOKENS


def _offer(seen: int, place: int, number: int) -> int:
    """An offer as one number; of two that are worth the same, the lesser is bought first."""
    return (-seen << 2 * _BITS) + (place << _BITS) + number


def _is_beyond(line: str, tokens: int) -> bool:
    """Whether a line has more words than that: a word is a token at least, so near the end nothing is
    counted that could not be paid for."""
    return len(line) > tokens and len(line.split(maxsplit=max(tokens, 0))) > tokens


def _decay(age: int) -> float:
    return 1 / (1 + age / HALF_AGE)


def _spread(term: str, sources: Sequence[Source], worth: float) -> bool:
    """Give the pieces that a name occurs in with something around it what it is worth: in the newest text
    the last mention, and a part of that in the one before; False: what it stands in last is visible."""
    is_last, least = True, len(term) + SURROUNDINGS_MIN
    for source in reversed(sources):
        position = source.text.rfind(term)
        if source.stale:
            position = _holding(source, term, position)
        if position < 0:
            continue
        number = bisect_right(source.starts, position) - 1
        is_long = source.ends[number] - source.starts[number] >= least and not source.is_whole
        if not (is_long or _is_surrounded(source.text, position, least)):
            continue
        if is_last and not source.path:
            return False
        if source.path:
            _value(source, number, position + len(term), worth)
        if not is_last:
            break
        is_last, worth = False, EARLIER * worth
    return True


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


def _value(source: Source, first: int, end: int, worth: float) -> None:
    """Let the pieces of a name be worth more, and their neighbours; `end`: of the name."""
    source.add(first, worth)
    if source.is_whole:
        return
    last, ends, most = first, source.ends, len(source.ends) - 1
    while last < most and end > ends[last]:
        last += 1
        source.add(last, worth)
    if first > 0:
        source.add(first - 1, NEIGHBOUR * worth)
    if last < most:
        source.add(last + 1, NEIGHBOUR * worth)
