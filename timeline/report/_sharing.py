"""What of a log may be shown to others: neither what is hidden on request nor what is confidential."""

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
from timeline.engine._sharing import taken_back, without_hidden

CONFIDENTIAL: Final = "[confidential]"


def shareable(log: Sequence[Recorded]) -> Sequence[Recorded]:
    """The log without what is hidden on request and without confidential results that stand in it, as in
    a store in memory; nothing quotes them. The log itself, if there is nothing of the kind."""
    shown = without_hidden(log)
    secret = {
        event.block.id: CONFIDENTIAL
        for _, event in shown
        if isinstance(event, BlockAppended) and _is_open_secret(event)
    }
    return taken_back(shown, secret, secret)


def changes_what_is_shared(event: Event) -> bool:
    """Whether what was shown before this event may not be shown any more, or more may be."""
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
