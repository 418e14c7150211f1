"""What every store promises to concurrent threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event as Signal

from blocks import TimelineId, VersionConflictError
from persistence._store import EventStore, Watchable
from persistence.testing._events import T, U, forked, many, said
from persistence.testing._history import RecordingStore

THREADS = 8
EACH = 6
TRIES_MAX = 10_000


def at_once(*work: Callable[[], object]) -> None:
    """Run each function in a thread of its own; raise what one of them raised."""
    with ThreadPoolExecutor(len(work)) as pool:
        for answer in [pool.submit(each) for each in work]:
            answer.result()


def insist(store: EventStore, name: str) -> None:
    """Append three events at the current version, repeat that append, and read the events."""
    events = [said(f"{name}.{n}") for n in range(3)]
    for _ in range(TRIES_MAX):
        version = store.head(T)
        try:
            store.append(T, events, expected_version=version)
        except VersionConflictError:
            store.load_window(T)
        else:
            break
    else:
        raise AssertionError(f"an append was refused {TRIES_MAX} times in a row")
    store.append(T, events, expected_version=version)
    store.read(T, after=version)


class ConcurrencyContract:
    """Appends happen one after the other, completely and once, despite concurrent reads and repetitions."""

    def test_concurrent_appenders_of_one_timeline_conflict_and_lose_nothing(
        self, store: EventStore
    ) -> None:
        def insist(worker: int) -> None:
            for n in range(5):
                while True:
                    try:
                        event = said(f"{worker}.{n}")
                        store.append(T, [event], expected_version=store.head(T))
                        break
                    except VersionConflictError:
                        continue

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(insist, range(8)))
        names = [event.id for _, event in store.read(T)]
        assert sorted(names) == sorted(f"{w}.{n}" for w in range(8) for n in range(5))
        for worker in range(8):
            own = [name for name in names if name.startswith(f"{worker}.")]
            assert own == sorted(own), "each worker's events are in its order"

    def test_64_threads_on_their_own_timelines_all_get_through(self, store: EventStore) -> None:
        def talk(worker: int) -> None:
            for n in range(10):
                name = TimelineId(f"talk {worker}")
                assert store.append(name, [said(f"{worker}.{n}")], expected_version=n) == n + 1

        with ThreadPoolExecutor(64) as pool:
            list(pool.map(talk, range(64)))
        for worker in range(64):
            ids = [event.id for _, event in store.read(TimelineId(f"talk {worker}"))]
            assert ids == [f"{worker}.{n}" for n in range(10)]

    def test_the_same_append_from_many_threads_happens_once(self, store: EventStore) -> None:
        with ThreadPoolExecutor(16) as pool:
            answers = [pool.submit(store.append, T, many(3), expected_version=0) for _ in range(16)]
        assert {answer.result() for answer in answers} == {3}
        assert store.head(T) == 3

    def test_nobody_sees_half_of_an_append(self, store: EventStore) -> None:
        stop, seen = Signal(), list[int]()

        def look() -> None:
            while not stop.is_set():
                seen.append(store.head(T))
                seen.append(len(store.read(T)))
                window = store.load_window(T)
                seen.extend((window.version, len(window.events)))

        def write() -> None:
            try:
                for n in range(40):
                    store.append(T, many(3, first=3 * n + 1), expected_version=3 * n)
            finally:
                stop.set()

        at_once(look, look, write)
        assert all(version % 3 == 0 for version in seen), sorted(set(seen))

    def test_what_threads_see_is_what_one_log_could_have_shown(self, store: EventStore) -> None:
        recording = RecordingStore(store)

        def talk(worker: int) -> None:
            for n in range(EACH):
                insist(recording, f"{worker}.{n}")

        at_once(*(partial(talk, worker) for worker in range(THREADS)))
        assert recording.problems() == []
        assert store.head(T) == 3 * THREADS * EACH

    def test_forks_are_made_while_others_append(self, store: EventStore) -> None:
        store.append(T, many(4), expected_version=0)

        def grow() -> None:
            for n in range(20):
                store.append(T, [said(f"later {n}")], expected_version=4 + n)

        def fork(n: int) -> None:
            store.fork(T, TimelineId(f"fork {n}"), forked(T, 4), at=4)

        at_once(grow, *(partial(fork, n) for n in range(8)))
        assert store.head(T) == 24
        for n in range(8):
            assert store.read(TimelineId(f"fork {n}"))[:4] == store.read(T, limit=4)

    def test_who_watches_is_woken(self, store: EventStore) -> None:
        """Only for a store that has `watch`."""
        if not isinstance(store, Watchable):
            return
        mine, other = Signal(), Signal()
        end, _ = store.watch(T, mine.set), store.watch(U, other.set)
        store.append(T, many(1), expected_version=0)
        assert mine.wait(10)
        mine.clear()
        store.fork(T, U, forked(T, 1), at=1)
        assert other.wait(10), "a fork begins a timeline"
        end()
        end()  # a second call is harmless
        store.append(T, many(1, first=2), expected_version=1)
        mine.clear()  # ignore a call that was already running
        store.append(T, many(1, first=3), expected_version=2)
        assert not mine.is_set(), "it was ended"
