"""The index with excerpts: what was folded, findable by name.

For the rare identifiers of folded blocks, those first that the agent itself has written, excerpts in
three widths: the line with its neighbours, the line, the bare name.  It costs a bounded share of the
window, needs no model, and does more for what an agent can still refer to than prose.

An excerpt is a span of a block's text.  Spans that touch become one, so neighbours are paid once:

    block    ....................................................................
    terms           a    b                               c
    spans      [ wide a ]                          [  line c  ]
                    [ wide b ]
    kept       [             ]                     [          ]

At the next compaction the excerpts are texts like any other, beside the newly folded blocks; so the
cost follows what is new, and what is no longer worth its tokens falls out.  Between compactions the
index does not change: it is part of the cached prefix.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import attrs

from blocks import AssistantCompletion, Excerpt, Index, Term, ToolCall, text_of
from render._group import Entry
from render._identifiers import identifiers

LINE_CHARACTERS: Final = 40
"""Of its line, on each side of a term, in a narrow excerpt."""
WIDE_CHARACTERS: Final = 150
"""Of its line and the neighbouring ones, on each side, in a wide excerpt."""
SURROUNDINGS_MIN: Final = 8
"""A line with less than that besides the term says nothing about it."""
USES_MAX: Final = 3
"""An agent that wrote a name three times knows it; more says nothing more."""
TERMS_MAX: Final = 3000
"""Terms that take part in the ranking, and are remembered, at all."""


_Span: TypeAlias = tuple[int, int]


@attrs.frozen(kw_only=True)
class IndexBudget:
    """Tokens for each width."""

    wide: int
    line: int
    names: int


@attrs.define(eq=False)
class _Source:
    """A text that excerpts can be cut from: a folded block, or an earlier excerpt."""

    path: str
    seen: int
    text: str
    starts: list[int] = attrs.field(factory=list[int])
    """Chosen spans, sorted and apart from each other."""
    ends: list[int] = attrs.field(factory=list[int])

    def add(self, start: int, end: int) -> list[tuple[int, int]]:
        """Choose a span; return what of it had not been chosen before."""
        first = bisect_left(self.ends, start)
        last = first
        new: list[tuple[int, int]] = []
        position = start
        while last < len(self.starts) and self.starts[last] <= end:
            if position < self.starts[last]:
                new.append((position, self.starts[last]))
            position = max(position, self.ends[last])
            last += 1
        if position < end:
            new.append((position, end))
        if new:
            start = min([start, *self.starts[first:last]])
            end = max([end, *self.ends[first:last]])
            self.starts[first:last], self.ends[first:last] = [start], [end]
        return new


@attrs.define(eq=False)
class _Known:
    """What is known about one identifier while the index is built."""

    uses: int = 0
    seen: int = 0
    line: tuple[_Source, int] | None = None
    """Where it last occurred with something else on its line."""
    wide: tuple[_Source, int] | None = None
    """Where it last occurred with something else around it."""


def build_index(
    previous: Index,
    folded: Sequence[Entry],
    visible: Iterable[str],
    budget: IndexBudget,
    count: Callable[[str], int],
) -> Index:
    """The index after `folded` (and what is hidden) joined what `previous` covers.

    Terms of the `visible` texts get nothing where the model sees them with their surroundings.
    """
    known = {term.term: _Known(uses=term.uses, seen=term.seen) for term in previous.terms}
    again = {entry.path for entry in folded}  # hidden at the last compaction, folded at this one
    sources = [_Source(e.path, e.seen, e.text) for e in previous.excerpts if e.path not in again]
    for source in sources:
        _read(source, known, own=False)
    for entry in folded:
        source = _Source(entry.path, entry.version, text_of(entry.block))
        sources.append(source)
        _read(source, known, own=isinstance(entry.block, ToolCall | AssistantCompletion))
    ranked = sorted(known, key=lambda term: _rank(term, known[term]))[:TERMS_MAX]
    for text in visible:  # what the model sees with its surroundings needs no excerpt
        _read(_Source("", 0, text), known, own=False)
    purse = _Purse(budget, count)
    bare = {term for term in ranked if purse.buy(term, known[term])}
    return Index(excerpts=tuple(_excerpts(sources)), terms=tuple(_terms(ranked, known, bare)))


def _rank(term: str, known: _Known) -> tuple[int, int, str]:
    """What the agent has used first, then the newest."""
    return (-min(known.uses, USES_MAX), -known.seen, term)


def _read(source: _Source, known: dict[str, _Known], *, own: bool) -> None:
    """Note every identifier of a text; the last occurrence with surroundings wins."""
    text = source.text
    for term in {term for term, _ in identifiers(text)}:
        position = text.rfind(term)  # the last mention, be it inside a longer name
        found = known.get(term)
        if found is None:
            found = known[term] = _Known()
        found.uses += own
        found.seen = max(found.seen, source.seen)
        enough = len(term) + SURROUNDINGS_MIN
        if _length(_line(text, position, len(term))) >= enough:
            found.line = (source, position)
        if _length(_wide(text, position, len(term))) >= enough:
            found.wide = (source, position)


def _length(span: _Span) -> int:
    return span[1] - span[0]


def _line(text: str, position: int, length: int) -> _Span:
    """The span of a term's line, as far as a narrow excerpt goes."""
    start = max(text.rfind("\n", 0, position) + 1, position - LINE_CHARACTERS)
    end = text.find("\n", position)
    return start, min(len(text) if end < 0 else end, position + length + LINE_CHARACTERS)


