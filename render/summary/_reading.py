"""Reading each text for an index only once: its names, its pieces, and the tokens of the pieces that were
offered.

A compaction reads mostly texts that it read before, namely its earlier excerpts. New texts can be read as
they arrive (see `_ahead`). The cache is keyed by text, so results do not depend on when a text was read.
"""

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from blocks import Layer
from render.policy._context import Context
from render.summary._identifiers import Vocabulary
from render.summary._pieces import Reading, Source
from render.summary._text import layer_text
from render.view._view import View


@attrs.define(eq=False)
class Texts:
    """The texts read since the compaction in force, and in the period before it.

    This covers the texts of the view and the excerpts of the index; other texts are dropped at the next
    compaction.
    """

    compaction: int = 0
    """Version of the compaction in force."""
    ahead: int = 0
    """Version of the newest block that was read ahead."""
    layers: list[tuple[Layer, int]] = attrs.field(factory=list[tuple[Layer, int]])
    """The layers of the index that was counted last, with their tokens."""
    is_counted: bool = False
    """Whether that is the index that is shown now."""
    excerpts: list[str] = attrs.field(factory=list[str])
    """Its excerpts that are still to be read ahead."""
    _young: dict[str, Reading] = attrs.field(factory=dict[str, Reading], init=False)
    _old: dict[str, Reading] = attrs.field(factory=dict[str, Reading], init=False)

    @property
    def characters(self) -> int:
        """Total characters of the cached texts."""
        return sum(map(len, self._young)) + sum(map(len, self._old))

    def since(self, compaction: int) -> None:
        """After a new compaction, drop the texts that were not requested since the one before."""
        if compaction != self.compaction:
            self.compaction = compaction
            self._old, self._young = self._young, {}
            self.is_counted = False
            self.excerpts = []

    def get(self, text: str) -> Reading:
        """The cached reading of a text."""
        found = self._young.get(text)
        if found is None:
            found = self._young[text] = self._old.get(text) or Reading(text)
        return found


@attrs.frozen
class Reader:
    """Reads texts for an index: counts tokens and finds identifiers."""

    count: Callable[[str], int]
    vocabulary: Vocabulary = attrs.field(factory=Vocabulary)
    texts: Texts = attrs.field(factory=Texts)

    def names(self, text: str) -> set[str]:
        """The identifiers of a text."""
        return self.vocabulary.identifiers(text)

    def read(self, text: str) -> Reading:
        """The reading of a text, with its names."""
        reading = self.texts.get(text)
        if reading.names is None:
            reading.names = self.vocabulary.identifiers(text)
        return reading

    def cost(self, source: Source, number: int) -> int:
        """Tokens of a piece as a line of its own."""
        costs = source.pieces.costs
        if not costs[number]:
            costs[number] = self.count(f"{source.piece(number)}\n")
        return costs[number]

    def layers_cost(self, layers: Iterable[Layer]) -> int:
        """Tokens of the layers of an index as they are shown; a layer that was counted before is not
        counted again."""
        known, texts = self.texts.layers, self.texts
        texts.layers = [(layer, self._layer_cost(layer, known)) for layer in layers]
        texts.is_counted = True
        return sum(tokens for _, tokens in texts.layers)

    def _layer_cost(self, layer: Layer, known: Iterable[tuple[Layer, int]]) -> int:
        found = (tokens for each, tokens in known if each is layer)
        return next(found, 0) or self.count(layer_text(layer))


def reader_of(view: View, context: Context) -> Reader:
    """The reader of a timeline; its caches are in the storage that the timeline's views share."""
    shared: dict[Any, Any] = view.shared
    if "words" not in shared:
        shared["words"] = Vocabulary()
    key = "texts", context.counter.name
    if key not in shared:
        shared[key] = Texts()
    texts: Texts = shared[key]
    texts.since(view.compaction.version if view.compaction else 0)
    return Reader(context.counter.count, shared["words"], texts)
