"""Where each block of a log is, and whether that is right: every block ever appended is in exactly one place.

A block is *visible*; or *hidden*, with a placeholder; or *folded* into the current compaction; or
*carried* past its cut.  A call and its result are always in the same place.

This is computed from the events alone, independently of the fold that makes the view, so that each
checks the other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self

import attrs

from blocks import (
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    Event,
    HideReason,
    Note,
    RangeCompacted,
    RangeExpanded,
    Recorded,
    ToolCall,
    ToolResult,
)
from render import Place, View

# The states of the blocks: each change of each, so that a page can show them at any call


VISIBLE: Final = "visible"
FOLDED: Final = "folded"
CARRIED: Final = "carried"
STATES: Final[dict[HideReason, str]] = {
    "requested": "hidden",
    "expired": "pruned",
    "clipped": "clipped",
    "cleared": "cleared",
    "externalized": "externalized",
    "dropped": "dropped",
    "unsigned": "unsigned",
}
"""The state of a hidden block, by the reason."""


@attrs.frozen
class Change:
    """A change of a block's state."""

    event: int
    """The version of the event."""
    block: int
    """The version of the block."""
    state: str
    replacement: str = ""
    """The text that replaces the block, if it is hidden."""
    artifact: str = ""
    """The artifact that has its content; empty if there is none."""


@attrs.define
class Lives:
    """The blocks of a log and all changes of their states; an appended block is visible without a change."""

    blocks: dict[int, Block] = attrs.field(factory=dict[int, Block], init=False)
    """By version."""
    changes: list[Change] = attrs.field(factory=list[Change], init=False)
    hidden: dict[int, Change] = attrs.field(factory=dict[int, Change], init=False)
    """By block version: the state of a hidden block while it is not folded."""
    folds: list[tuple[int, RangeCompacted]] = attrs.field(
        factory=list[tuple[int, RangeCompacted]], init=False
    )
    """The compactions in force, with their versions."""
    _by_id: dict[BlockId, list[int]] = attrs.field(factory=dict[BlockId, list[int]], init=False)
    _state: dict[int, str] = attrs.field(factory=dict[int, str], init=False)

    @classmethod
    def of(cls, log: Iterable[Recorded]) -> Self:
        lives = cls()
        for version, event in log:
            lives.add(version, event)
        return lives

    def add(self, version: int, event: Event) -> None:
        match event:
            case BlockAppended():
                self.blocks[version] = event.block
                self._by_id.setdefault(event.block.id, []).append(version)
            case BlocksHidden():
                hidden = {
                    at: Change(version, at, STATES[event.reason], item.replacement, item.artifact)
                    for item in event.hidden
                    for at in self._by_id.get(item.block, ())
                }
                self.hidden |= hidden
                self._settle(version, hidden)
            case BlocksRestored():
                restored = [v for block in event.blocks for v in self._by_id.get(block, ())]
                for block in restored:
                    self.hidden.pop(block, None)
                self._settle(version, restored)
            case RangeCompacted():
                before, between = self.carried, range(event.start, event.cut)
                self.folds.append((version, event))
                self._settle(version, sorted(self.blocks.keys() & {*before, *between}))
            case RangeExpanded():
                self.folds = [each for each in self.folds if each[0] != event.compaction]
                self._settle(version, self.blocks)
            case _:
                pass

    def _settle(self, event: int, blocks: Iterable[int]) -> None:
        """Record the state of these blocks if it changed."""
        cut, carried = self.cut, self.carried
        for block in blocks:
            hidden = self.hidden.get(block)
            if block < cut:
                change = Change(event, block, CARRIED if block in carried else FOLDED)
            elif hidden:
                change = attrs.evolve(hidden, event=event)
            else:
                change = Change(event, block, VISIBLE)
            if self._state.get(block, VISIBLE) != change.state:
                self._state[block] = change.state
                self.changes.append(change)

    @property
    def cut(self) -> int:
        """The version of the first block that is not folded."""
        return self.folds[-1][1].cut if self.folds else 0

    @property
    def carried(self) -> dict[int, Block]:
        """The blocks that the current compaction carries, by version."""
        return {item.version: item.block for _, fold in self.folds[-1:] for item in fold.carried}

    def place(self, version: int) -> str:
        """Where the block of this version is: `visible`, `hidden`, `folded` or `carried`."""
        state = self._state.get(version, VISIBLE)
        return state if state in {VISIBLE, FOLDED, CARRIED} else "hidden"


# The check

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


def coverage(events: Sequence[Recorded], view: View) -> Coverage:
    """Compute the coverage of the complete log `events` and check it against `view` of the same version."""
    log = Lives.of(events)
    counts = Counter(log.place(version) for version in log.blocks)
    problems = [*_fold_problems(log, view), *_view_problems(log, view), *_pair_problems(log, view)]
    return Coverage(
        **counts,
        tool_calls=sum(isinstance(block, ToolCall) for block in log.blocks.values()),
        tool_results=sum(isinstance(block, ToolResult) for block in log.blocks.values()),
        problems=tuple(problems[:PROBLEMS_MAX]),
    )


def places(log: Iterable[Recorded]) -> dict[int, str]:
    """The place of each block, by its version: `visible`, `hidden`, `folded` or `carried`."""
    lives = Lives.of(log)
    return {version: lives.place(version) for version in lives.blocks}


def _fold_problems(log: Lives, view: View) -> Iterator[str]:
    """Check that each block below the cut is in exactly one range, and that carried blocks are kept."""
    ours = log.folds[-1][0] if log.folds else 0
    theirs = view.compaction.version if view.compaction else 0
    if ours != theirs:
        yield f"the view starts from compaction {theirs}, in force is {ours}"
    carried = log.carried
    for version, block in log.blocks.items():
        if version >= log.cut:
            continue
        ranges = sum(c.start <= version < c.cut for _, c in log.folds)
        if ranges != 1:
            yield f"version {version} is in {ranges} folded ranges"
        if isinstance(block, Note) and version not in carried:
            yield f"the note at version {version} did not outlive the cut"
    for version, block in carried.items():
        if version >= log.cut or log.blocks.get(version) != block:
            yield f"what is carried as version {version} is not what was folded there"


def _view_problems(log: Lives, view: View) -> Iterator[str]:
    """Check that each block from the cut on is in the view once, unchanged, and hidden as in the log."""
    entries = {entry.version: entry for entry in view.entries}
    if len(entries) != len(view.entries):
        yield "a version stands in the view twice"
    unfolded = {version: block for version, block in log.blocks.items() if version >= log.cut}
    for version in unfolded.keys() ^ entries.keys():
        yield f"version {version} is {'missing in' if version in unfolded else 'left over in'} the view"
    spans = [entry.dropped for entry in view.entries if entry.dropped]
    for version in unfolded.keys() & entries.keys():
        entry, hidden = entries[version], log.hidden.get(version)
        if entry.source != unfolded[version]:
            yield f"version {version} is not what was appended"
        if entry.replacement != (hidden and hidden.replacement):
            yield f"version {version} is not hidden as the log says"
        is_shown = entry.replacement != "" or isinstance(entry.block, AssistantThinking)
        if not is_shown and not any(span.first <= version <= span.last for span in spans):
            yield f"nothing stands for the hidden version {version}"


def _pair_problems(log: Lives, view: View) -> Iterator[str]:
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
