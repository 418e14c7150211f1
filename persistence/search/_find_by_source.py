"""The block that came from a foreign message, found in a log that need not fit into memory."""

from blocks import AssistantBlock, Block, BlockAppended, OpaqueBlock, TimelineId
from persistence._store import EventStore
from persistence.search._scan import index_of


def source_at(store: EventStore, timeline: TimelineId, source: str) -> int:
    """Version of the newest block that came from the foreign message, item or response with this id; 0: none of the
    blocks that are left.

    Raises:
        ClosedError: the store is closed.
    """
    found = index_of(store).candidates((source.casefold(),), (), timeline)
    return max(
        (
            version
            for _, (version, event) in found
            if isinstance(event, BlockAppended) and source in _ids(event.block)
        ),
        default=0,
    )


def _ids(block: Block) -> tuple[str, ...]:
    if isinstance(block, AssistantBlock):
        return block.source, block.response
    if isinstance(block, OpaqueBlock):
        return block.source, str(block.fields.get("response", ""))
    return (block.source,)
