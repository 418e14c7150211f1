"""The last pass over a session's items: times that never run backwards, ids in order."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import msgspec

from blocks import Block, BlockId, TurnHeader
from persistence.sessions._session import Item


def clocked(items: Sequence[Item]) -> Iterator[Item]:
    """The items with times that never decrease; items before the first known time get that time."""
    clock = next((item.at for item in items if item.at > 0), 0.0)
    for item in items:
        clock = max(clock, item.at)
        yield attrs.evolve(item, at=clock)


def numbered(items: Iterable[Item]) -> Iterator[Item]:
    """The items with block ids numbered in order, so that the same file always gives the same ids."""
    n = 0
    for item in items:
        blocks: list[Block] = []
        for block in item.blocks:
            n += 1
            blocks.append(_placed(block, BlockId(f"b{n}"), item.at))
        yield attrs.evolve(item, blocks=tuple(blocks))


def _placed(block: Any, block_id: BlockId, at: float) -> Block:
    if isinstance(block, TurnHeader):
        return msgspec.structs.replace(block, id=block_id, started_at=at)
    placed: Block = msgspec.structs.replace(block, id=block_id)
    return placed
