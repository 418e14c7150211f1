"""What a provider put into an answer that this version only passes on.

Tools that the provider runs itself, and its own compaction, come as content blocks that nobody but
the provider reads.  The recorder keeps them whole; here is what the other stages must know of them.
"""

from typing import Any, TypeAlias, cast

from blocks import PROVIDER_TAG, AssistantBlock, Block, OpaqueBlock

Json: TypeAlias = dict[str, Any]
"""A JSON object."""


def verbatim(block: Block) -> Json | None:
    """The provider's own content block, if the block is one."""
    if not isinstance(block, OpaqueBlock) or not block.tag.startswith(PROVIDER_TAG):
        return None
    value: object = block.fields.get("value")
    known = block.author == "assistant" and response_of(block)
    return cast("Json", value) if known and isinstance(value, dict) else None


def response_of(block: Block) -> str:
    """Id of the model response that contained a block, if it is known."""
    if isinstance(block, AssistantBlock):
        return block.response
    response: object = block.fields.get("response", "") if isinstance(block, OpaqueBlock) else ""
    return response if isinstance(response, str) else ""


def is_server_compaction(block: Block) -> bool:
    """Whether the provider itself has summarised all that precedes this block.

    Without a word in it (a compaction that failed) it stands for nothing, and nothing goes.
    """
    content = verbatim(block) or {}
    text: object = content.get("content")
    return content.get("type") == "compaction" and isinstance(text, str) and bool(text.strip())
