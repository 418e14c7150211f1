"""The index in layers: what a compaction leaves as it is, and what it adds.

While the provider's cache is warm, what the index shows already is read from there for a tenth of its
price; to rewrite it would cost twelve times as much.  So a compaction adds a layer about what is new:

    [ layer 1                 ]
    [ layer 1                 ][ layer 2 ]
    [ layer 1                 ][ layer 2 ][ layer 3 ]
    [ layer 1, the best of all that         ]          full, or the cache is cold: written anew

A layer that stays is the same bytes in the next request.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs
import msgspec

from blocks import Excerpt, Index, Layer, Term
from render.summary._index import IndexBudget, build_index
from render.summary._text import layer_text, layers_of
from render.view._group import Entry

LAYER_MIN: Final = 0.5
"""Of a layer's share, the room that there must be for one to be added."""


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
    split: Callable[[int], IndexBudget]
    """Divides tokens among the widths of excerpts."""


def extend_index(
    previous: Index,
    folded: Sequence[Entry],
    visible: Iterable[str],
    room: IndexRoom,
    count: Callable[[str], int],
) -> Index:
    """The index after `folded` (and what is hidden) joined what `previous` covers.

    Terms of the `visible` texts get nothing where the model sees them with their surroundings.
    """
    layers = layers_of(previous)
    left = room.total - sum(count(layer_text(layer)) for layer in layers)
    if not layers or room.is_cold or not room.layer or left < LAYER_MIN * room.layer:
        known = Index(excerpts=_in_log_order(layers), terms=_terms(previous, layers))
        built = build_index(known, folded, visible, room.split(room.rebuilt), count)
        return _index((), built, ())
    named = {term.term for layer in layers for term in layer.names}
    known = Index(terms=tuple(term for term in previous.terms if term.term not in named))
    texts = [*visible, *(excerpt.text for layer in layers for excerpt in layer.excerpts)]
    built = build_index(known, folded, texts, room.split(min(room.layer, left)), count)
    return _index(layers, built, [term for term in previous.terms if term.term in named])


def _in_log_order(layers: Iterable[Layer]) -> tuple[Excerpt, ...]:
    excerpts = (excerpt for layer in layers for excerpt in layer.excerpts)
    return tuple(sorted(excerpts, key=lambda excerpt: (excerpt.seen, excerpt.path)))


def _terms(index: Index, layers: Iterable[Layer]) -> tuple[Term, ...]:
    """All that is known of names; of those that the agent has used, the index knows more."""
    return (*(term for layer in layers for term in layer.names), *index.terms)


def _index(layers: Sequence[Layer], built: Index, aside: Iterable[Term]) -> Index:
    """The layers with what was built as the last; `aside`: terms that the layers name already."""
    known = {term.term: term for term in aside}
    named = {term.term for layer in layers for term in layer.names}
    names = tuple(term for term in built.terms if term.bare and term.term not in named)
    layer = Layer(excerpts=built.excerpts, names=names)
    for term in built.terms:
        uses = term.uses + (known[term.term].uses if term.term in known else 0)
        known[term.term] = msgspec.structs.replace(term, uses=uses, bare=False)
    used = tuple(term for term in known.values() if term.uses)
    return Index(layers=(*layers, layer), terms=used)
