"""Turns a request into one flat list of blocks in cache order, each with its tokens.

The provider defines the blocks of a request and their order.  Requests of one session share nearly all
their blocks, so every distinct block is interned: it gets a number as its key and is counted once.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs

from render import Json, Provider
from timeline.replay._cache import FlatBlock
from timeline.tokens import TextCounter

SEEN_MAX = 1_000_000


@attrs.define
class Flattener:
    """Flattens the requests of one session; caches the blocks it has seen."""

    counter: TextCounter
    provider: Provider
    seen_max: int = SEEN_MAX
    """The most blocks cached by identity; beyond that, the cache is emptied."""
    _known: dict[Hashable, tuple[int, int]] = attrs.field(
        init=False, factory=dict[Hashable, tuple[int, int]]
    )
    """Key and tokens of each distinct block."""
    _seen: dict[tuple[str, int], tuple[Json, FlatBlock]] = attrs.field(
        init=False, factory=dict[tuple[str, int], tuple[Json, FlatBlock]]
    )
    """Blocks by identity: the renderer uses the same object for an unmarked block in every request."""

    def flatten(self, request: Mapping[str, Sequence[Any]]) -> list[FlatBlock]:
        """The blocks of `system`, `tools` and `messages`, in the form of a `Rendered`."""
        system, tools, messages = (request.get(k) or () for k in ("system", "tools", "messages"))
        return self._flat(system, tools, messages)

    def sent(self, request: Mapping[str, Any]) -> list[FlatBlock]:
        """The blocks of a request in its API's form."""
        return self._flat(*self.provider.sections(request))

    def _flat(self, *sections: Sequence[Json]) -> list[FlatBlock]:
        system, tools, messages = sections
        return [
            self._block(place, content)
            for place, content in self.provider.contents(system, tools, messages)
        ]

    def _block(self, place: str, content: Json) -> FlatBlock:
        """The flattened block, from the cache if the same object was seen; contents must not be mutated."""
        seen = self._seen.get((place, id(content)))
        if seen is not None and seen[0] is content:
            return seen[1]
        segment = self.provider.segment(place, content)
        known = self._known.get(segment.key)
        if known is None:
            known = self._known[segment.key] = (len(self._known), segment.tokens(self.counter))
        flat = FlatBlock(known[0], segment.kind, known[1], segment.ttl)
        if len(self._seen) >= self.seen_max:
            self._seen.clear()
        self._seen[place, id(content)] = (content, flat)
        return flat
