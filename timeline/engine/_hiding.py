"""Hiding and restoring blocks on request, with everything that quotes them.

If a block is hidden while it is visible, nothing later can quote it, because the view holds only its
replacement.  If a compaction has already folded it, or a rung has quoted it in a pointer, the quotations are removed
in the same commit: the summaries in force, and the texts of pointers and dropped spans, are replaced by what they
would say without the block.  This reads the log once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from typing import Final, TypeAlias

import attrs
from msgspec.structs import replace

from blocks import (
    ArtifactId,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    Event,
    EventId,
    Hidden,
    HideReason,
    Provenance,
    RangeCompacted,
    RangeExpanded,
    RangeSummary,
    Recorded,
    SummaryReplaced,
    ToolResult,
    artifact_id,
    text_of,
)
from render import Entry, Redaction, View, decide, redaction_of, stand_in, without_excerpts
from timeline._flow import Flow
from timeline.engine._engine import Engine

REPLACEMENT: Final = "[hidden on request]"
"""The default text in place of a hidden block."""
FORGOTTEN: Final = "[forgotten on request]"
"""The text in place of a forgotten block, also in the log."""
_Log: TypeAlias = Sequence[Recorded]


@attrs.frozen
class Target:
    """A block that is to be hidden or restored."""

    version: int
    block: Block
    """The block as it was appended."""
    entry: Entry | None = None
    """The block's entry in the view; None: it is folded."""


def hide(engine: Engine, keys: Sequence[str], replacement: str) -> Flow[int]:
    """Hide blocks, named by path or id, behind a text, and remove quotations of them.

    Raises:
        UnknownPathError: a key names no block.
    """
    return (yield from _settled(engine, lambda: _hidden(engine, keys, replacement or REPLACEMENT)))


def restore(engine: Engine, keys: Sequence[str]) -> Flow[int]:
    """Show hidden blocks again, and restore the quotations of them in current summaries.

    Raises:
        UnknownPathError: a key names no block.
    """
    return (yield from _settled(engine, lambda: _restored(engine, keys)))


def _settled(engine: Engine, plan: Callable[[], Flow[list[Event]]]) -> Flow[int]:
    """Commit the events that `plan` returns for the current view; plan again if another writer was faster."""
    engine.check_open()

    def settled() -> Flow[int]:
        events = yield from plan()
        return (yield from engine.settle(reduce(decide, events, engine.view)))

    return (yield from engine.repeated(settled))


def _hidden(engine: Engine, keys: Sequence[str], text: str) -> Flow[list[Event]]:
    now, view = engine.clock(), engine.view
    targets = yield from targets_of(engine, keys)
    hidden = tuple(
        Hidden(block=t.block.id, replacement=text, artifact=content_id(t.block)) for t in targets
    )
    events: list[Event] = [BlocksHidden(id=EventId(""), at=now, hidden=hidden, reason="requested")]
    # A dropped span is shown as one line at its first block; that line stays.
    entries = [target.entry for target in targets if target.entry]
    dropped = [_as_shown(entry, entry) for entry in entries if entry.hidden_as == "dropped"]
    if dropped:
        events.append(_dropping(now, dropped))
    after = reduce(decide, events, view)
    rewritten = yield from _rewritten(engine, targets, after.state.withheld, after)
    return [*events, *rewritten]


def _restored(engine: Engine, keys: Sequence[str]) -> Flow[list[Event]]:
    now, view = engine.clock(), engine.view
    targets = yield from targets_of(engine, keys)
    blocks = tuple(target.block.id for target in targets)
    events: list[Event] = [BlocksRestored(id=EventId(""), at=now, blocks=blocks)]
    lines = [line for target in targets for line in _next_line(target.entry, view, blocks)]
    if lines:
        events.append(_dropping(now, lines))
    after = reduce(decide, events, view)
    if after.state.withheld == view.state.withheld:
        return events
    rewritten = yield from _rewritten(engine, targets, after.state.withheld, after)
    return [*events, *rewritten]


def targets_of(engine: Engine, keys: Sequence[str]) -> Flow[list[Target]]:
    """The blocks with these paths or ids, whether visible or folded."""
    found: list[Target] = []
    log: _Log | None = None
    for key in dict.fromkeys(keys):
        known = engine.view.find(key)
        if known is not None and known.version:
            found.append(Target(known.version, known.source, known))
            continue
        log = log or (yield from engine.events())
        found.append((yield from _folded(engine, key, log)))
    return found


def _folded(engine: Engine, key: str, log: _Log) -> Flow[Target]:
    """A block that the view does not find by this key: it is folded, or the key is its version label."""
    there = {e.block.id: Target(v, e.block) for v, e in log if isinstance(e, BlockAppended)}
    if (target := there.get(BlockId(key))) is not None:
        return target
    block: Block = yield from engine.read(key)
    if (target := there.get(block.id)) is None:  # a summary; it cannot be hidden
        raise (yield from engine.unknown(key))
    seen = engine.view.find(block.id)  # a block named by its version label may still be visible
    return attrs.evolve(target, entry=seen if seen and seen.version == target.version else None)


