"""Confidential results: their content is in the artifact store, and the log only has its id.

    in the log      stands_for(block): a sentence in place of the parts, and the artifact's id
    in memory       the block with its parts and the id; `sealed` makes of it what is written
    artifact        `SealedContent` as JSON: the parts, and a text that nobody can guess, so that the id, a hash
                    of it all, is no way to try out what a short content may be

Everything is sealed before it is written, and opened after it is read, before a model sees it.
"""

from typing import Final

import msgspec
from msgspec import Struct

from blocks._block import Block, ToolResult
from blocks._content import Part, TextPart
from blocks._errors import CodecError
from blocks._events import BlockAppended, Event

STANDS_FOR: Final = "[confidential: kept apart from the log, as artifact {}]"
GONE: Final = "[confidential: its content is not shown any more ({}); it was artifact {}]"


class SealedContent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a confidential result, as stored in an artifact."""

    parts: tuple[Part, ...]
    salt: str
    expires_at: float = 0.0
    """As its description says; 0: never."""


def is_sealed(block: Block) -> bool:
    """Whether a block is a result whose content is not in the log."""
    return isinstance(block, ToolResult) and bool(block.artifact)


def stands_for(block: Block) -> Block:
    """The form of a block that may be written and quoted: for a sealed result, a sentence and the artifact's id."""
    if not isinstance(block, ToolResult) or not block.artifact:
        return block
    parts = (TextPart(text=STANDS_FOR.format(block.artifact)),)
    return block if block.parts == parts else msgspec.structs.replace(block, parts=parts)


def without_content(block: ToolResult, reason: str) -> ToolResult:
    """A sealed result whose content is not available."""
    parts = (TextPart(text=GONE.format(reason, block.artifact)),)
    return msgspec.structs.replace(block, parts=parts)


def sealed(event: Event) -> Event:
    """The event as it is written."""
    if not isinstance(event, BlockAppended) or not is_sealed(event.block):
        return event
    return msgspec.structs.replace(event, block=stands_for(event.block))


def encode_content(content: SealedContent) -> bytes:
    """The bytes of the artifact."""
    return msgspec.json.encode(content)


def decode_content(data: bytes) -> SealedContent:
    """What an artifact holds.

    Raises:
        CodecError: it is the artifact of something else.
    """
    try:
        return msgspec.json.decode(data, type=SealedContent)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CodecError(f"no content of a confidential result: {error}") from error
