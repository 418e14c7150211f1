"""What a store hands to a view: the part of a log that still matters."""

import attrs

from blocks._events import Recorded


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