def content_id(block: Block) -> ArtifactId:
    """The id of the artifact that holds a result's content when it is externalized; empty for other blocks."""
    if not isinstance(block, ToolResult):
        return ArtifactId("")
    return block.artifact or artifact_id(text_of(block).encode(errors="surrogatepass"))


def is_forgotten(block: Block) -> bool:
    """Whether only a placeholder of a block is left."""
    return stand_in(block, FORGOTTEN) == block


# Dropped spans: shown as one line, in the place of the first block.


def _dropping(now: float, hidden: Sequence[Hidden]) -> BlocksHidden:
    return _shown_anew(now, hidden, "dropped")


def _shown_anew(now: float, hidden: Sequence[Hidden], reason: HideReason) -> BlocksHidden:
    return BlocksHidden(id=EventId(""), at=now, hidden=tuple(hidden), reason=reason, redacted=True)


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


def _next_line(entry: Entry | None, view: View, restored: Collection[BlockId]) -> Iterator[Hidden]:
    """If the first block of a dropped span is restored, the record that moves the span's line to its next block."""
    span = entry.dropped if entry else None
    if entry is None or span is None:
        return
    for other in view.entries:
        in_span = span.first <= other.version <= span.last and other.hidden_as == "dropped"
        if in_span and other.block.id not in restored:
            yield _as_shown(other, entry)
            return


# Quotations.


def _rewritten(
    engine: Engine, targets: Sequence[Target], withheld: Collection[BlockId], view: View
) -> Flow[list[Event]]:
    """The events that remove quotations of blocks in `withheld` from summaries and replacements, or restore them;
    `view` already has the targets hidden or restored.

    Empty if no target is older than the newest compaction, because only a compaction quotes blocks.
    """
    if all(target.version >= view.compacted for target in targets):
        return []
    log = yield from engine.events()
    blocks = {v: e.block for v, e in log if isinstance(e, BlockAppended)}
    hidden = {v: b for v, b in blocks.items() if b.id in withheld and not is_forgotten(b)}
    said = [block for block in blocks.values() if block.id not in withheld]
    are_gone = log[0][0] > 1 and not set(withheld) <= {block.id for block in blocks.values()}
    now = engine.clock()
    made: list[Event] = [
        SummaryReplaced(
            id=EventId(""),
            at=now,
            compaction=version,
            summary=new,
            provenance=written.provenance,
            redacted=True,
        )
        for version, written in _in_force(log, are_gone=are_gone).items()
        if (new := _redacted(version, written, hidden, said)) != written.current
    ]
    quoting = [e for e in view.entries if e.replacement and e.hidden_as != "requested"]
    masks = [(entry.replacement, entry.dropped) for entry in quoting]
    redaction = redaction_of(hidden.values(), masks, said)
    for reason, entries in groupby(quoting, key=_reason):
        masked = [
            _as_shown(e, changed) for e in entries if (changed := _masked(e, redaction)) is not e
        ]
        if masked and reason:
            made.append(_shown_anew(now, masked, reason))
    return made


@attrs.frozen
class _Written:
    """A current summary: as it was written, and as it is shown now."""

    base: RangeSummary
    current: RangeSummary
    provenance: Provenance | None


def _in_force(log: _Log, *, are_gone: bool) -> dict[int, _Written]:
    """The summaries of all compactions that were not undone, by the compaction's version.

    If hidden blocks are no longer stored (`are_gone`), quotations of them cannot be restored, so redacted summaries
    stay redacted.
    """
    found: dict[int, _Written] = {}
    for version, event in log:
        match event:
            case RangeCompacted(summary=summary, provenance=provenance):
                found[version] = _Written(summary, summary, provenance)
            case RangeExpanded(compaction=undone):
                found.pop(undone, None)
            case SummaryReplaced(compaction=of, summary=summary, provenance=provenance):
                if of in found:
                    base = found[of].base if event.redacted and not are_gone else summary
                    found[of] = _Written(base, summary, provenance)
            case _:
                pass
    return found


def _redacted(
    version: int, written: _Written, hidden: Mapping[int, Block], said: Iterable[Block]
) -> RangeSummary:
    """The summary of a compaction without quotations of hidden blocks."""
    older = {seen: block for seen, block in hidden.items() if seen < version}
    summary = without_excerpts(written.base, older)
    return redaction_of(older.values(), [summary], said).redacted(summary)


def _masked(entry: Entry, redaction: Redaction) -> Entry:
    """A hidden entry without quotations of other hidden blocks in its replacement."""
    text, span = redaction.masked(entry.replacement or ""), redaction.redacted(entry.dropped)
    if text == entry.replacement and span == entry.dropped:
        return entry
    return replace(entry, replacement=text, dropped=span)


def _reason(entry: Entry) -> HideReason | None:
    return entry.hidden_as
