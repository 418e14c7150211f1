"""Blocks as callers append them: of the kinds that there are, with the fields that those have.

More is not asked of them.  What was recorded elsewhere comes in this way, and recorded logs hold
results without calls, ids that repeat, images that a redaction has made unreadable.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from blocks import (
    Block,
    DocumentPart,
    ImagePart,
    MisuseError,
    OpaqueBlock,
    canonical_block,
    encode_block,
    images_of,
    in_words,
    is_web_url,
    tag_of,
)
from timeline.arguments._checks import checked_text, checked_words


def checked_blocks(blocks: Sequence[Block]) -> list[Block]:
    """The blocks as they will be read back.

    Raises:
        MisuseError: one is no block, has no id, a field of a wrong type, or a url that is none.
        CodecError: one holds what JSON cannot.
    """
    return [_checked(block, f"block {n} of the append") for n, block in enumerate(blocks, 1)]


def _checked(block: Any, call: str) -> Block:
    if not isinstance(block, Block | OpaqueBlock):
        raise MisuseError(f"{call} is no block but {in_words(block)}; see the classes of `blocks`")
    _check_names(block, call)
    made = canonical_block(block)
    if isinstance(made, OpaqueBlock) and not isinstance(block, OpaqueBlock):
        raise MisuseError(f"{call} is no {tag_of(block)}: {_reason(block)}")
    for part in images_of(made):
        if isinstance(part, ImagePart | DocumentPart) and part.url and not is_web_url(part.url):
            raise MisuseError(f"{call}: {in_words(part.url)} is no http(s) url")
    return made


def _check_names(block: Block, call: str) -> None:
    """Ids that would be spelled differently once stored would not be found again."""
    if isinstance(block, OpaqueBlock):
        checked_words(block.tag, call, "the tag")
        fields: Any = block.fields
        if not isinstance(fields, dict):
            raise MisuseError(f"{call}: the fields are a dict, not {in_words(fields)}")
        named = block.fields.get("id"), block.fields.get("turn", "")
    else:
        named = block.id, block.turn
    checked_words(named[0], call, "the id")
    checked_text(named[1], call, "the turn")


def _reason(block: Block) -> str:
    """What the decoder says about a block that it does not take."""
    try:
        msgspec.json.decode(encode_block(block), type=type(block))
    except msgspec.ValidationError as error:
        return str(error)
    return "it cannot be read back"
