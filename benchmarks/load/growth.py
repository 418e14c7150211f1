"""Measures a store as it grows: logs of several lengths, then more and more timelines."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, Final

from benchmarks.load.fill import fill
from benchmarks.scale import folded_path
from blocks import EventId, TimelineForked, TimelineId
from persistence import EventStore, block_at, open_store
from persistence.testing._events import compacted

WINDOW: Final = 200
ROUNDS: Final = 9
WINDOWS: Final = 50
EACH: Final = 10
"""The events of each of many timelines, fewer if that would exceed `EVENTS_MAX` in all."""
EVENTS_MAX: Final = 1_000_000
WORD: Final = "parse_order_138"
"""The search word: a function in the generated material."""
FORK_AT: Final = 100_000
OPEN: Final = """
import sys, time
from persistence import open_store
begin = time.perf_counter()
store = open_store(sys.argv[1])
print((time.perf_counter() - begin) * 1000)
store.close()
"""

Row = dict[str, Any]
"""Has `what` was measured, `at` which size, and `ms`."""


def row(what: str, at: int, times: Sequence[float]) -> Row:
    """A row with the median and the fastest of some rounds."""
    return {"what": what, "at": at, "ms": median(times), "best": min(times)}


def grown(url: str, lengths: Sequence[int], counts: Sequence[int]) -> Iterator[Row]:
    """Let a new store at `url` grow, and measure it at each size."""
    open_store(url).close()
    yield row("open", 0, _openings(url))
    for length in sorted(lengths):
        yield from _one_log(url, length)
    there = 0
    for wanted in sorted(counts):
        fill(url, "many ", there, wanted - there, min(EACH, EVENTS_MAX // wanted))
        there = wanted
        yield row("open", wanted, _openings(url))
        with closing(open_store(url)) as store:
            yield row("list", wanted, _times(2, store.list))


def _openings(url: str) -> list[float]:
    command = [sys.executable, "-c", OPEN, url]
    return [float(subprocess.check_output(command, text=True)) for _ in range(ROUNDS)]


def _one_log(url: str, length: int) -> Iterator[Row]:
    fill(url, "long ", length, 1, length)
    name = TimelineId(f"long {length}")
    with closing(open_store(url)) as store:
        fold = compacted("fold", cut=length - WINDOW + 1)
        store.append(name, [fold], expected_version=length)
        yield row("window", length, _times(WINDOWS, lambda: store.load_window(name)))
        yield from _whole(store, name, length)


def _whole(store: EventStore, name: TimelineId, length: int) -> Iterator[Row]:
    """Measure operations that read or copy every event of a log."""
    path = folded_path(store, name, length // 2)
    yield row("path", length, _times(1, lambda: block_at(store, name, path)))
    for what, query in (("search", WORD), ("search, no hit", f"nowhere {WORD}")):
        yield row(what, length, _times(1, partial(store.search, query, name)))
    fork = TimelineForked(id=EventId("fork"), at=1.0, parent=name, version=min(length, FORK_AT))
    copy, at = TimelineId(f"fork of {length}"), fork.version
    yield row("fork", at, _times(1, lambda: store.fork(name, copy, fork, at=at)))


def _times(rounds: int, work: Any) -> list[float]:
    times = list[float]()
    for _ in range(rounds):
        begin = perf_counter()
        work()
        times.append((perf_counter() - begin) * 1000)
    return times
