"""The block index of a store that has none: its logs, read from end to end."""

from collections.abc import Collection, Iterator

import attrs

from blocks import BlockAppended, Recorded, TimelineId
from persistence._store import BlockIndex, EventStore, Indexed, TurnChange

PAGE = 2_000


def index_of(store: EventStore) -> BlockIndex:
    """The best way to look into a store."""
    return store.block_index() if isinstance(store, Indexed) else Scan(store)


@attrs.frozen
class Scan:
    """A `BlockIndex` over any store; it gives everything that there is."""

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
        while page := self._store.read(timeline, after=after, limit=PAGE):
            for version, event in page:
                if last is not None and version > last:
                    return
                yield version, event
            after = page[-1][0]

    def turns(self, timeline: TimelineId, last: int) -> Iterator[TurnChange]:
        del timeline, last  # `related` gives all the blocks that there are
        yield from ()
