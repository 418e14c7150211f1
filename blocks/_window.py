"""The part of a log that a view needs, as a store returns it."""

from collections.abc import Sequence

import attrs

from blocks._events import RangeCompacted, RangeExpanded, Recorded


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
    kept = tuple(recorded for recorded in events if recorded[0] >= cut)
    return LogWindow(version=version, compaction=compaction, events=kept)
