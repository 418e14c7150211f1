"""Reading texts for an index, each once: the names in a text, where its pieces are, and what each costs that was ever to be bought.

Most of what a compaction reads it has read before: the excerpts that it quoted last time.  The rest came
with the calls since then, and can be read as it comes (see `_ahead`).  What was read is remembered by
text, so it makes no difference to any result when that was.
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
    """What was read since the compaction in force, and between the one before it and that.

    So it holds what the view holds, and what the index quotes; what is in neither is gone after the next
    compaction.
    """

    compaction: int = 0
    """Version of the compaction in force."""
    ahead: int = 0
    """Version of the newest block that was read ahead."""
    layers: list[tuple[Layer, int]] = attrs.field(factory=list[tuple[Layer, int]])
    """Layers of the index that was counted last, and what each costs."""
    is_counted: bool = False
    """Whether that is the one that is shown."""
    _young: dict[str, Reading] = attrs.field(factory=dict[str, Reading], init=False)
    _old: dict[str, Reading] = attrs.field(factory=dict[str, Reading], init=False)

    @property
    def characters(self) -> int:
        """How much is remembered."""
        return sum(map(len, self._young)) + sum(map(len, self._old))

    def since(self, compaction: int) -> None:
        """Forget what was not asked for between the last two compactions, if there is a new one."""
        if compaction != self.compaction:
            self.compaction = compaction
            self._old, self._young = self._young, {}
            self.is_counted = False

    def get(self, text: str) -> Reading:
        """What is known of a text."""
        found = self._young.get(text)
        if found is None:
            found = self._young[text] = self._old.get(text) or Reading(text)
        return found


@attrs.frozen
class Reader:
    """What reads texts for an index: counts their tokens, and finds the names in them."""

    count: Callable[[str], int]
    vocabulary: Vocabulary = attrs.field(factory=Vocabulary)
    texts: Texts = attrs.field(factory=Texts)

    def names(self, text: str) -> set[str]:
        """The identifiers of a text."""
        return self.vocabulary.identifiers(text)

    def read(self, text: str) -> Reading:
        """A text with its names."""
        reading = self.texts.get(text)
        if reading.names is None:
            reading.names = self.vocabulary.identifiers(text)
        return reading

    def cost(self, source: Source, number: int) -> int:
        """Tokens of a piece as a line of its own."""
        costs = source.costs
        if not costs[number]:
            costs[number] = self.count(f"{source.piece(number)}\n")
        return costs[number]

    def layers_cost(self, layers: Iterable[Layer]) -> int:
        """Tokens of the layers of an index as they are shown; one that stayed is not counted again."""
        known, texts = self.texts.layers, self.texts
        texts.layers = [(layer, self._layer_cost(layer, known)) for layer in layers]
        texts.is_counted = True
        return sum(tokens for _, tokens in texts.layers)

    def _layer_cost(self, layer: Layer, known: Iterable[tuple[Layer, int]]) -> int:
        found = (tokens for each, tokens in known if each is layer)
        return next(found, 0) or self.count(layer_text(layer))


def reader_of(view: View, context: Context) -> Reader:
    """The reader of a timeline; what it remembers is in what the views share."""
    shared: dict[Any, Any] = view.shared
    if "words" not in shared:
        shared["words"] = Vocabulary()
    key = "texts", context.counter.name
    if key not in shared:
        shared[key] = Texts()
    texts: Texts = shared[key]
    texts.since(view.compaction.version if view.compaction else 0)
    return Reader(context.counter.count, shared["words"], texts)
