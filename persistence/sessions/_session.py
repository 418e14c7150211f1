"""The neutral form of a session, which every importer returns."""

from typing import Any, TypeAlias

import attrs

from blocks import Block, UsageRecorded


@attrs.frozen(kw_only=True)
class Arrived:
    """Something that was not the model's: user text, attachments, tool results, notices."""

    at: float
    """Seconds since the epoch; never earlier than the item before."""
    blocks: tuple[Block, ...]


@attrs.frozen(kw_only=True)
class Responded:
    """One model response: one *call*. Split and parallel parts are together again."""

    at: float
    """When the call was made: the time of what was logged last before the response."""
    id: str
    blocks: tuple[Block, ...]
    """Thinking, text and tool calls, in order; never empty."""
    model: str = ""
    usage: UsageRecorded | None = None
    """What the log says the call cost; its `id` and `at` are placeholders."""


Item: TypeAlias = Arrived | Responded
"""What happened next in a session."""


@attrs.frozen(kw_only=True)
class Notice:
    """Something in the file that was skipped or mended."""

    line: int
    """Line number in the file from 1; 0: no particular line."""
    text: str


@attrs.frozen(kw_only=True)
class Session:
    """A recorded session over its full, uncompacted history."""

    name: str
    format: str
    model: str = ""
    """As recorded; of the first response that names one."""
    system: str = ""
    """The system prompt, where the log has it."""
    tools: tuple[dict[str, Any], ...] = ()
    """Tool definitions (`name`, `description`, `input_schema`), where the log has them."""
    items: tuple[Item, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def calls(self) -> tuple[Responded, ...]:
        """The model calls, in order; their index is the call number of replay and dump."""
        return tuple(item for item in self.items if isinstance(item, Responded))
