"""The index with excerpts: what was folded, findable by name.

Its entries are bought with one budget of tokens. On offer are pieces of folded texts (lines, and short
texts as a whole: see `_reading`) and bare names. The best worth per size is bought first.

    a name      is worth more the more often the agent wrote it, and the newer it is
    a piece     has the worth of the names that were last mentioned in it, a part of the worth of the
                neighbouring pieces, and some of its own if it is code that the agent wrote
    bare name   has most of the worth of the name; its cost is returned when a piece with it is bought

Lines of a file that a later read, edit or write replaced are worth nothing (see `_files`).

The index needs no model. At the next compaction its excerpts compete with the newly folded texts, so the
cost follows what is new. Between compactions the index does not change, so it stays in the cached prefix.

A compaction keeps the existing layers of the index and adds one. While the provider's cache is warm, reading the
existing layers from it costs a tenth of the normal price; rewriting them would cost about twelve times as much. So a
compaction adds a layer about what is new:

    [ layer 1                 ]
    [ layer 1                 ][ layer 2 ]
    [ layer 1                 ][ layer 2 ][ layer 3 ]
    [ layer 1, the best of all that         ]          full, or the cache is cold: rewritten

A layer that stays has the same bytes in the next request.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain, starmap
from operator import attrgetter, is_
from typing import Any, Final, cast

import attrs
import msgspec
from msgspec import structs

from blocks import AssistantCompletion, Excerpt, Index, Layer, Term, ToolCall, is_sealed
from render.summary._files import follow, line_at
from render.summary._identifiers import searched
from render.summary._market import USES_MAX, IndexBudget, Known, Market
from render.summary._output import texts_of
from render.summary._reading import Reader, Source
from render.summary._text import layer_text, layers_of
from render.view._group import Entry

# Layers.


LAYER_MIN: Final = 0.5
"""A layer is added only if this share of its budget is still free."""
SPARE_SHARE: Final = 0.2
SPARE_TOKENS: Final = 400
"""If this much room remains beyond a layer's budget, the layer certainly fits and is not counted as a
whole: its pieces were counted, and its frame is small."""
TERMS_MIN: Final = 2000
TERM_TOKENS: Final = 15
TERMS_MAX: Final = 3000
"""An index ranks and remembers one name for each `TERM_TOKENS` of all layers together, within these bounds."""
TERM_TOKENS_MIN: Final = 4
"""But no more than one name for each of so many tokens: what is remembered in a small window is small, too."""
TERM_CHARACTERS: Final = 40
"""The names that are remembered have at most so many characters on average; the best ones are remembered."""
LAYERS_MAX: Final = 6
"""The most layers; with many short layers, their frames cost more than rewriting the index."""


@attrs.frozen(kw_only=True)
class IndexRoom:
    """The token limits of an index."""

    total: int
    """All layers together."""
    layer: int
    """A layer that is added; 0: no layers are added."""
    rebuilt: int
    """The single layer of a rewritten index."""
    is_cold: bool
    """Whether the provider's cache is cold, so that keeping layers saves nothing."""


def extend_index(
    previous: Index,
    folded: Sequence[Entry],
    visible: Iterable[str],
    room: IndexRoom,
    reader: Reader,
) -> Index:
    """The index after `folded` (and hidden) entries are added to what `previous` covers.

    A term has no worth if the `visible` texts show it in context.
    """
    layers, count = layers_of(previous), reader.count
    left = room.total - reader.layers_cost(layers)
    is_full = left < LAYER_MIN * room.layer or len(layers) >= LAYERS_MAX
    if room.is_cold or not room.layer or is_full:
        layers, left = (), room.total
    named = {term.term for layer in layers for term in layer.names}
    known = _known(previous, layers, named)
    tokens = min(room.layer if layers else room.rebuilt, left)
    terms = min(max(room.total // TERM_TOKENS, TERMS_MIN), TERMS_MAX, room.total // TERM_TOKENS_MIN)
    budget = IndexBudget(tokens=tokens, terms=terms)
    built = build_index(known, folded, visible, budget, reader)
    names = tuple(term for term in built.terms if term.bare and term.term not in named)
    layer = Layer(excerpts=built.excerpts, names=names)
    if left - tokens < max(SPARE_SHARE * left, SPARE_TOKENS):
        layer = _fitted(layer, left, count)
    aside = (term for term in previous.terms if term.term in named)
    used = _used(built.terms, aside)
    sizes = accumulate(len(term.term) for term in used)
    count_max = sum(size <= terms * TERM_CHARACTERS for size in sizes)
    return Index(layers=(*built.layers, layer), terms=used[:count_max])


def _known(previous: Index, kept: Sequence[Layer], named: Collection[str]) -> Index:
    """The index that the next layer starts from: everything shown so far, except in layers that stay."""
    if kept:
        others = tuple(term for term in previous.terms if term.term not in named)
        return Index(layers=tuple(kept), terms=others)
    layers = layers_of(previous)
    excerpts = (excerpt for layer in layers for excerpt in layer.excerpts)
    in_log_order = sorted(excerpts, key=lambda excerpt: (excerpt.seen, excerpt.path))
    names = (term for layer in layers for term in layer.names)
    return Index(excerpts=tuple(in_log_order), terms=(*names, *previous.terms))


def _fitted(layer: Layer, tokens: int, count: Callable[[str], int]) -> Layer:
    """The layer without its last names, and then its oldest excerpts, until it fits."""
    while (layer.names or layer.excerpts) and count(layer_text(layer)) > tokens:
        if layer.names:
            layer = msgspec.structs.replace(layer, names=layer.names[: -1 - len(layer.names) // 8])
        else:
            rest = layer.excerpts[1 + len(layer.excerpts) // 8 :]
            layer = msgspec.structs.replace(layer, excerpts=rest)
    return layer


def _used(terms: Iterable[Term], aside: Iterable[Term]) -> tuple[Term, ...]:
    """The names that the agent used; the uses in `aside`, which were counted separately, are added."""
    known = {term.term: term for term in aside}
    known |= {
        term.term: msgspec.structs.replace(term, uses=term.uses + known[term.term].uses)
        if term.term in known
        else term
        for term in terms
    }
    used = [term for term in known.values() if term.uses]
    return tuple([msgspec.structs.replace(t, bare=False) if t.bare else t for t in used])


# What a layer holds.


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
