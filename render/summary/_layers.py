"""The index in layers: what a compaction leaves as it is, and what it adds.

While the provider's cache is warm, what the index shows already is read from there for a tenth of its
price; to rewrite it would cost twelve times as much.  So a compaction adds a layer about what is new:

    [ layer 1                 ]
    [ layer 1                 ][ layer 2 ]
    [ layer 1                 ][ layer 2 ][ layer 3 ]
    [ layer 1, the best of all that         ]          full, or the cache is cold: written anew

A layer that stays is the same bytes in the next request.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
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
"""Of a layer's share, the room that there must be for one to be added."""
SPARE_SHARE: Final = 0.2
SPARE_TOKENS: Final = 400
"""What is left of the room besides a layer's budget for the layer to be sure to fit, so that it need not be
counted as a whole: its pieces were, and its frame is small."""
LAYERS_MAX: Final = 6
"""Where there is little to quote, layers are short: many cost more in frames than writing them anew."""


@attrs.frozen(kw_only=True)
class IndexRoom:
    """What an index may have, in tokens."""

    total: int
    """All layers together."""
    layer: int
    """A layer that is added; 0: none is."""
    rebuilt: int
    """The only layer of an index that is written anew."""
    is_cold: bool
    """Whether the provider has forgotten the layers, so that leaving them saves nothing."""


def extend_index(
    previous: Index,
    folded: Sequence[Entry],
    visible: Iterable[str],
    room: IndexRoom,
    reader: Reader,
) -> Index:
    """The index after `folded` (and what is hidden) joined what `previous` covers.

    Terms of the `visible` texts get nothing where the model sees them with their surroundings.
    """
    layers, count = layers_of(previous), reader.count
    left = room.total - reader.layers_cost(layers)
    is_full = left < LAYER_MIN * room.layer or len(layers) >= LAYERS_MAX
    if room.is_cold or not room.layer or is_full:
        layers, left = (), room.total
    named = {term.term for layer in layers for term in layer.names}
    known = _known(previous, layers, named)
    tokens = min(room.layer if layers else room.rebuilt, left)
    built = build_index(known, folded, visible, IndexBudget(tokens=tokens), reader)
    names = tuple(term for term in built.terms if term.bare and term.term not in named)
    layer = Layer(excerpts=built.excerpts, names=names)
    if left - tokens < max(SPARE_SHARE * left, SPARE_TOKENS):
        layer = _fitted(layer, left, count)
    aside = (term for term in previous.terms if term.term in named)
    return Index(layers=(*built.layers, layer), terms=_used(built.terms, aside))


def _known(previous: Index, kept: Sequence[Layer], named: Collection[str]) -> Index:
    """What the next layer starts from: all that is shown, unless it stays as it is."""
    if kept:
        others = tuple(term for term in previous.terms if term.term not in named)
        return Index(layers=tuple(kept), terms=others)
    layers = layers_of(previous)
    excerpts = (excerpt for layer in layers for excerpt in layer.excerpts)
    in_log_order = sorted(excerpts, key=lambda excerpt: (excerpt.seen, excerpt.path))
    names = (term for layer in layers for term in layer.names)
    return Index(excerpts=tuple(in_log_order), terms=(*names, *previous.terms))


def _fitted(layer: Layer, tokens: int, count: Callable[[str], int]) -> Layer:
    """The layer without as many of its names, and then of its oldest excerpts, as it takes."""
    while (layer.names or layer.excerpts) and count(layer_text(layer)) > tokens:
        if layer.names:
            layer = msgspec.structs.replace(layer, names=layer.names[: -1 - len(layer.names) // 8])
        else:
            rest = layer.excerpts[1 + len(layer.excerpts) // 8 :]
            layer = msgspec.structs.replace(layer, excerpts=rest)
    return layer


def _used(terms: Iterable[Term], aside: Iterable[Term]) -> tuple[Term, ...]:
    """What is known of the names that the agent has used; `aside`: known before, and counted apart."""
    known = {term.term: term for term in aside}
    for term in terms:
        uses = term.uses + (known[term.term].uses if term.term in known else 0)
        known[term.term] = term if uses == term.uses else msgspec.structs.replace(term, uses=uses)
    used = (term for term in known.values() if term.uses)
    return tuple(msgspec.structs.replace(t, bare=False) if t.bare else t for t in used)
