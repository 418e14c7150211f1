"""What is decided when blocks are hidden on request or shown again: pure functions of a view and its log.

If a block is hidden while it is visible, nothing later can quote it, because the view holds only its
replacement.  If a compaction has already folded it, or a rung has quoted it in a pointer, the quotations are removed:
the summary in force, and the texts of pointers and dropped spans, are replaced by what they say without the block.
A past view, and a fork that begins there, are decided upon in the same way: what is hidden now is hidden in them, too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from typing import Final, Self

import attrs
import msgspec
from msgspec.structs import replace

from blocks import (
    Block,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    Envelope,
    Event,
    EventId,
    Hidden,
    HideReason,
    RangeCompacted,
    RangeSummary,
    Recorded,
    SummaryReplaced,
    ToolCall,
    ToolResult,
    images_of,
    withheld_after,
    withheld_in,
)
from render import Compaction, Entry, Redaction, View, decide, redaction_of, said_by, stand_in
from timeline.engine._sharing import blocks_of, shown, without_quotations

FORGOTTEN: Final = "[forgotten on request]"
"""The text in place of a forgotten block, also in the log."""


@attrs.frozen(kw_only=True)
class Hides:
    """What is hidden on request in a timeline, for those that continue it."""

    by_block: Mapping[BlockId, Hidden] = attrs.field(factory=dict[BlockId, Hidden])
    by_content: Mapping[bytes, Hidden] = attrs.field(factory=dict[bytes, Hidden])
    """The same by what the blocks say and no visible block does, because a program that goes back and on again sends
    them once more."""

    @classmethod
    def of(cls, log: Sequence[Recorded]) -> Self:
        """The hides of this log."""
        hidden = withheld_after(log)
        blocks = [block for _, block in blocks_of(log)] if hidden else []
        said = {_content(block): hidden[block.id] for block in blocks if block.id in hidden}
        shown = (_content(block) for block in blocks if block.id not in hidden)
        for content in (_content(), *shown):
            said.pop(content, None)
        return cls(by_block=hidden, by_content=said)

    def __or__(self, other: Self) -> Self:
        return attrs.evolve(
            self,
            by_block={**self.by_block, **other.by_block},
            by_content={**self.by_content, **other.by_content},
        )

    def again(self, blocks: Iterable[Block], there: Collection[BlockId]) -> Iterator[Hidden]:
        """The hides of blocks that say what a hidden block says that is not among those `there`."""
        for block in blocks if self.by_content else ():
            found = self.by_content.get(_content(block))
            if found is None and isinstance(block, ToolResult):  # as the log has a confidential one
                found = self.by_content.get(_content(replace(block, parts=(), envelope=Envelope())))
            if found and found.block not in there:
                yield replace(found, block=block.id)


def _content(block: Block | None = None) -> bytes:
    """What a block says, or what one says that says nothing."""
    if block is None:
        return msgspec.json.encode(("", "", ()))
    call = block.call_id if isinstance(block, ToolCall | ToolResult) else ""
    return msgspec.json.encode((call, said_by(block).strip(), images_of(block)))


def is_forgotten(block: Block) -> bool:
    """Whether only a placeholder of a block is left."""
    return stand_in(block, FORGOTTEN) == block


def withheld_as(
    view: View, log: Sequence[Recorded], now: Mapping[BlockId, Hidden], at: float
) -> View:
    """The view after decisions by which those blocks of its log are hidden on request that are in `now`, and no
    others; `log` has the events up to the view's version."""
    known = view.state.withheld
    if not known and not now:
        return view
    there = {block.id for _, block in blocks_of(log)}
    if not known and there.isdisjoint(now):
        return view
    hidden = [item for block, item in now.items() if block in there and block not in known]
    after = changed(view, hidden, [block for block in known if block not in now], at)
    # Even if nothing changes: the events that removed quotations came after those that hid the blocks.
    return without_quotes(after, log, at)


def changed(view: View, hidden: Sequence[Hidden], restored: Collection[BlockId], at: float) -> View:
    """The view after decisions that hide some blocks on request and show others again."""
    events: list[Event] = []
    if hidden:
        events.append(_hides(at, hidden, "requested"))
        # A dropped span is shown as one line at its first block; that line stays.
        entries = (view.find(item.block) for item in hidden)
        dropped = [_as_shown(e, e) for e in entries if e and e.hidden_as == "dropped"]
        events += [_hides(at, dropped, "dropped", redacted=True)] if dropped else []
    if restored:
        events.append(BlocksRestored(id=EventId(""), at=at, blocks=tuple(restored)))
        lines = [*_next_lines(view, frozenset(restored))]
        events += [_hides(at, lines, "dropped", redacted=True)] if lines else []
    return reduce(decide, events, view)


