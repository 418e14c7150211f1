"""A log as it may be shown to others: without the content that was hidden on request."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from blocks import (
    ArtifactId,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    Carried,
    CompactionSkipped,
    Event,
    RangeCompacted,
    RangeSummary,
    Recorded,
    SummaryPrepared,
    SummaryReplaced,
    withheld_after,
)
from render import Redaction, redaction_of, stand_in, without_excerpts


def without_hidden(log: Sequence[Recorded]) -> Sequence[Recorded]:
    """A log that may be shown to others: blocks that are hidden on request are replaced by their texts, and all
    quotations of them are removed."""
    withheld = {block: item.replacement for block, item in withheld_after(log).items()}
    shown = taken_back(log, withheld, withheld)
    return [(version, _nameless(event)) for version, event in shown] if withheld else log


def summary_in(log: Sequence[Recorded], name: BlockId) -> RangeSummary | None:
    """The summary with this id as it was last written; None: there is none."""
    written = (
        event for _, event in reversed(log) if isinstance(event, RangeCompacted | SummaryReplaced)
    )
    return next((event.summary for event in written if event.summary.id == name), None)


def taken_back(
    log: Sequence[Recorded], gone: Mapping[BlockId, str], withheld: Mapping[BlockId, str]
) -> Sequence[Recorded]:
    """A log in which the blocks of `gone` are replaced by texts and quotations of them are removed, even if blocks
    of `withheld`, which others do not see either, say the same."""
    if not gone:
        return log
    blocks = dict(blocks_of(log))
    hidden = {version: block for version, block in blocks.items() if block.id in gone}
    quoting = (part for _, event in log for part in _quoting(event))
    said = shown(blocks.values(), {**withheld, **gone})
    redaction = redaction_of(hidden.values(), quoting, said)
    return [(version, _without(event, hidden, gone, redaction)) for version, event in log]


def blocks_of(log: Sequence[Recorded]) -> Iterator[tuple[int, Block]]:
    """The blocks of a log and their versions; also carried ones that are not stored any more."""
    first = log[0][0] if log else 0
    for version, event in log:
        if isinstance(event, BlockAppended):
            yield version, event.block
        elif isinstance(event, RangeCompacted):
            yield from (
                (each.version, each.block) for each in event.carried if each.version < first
            )


def shown(blocks: Iterable[Block], texts: Mapping[BlockId, str]) -> Iterator[Block]:
    """The blocks, with the replacements of those that have a text."""
    for block in blocks:
        yield stand_in(block, texts[block.id]) if block.id in texts else block


def without_quotations(
    summary: RangeSummary, hidden: Collection[int], redaction: Redaction
) -> RangeSummary:
    """The summary without excerpts of the blocks with these versions, and without other quotations."""
    return redaction.redacted(without_excerpts(summary, hidden))


def _nameless(event: Event) -> Event:
    """The event without the ids of hidden artifacts, because they are hashes of the content."""
    if not isinstance(event, BlocksHidden) or event.reason != "requested":
        return event
    hidden = (replace(item, artifact=ArtifactId("")) for item in event.hidden)
    return replace(event, hidden=tuple(hidden))


def _quoting(event: Event) -> Iterator[object]:
    """The parts of an event that may quote a block."""
    match event:
        case RangeCompacted():
            yield event.summary
            yield from event.state.ordinals
        case SummaryReplaced() | SummaryPrepared():
            yield event.summary
        case BlocksHidden() if event.reason != "requested":
            yield from ((item.replacement, item.dropped) for item in event.hidden)
        case CompactionSkipped():
            yield event.detail
        case _:
            pass


def _without(
    event: Event, hidden: Collection[int], gone: Mapping[BlockId, str], redaction: Redaction
) -> Event:
    match event:
        case BlockAppended():
            [block] = shown([event.block], gone)
            return replace(event, block=block)
        case RangeCompacted():
            names = event.state.ordinals.items()
            left = {name: number for name, number in names if not redaction.quotes(name)}
            return replace(
                event,
                summary=without_quotations(event.summary, hidden, redaction),
                carried=tuple(_carried(each, gone) for each in event.carried),
                state=replace(event.state, ordinals=left),
            )
        case SummaryReplaced():
            return replace(event, summary=without_quotations(event.summary, hidden, redaction))
        case SummaryPrepared():
            return replace(event, summary=redaction.redacted(event.summary))
        case BlocksHidden() if event.reason != "requested":
            texts = (
                replace(
                    item,
                    replacement=redaction.masked(item.replacement),
                    dropped=redaction.redacted(item.dropped),
                )
                for item in event.hidden
            )
            return replace(event, hidden=tuple(texts))
        case CompactionSkipped():
            return replace(event, detail=redaction.masked(event.detail))
        case _:
            return event


def _carried(item: Carried, gone: Mapping[BlockId, str]) -> Carried:
    if item.block.id not in gone:
        return item
    text = gone[item.block.id]
    return replace(item, block=stand_in(item.block, text), clipped=text if item.clipped else "")
