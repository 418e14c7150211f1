"""The index with excerpts: what was folded, findable by name.

For the rare identifiers of folded blocks, those first that the agent itself has written, an excerpt
in one of three widths: the line with its neighbours, the line, the bare name.  It costs a bounded
share of the window, needs no model, and does more for what an agent can still refer to than prose.

Each compaction merges the newly folded blocks into what the last one left, so the cost follows the
new blocks.  Between compactions the index does not change: it is part of the cached prefix.
"""

from collections.abc import Callable, Iterable, Sequence

import attrs

from blocks import AssistantCompletion, IndexEntry, ToolCall, text_of
from render._group import Entry
from render._identifiers import identifiers

LINE_CHARACTERS = 40
"""Of its line, on each side of a term, in a narrow excerpt."""
WIDE_CHARACTERS = 150
"""Of its line and the neighbouring ones, on each side, in a wide excerpt."""
USES_MAX = 3
"""An agent that wrote a name three times knows it; more says nothing more."""
CANDIDATES_MAX = 4000
"""Terms that take part in the ranking at all."""


@attrs.frozen(kw_only=True)
class IndexBudget:
    """Tokens for each width."""

    wide: int
    line: int
    names: int


@attrs.define(kw_only=True)
class _Term:
    """What is known about one identifier while the index is built."""

    uses: int = 0
    seen: int = 0
    path: str = ""
    wide: str = ""
    line: str = ""


def build_index(
    previous: Sequence[IndexEntry],
    folded: Iterable[Entry],
    visible: Iterable[str],
    budget: IndexBudget,
    count: Callable[[str], int],
) -> tuple[IndexEntry, ...]:
    """The index after `folded` joined what `previous` covers, best first.

    Terms of the `visible` texts are left out: the model sees them anyway.
    """
    terms = {entry.term: _known(entry) for entry in previous}
    for entry in folded:
        _read(entry, terms)
    for text in visible:
        for term, _ in identifiers(text):
            terms.pop(term, None)
    ranked = sorted(terms, key=lambda t: (-min(terms[t].uses, USES_MAX), -terms[t].seen, t))
    return tuple(_spend(ranked[:CANDIDATES_MAX], terms, budget, count))


def _known(entry: IndexEntry) -> _Term:
    line = _around(entry.excerpt, entry.term) if entry.excerpt else ""
    return _Term(uses=entry.uses, seen=entry.seen, path=entry.path, wide=entry.excerpt, line=line)


def _around(text: str, term: str) -> str:
    position = text.find(term)
    return _line(text, position, len(term)) if position >= 0 else text


def _read(entry: Entry, terms: dict[str, _Term]) -> None:
    """Note every identifier of one block; the last occurrence with surroundings wins."""
    text = text_of(entry.block)
    own = isinstance(entry.block, ToolCall | AssistantCompletion)
    for term, position in dict(identifiers(text)).items():
        found = terms.setdefault(term, _Term())
        found.uses += own
        found.seen = entry.version
        line = _line(text, position, len(term))
        if len(line) >= len(term) + 8:
            found.line, found.path = line, entry.path
            found.wide = _wide(text, position, len(term))
        elif not found.path:
            found.path = entry.path


def _line(text: str, position: int, length: int) -> str:
    start = max(text.rfind("\n", 0, position) + 1, position - LINE_CHARACTERS)
    end = text.find("\n", position)
    stop = min(len(text) if end < 0 else end, position + length + LINE_CHARACTERS)
    return text[start:stop].strip()


def _wide(text: str, position: int, length: int) -> str:
    line = text.rfind("\n", 0, position) + 1
    before = text.rfind("\n", 0, line - 1) + 1 if line else 0
    end = text.find("\n", position)
    after = text.find("\n", end + 1) if end >= 0 else -1
    start = max(before, position - WIDE_CHARACTERS)
    stop = min(len(text) if after < 0 else after, position + length + WIDE_CHARACTERS)
    return text[start:stop].strip()


@attrs.define
class _Purse:
    """What is left to spend, and what was bought."""

    budget: IndexBudget
    count: Callable[[str], int]
    written: list[str] = attrs.field(factory=list[str])
    paths: set[str] = attrs.field(factory=set[str])

    def buy(self, term: str, known: _Term) -> str | None:
        """The widest excerpt that is still paid for; empty: the bare name; None: nothing."""
        budget = self.budget
        if known.wide and budget.wide > 0:
            excerpt, cost = self._price(known.wide, known.path)
            self.budget = attrs.evolve(budget, wide=budget.wide - cost)
        elif known.line and budget.line > 0:
            excerpt, cost = self._price(known.line, known.path)
            self.budget = attrs.evolve(budget, line=budget.line - cost)
        elif budget.names > 0:
            excerpt = ""
            self.budget = attrs.evolve(budget, names=budget.names - self.count(term) - 1)
        else:
            return None
        if excerpt:
            self.written.append(excerpt)
            self.paths.add(known.path)
        return excerpt

    def _price(self, excerpt: str, path: str) -> tuple[str, int]:
        """An excerpt that an earlier one already shows is free, and not written again."""
        if any(excerpt in other for other in self.written):
            return "", 0
        where = 0 if path in self.paths else self.count(path) + 2
        return excerpt, self.count(excerpt) + 2 + where


def _spend(
    ranked: Sequence[str],
    terms: dict[str, _Term],
    budget: IndexBudget,
    count: Callable[[str], int],
) -> Iterable[IndexEntry]:
    """Give the best terms the widest excerpts that the budget still pays."""
    purse = _Purse(budget, count)
    for term in ranked:
        known = terms[term]
        excerpt = purse.buy(term, known)
        if excerpt is None:
            return
        yield IndexEntry(
            term=term, uses=known.uses, seen=known.seen, path=known.path, excerpt=excerpt
        )
