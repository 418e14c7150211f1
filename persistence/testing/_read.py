"""What reading, listing and forking promise."""

from blocks import MisuseError, TimelineExistsError, UnknownTimelineError
from persistence._store import EventStore
from persistence.testing._events import (
    T,
    U,
    compacted,
    expanded,
    forked,
    many,
    refused,
    said,
    versions,
)


class ReadContract:
    """Reads are gap-free, ordered, and return no more than requested."""

    def test_pages_follow_one_another(self, store: EventStore) -> None:
        store.append(T, many(10), expected_version=0)
        assert versions(store.read(T, after=0, limit=4)) == [1, 2, 3, 4]
        assert versions(store.read(T, after=4, limit=4)) == [5, 6, 7, 8]
        assert versions(store.read(T, after=8, limit=4)) == [9, 10]
        assert versions(store.read(T, after=10, limit=4)) == []
        assert versions(store.read(T, after=99)) == []

    def test_pages_of_large_events_may_be_short_but_only_the_end_is_empty(
        self, store: EventStore
    ) -> None:
        large = [said(f"{n} {'x' * 1_500_000}") for n in range(6)]
        store.append(T, [*many(40), *large, *many(3, first=41)], expected_version=0)
        found: list[int] = []
        while page := store.read(T, after=len(found), limit=100):
            found += versions(page)
        assert found == list(range(1, 50))

    def test_a_page_that_nobody_can_mean_is_refused(self, store: EventStore) -> None:
        for after, limit in ((-1, 1), (0, 0), (0, -5)):
            with refused(MisuseError, "after="):
                store.read(T, after=after, limit=limit)

    def test_the_list_names_all_timelines_oldest_first(self, store: EventStore) -> None:
        store.append(U, [said("a", at=50.0)], expected_version=0)
        store.append(T, [said("a", at=10.0), said("b", at=70.0)], expected_version=0)
        store.append(U, [said("c", at=60.0)], expected_version=1)
        listed = [(i.id, i.version, i.created_at, i.updated_at) for i in store.list()]
        assert listed == [(T, 2, 10.0, 70.0), (U, 2, 50.0, 60.0)]

    def test_without_a_compaction_the_window_is_everything(self, store: EventStore) -> None:
        store.append(T, many(3), expected_version=0)
        window = store.load_window(T)
        assert (window.version, window.compaction) == (3, None)
        assert versions(window.events) == [1, 2, 3]

    def test_the_window_starts_at_the_cut_of_the_latest_compaction(self, store: EventStore) -> None:
        store.append(T, [*many(6), compacted("c1", cut=4)], expected_version=0)
        store.append(T, [*many(3, first=7), compacted("c2", start=4, cut=9)], expected_version=7)
        window = store.load_window(T)
        assert window.compaction == (11, compacted("c2", start=4, cut=9))
        assert versions(window.events) == [9, 10, 11]
        assert window.version == 11

    def test_an_undone_compaction_gives_way_to_the_one_before(self, store: EventStore) -> None:
        first, second = compacted("c1", cut=3), compacted("c2", start=3, cut=5)
        store.append(T, [*many(5), first, second, expanded("x", 7)], expected_version=0)
        window = store.load_window(T)
        assert window.compaction == (6, first)
        assert versions(window.events) == [3, 4, 5, 6, 7, 8]
        store.append(T, [expanded("y", 6)], expected_version=8)
        window = store.load_window(T)
        assert window.compaction is None
        assert versions(window.events) == list(range(1, 10))

    def test_undoing_an_older_compaction_leaves_the_latest_in_force(
        self, store: EventStore
    ) -> None:
        first, second = compacted("c1", cut=3), compacted("c2", start=3, cut=5)
        store.append(T, [*many(5), first, second, expanded("x", 6)], expected_version=0)
        assert store.load_window(T).compaction == (7, second)


class ForkContract:
    """A fork is a byte-exact copy up to a version, with the compaction that was in force there."""

    def test_a_fork_shares_the_past_and_nothing_else(self, store: EventStore) -> None:
        store.append(T, many(5), expected_version=0)
        assert store.fork(T, U, forked(T, 3), at=3) == 4
        assert store.read(U) == [*store.read(T, limit=3), (4, forked(T, 3))]
        store.append(U, [said("x")], expected_version=4)
        assert (store.head(T), store.head(U)) == (5, 5)

    def test_a_fork_inherits_what_was_folded_at_its_version(self, store: EventStore) -> None:
        first, second = compacted("c1", cut=3), compacted("c2", start=3, cut=5)
        store.append(T, [*many(5), first, second, expanded("x", 6)], expected_version=0)
        store.fork(T, U, forked(T, 6), at=6)
        window = store.load_window(U)
        assert window.compaction == (6, first), "later compactions are not the fork's"
        assert versions(window.events) == [3, 4, 5, 6, 7]

    def test_the_list_dates_a_fork_from_its_first_event(self, store: EventStore) -> None:
        store.append(T, many(5), expected_version=0)
        store.fork(T, U, forked(T, 2), at=2)
        assert [(i.id, i.created_at, i.updated_at) for i in store.list()] == [
            (T, 1.0, 5.0),
            (U, 1.0, 9.0),
        ]

    def test_a_fork_of_nothing_is_refused(self, store: EventStore) -> None:
        with refused(UnknownTimelineError, "my talk"):
            store.fork(T, U, forked(T, 1), at=1)
        assert store.head(U) == 0

    def test_a_fork_at_no_version_is_refused(self, store: EventStore) -> None:
        store.append(T, many(2), expected_version=0)
        for at in (-1, 0, 3):
            with refused(MisuseError, "1 to 2"):
                store.fork(T, U, forked(T, at), at=at)
            assert store.head(U) == 0

    def test_a_fork_never_lands_on_an_existing_timeline(self, store: EventStore) -> None:
        store.append(T, many(2), expected_version=0)
        store.append(U, many(1), expected_version=0)
        with refused(TimelineExistsError):
            store.fork(T, U, forked(T, 1), at=1)
        with refused(TimelineExistsError):
            store.fork(T, T, forked(T, 1), at=1)
        assert (store.head(T), store.head(U)) == (2, 1)
