"""The neutral form of a session, which every importer returns."""

from typing import Any, TypeAlias

import attrs
from msgspec.structs import replace

from blocks import Block, UsageRecorded


@attrs.frozen(kw_only=True)
class Arrived:
    """Blocks that the model did not write: the user's text, attachments, tool results, notices."""

    at: float
    """Seconds since the epoch; never earlier than the item before."""
    blocks: tuple[Block, ...]


@attrs.frozen(kw_only=True)
class Responded:
    """One model response, that is one *call*; parts that the log splits are joined."""

    at: float
    """When the call was made: the time of the last line logged before the response."""
    id: str
    blocks: tuple[Block, ...]
    """Thinking, text and tool calls, in order; never empty."""
    model: str = ""
    usage: UsageRecorded | None = None
    """The usage that the log reports; its fields `id` and `at` are placeholders. None: not reported."""

    @property
    def spent(self) -> UsageRecorded | None:
        """The usage, as that of the response's model."""
        return self.usage and replace(self.usage, model=self.model)


Item: TypeAlias = Arrived | Responded
"""A step of a session."""


@attrs.frozen(kw_only=True)
class Notice:
    """Something in the file that was skipped or repaired."""

    line: int
    """Line number in the file, from 1; 0: no particular line."""
    text: str


@attrs.frozen(kw_only=True)
class Session:
    """A recorded session with its whole history, without compactions."""

    name: str
    format: str
    id: str = ""
    """The agent's own name of the conversation, which several files may share; empty: the log has none."""
    title: str = ""
    """What the agent or its user called it; empty: nothing."""
    folder: str = ""
    """The folder in which the agent worked; empty: the log does not say."""
    model: str = ""
    """The model of most responses, of several the latest; if none names one, what else the log names; else empty."""
    system: str = ""
    """The system prompt; empty if the log does not have it."""
    tools: tuple[dict[str, Any], ...] = ()
    """Tool definitions (`name`, `description`, `input_schema`); empty if the log does not have them."""
    window: int = 0
    """The most tokens of a prompt, as the log says; 0: it does not."""
    items: tuple[Item, ...] = ()
    aside: tuple[UsageRecorded, ...] = ()
    """The usage of responses that are in no item: broken off while thinking, or of a sub-agent. `at` is 0 if the log
    does not tell it."""
    notices: tuple[Notice, ...] = ()
    conversations: int = 1
    """How many the file has; the session is one of them."""

    @property
    def calls(self) -> tuple[Responded, ...]:
        """The model calls, in order; their index is the call number in a replay and its dump."""
        return tuple(item for item in self.items if isinstance(item, Responded))
