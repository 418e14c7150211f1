"""Folding events into a view.

A live view and a reopened one are equal by construction: when a compaction is folded, the view is built
anew from that event and the events since its cut, exactly as when a store loads a window.
"""

import attrs

from blocks import Event, LogWindow, RangeCompacted
from render.view._masks import head_of
from render.view._reducer import fold
from render.view._registry import Registry
from render.view._view import Compaction, View


def open_view(window: LogWindow) -> View:
    """The view of a window that a store has loaded."""
    view = View() if window.compaction is None else _after(*window.compaction)
    return attrs.evolve(fold(view, window.events), version=window.version)


def commit(view: View, *events: Event) -> View:
    """The view after `events` took the next versions of the log; they are not added to its decisions."""
    for index, event in enumerate(events):
        if isinstance(event, RangeCompacted):
            before = commit(view, *events[:index])
            version = before.version + 1
            events_since_cut = [
                recorded for recorded in before.events_since_cut if recorded[0] >= event.cut
            ]
            after = fold(_after(version, event), events_since_cut)
            after = attrs.evolve(after, decisions=before.decisions, shared=before.shared)
            return commit(after, *events[index + 1 :])
    return fold(view, enumerate(events, view.version + 1))


def decide(view: View, event: Event) -> View:
    """The view after `event`, which is also added to the decisions that the caller must commit."""
    return attrs.evolve(commit(view, event), decisions=(*view.decisions, event))


def _after(version: int, event: Event) -> View:
    """The view right after a compaction, before the events since its cut are folded."""
    if not isinstance(event, RangeCompacted):  # head lost by the store: show the rest
        return View(version=version)
    compaction = Compaction(version=version, event=event, head=head_of(event, version))
    return View(
        version=version,
        compaction=compaction,
        state=event.state,
        registry=Registry(naming=compaction.naming),
        turn=event.state.turn,
        rewritten=version,
        compacted=version,
    )
