"""What an index is made of, bought piece by piece: the best first for its tokens, as long as they last."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import Final, TypeAlias

import attrs

from blocks import label_of
from render.summary._mentions import repeated, spread, surrounded
from render.summary._pieces import Source
from render.summary._reading import Reader
from render.summary._text import file_heading

USES_MAX: Final = 4
"""An agent that wrote a name four times knows it; more says nothing more."""
REPEATED: Final = 0.5
"""What it adds to a name's worth that several texts say it."""
UNUSED: Final = 0.35
"""What a name is worth that the agent has not written."""
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
NAME_MIN: Final = 2
"""Tokens that a name in a list costs at least, with the end of its line."""
SIZES_KNOWN: Final = 512
"""Lengths whose price is remembered: no piece is longer, but a line without a blank."""
LABEL_TOKENS: Final = 2
"""The brackets around a label, and the end of its line."""


@attrs.frozen(kw_only=True)
class IndexBudget:
    """What an index may have, and whether names alone may be bought for it."""

    tokens: int
    is_naming: bool = True


@attrs.frozen(eq=False)
class Known:
    """What is known about identifiers while the index is built.

    By name, in dictionaries of their own: an object for each of thousands of names would be work for the
    garbage collector.
    """

    uses: dict[str, int]
    """How often the agent has written each; 0 where it has not."""
    seen: dict[str, int]
    """The newest version that each occurs at."""

    def add(self, names: set[str]) -> int:
        """Know of these names; how many of them are new."""
        new = names.difference(self.uses)
        self.uses.update(dict.fromkeys(new, 0))
        return len(new)


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
    noted: Sequence[set[str]]
    """Of each source, the names that count."""
    in_sight: Sequence[Source]
    """Texts that the model sees anyway."""
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
        ranks = dict(zip(self.ranked, count(), strict=False))
        around = surrounded(self.in_sight, ranks.keys())
        worths = self._worths(ranks.keys() - around)
        spread(self.sources, self.noted, worths, ranks)
        self._value_own_lines()
        offers: _Offers = dict(self._pieces())
        if budget.is_naming:
            offers.update(self._names(worths, ranks))
        left = budget.tokens
        for offer in sorted(sorted(offers), key=offers.__getitem__):
            if left <= 0:
                break
            place, number = (offer >> _BITS) & _NUMBERS, offer & _NUMBERS
            if place == _NAMES:
                if left >= NAME_MIN and self.ranked[number] not in self._shown:
                    left -= self._list(self.ranked[number], left)
                continue
            source = self.sources[place - 1]
            if source.costs[number] <= left and (
                left > LABEL_TOKENS or source.seen in self._labels
            ):
                left -= self._cut(source, number, left)

    def _worths(self, names: Iterable[str]) -> dict[str, float]:
        """What each of these names is worth."""
        newest, uses, seen = self._newest(), self.known.uses, self.known.seen
        again = repeated(chain(self.noted, (source.names for source in self.in_sight)))
        decays = {version: _decay(newest - version) for version in set(seen.values())}
        return {
            term: (UNUSED + min(uses[term], USES_MAX) + REPEATED * (term in again))
            * decays[seen[term]]
            for term in names
        }

    def _names(
        self, worths: Mapping[str, float], ranks: Mapping[str, int]
    ) -> Iterator[tuple[int, float]]:
        """Offer the names that nothing visible shows."""
        seen = self.known.seen
        in_sight = set[str]().union(*(source.names for source in self.in_sight))
        for term in worths.keys() - in_sight:
            worth = -BARE * worths[term] / _size(len(term))
            yield _offer(seen[term], _NAMES, ranks[term]), worth

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
                yield first + number, -worth / _size(ends[number] - starts[number])

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
        names = source.names if source.is_whole and not is_new else self.reader.names(shown)
        terms = names & self.known.uses.keys()
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


@lru_cache(maxsize=SIZES_KNOWN)
def _size(characters: int) -> float:
    """What worth is divided by."""
    return float((characters / CHARACTERS_PER_TOKEN + 1) ** SIZE_POWER)


def _decay(age: int) -> float:
    return 1 / (1 + age / HALF_AGE)
