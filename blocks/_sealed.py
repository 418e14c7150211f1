"""Confidential results: their content is in the artifact store, and the log has only the id of the artifact.

    in the log      stands_for(block): a sentence instead of the parts, and the artifact's id
    in memory       the block with its parts and the id; `sealed` returns the form for the log
    artifact        `SealedContent` as JSON: the parts, and a random salt. The id is a hash of both, so that short
                    content cannot be found by trying.

Every event is sealed before it is written, and every block is opened before it is shown to a model.
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
    """When its artifact expires, in seconds since the epoch; 0: never."""


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
    """The event as it is written to the log."""
    if not isinstance(event, BlockAppended) or not is_sealed(event.block):
        return event
    return msgspec.structs.replace(event, block=stands_for(event.block))


def encode_content(content: SealedContent) -> bytes:
    """The bytes of the artifact."""
    return msgspec.json.encode(content)


def decode_content(data: bytes) -> SealedContent:
    """The content in the bytes of an artifact.

    Raises:
        CodecError: the artifact has other content.
    """
    try:
        return msgspec.json.decode(data, type=SealedContent)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CodecError(f"this is not the content of a confidential result: {error}") from error
