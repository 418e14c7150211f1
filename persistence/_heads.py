"""The head of a timeline: its version, and which compaction is in force.

This is all that a store holds in memory per timeline.  A compaction leaves a *mark* (its version and
its cut), undoing it leaves another, and the window follows from the marks alone; so loading a window
touches no event older than the cut, and a fork knows the window at any earlier version.
"""

from collections.abc import Sequence

import attrs

from blocks import LogWindow, Recorded
from persistence._stored import StoredEvent


@attrs.frozen
class Mark:
    """A `RangeCompacted` or `RangeExpanded` in the log."""

    version: int
    kind: str
    ref: int
    """The cut, or the version of the compaction that was undone."""


@attrs.frozen(kw_only=True)
class Head:
    """Where a log ends; the default is that of a timeline nobody has written to."""

    version: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0
    marks: tuple[Mark, ...] = ()

    def after(self, events: Sequence[StoredEvent]) -> "Head":
        """The head once `events` have joined the log."""
        marks = tuple(
            Mark(version, event.kind, event.ref)
            for version, event in enumerate(events, self.version + 1)
            if event.ref is not None
        )
        return Head(
            version=self.version + len(events),
            created_at=self.created_at if self.version else events[0].at,
            updated_at=events[-1].at,
            marks=self.marks + marks,
        )

    def cut_to(self, version: int) -> "Head":
        """The head as it was at an earlier version, for a fork to go on from."""
        marks = tuple(mark for mark in self.marks if mark.version <= version)
        return attrs.evolve(self, version=version, marks=marks)

    def in_force(self) -> Mark | None:
        """The latest compaction that was not undone."""
        standing: dict[int, Mark] = {}
        for mark in self.marks:
            if mark.kind == "RangeCompacted":
                standing[mark.version] = mark
            else:
                standing.pop(mark.ref, None)
        return next(reversed(standing.values()), None)

    def window_start(self) -> int:
        """The oldest version that the window needs."""
        mark = self.in_force()
        return max(1, min(mark.ref, mark.version)) if mark else 1

    def window(self, recorded: Sequence[Recorded]) -> LogWindow:
        """The window; `recorded` are all events from `window_start` on."""
        mark = self.in_force()
        if mark is None:
            return LogWindow(version=self.version, events=tuple(recorded))
        return LogWindow(
            version=self.version,
            compaction=next(each for each in recorded if each[0] == mark.version),
            events=tuple(each for each in recorded if each[0] >= mark.ref),
        )
