"""What a run of the agent came to."""

from typing import Any

import attrs

from blocks import UsageRecorded
from render import as_json


@attrs.frozen(kw_only=True)
class Usage:
    """Tokens of all rounds together, as the provider reported them."""

    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    def plus(self, new: UsageRecorded | None) -> "Usage":
        """With those of one more response."""
        if new is None:
            return self
        return Usage(
            uncached=self.uncached + new.uncached,
            cache_read=self.cache_read + new.cache_read,
            cache_write=self.cache_write + new.cache_write,
            output=self.output + new.output,
        )


@attrs.frozen(kw_only=True)
class Outcome:
    """How a run ended."""

    text: str
    """What the agent said last."""
    stop: str
    """The provider's stop reason: `end_turn`, `refusal`, `max_tokens`, `stop_sequence`,
    `model_context_window_exceeded` (also when the provider refused the prompt and compaction could
    not make it shorter); or our own `rounds_max`."""
    rounds: int
    usage: Usage


def stop_of(response: object) -> str:
    """Why the model stopped; empty when the response has no end."""
    return str(as_json(response).get("stop_reason") or "")


def text_in(response: object) -> str:
    """All text of a response."""
    contents: list[dict[str, Any]] = as_json(response).get("content") or []
    return "".join(str(c.get("text", "")) for c in contents if c.get("type") == "text")
