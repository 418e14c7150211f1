"""Runs the writers of a load test in threads and processes, and times each step."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import count
from multiprocessing import get_context
from random import Random
from statistics import median, quantiles
from typing import Final, TypeAlias

import attrs

from blocks import BlockAppended, BlockId, Event, EventId, TimelineId, TurnId, UserPrompt
from persistence import EventStore, open_store
from persistence.testing._events import compacted

TEXT: Final = "Why does the nightly job fail? " * 26
FOLDED_AFTER: Final = 200
"""The number of events after which a writer folds all but the newest, as a conversation does."""
READ: Final = 100
HEAD_START: Final = 3.0
"""The seconds that processes have to open the store before all begin."""

Times: TypeAlias = dict[str, list[float]]
"""The seconds of each step, by kind of step."""
Steps: TypeAlias = Iterator[str]
"""Does one step per iteration and yields its kind."""


def events(name: str, first: int, count: int) -> list[Event]:
    """`count` events of about 0.9 kB of JSON each."""
    return [
        BlockAppended(
            id=EventId(f"{name}.{n}"),
            at=float(n),
            block=UserPrompt(id=BlockId(f"b{name}.{n}"), turn=TurnId("t1"), text=TEXT),
        )
        for n in range(first, first + count)
    ]


def timed(writers: int, seconds: float, steps_of: Callable[[int], Steps]) -> Times:
    """Run `writers` threads, each with its own steps, for some seconds; a step that has begun is finished."""
    end = time.perf_counter() + seconds

    def write(writer: int) -> Times:
        steps, times = steps_of(writer), Times()
        while (start := time.perf_counter()) < end:
            what = next(steps)
            times.setdefault(what, []).append(time.perf_counter() - start)
        return times

    with ThreadPoolExecutor(writers) as pool:
        return merged(pool.map(write, range(writers)))


def merged(found: Iterator[Times]) -> Times:
    """The times of all threads or processes in one."""
    times = Times()
    for each in found:
        for what, seconds in each.items():
            times.setdefault(what, []).extend(seconds)
    return times


@attrs.frozen(kw_only=True)
class Load:
    """A load on a store: `writers` threads in all, spread over `processes`."""

    url: str
    writers: int
    processes: int = 1
    seconds: float = 2.0
    timelines: int = 1
    """The timelines of each writer, which it uses in turn."""
    mix: tuple[float, float, float] = (1.0, 0.0, 0.0)
    """The relative frequency of appending two events, loading the window, and reading a page."""
    tag: str = ""
    """Distinguishes this load's timelines from those of others on the same store."""

    def run(self) -> Times:
        """Run the load and return its times."""
        if self.processes == 1:
            return self._part(0, time.time())
        start = time.time() + HEAD_START
        context = get_context("spawn")
        with ProcessPoolExecutor(self.processes, mp_context=context) as pool:
            numbers = range(self.processes)
            return merged(pool.map(partial(self._part, start=start), numbers))

    def _part(self, number: int, start: float) -> Times:
        writers = len(range(number, self.writers, self.processes))
        with closing(open_store(self.url)) as store:
            time.sleep(max(0.0, start - time.time()))
            return timed(writers, self.seconds, lambda n: self._steps(store, f"{number}.{n}"))

    def _steps(self, store: EventStore, writer: str) -> Steps:
        random = Random(writer)  # noqa: S311 -- the same load each time
        rows = [0] * self.timelines
        for step in count():
            place = step % self.timelines
            name, version = TimelineId(f"{self.tag} {writer} {place}"), rows[place]
            (what,) = random.choices(("append", "window", "read"), self.mix)
            if what == "append":
                rows[place] = store.append(name, _new(name, version), expected_version=version)
            elif what == "window":
                store.load_window(name)
            else:
                store.read(name, after=max(0, version - READ), limit=READ)
            yield what


def _new(name: str, version: int) -> list[Event]:
    if version % FOLDED_AFTER == FOLDED_AFTER - 2:
        fold = compacted(f"{name}.fold.{version}", cut=version - FOLDED_AFTER // 2)
        return [*events(name, version, 1), fold]
    return events(name, version, 2)


@attrs.frozen(kw_only=True)
class Figures:
    """The figures of one kind of step; times in ms."""

    a_second: float
    p50: float
    p99: float

    @classmethod
    def of(cls, times: list[float], seconds: float) -> "Figures":
        """The figures of `times`, in seconds, measured over `seconds`."""
        p99 = quantiles(times, n=100)[98] if len(times) > 1 else times[0]
        return cls(a_second=len(times) / seconds, p50=1000 * median(times), p99=1000 * p99)

    def row(self) -> dict[str, float]:
        """The figures by name, for a table or JSON."""
        return {"a_second": self.a_second, "p50": self.p50, "p99": self.p99}
