"""Reads a small part of many timelines, in any store."""

from collections.abc import Collection, Iterator, Sequence

from blocks import LogWindow, Recorded, TimelineId, kind_of
from persistence._retention import Retains, kept_of
from persistence._store import EventStore, Skim, Skimmable


def skimmed(
    store: EventStore, timelines: Sequence[TimelineId], first: int, kinds: Collection[str]
) -> Iterator[tuple[TimelineId, Skim]]:
    """For each timeline, in any order: its oldest `first` events that are left, and the events of its window whose
    kind (such as `"UsageRecorded"`) is in `kinds`."""
    lacking: Collection[TimelineId] = store.trimmed() if isinstance(store, Retains) else ()
    if isinstance(store, Skimmable):
        yield from store.skim([name for name in timelines if name not in lacking], first, kinds)
        timelines = [name for name in timelines if name in lacking]
    for name in timelines:
        window = store.load_window(name)
        begins = window.events[:first]
        if window.compaction is not None or name in lacking:
            begins = tuple(store.read(name, after=kept_of(store, name).forgotten, limit=first))
        yield name, Skim(first=begins, compaction=window.compaction, window=_of(window, kinds))


def _of(window: LogWindow, kinds: Collection[str]) -> list[Recorded]:
    return [recorded for recorded in window.events if kind_of(recorded[1]) in kinds]
