"""Filters a log for readers: without blocks hidden on request and without confidential results."""

from collections.abc import Sequence
from typing import Final

from blocks import (
    ENCRYPTED,
    BlockAppended,
    BlocksHidden,
    BlocksRestored,
    Event,
    Recorded,
    ToolResult,
    is_sealed,
)
from timeline.engine._hiding import taken_back, without_hidden

CONFIDENTIAL: Final = "[confidential]"


def shareable(log: Sequence[Recorded]) -> Sequence[Recorded]:
    """The log without blocks hidden on request and without confidential results, which a store in memory may
    hold, and without quotations of them. The same object if there is nothing to remove."""
    shown = without_hidden(log)
    secret = {
        event.block.id: CONFIDENTIAL
        for _, event in shown
        if isinstance(event, BlockAppended) and _is_open_secret(event)
    }
    return taken_back(shown, secret, secret)


def changes_what_is_shared(event: Event) -> bool:
    """Whether this event changes which of the earlier blocks may be shown."""
    match event:
        case BlocksHidden():
            return event.reason == "requested"
        case BlockAppended():
            return _is_open_secret(event)
        case _:
            return isinstance(event, BlocksRestored)


def _is_open_secret(event: BlockAppended) -> bool:
    block = event.block
    if not isinstance(block, ToolResult) or is_sealed(block):
        return False
    return block.envelope.sensitivity in ENCRYPTED
