"""Measures search in a file of 100,000 blocks: with and without the database as a first filter."""

from collections.abc import Callable, Iterator, Sequence

import attrs
import pytest

from benchmarks.figures import Meter
from benchmarks.logs import NAME, history, put
from blocks import (
    BlockAppended,
    BlockId,
    Event,
    EventId,
    LogWindow,
    Recorded,
    TimelineId,
    TurnId,
    UserPrompt,
)
from persistence import DuckDBStore, EventStore, Hit, TimelineInfo

BLOCKS = 100_000
SECONDS_MAX = 1.0
ROUNDS = 3
TOLD = UserPrompt(id=BlockId("told"), turn=TurnId("t9"), text="The gateway is on port 48231.")


@attrs.frozen
class Unsifted(EventStore):
    """Hides that a store is a DuckDB file, so that all of it is read."""

    store: DuckDBStore

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        return self.store.append(timeline_id, events, expected_version=expected_version)

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        return self.store.load_window(timeline_id)

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        return self.store.read(timeline_id, after=after, limit=limit)

    def head(self, timeline_id: TimelineId) -> int:
        return self.store.head(timeline_id)

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        return self.store.fork(source, target, event, at=at)

    def list(self) -> Sequence[TimelineInfo]:
        return self.store.list()

    def close(self) -> None:
        self.store.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBStore]:
    told = BlockAppended(id=EventId("told"), at=1.0, block=TOLD)
    with DuckDBStore(tmp_path_factory.mktemp("search") / "long.duckdb") as store:
        version = put(store, history(BLOCKS // 2))
        put(store, [told, *history(BLOCKS // 2)], version)
        yield store


def searching(query: str) -> Callable[[EventStore], Sequence[Hit]]:
    return lambda store: store.search(query, NAME)


@pytest.mark.parametrize(
    ("query", "what", "hits"),
    [
        ("gateway 48231", "words of one block", 1),
        ("def", "a word of many blocks", 20),
        ("type:react.tool.result parse", "a word and a kind", 20),
        ("nothing_like_it", "a word of no block", 0),
    ],
)
def test_a_search_in_a_long_history(
    meter: Meter, store: DuckDBStore, query: str, what: str, hits: int
) -> None:
    search = searching(query)
    assert search(Unsifted(store)) == search(store)
    assert len(search(store)) == hits
    sample = meter.compare(search, search, lambda: (store, Unsifted(store)), rounds=ROUNDS)
    meter.note(
        f"search, {what}",
        f"{BLOCKS:,} blocks",
        sample,
        against="reading them all",
        target=f"<= {SECONDS_MAX:.0f} s",
    )
    assert sample.best <= SECONDS_MAX
