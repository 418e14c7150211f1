"""Records each change of each block's state, so that a page can show the states at any call."""

from bisect import bisect_left
from typing import Final

import attrs

from blocks import (
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    Event,
    HideReason,
    RangeCompacted,
    RangeExpanded,
)

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
    """All changes so far; an appended block is visible without a change."""

    changes: list[Change] = attrs.field(factory=list[Change])
    _versions: list[int] = attrs.field(factory=list[int], init=False)
    _by_id: dict[BlockId, list[int]] = attrs.field(factory=dict[BlockId, list[int]], init=False)
    _state: dict[int, str] = attrs.field(factory=dict[int, str], init=False)
    _hidden: dict[int, Change] = attrs.field(factory=dict[int, Change], init=False)
    """By block version: the state of a hidden block while it is not folded."""
    _folds: list[tuple[int, RangeCompacted]] = attrs.field(
        factory=list[tuple[int, RangeCompacted]], init=False
    )
    """The compactions in force, with their versions."""

    def add(self, version: int, event: Event) -> None:
        """Record what an event changes."""
        match event:
            case BlockAppended():
                self._versions.append(version)
                self._by_id.setdefault(event.block.id, []).append(version)
            case BlocksHidden():
                self._hide(version, event)
            case BlocksRestored():
                restored = [v for block in event.blocks for v in self._by_id.get(block, ())]
                for block in restored:
                    self._hidden.pop(block, None)
                self._settle(version, restored)
            case RangeCompacted():
                before = self._carried()
                self._folds.append((version, event))
                self._settle(version, sorted({*before, *self._between(event.start, event.cut)}))
            case RangeExpanded():
                self._folds = [each for each in self._folds if each[0] != event.compaction]
                self._settle(version, self._versions)
            case _:
                pass

    def _hide(self, version: int, event: BlocksHidden) -> None:
        state, hidden = STATES[event.reason], list[int]()
        for item in event.hidden:
            for block in self._by_id.get(item.block, ()):
                self._hidden[block] = Change(version, block, state, item.replacement, item.artifact)
                hidden.append(block)
        self._settle(version, hidden)

    def _settle(self, event: int, blocks: list[int]) -> None:
        """Record the state of these blocks if it changed."""
        cut = self._folds[-1][1].cut if self._folds else 0
        carried = self._carried()
        for block in blocks:
            hidden = self._hidden.get(block)
            if block < cut:
                change = Change(event, block, CARRIED if block in carried else FOLDED)
            elif hidden:
                change = attrs.evolve(hidden, event=event)
            else:
                change = Change(event, block, VISIBLE)
            if self._state.get(block, VISIBLE) != change.state:
                self._state[block] = change.state
                self.changes.append(change)

    def _carried(self) -> set[int]:
        return {item.version for item in self._folds[-1][1].carried} if self._folds else set()

    def _between(self, start: int, cut: int) -> list[int]:
        versions = self._versions
        return versions[bisect_left(versions, start) : bisect_left(versions, cut)]
