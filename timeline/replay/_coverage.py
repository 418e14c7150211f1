"""Checks the coverage invariant: every block ever appended is in exactly one place.

A block is *visible*; or *hidden*, with a placeholder; or *folded* into the current compaction; or
*carried* past its cut.  A call and its result are always in the same place.

This is computed from the events alone, independently of the fold that makes the view, so that each
checks the other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from blocks import (
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    DroppedSpan,
    Note,
    RangeCompacted,
    RangeExpanded,
    Recorded,
    ToolCall,
    ToolResult,
)
from render import Entry, Place, View

PROBLEMS_MAX = 20


@attrs.frozen(kw_only=True)
class Coverage:
    """How many blocks are in each place, and which violations of the invariant were found."""

    visible: int = 0
    hidden: int = 0
    folded: int = 0
    carried: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    problems: tuple[str, ...] = ()

    @property
    def blocks(self) -> int:
        """The number of all blocks."""
        return self.visible + self.hidden + self.folded + self.carried


@attrs.define
class _Log:
    """The state of the blocks, computed from the events alone."""

    blocks: dict[int, Block] = attrs.field(factory=dict[int, Block])
    hidden: dict[BlockId, str] = attrs.field(factory=dict[BlockId, str])
    in_force: list[tuple[int, RangeCompacted]] = attrs.field(
        factory=list[tuple[int, RangeCompacted]]
    )

    @property
    def cut(self) -> int:
        """The version of the first block that is not folded."""
        return self.in_force[-1][1].cut if self.in_force else 0

    @property
    def carried(self) -> dict[int, Block]:
        """The blocks that the current compaction carries, by version."""
        items = self.in_force[-1][1].carried if self.in_force else ()
        return {item.version: item.block for item in items}


def coverage(events: Sequence[Recorded], view: View) -> Coverage:
    """Compute the coverage of the complete log `events` and check it against `view` of the same version."""
    log = _read(events)
    counts = Counter(_place(version, block, log) for version, block in log.blocks.items())
    problems = [*_fold_problems(log, view), *_view_problems(log, view), *_pair_problems(log, view)]
    return Coverage(
        visible=counts["visible"],
        hidden=counts["hidden"],
        folded=counts["folded"],
        carried=counts["carried"],
        tool_calls=sum(isinstance(block, ToolCall) for block in log.blocks.values()),
        tool_results=sum(isinstance(block, ToolResult) for block in log.blocks.values()),
        problems=tuple(problems[:PROBLEMS_MAX]),
    )


def places(events: Sequence[Recorded]) -> dict[int, str]:
    """The place of each block, by its version: `visible`, `hidden`, `folded` or `carried`."""
    log = _read(events)
    return {version: _place(version, block, log) for version, block in log.blocks.items()}


def _read(events: Sequence[Recorded]) -> _Log:
    log = _Log()
    for version, event in events:
        match event:
            case BlockAppended():
                log.blocks[version] = event.block
            case BlocksHidden():
                log.hidden |= {item.block: item.replacement for item in event.hidden}
            case BlocksRestored():
                for block in event.blocks:
                    log.hidden.pop(block, None)
            case RangeCompacted():
                log.in_force.append((version, event))
            case RangeExpanded():
                log.in_force = [c for c in log.in_force if c[0] != event.compaction]
            case _:
                pass
    return log


def _place(version: int, block: Block, log: _Log) -> str:
    if version < log.cut:
        return "carried" if version in log.carried else "folded"
    return "hidden" if block.id in log.hidden else "visible"


def _fold_problems(log: _Log, view: View) -> Iterator[str]:
    """Check that each block below the cut is in exactly one range, and that carried blocks are kept."""
    ours = log.in_force[-1][0] if log.in_force else 0
    theirs = view.compaction.version if view.compaction else 0
    if ours != theirs:
        yield f"the view starts from compaction {theirs}, in force is {ours}"
    carried = log.carried
    for version, block in log.blocks.items():
        if version >= log.cut:
            continue
        ranges = sum(c.start <= version < c.cut for _, c in log.in_force)
        if ranges != 1:
            yield f"version {version} is in {ranges} folded ranges"
        if isinstance(block, Note) and version not in carried:
            yield f"the note at version {version} did not outlive the cut"
    for version, block in carried.items():
        if version >= log.cut or log.blocks.get(version) != block:
            yield f"what is carried as version {version} is not what was folded there"


def _view_problems(log: _Log, view: View) -> Iterator[str]:
    """Check that each block from the cut on is in the view once, unchanged, and hidden as in the log."""
    entries = {entry.version: entry for entry in view.entries}
    if len(entries) != len(view.entries):
        yield "a version stands in the view twice"
    unfolded = {version: block for version, block in log.blocks.items() if version >= log.cut}
    for version in unfolded.keys() ^ entries.keys():
        yield f"version {version} is {'missing in' if version in unfolded else 'left over in'} the view"
    spans = [entry.dropped for entry in view.entries if entry.dropped]
    for version in unfolded.keys() & entries.keys():
        yield from _entry_problems(entries[version], unfolded[version], log.hidden)
        if not _is_stood_for(entries[version], spans):
            yield f"nothing stands for the hidden version {version}"


def _entry_problems(entry: Entry, block: Block, hidden: Mapping[BlockId, str]) -> Iterator[str]:
    if entry.source != block:
        yield f"version {entry.version} is not what was appended"
    if entry.replacement != hidden.get(block.id):
        yield f"version {entry.version} is not hidden as the log says"


def _is_stood_for(entry: Entry, spans: Sequence[DroppedSpan]) -> bool:
    """Whether the view shows the block, its placeholder, or the text for its dropped span."""
    if entry.replacement != "" or isinstance(entry.block, AssistantThinking):
        return True
    return any(span.first <= entry.version <= span.last for span in spans)


def _pair_problems(log: _Log, view: View) -> Iterator[str]:
    """Check that each shown result has its call in the same group, not folded away."""
    calls_at = {b.call_id: version for version, b in log.blocks.items() if isinstance(b, ToolCall)}
    for group in view.groups:
        calls = {e.pair for e in group.entries if isinstance(e.block, ToolCall)}
        for entry in group.entries:
            block = entry.block
            if not isinstance(block, ToolResult):
                continue
            if entry.place is Place.RESULT and entry.pair not in calls:
                yield f"the result at version {entry.version} is apart from its call"
            if entry.place is Place.ORPHAN and calls_at.get(block.call_id, entry.version) < log.cut:
                yield f"the result at version {entry.version} lost its call to a fold"
