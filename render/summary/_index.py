"""The index with excerpts: what was folded, findable by name.

Its entries are bought with one budget of tokens. On offer are pieces of folded texts (see `_pieces`: lines,
and short texts as a whole) and bare names. The best worth per size is bought first.

    a name      is worth more the more often the agent wrote it, and the newer it is
    a piece     has the worth of the names that were last mentioned in it, a part of the worth of the
                neighbouring pieces, and some of its own if it is code that the agent wrote
    bare name   has most of the worth of the name; its cost is returned when a piece with it is bought

Lines of a file that a later read, edit or write replaced are worth nothing (see `_files`).

The index needs no model. At the next compaction its excerpts compete with the newly folded texts, so the
cost follows what is new. Between compactions the index does not change, so it stays in the cached prefix.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, starmap
from operator import attrgetter, is_
from typing import Any, Final, cast

from msgspec import structs

from blocks import AssistantCompletion, Excerpt, Index, Layer, Term, ToolCall, is_sealed
from render.summary._file_lines import line_at
from render.summary._files import follow
from render.summary._identifiers import searched
from render.summary._market import USES_MAX, IndexBudget, Known, Market
from render.summary._output import texts_of
from render.summary._pieces import Source
from render.summary._reading import Reader
from render.view._group import Entry

VISIBLE_MAX: Final = 4_000_000
"""Characters of all visible texts together that are searched for names; beyond it, only the beginning and
end of each text."""


def build_index(
    previous: Index,
    folded: Sequence[Entry],
    visible: Iterable[str],
    budget: IndexBudget,
    reader: Reader,
) -> Index:
    """The index after `folded` (and hidden) entries are added to what `previous` covers.

    A term has no worth if the `visible` texts, or the layers of `previous` that stay, show it in context.
    """
    known = Known(
        {term.term: term.uses for term in previous.terms},
        {term.term: term.seen for term in previous.terms},
    )
    again = {entry.path for entry in folded}  # hidden at the last compaction, folded at this one
    earlier = [_source(e, e.path, reader) for e in previous.excerpts if e.path not in again]
    frozen = [[_source(e, "", reader) for e in layer.excerpts] for layer in previous.layers]
    read = [(entry, list(_sources(entry, reader))) for entry in folded]
    follow(sorted([*chain(*frozen), *earlier], key=attrgetter("seen")), read)
    sources = [*earlier, *(source for _, each in read for source in each)]
    noted = _read_all(sources, known, budget.terms)
    ranked = _ranked(known, budget.terms)
    # Terms that the model sees in context need no excerpt.
    shown = [Source("", 0, text, reading=reader.read(text)) for text in _in_sight(visible)]
    in_sight = [*shown, *chain(*frozen)]
    market = Market(
        sources=sources,
        noted=noted,
        in_sight=in_sight,
        ranked=ranked,
        known=known,
        reader=reader,
        lines=set(chain.from_iterable(map(Source.holding, in_sight))),
    )
    market.buy(budget)
    terms = _terms(ranked, known, market.bare)
    layers = tuple(starmap(_aged, zip(previous.layers, frozen, strict=True)))
    return Index(excerpts=tuple(_excerpts(sources)), terms=tuple(terms), layers=layers)


def _in_sight(visible: Iterable[str]) -> Iterable[str]:
    """The visible texts to search; beyond `VISIBLE_MAX`, only the beginning and end of each."""
    left = VISIBLE_MAX
    for text in visible:
        pieces = (text,) if len(text) <= left else searched(text)
        left -= sum(map(len, pieces))
        yield from pieces


def _ranked(known: Known, terms_max: int) -> Sequence[str]:
    """The best names: those that the agent used most, the newest first among equals."""
    alike: list[list[str]] = [[] for _ in range(USES_MAX + 1)]
    for term, uses in known.uses.items():
        alike[uses if uses < USES_MAX else USES_MAX].append(term)  # noqa: FURB136 -- min() is slow
    ranked = list[str]()
    for terms in reversed(alike):
        terms.sort()
        terms.sort(key=known.seen.__getitem__, reverse=True)
        ranked += terms
        if len(ranked) >= terms_max:
            break
    return ranked[:terms_max]


def _source(excerpt: Excerpt, path: str, reader: Reader) -> Source:
    text, reading = excerpt.text, reader.read(excerpt.text)
    source = Source(path, excerpt.seen, text, is_call=excerpt.own, reading=reading)
    source.file, source.line, source.is_changed = excerpt.file, excerpt.line, excerpt.changed
    if excerpt.stale:
        starts = source.line_starts()
        for number in excerpt.stale:
            if 0 <= number < len(starts):
                source.give_up(starts[number])
    return source


def _aged(layer: Layer, sources: Iterable[Source]) -> Layer:
    """The layer, with its stale lines marked."""
    excerpts = tuple(
        excerpt
        if (stale := source.stale_lines()) == excerpt.stale
        else structs.replace(excerpt, stale=stale)
        for excerpt, source in zip(layer.excerpts, sources, strict=True)
    )
    is_same = all(map(is_, excerpts, layer.excerpts))
    return layer if is_same else structs.replace(layer, excerpts=excerpts)


def _sources(entry: Entry, reader: Reader) -> Iterable[Source]:
    if entry.original is not None or is_sealed(entry.block):  # its placeholder has no names
        return
    block = entry.block
    own, is_call = isinstance(block, ToolCall | AssistantCompletion), isinstance(block, ToolCall)
    superseded = frozenset(_superseded(block.input) if isinstance(block, ToolCall) else ())
    for text in texts_of(block):
        reading = reader.read(text)
        yield Source(entry.path, entry.version, text, own, is_call, superseded, reading=reading)


def _superseded(value: Any) -> Iterator[str]:
    """The lines that an edit replaces: those of its `old...` arguments."""
    stack = [value]
    while stack:  # as in `leaves`
        item = stack.pop()
        if isinstance(item, dict):
            for name, inner in cast("dict[Any, Any]", item).items():
                if isinstance(inner, str) and str(name).lower().startswith("old"):
                    yield from map(str.strip, inner.split("\n"))
                else:
                    stack.append(inner)
        elif isinstance(item, list | tuple):
            stack += cast("list[Any]", item)


def _read_all(sources: Sequence[Source], known: Known, terms_max: int) -> Sequence[set[str]]:
    """The identifiers of each text that can rank among the best; `known` is updated with them.

    Names that the agent wrote are read first, then all texts from the newest on. Once the newer texts gave
    enough names, an older text is only searched for known names.
    """
    written = Counter(chain.from_iterable(source.names for source in sources if source.own))
    for term, uses in written.items():
        known.uses[term] = known.uses.get(term, 0) + uses
    noted = [source.names for source in sources]
    new = set[str]().union(*noted).difference(known.uses)
    if len(new) < terms_max:
        known.uses.update(dict.fromkeys(new, 0))
    else:
        noted = list(_noted(sources, known, terms_max))
        noted.reverse()
    newest = known.seen
    for source, names in zip(sources, noted, strict=True):
        seen = source.seen
        for term in names:
            if newest.get(term, -1) < seen:
                newest[term] = seen
    return noted


def _noted(sources: Sequence[Source], known: Known, terms_max: int) -> Iterator[set[str]]:
    """The identifiers of each text that count, newest text first; new names are added to `known`."""
    new, oldest, enough = 0, max((source.seen for source in sources), default=0), -1
    for source in reversed(sources):
        if source.seen < enough:
            yield source.names & known.uses.keys()
        else:
            new += known.add(source.names)
            yield source.names
        oldest = min(oldest, source.seen)
        if new >= terms_max:
            enough = max(enough, oldest)


def _excerpts(sources: Sequence[Source]) -> Iterable[Excerpt]:
    chosen = [source for source in sources if source.chosen]
    for source in sorted(chosen, key=lambda source: (source.seen, source.path)):
        for start, end in source.excerpts():
            text = source.text[start:end].strip()
            yield Excerpt(
                path=source.path,
                seen=source.seen,
                text=text,
                own=source.is_call,
                file=source.file,
                line=line_at(source, start),
                changed=source.is_changed,
            )


def _terms(ranked: Sequence[str], known: Known, bare: Iterable[str]) -> Iterable[Term]:
    """The terms that the next compaction needs: bare names, and names that the agent used."""
    listed = set(bare)
    for term in ranked:
        is_bare, uses = term in listed, known.uses[term]
        if is_bare or uses:
            yield Term(term=term, seen=known.seen[term], uses=uses, bare=is_bare)
