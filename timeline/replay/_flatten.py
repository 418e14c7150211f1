"""A request as one flat list of blocks in cache order, each with its tokens.

What stands in a request, and in which order, its provider says.  Requests of one session share nearly all
their blocks, so every distinct block is interned: it gets one small key and is counted once.
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
    """Flattens the requests of one session; remembers the blocks it has seen."""

    counter: TextCounter
    provider: Provider
    seen_max: int = SEEN_MAX
    """Blocks that are known by identity, and so kept; when there are more, the list begins anew."""
    _known: dict[Hashable, tuple[int, int]] = attrs.field(
        init=False, factory=dict[Hashable, tuple[int, int]]
    )
    """Key and tokens of a block."""
    _seen: dict[tuple[str, int], tuple[Json, FlatBlock]] = attrs.field(
        init=False, factory=dict[tuple[str, int], tuple[Json, FlatBlock]]
    )
    """By identity: an unmarked block of the renderer's is the same object in every request."""

    def flatten(self, request: Mapping[str, Sequence[Any]]) -> list[FlatBlock]:
        """The blocks of `system`, `tools` and `messages`, as a `Rendered` has them."""
        system, tools, messages = (request.get(k) or () for k in ("system", "tools", "messages"))
        return self._flat(system, tools, messages)

    def sent(self, request: Mapping[str, Any]) -> list[FlatBlock]:
        """The blocks of a request as its API takes it."""
        return self._flat(*self.provider.sections(request))

    def _flat(self, *sections: Sequence[Json]) -> list[FlatBlock]:
        system, tools, messages = sections
        return [
            self._block(place, content)
            for place, content in self.provider.contents(system, tools, messages)
        ]

    def _block(self, place: str, content: Json) -> FlatBlock:
        """The block, flattened once; our blocks are never changed."""
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
