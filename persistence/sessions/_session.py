"""The neutral form of a session, which every importer returns."""

from typing import Any, TypeAlias

import attrs

from blocks import Block, UsageRecorded


@attrs.frozen(kw_only=True)
class Arrived:
    """Content by others than the model: user texts, attachments, tool results, notices."""

    at: float
    """Seconds since the epoch; never earlier than the item before."""
    blocks: tuple[Block, ...]


@attrs.frozen(kw_only=True)
class Responded:
    """One model response, that is one *call*; split and parallel parts are joined."""

    at: float
    """When the call was made: the time of the last entry logged before the response."""
    id: str
    blocks: tuple[Block, ...]
    """Thinking, text and tool calls, in order; never empty."""
    model: str = ""
    usage: UsageRecorded | None = None
    """The usage of the call according to the log; its `id` and `at` are placeholders."""


Item: TypeAlias = Arrived | Responded
"""An item of a session."""


@attrs.frozen(kw_only=True)
class Notice:
    """A part of the file that was skipped or repaired."""

    line: int
    """Line number in the file from 1; 0: no particular line."""
    text: str


@attrs.frozen(kw_only=True)
class Session:
    """A recorded session over its full, uncompacted history."""

    name: str
    format: str
    model: str = ""
    """The recorded model; that of the first response that names one."""
    system: str = ""
    """The system prompt, if the log has it."""
    tools: tuple[dict[str, Any], ...] = ()
    """Tool definitions (`name`, `description`, `input_schema`), if the log has them."""
    items: tuple[Item, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def calls(self) -> tuple[Responded, ...]:
        """The model calls, in order; their index is the call number in a replay and its dump."""
        return tuple(item for item in self.items if isinstance(item, Responded))
