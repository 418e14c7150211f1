"""A log as it may be shown to others: without the content that was hidden on request."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from blocks import (
    ArtifactId,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    Event,
    OpaqueEvent,
    RangeCompacted,
    Recorded,
    SummaryPrepared,
    SummaryReplaced,
)
from render import Redaction, redaction_of, stand_in, without_excerpts


def withheld_in(
    log: Iterable[Recorded], before: Mapping[BlockId, str] = MappingProxyType({})
) -> dict[BlockId, str]:
    """The text that stands for each block that is hidden on request after a log; `before` has those hidden before
    the log."""
    found = dict(before)
    for _, event in log:
        if isinstance(event, BlocksHidden) and event.reason == "requested":
            found |= {item.block: item.replacement for item in event.hidden}
        elif isinstance(event, BlocksRestored):
            for block in event.blocks:
                found.pop(block, None)
    return found


def without_hidden(log: Sequence[Recorded]) -> Sequence[Recorded]:
    """A log that may be shown to others: blocks that are hidden on request are replaced by their texts, and all
    quotations of them are removed."""
    withheld = withheld_in(log)
    shown = taken_back(log, withheld, withheld)
    return [(version, _nameless(event)) for version, event in shown] if withheld else log


def taken_back(
    log: Sequence[Recorded], gone: Mapping[BlockId, str], withheld: Collection[BlockId]
) -> Sequence[Recorded]:
    """A log in which the blocks of `gone` are replaced by texts and quotations of them are removed, even if blocks
    of `withheld` say the same."""
    if not gone:
        return log
    blocks = {v: e.block for v, e in log if isinstance(e, BlockAppended)}
    hidden = {version: block for version, block in blocks.items() if block.id in gone}
    said = (block for block in blocks.values() if block.id not in gone and block.id not in withheld)
    quoting = [e for _, e in log if not isinstance(e, BlockAppended | OpaqueEvent)]
    redaction = redaction_of(hidden.values(), quoting, said)
    return [(version, _without(event, hidden, gone, redaction)) for version, event in log]


def _nameless(event: Event) -> Event:
    """The event without the ids of hidden artifacts, because they are hashes of the content."""
    if not isinstance(event, BlocksHidden) or event.reason != "requested":
        return event
    hidden = (msgspec.structs.replace(item, artifact=ArtifactId("")) for item in event.hidden)
    return msgspec.structs.replace(event, hidden=tuple(hidden))


def _without(
    event: Event,
    hidden: Mapping[int, Block],
    withheld: Mapping[BlockId, str],
    redaction: Redaction,
) -> Event:
    def shown(block: Block) -> Block:
        return stand_in(block, withheld[block.id]) if block.id in withheld else block

    match event:
        case BlockAppended():
            return msgspec.structs.replace(event, block=shown(event.block))
        case RangeCompacted() | SummaryReplaced():
            summary = redaction.redacted(without_excerpts(event.summary, hidden))
            event = msgspec.structs.replace(event, summary=summary)
            if isinstance(event, SummaryReplaced):
                return event
            carried = tuple(
                msgspec.structs.replace(
                    each,
                    block=shown(each.block),
                    clipped=withheld[each.block.id] if each.clipped else "",
                )
                if each.block.id in withheld
                else each
                for each in event.carried
            )
            return msgspec.structs.replace(event, carried=carried)
        case SummaryPrepared():
            return msgspec.structs.replace(event, summary=redaction.redacted(event.summary))
        case BlocksHidden():
            texts = (
                msgspec.structs.replace(
                    item,
                    replacement=redaction.masked(item.replacement),
                    dropped=redaction.redacted(item.dropped),
                )
                for item in event.hidden
            )
            return msgspec.structs.replace(event, hidden=tuple(texts))
        case _:
            return event