def without_quotes(view: View, log: Sequence[Recorded], at: float) -> View:
    """The view after decisions that remove quotations of what is hidden on request from its summary and from
    replacements, and bring back to the summary those of other blocks; `log` lacks the decisions so far."""
    blocks = dict(blocks_of(log))
    texts = _texts(view, log)
    hidden = {v: b for v, b in blocks.items() if b.id in texts and not is_forgotten(b)}
    is_all = texts.keys() <= {block.id for block in blocks.values()}
    fold = view.compaction
    written = _written(fold, log if is_all else ()) if fold else None
    quoting = [e for e in view.entries if e.replacement and e.hidden_as not in (None, "requested")]
    parts = [written, *((entry.replacement, entry.dropped) for entry in quoting)]
    redaction = redaction_of(hidden.values(), parts, shown(blocks.values(), texts))
    events: list[Event] = []
    if fold and written:
        new = without_quotations(written, hidden, redaction)
        if new != fold.event.summary:
            events.append(_rewritten(fold, new, at))
    for reason, entries in groupby(quoting, key=_reason):
        masked = [(e, _masked(e, redaction)) for e in entries]
        differing = [_as_shown(entry, left) for entry, left in masked if left is not entry]
        events += [_hides(at, differing, reason, redacted=True)] if reason and differing else []
    return reduce(decide, events, view)


def _reason(entry: Entry) -> HideReason | None:
    return entry.hidden_as


def _texts(view: View, log: Sequence[Recorded]) -> dict[BlockId, str]:
    """What is shown in place of each block that is hidden on request."""
    decided = ((view.version, event) for event in view.decisions)
    now = withheld_in(decided, withheld_after(log))
    return {block: item.replacement for block, item in now.items()}


def _written(compaction: Compaction, log: Sequence[Recorded]) -> RangeSummary:
    """The summary in force as the log has it; without a log as it is now, because quotations of blocks that are not
    stored any more would not be found again."""
    written = compaction.event.summary
    for version, event in log:
        match event:
            case RangeCompacted() if version == compaction.version:
                written = event.summary
            case SummaryReplaced(redacted=False) if event.compaction == compaction.version:
                written = event.summary
            case _:
                pass
    return written


def _rewritten(compaction: Compaction, summary: RangeSummary, at: float) -> SummaryReplaced:
    return SummaryReplaced(
        id=EventId(""),
        at=at,
        compaction=compaction.version,
        summary=summary,
        provenance=compaction.event.provenance,
        redacted=True,
    )


def _hides(
    at: float, hidden: Sequence[Hidden], reason: HideReason, *, redacted: bool = False
) -> BlocksHidden:
    return BlocksHidden(
        id=EventId(""), at=at, hidden=tuple(hidden), reason=reason, redacted=redacted
    )


def _as_shown(entry: Entry, shown: Entry) -> Hidden:
    """The `Hidden` record that makes `entry` appear as `shown` does."""
    return Hidden(
        block=entry.block.id,
        replacement=shown.replacement or "",
        artifact=shown.artifact,
        dropped=shown.dropped,
        head=shown.ends[0],
        tail=shown.ends[1],
    )


def _next_lines(view: View, restored: Collection[BlockId]) -> Iterator[Hidden]:
    """For each dropped span whose first block is restored: the record that moves its line to its next block."""
    line: Entry | None = None
    for entry in view.entries:
        if entry.dropped:
            line = entry if entry.block.id in restored else None
        elif line and line.dropped and entry.version > line.dropped.last:
            line = None
        elif line and entry.hidden_as == "dropped" and entry.block.id not in restored:
            yield _as_shown(entry, line)
            line = None


def _masked(entry: Entry, redaction: Redaction) -> Entry:
    """A hidden entry without quotations of other hidden blocks in its replacement."""
    text, span = redaction.masked(entry.replacement or ""), redaction.redacted(entry.dropped)
    if text == entry.replacement and span == entry.dropped:
        return entry
    return replace(entry, replacement=text, dropped=span)
