"""The index in layers: a compaction keeps the existing layers and adds one.

While the provider's cache is warm, reading the existing layers from it costs a tenth of the normal price;
rewriting them would cost about twelve times as much. So a compaction adds a layer about what is new:

    [ layer 1                 ]
    [ layer 1                 ][ layer 2 ]
    [ layer 1                 ][ layer 2 ][ layer 3 ]
    [ layer 1, the best of all that         ]          full, or the cache is cold: rewritten

A layer that stays has the same bytes in the next request.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from typing import Final

import attrs
import msgspec

from blocks import Index, Layer, Term
from render.summary._index import build_index
from render.summary._market import IndexBudget
from render.summary._reading import Reader
from render.summary._text import layer_text, layers_of
from render.view._group import Entry

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
