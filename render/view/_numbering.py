"""Ordinals: what tells the second note of a turn from the first in a path, also across a cut."""

from collections.abc import Sequence
from typing import Any

from blocks import Naming, RangeCompacted, RangeSummary, path_stem
from render.view._group import Entry
from render.view._view import View


def named_after(view: View, folded: Sequence[Entry], kept: Sequence[Entry]) -> dict[str, Any]:
    """What the paths of what comes after a cut depend on: fields of the fold's state."""
    naming = _named(view, folded)
    ordinals = naming.cut((entry.version, entry.source) for entry in kept)
    return {"ordinals": ordinals, "named": naming.named()}


def summary_ordinal(view: View, folded: Sequence[Entry], summary: RangeSummary) -> int:
    """Which summary of its turn this is; 0: that is not known.

    Compactions that were undone count: their summaries had paths, too.
    """
    if not _named(view, folded).is_counted(summary.turn):
        return 0
    stem, head = path_stem(summary), view.compaction
    earlier = [event for _, event in view.events_since_cut if isinstance(event, RangeCompacted)]
    alike = [e for e in (*([head.event] if head else []), *earlier) if path_stem(e.summary) == stem]
    if alike:
        ordinals = [event.ordinal for event in alike]
        return max(ordinals) + 1 if all(ordinals) else 0
    is_older = head is not None and head.event.state.turn == summary.turn
    return 0 if is_older else 1


def _named(view: View, folded: Sequence[Entry]) -> Naming:
    naming = view.compaction.naming if view.compaction else Naming()
    for entry in folded:
        naming.path(entry.source, entry.version)
    return naming
