"""What every store promises to concurrent threads, and of an interrupt (Ctrl-C).

Python delivers an interrupt where a function begins and where a call of C code returns. The tests raise one at each of
these moments, one after the other, so they neither need a clock nor depend on luck.
"""

import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event as Signal
from types import FrameType
from typing import Final

import attrs
import msgspec

from blocks import Event, TimelineId, VersionConflictError
from persistence._store import EventStore
from persistence.testing._events import (
    T,
    U,
    compacted,
    forked,
    many,
    prompt,
    where_it_can,
)
from persistence.testing._recording import RecordingStore

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
    events = [prompt(f"{name}.{n}") for n in range(3)]
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
        def talk(worker: int) -> None:
            for n in range(5):
                insist(store, f"{worker}.{n}")

        at_once(*(partial(talk, worker) for worker in range(8)))
        names = [event.id for _, event in store.read(T)]
        due = [f"{w}.{n}.{place}" for w in range(8) for n in range(5) for place in range(3)]
        assert sorted(names) == due
        for worker in range(8):
            own = [name for name in names if name.startswith(f"{worker}.")]
            assert own == sorted(own), "each worker's events are in its order"

    def test_64_threads_on_their_own_timelines_all_get_through(self, store: EventStore) -> None:
        def talk(worker: int) -> None:
            for n in range(10):
                name = TimelineId(f"talk {worker}")
                assert store.append(name, [prompt(f"{worker}.{n}")], expected_version=n) == n + 1

        at_once(*(partial(talk, worker) for worker in range(64)))
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
                store.append(T, [prompt(f"later {n}")], expected_version=4 + n)

        def fork(n: int) -> None:
            store.fork(T, TimelineId(f"fork {n}"), forked(T, 4), at=4)

        at_once(grow, *(partial(fork, n) for n in range(8)))
        assert store.head(T) == 24
        for n in range(8):
            assert store.read(TimelineId(f"fork {n}"))[:4] == store.read(T, limit=4)

    def test_who_watches_is_woken(self, store: EventStore) -> None:
        """Only for a store whose `watch` wakes at all."""
        if type(store).watch is EventStore.watch:
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


# Interrupts.


MOMENTS_MAX: Final = 2_000
"""An operation has fewer moments than this."""


@attrs.define
class Interrupt:
    """Raises `KeyboardInterrupt` at the `moment`-th moment (from 1) at which Python may deliver one inside `folders`."""

    moment: int
    folders: tuple[str, ...]
    passed: int = attrs.field(default=0, init=False)
    """How many such moments there were so far."""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # An unfinished generator expression is called to end it, and what it raises then is only printed.
        if code.co_name == "<genexpr>" or not code.co_filename.startswith(self.folders):
            return
        if event in ("call", "c_return"):
            self.passed += 1
            if self.passed == self.moment:
                raise KeyboardInterrupt

    @property
    def happened(self) -> bool:
        return self.passed >= self.moment

    @contextmanager
    def armed(self) -> Generator[None]:
        """Interrupt the code inside, and catch the interrupt."""
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            yield
        except KeyboardInterrupt:
            if not self.happened:
                raise
        finally:
            sys.setprofile(before)


def folders_of(store: object) -> tuple[str, ...]:
    """The folders of the packages of a store's class and of its base classes, without those of Python."""
    kinds = (kind for kind in type(store).__mro__ if kind is not EventStore)
    packages = {kind.__module__.partition(".")[0] for kind in kinds}
    modules = [sys.modules[name] for name in sorted(packages - sys.stdlib_module_names)]
    files = (getattr(module, "__file__", None) for module in modules)  # typed at a prompt: none
    return tuple(str(Path(file).parent) for file in files if file)


def interrupts(store: EventStore) -> Generator[Interrupt]:
    """An interrupt at each moment inside the store, one after the other, until one comes too late."""
    for moment in count(1):
        assert moment < MOMENTS_MAX, "an operation never ends"
        interrupt = Interrupt(moment, folders_of(store))
        yield interrupt
        if not interrupt.happened:
            return


def elsewhere(work: Callable[[], object]) -> None:
    """Do this in another thread, which gets no lock that the interrupted one has kept."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result(timeout=30)


class InterruptContract:
    """An interrupt at any moment leaves an operation done or not done, and the store in working order."""

    def test_an_interrupted_append_is_there_whole_or_not_at_all(self, store: EventStore) -> None:
        version = store.append(T, many(2), expected_version=0)
        for interrupt in interrupts(store):
            events: list[Event] = [prompt(f"{interrupt.moment} a"), prompt(f"{interrupt.moment} b")]
            with interrupt.armed():
                store.append(T, events, expected_version=version)
            whole = [(version + 1, events[0]), (version + 2, events[1])]
            assert list(store.read(T, after=version)) in ([], whole)
            assert store.head(T) in (version, version + 2)
            again = store.head(T) if interrupt.moment % 2 else version
            elsewhere(partial(store.append, T, events, expected_version=again))
            assert list(store.read(T, after=version)) == whole
            assert store.load_window(T).events[-2:] == tuple(whole)
            version += 2

    def test_an_interrupted_fork_is_there_whole_or_not_at_all(self, store: EventStore) -> None:
        store.append(T, many(3), expected_version=0)
        for interrupt in interrupts(store):
            name = type(U)(f"fork {interrupt.moment}")
            with interrupt.armed():
                store.fork(T, name, forked(T, 2), at=2)
            assert store.head(name) in (0, 3)
            if not store.head(name):
                elsewhere(partial(store.fork, T, name, forked(T, 2), at=2))
            assert list(store.read(name)) == [*store.read(T, limit=2), (3, forked(T, 2))]

    @where_it_can
    def test_an_interrupted_removal_of_the_oldest_is_done_or_not_done(
        self, store: EventStore
    ) -> None:
        events = many(MOMENTS_MAX)
        store.append(T, events, expected_version=0)
        store.append(T, [compacted("c", cut=MOMENTS_MAX)], expected_version=MOMENTS_MAX)
        for interrupt in interrupts(store):
            before = interrupt.moment + 1
            with interrupt.armed():
                store.trim(T, before)
            first = store.kept(T).first
            assert first in (before - 1, before)
            assert list(store.read(T, after=first - 1, limit=1)) == [(first, events[first - 1])]
            elsewhere(partial(store.trim, T, before))

    @where_it_can
    def test_an_interrupted_replacement_is_done_or_not_done(self, store: EventStore) -> None:
        old, other = prompt("1"), msgspec.structs.replace(prompt("1"), block=prompt("other").block)
        store.append(T, [old, prompt("2")], expected_version=0)
        for interrupt in interrupts(store):
            new = other if interrupt.moment % 2 else prompt("1")
            with interrupt.armed():
                store.rewrite(T, {1: new})
            events = [event for _, event in store.read(T)]
            assert events in ([old, prompt("2")], [new, prompt("2")])
            elsewhere(partial(store.rewrite, T, {1: new}))
            old = new

    @where_it_can
    def test_an_interrupted_removal_of_a_timeline_is_done_or_not_done(
        self, store: EventStore
    ) -> None:
        for interrupt in interrupts(store):
            store.append(T, many(2), expected_version=0)
            with interrupt.armed():
                store.remove(T)
            assert store.head(T) in (0, 2)
            assert len(store.read(T)) == store.head(T)
            if store.head(T):
                elsewhere(partial(store.remove, T))
