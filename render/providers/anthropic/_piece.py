"""A piece: one group in the provider's words, and what each part of it costs."""

import attrs

from render.policy._context import Json
from render.view._group import Group


@attrs.frozen(kw_only=True, eq=False)
class Spot:
    """Where in a piece one content block stands, and what it costs."""

    version: int
    """Version of the block that it shows."""
    role: str
    index: int
    """Position in the content of its message."""
    tokens: int
    kind: str
    """The provider's type of the content block."""


@attrs.frozen(kw_only=True, eq=False)
class Piece:
    """A group in the provider's words. Shared between renders: never changed."""

    group: Group
    assistant: tuple[Json, ...] = ()
    user: tuple[Json, ...] = ()
    messages: tuple[Json, ...] = ()
    """The one or two messages of these contents."""
    spots: tuple[Spot, ...] = ()
    """One for each content block, in order."""
    tokens: int = 0
    pinned: int = 0
    """Tokens of its notes, which outlive every compaction."""
    digest: bytes = b""
    notices: tuple[str, ...] = ()

    def tokens_of(self, version: int) -> int:
        """What one block costs as it is shown."""
        return self.group.memo((self, "tokens"), self._costs).get(version, 0)

    def _costs(self) -> dict[int, int]:
        costs: dict[int, int] = {}
        for spot in self.spots:
            costs[spot.version] = costs.get(spot.version, 0) + spot.tokens
        return costs
