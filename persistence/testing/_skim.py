"""What reading a small part of many timelines promises."""

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from blocks import Event, TimelineId, kind_of
from persistence._retention import kept_of
from persistence._skim import skimmed
from persistence._store import EventStore, Skim
from persistence.testing._events import T, U, compacted, expanded, forked, many, said
from persistence.testing._retaining import RetainingStore, where_it_can

FIRST = 3
KINDS = ("RangeExpanded", "TimelineForked", "its kind")
LOGS: dict[TimelineId, list[Event]] = {
    TimelineId("short"): many(2),
    TimelineId("large"): [said("x" * 40_000), *many(5, first=2), expanded("e" * 40_000, 1)],
    TimelineId("folded"): [*many(6), compacted("c1", cut=4), *many(3, first=8), expanded("e", 2)],
    TimelineId("undone"): [
        *many(4),
        compacted("c1", cut=3),
        compacted("c2", cut=5),
        expanded("e", 6),
    ],
    T: [*many(6), compacted("c1", cut=4), *many(3, first=8), compacted("c2", start=4, cut=9)],
}


def filled(store: EventStore) -> list[TimelineId]:
    """Append all logs and a fork; return their names and one of an unknown timeline."""
    for name, events in LOGS.items():
        store.append(name, events, expected_version=0)
    store.fork(T, U, forked(T, 8), at=8)
    return [U, TimelineId("nobody's"), *LOGS]


def slowly(store: EventStore, name: TimelineId, kinds: Collection[str]) -> Skim:
    """The same, found by reading the whole window."""
    window, gone = store.load_window(name), kept_of(store, name).forgotten
    return Skim(
        first=list(store.read(name, after=gone, limit=FIRST)),
        compaction=window.compaction,
        window=[each for each in window.events if kind_of(each[1]) in kinds],
    )


def _check(store: EventStore, names: list[TimelineId]) -> None:
    for kinds in (KINDS, ("RangeCompacted",), ()):
        found = {
            name: (list(skim.first), skim.compaction, list(skim.window))
            for name, skim in skimmed(store, names, FIRST, kinds)
        }
        assert found.keys() == set(names)
        for name in names:
            read = slowly(store, name, kinds)
            assert found[name] == (read.first, read.compaction, read.window), (name, kinds)


class SkimContract:
    """A skim returns what reading the logs would return."""

    def test_a_little_of_many_timelines_is_what_reading_them_finds(self, store: EventStore) -> None:
        _check(store, filled(store))
        assert list(skimmed(store, [], FIRST, KINDS)) == []

    def test_more_timelines_than_go_into_one_question_are_found(self, store: EventStore) -> None:
        names = [TimelineId(f"n{number}") for number in range(300)]
        for name in names:
            store.append(name, [said(name)], expected_version=0)
        found = {n: [e for _, e in s.first] for n, s in skimmed(store, names, 1, KINDS)}
        assert found == {name: [said(name)] for name in names}

    @where_it_can
    def test_where_events_were_removed_the_first_are_those_that_are_left(
        self, store: RetainingStore
    ) -> None:
        names = filled(store)
        with TemporaryDirectory() as folder:
            store.trim(T, 5, archive=Path(folder))
            _check(store, names)
            store.trim(TimelineId("folded"), 3)
            _check(store, names)
