"""Content blocks that only the provider understands, and that are sent back unchanged.

They come from tools that the provider runs itself, and from its own compaction. They are recorded whole;
this module gives what the stages need to know of them.
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
    """Whether the block is a summary by the provider of everything before it.

    An empty one (a failed compaction) does not count: nothing is left out because of it.
    """
    content = verbatim(block) or {}
    text: object = content.get("content")
    return content.get("type") == "compaction" and isinstance(text, str) and bool(text.strip())