def _wide(text: str, position: int, length: int) -> _Span:
    """The span of a term's line and its neighbours, as far as a wide excerpt goes."""
    line = text.rfind("\n", 0, position) + 1
    before = text.rfind("\n", 0, line - 1) + 1 if line else 0
    end = text.find("\n", position)
    after = text.find("\n", end + 1) if end >= 0 else -1
    start = max(before, position - WIDE_CHARACTERS)
    return start, min(len(text) if after < 0 else after, position + length + WIDE_CHARACTERS)


@attrs.define
class _Purse:
    """What is left to spend."""

    budget: IndexBudget
    count: Callable[[str], int]
    paths: set[str] = attrs.field(factory=set[str])

    def buy(self, term: str, known: _Known) -> bool:
        """Buy the widest excerpts that are still paid for; True: it became the bare name."""
        budget = self.budget
        if budget.wide > 0 and known.wide:
            cost = self._cut(known.wide, len(term), _wide)
            if known.line and known.line != known.wide:
                cost += self._cut(known.line, len(term), _line)
            self.budget = attrs.evolve(budget, wide=budget.wide - cost)
        elif budget.line > 0 and known.line:
            cost = self._cut(known.line, len(term), _line)
            self.budget = attrs.evolve(budget, line=budget.line - cost)
        elif budget.names > 0 and not _is_visible(known):
            self.budget = attrs.evolve(budget, names=budget.names - self.count(term) - 1)
            return True
        return False

    def _cut(
        self, place: tuple[_Source, int], length: int, width: Callable[[str, int, int], _Span]
    ) -> int:
        """Tokens that an excerpt adds; the path is paid once, what is visible costs nothing."""
        source, position = place
        if not source.path:
            return 0
        new = source.add(*width(source.text, position, length))
        cost = sum(self.count(source.text[start:end]) for start, end in new)
        if new and source.path not in self.paths:
            self.paths.add(source.path)
            cost += self.count(source.path) + 3
        return cost


def _is_visible(known: _Known) -> bool:
    return any(place and not place[0].path for place in (known.wide, known.line))


def _excerpts(sources: Sequence[_Source]) -> Iterable[Excerpt]:
    chosen = [source for source in sources if source.starts]
    for source in sorted(chosen, key=lambda source: (source.seen, source.path)):
        for start, end in zip(source.starts, source.ends, strict=True):
            if text := source.text[start:end].strip():
                yield Excerpt(path=source.path, seen=source.seen, text=text)


def _terms(ranked: Sequence[str], known: dict[str, _Known], bare: set[str]) -> Iterable[Term]:
    """What the next compaction needs to know: bare names, and what the agent has used."""
    for term in ranked:
        found = known[term]
        if term in bare or found.uses:
            yield Term(term=term, seen=found.seen, uses=found.uses, bare=term in bare)
