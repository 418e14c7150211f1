"""The part of a log that a view needs, as a store returns it."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from blocks._events import (
    BlocksHidden,
    BlocksRestored,
    Hidden,
    RangeCompacted,
    RangeExpanded,
    Recorded,
)
from blocks._ids import BlockId

_NOTHING: Final[Mapping[BlockId, Hidden]] = MappingProxyType({})


@attrs.frozen(kw_only=True)
class LogWindow:
    """The compaction in force, and every event from its cut on; nothing older.

    "In force" is the latest `RangeCompacted` that no `RangeExpanded` has undone.
    """

    version: int = 0
    """Number of events in the whole log."""
    compaction: Recorded | None = None
    events: tuple[Recorded, ...] = ()
    """Oldest first, gap-free; may contain compactions that are not in force."""

    @property
    def withheld(self) -> Mapping[BlockId, Hidden]:
        """The blocks that are hidden on request."""
        return withheld_in(self.events, _withheld_before(self.compaction))


def window_of(events: Sequence[Recorded]) -> LogWindow:
    """The window of a whole log, or of its beginning up to some version."""
    in_force: list[Recorded] = []
    for recorded in events:
        event = recorded[1]
        if isinstance(event, RangeCompacted):
            in_force.append(recorded)
        elif isinstance(event, RangeExpanded):
            in_force = [r for r in in_force if r[0] != event.compaction]
    version = events[-1][0] if events else 0
    if not in_force:
        return LogWindow(version=version, events=tuple(events))
    compaction = in_force[-1]
    cut = compaction[1].cut if isinstance(compaction[1], RangeCompacted) else 0
    rest = tuple(recorded for recorded in events if recorded[0] >= cut)
    return LogWindow(version=version, compaction=compaction, events=rest)


def withheld_in(
    events: Iterable[Recorded], before: Mapping[BlockId, Hidden] = _NOTHING
) -> dict[BlockId, Hidden]:
    """The blocks that are hidden on request after these events, and what is shown instead; `before` has those that
    were before them."""
    hidden = dict(before)
    for _, event in events:
        if isinstance(event, BlocksHidden) and event.reason == "requested":
            hidden |= {item.block: item for item in event.hidden}
        elif isinstance(event, BlocksRestored):
            for block in event.blocks:
                hidden.pop(block, None)
    return hidden


def withheld_after(log: Sequence[Recorded]) -> dict[BlockId, Hidden]:
    """The same after a whole log, or after what is left of it."""
    first = log[0][0] if log else 1
    folds = (each for each in log if isinstance(each[1], RangeCompacted) and each[1].cut == first)
    return withheld_in(log, _withheld_before(next(folds, None) if first > 1 else None))


def _withheld_before(compaction: Recorded | None) -> Mapping[BlockId, Hidden]:
    """The blocks that were hidden on request before the cut of a compaction; what was shown instead is not known."""
    if compaction is None or not isinstance(compaction[1], RangeCompacted):
        return _NOTHING
    hidden = compaction[1].state.withheld
    return {block: Hidden(block=block, artifact=artifact) for block, artifact in hidden.items()}
