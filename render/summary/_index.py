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
from render.summary._identifiers import identifiers, searched
from render.view._group import Entry

LINE_CHARACTERS: Final = 40
"""Of its line, on each side of a term, in a narrow excerpt."""
WIDE_CHARACTERS: Final = 150
"""Of its line and the neighbouring ones, on each side, in a wide excerpt."""
SURROUNDINGS_MIN: Final = 8
"""A line with less than that besides the term says nothing about it."""
USES_MAX: Final = 3
"""An agent that wrote a name three times knows it; more says nothing more."""
VISIBLE_MAX: Final = 4_000_000
"""Characters of all visible texts together that are searched for names; of what is longer, only the
beginning and the end of each text."""
TERMS_MAX: Final = 3000
"""Terms that take part in the ranking, and are remembered, at all."""


_Span: TypeAlias = tuple[int, int]
_Width: TypeAlias = Callable[[str, int, int], _Span]
"""The span around the term at a position of a text, given the term's length."""


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
    own: bool = False
    """Whether the agent has written it."""
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


_Place: TypeAlias = tuple[_Source, int]
"""A position in a text."""


@attrs.define(eq=False)
class _Known:
    """What is known about one identifier while the index is built."""

    uses: int = 0
    seen: int = 0
    sources: list[_Source] = attrs.field(factory=list[_Source])
    """Texts that it occurs in, in the order in which they were read."""


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
    sources += [source for entry in folded for source in _sources(entry)]
    _read_all(sources, known)
    ranked = sorted(known, key=lambda term: _rank(term, known[term]))[:TERMS_MAX]
    for text in _in_sight(visible):  # what the model sees with its surroundings needs no excerpt
        source = _Source("", 0, text)
        for term in identifiers(text) & known.keys():
            known[term].sources.append(source)
    budget_left = _Budget(wide=budget.wide, line=budget.line, names=budget.names, count=count)
    bare = {term for term in ranked if budget_left.spend(term, known[term])}
    return Index(excerpts=tuple(_excerpts(sources)), terms=tuple(_terms(ranked, known, bare)))


def _in_sight(visible: Iterable[str]) -> Iterable[str]:
    """The visible texts, as far as they are searched: whole, unless no window could hold them."""
    left = VISIBLE_MAX
    for text in visible:
        pieces = (text,) if len(text) <= left else searched(text)
        left -= sum(map(len, pieces))
        yield from pieces


def _rank(term: str, known: _Known) -> tuple[int, int, str]:
    """What the agent has used first, then the newest."""
    return (-min(known.uses, USES_MAX), -known.seen, term)


def _sources(entry: Entry) -> Iterable[_Source]:
    if entry.original is not None:  # what stands for a block hidden on request names nothing of it
        return
    own = isinstance(entry.block, ToolCall | AssistantCompletion)
    for text in searched(text_of(entry.block)):
        yield _Source(entry.path, entry.version, text, own)


def _read_all(sources: Sequence[_Source], known: dict[str, _Known]) -> None:
    """Note the identifiers of all texts that can come among the first in the ranking.

    First those that the agent has written; then everything from the newest on.  Once newer texts
    have given enough names, an older one is only looked through for those.
    """
    for source in sources:
        for term in identifiers(source.text) if source.own else ():
            known.setdefault(term, _Known()).uses += 1
    found, oldest, enough = 0, max((source.seen for source in sources), default=0), -1
    for source in reversed(sources):
        found += _read(source, known, is_full=source.seen < enough)
        oldest = min(oldest, source.seen)
        if found >= TERMS_MAX:
            enough = max(enough, oldest)
    for each in known.values():
        each.sources.reverse()


def _read(source: _Source, known: dict[str, _Known], *, is_full: bool) -> int:
    """Note the identifiers of a text; how many of them are new."""
    before = len(known)
    for term in identifiers(source.text):
        found = known.get(term)
        if found is None:
            if is_full:
                continue
            found = known[term] = _Known()
        found.seen = max(found.seen, source.seen)
        found.sources.append(source)
    return len(known) - before


def _last(term: str, known: _Known, width: _Width) -> _Place | None:
    """Where a term last occurred with something around it, as far as this width goes.

    Asked only for terms that there is still budget for: most never are.
    """
    for source in reversed(known.sources):
        position = source.text.rfind(term)  # the last mention, be it inside a longer name
        start, end = width(source.text, position, len(term))
        if end - start >= len(term) + SURROUNDINGS_MIN:
            return source, position
    return None


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


@attrs.define(kw_only=True)
class _Budget:
    """What is left to spend: tokens for each width."""

    wide: int
    line: int
    names: int
    count: Callable[[str], int]
    paths: set[str] = attrs.field(factory=set[str])

    def spend(self, term: str, known: _Known) -> bool:
        """Buy the widest excerpts that are still paid for; True: it became the bare name."""
        if self.wide > 0 and (wide := _last(term, known, _wide)):
            self.wide -= self._cut(wide, len(term), _wide)
            line = _last(term, known, _line)
            if line and line != wide:
                self.wide -= self._cut(line, len(term), _line)
        elif self.line > 0 and (line := _last(term, known, _line)):
            self.line -= self._cut(line, len(term), _line)
        elif self.names > 0 and not _is_visible(term, known):
            self.names -= self.count(term) + 1
            return True
        return False

    def _cut(self, place: _Place, length: int, width: _Width) -> int:
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


def _is_visible(term: str, known: _Known) -> bool:
    places = (_last(term, known, width) for width in (_wide, _line))
    return any(place and not place[0].path for place in places)


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
