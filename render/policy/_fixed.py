"""The fixed part of a request: system prompt and tools, which no event changes."""

from collections.abc import Callable
from typing import Any, TypeVar

import attrs

_T = TypeVar("_T")


@attrs.frozen(eq=False)
class Fixed:
    """A system prompt and tools, with what was computed for them: tokens, marks, hash.

    The same object goes from render to render for as long as they are the same.
    """

    system: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...]
    _memo: dict[Any, Any] = attrs.field(factory=dict[Any, Any], init=False, repr=False)

    def memo(self, key: object, make: Callable[[], _T]) -> _T:
        """What `make` returned the first time it was asked for with this key."""
        if key not in self._memo:
            self._memo[key] = make()
        found: _T = self._memo[key]
        return found
