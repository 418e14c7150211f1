"""What the fake provider's model says in one response."""

from collections.abc import Iterable
from typing import Any, Final

import attrs
from attrs.validators import ge, le

from render import Json

DELAY_SECONDS_MAX: Final = 30.0
"""No answer is slower than this, whatever a script says."""


@attrs.frozen
class Call:
    """A tool call."""

    name: str
    input: Json = attrs.field(factory=dict[str, Any])
    id: str = ""
    """Empty: the provider makes one."""


def _calls(calls: Iterable[Call]) -> tuple[Call, ...]:
    return tuple(calls)


def _blocks(blocks: Iterable[Json]) -> tuple[Json, ...]:
    return tuple(blocks)


@attrs.frozen(kw_only=True)
class Reply:
    """One response, in the order in which a model says it: thinking, text, blocks, calls."""

    thinking: str | None = None
    """Signed by the provider; None: no thinking block."""
    text: str = ""
    blocks: tuple[Json, ...] = attrs.field(default=(), converter=_blocks)
    """Content blocks as they are, of a server tool for example."""
    calls: tuple[Call, ...] = attrs.field(default=(), converter=_calls)
    stop_reason: str = ""
    """Empty: `tool_use` when there are calls, otherwise `end_turn`."""
    delay_seconds: float = attrs.field(default=0.0, validator=[ge(0.0), le(DELAY_SECONDS_MAX)])
    """What it takes until the response begins."""

    @property
    def stopped(self) -> str:
        """Why the model stops."""
        return self.stop_reason or ("tool_use" if self.calls else "end_turn")
