"""The block index for a store without one: it reads the logs from end to end."""

from collections.abc import Collection, Iterable, Iterator

import attrs

from blocks import (
    Block,
    BlockAppended,
    Naming,
    RangeCompacted,
    Recorded,
    TimelineId,
    path_at,
    path_of,
)
from persistence._retention import Retains, kept_of
from persistence._store import BlockIndex, EventStore, Indexed, TurnChange
from persistence.archive import archived_events

PAGE = 2_000


def index_of(store: EventStore) -> BlockIndex:
    """The index of a store if it has one, else a scan."""
    if not isinstance(store, Indexed):
        return Scan(store)
    index = store.block_index()
    return WithArchives(index, store, store) if isinstance(store, Retains) else index


@attrs.frozen
class WithArchives:
    """The index of a store, and a scan of its archives, which the index does not cover."""

    _index: BlockIndex
    _store: EventStore
    _retains: Retains

    def candidates(
        self, words: Collection[str], kinds: Collection[str], timeline: TimelineId | None
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        yield from self._index.candidates(words, kinds, timeline)
        for name, kept in self._retains.trimmed().items():
            for archive in kept.archives if timeline in (None, name) else ():
                for recorded in archived_events(archive, archive.first, archive.last):
                    if isinstance(recorded[1], BlockAppended):
                        yield name, recorded

    def related(
        self,
        timeline: TimelineId,
        stems: Collection[str],
        *,
        after: int = 0,
        last: int | None = None,
    ) -> Iterable[Recorded]:
        if self._retains.kept(timeline).archives:
            return Scan(self._store).related(timeline, stems, after=after, last=last)
        return self._index.related(timeline, stems, after=after, last=last)

    def new_turns(self, timeline: TimelineId, last: int) -> Iterable[TurnChange]:
        if self._retains.kept(timeline).archives:
            return ()
        return self._index.new_turns(timeline, last)

    def turns(self, timeline: TimelineId, last: int, *, after: int = 0) -> Iterable[TurnChange]:
        if self._retains.kept(timeline).archives:
            return ()
        return self._index.turns(timeline, last, after=after)


def names_left(store: EventStore, timeline: TimelineId) -> Iterator[tuple[int, Block, str]]:
    """The blocks and summaries that are left of a log with forgotten events: version, block, path.

    The compaction that folded the forgotten events noted the paths given before.  If it is not the compaction in force,
    or did not note them, paths have versions instead of numbers.
    """
    gone = kept_of(store, timeline).forgotten
    found, naming = store.load_window(timeline).compaction, None
    if found and isinstance(found[1], RangeCompacted) and found[1].cut == gone + 1:
        naming = Naming(found[1].state, found[0]) if found[1].state.named else None
    for version, event in Scan(store).related(timeline, ()):
        match event:
            case BlockAppended(block=block):
                yield version, block, (naming.path if naming else path_at)(block, version)
            case RangeCompacted(summary=summary, ordinal=ordinal):
                name = path_of(summary, ordinal) if ordinal else path_at(summary, version)
                yield version, summary, name
            case _:
                pass


@attrs.frozen
class Scan:
    """A `BlockIndex` for any store; it reads logs from end to end and returns every event."""

    _store: EventStore

    def candidates(
        self, words: Collection[str], kinds: Collection[str], timeline: TimelineId | None
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        del words, kinds
        for name in [timeline] if timeline else [info.id for info in self._store.list()]:
            for recorded in self.related(name, ()):
                if isinstance(recorded[1], BlockAppended):
                    yield name, recorded

    def related(
        self,
        timeline: TimelineId,
        stems: Collection[str],
        *,
        after: int = 0,
        last: int | None = None,
    ) -> Iterator[Recorded]:
        del stems
        after = max(after, kept_of(self._store, timeline).forgotten)
        while page := self._store.read(timeline, after=after, limit=PAGE):
            for version, event in page:
                if last is not None and version > last:
                    return
                yield version, event
            after = page[-1][0]

    def new_turns(self, timeline: TimelineId, last: int) -> Iterator[TurnChange]:
        del timeline, last  # `related` returns all blocks anyway
        yield from ()

    def turns(self, timeline: TimelineId, last: int, *, after: int = 0) -> Iterator[TurnChange]:
        del timeline, last, after
        yield from ()
