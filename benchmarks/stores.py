"""Stores side by side in one run: durable appends of two events, and loading a window out of a long log.

    python -m benchmarks.stores [--seconds 2] [--rounds 3] [--writers 1,8,32] [--events 10000,100000]

PostgreSQL is a server of its own from the wheel that the tests use, here with every commit synced.  *Bare*
is the statement of an append alone, on a connection a thread: what the server can do.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from blocks import BlockAppended, BlockId, Event, EventId, TimelineId, TurnId, UserPrompt
from persistence import EventStore, open_store
from persistence._log import store_event
from persistence.postgres._database import INSERT
from persistence.sql._rows import columns
from persistence.testing._events import compacted
from tests._postgres import running

Append = Callable[[str, int, list[Event]], object]
TEXT = "Why does the nightly job fail? " * 26
WINDOW = 200
PAGE = 5_000


def events(name: str, first: int, count: int) -> list[Event]:
    """About 0.9 kB of JSON each."""
    return [
        BlockAppended(
            id=EventId(f"{name}.{n}"),
            at=float(n),
            block=UserPrompt(id=BlockId(f"b{name}.{n}"), turn=TurnId("t1"), text=TEXT),
        )
        for n in range(first, first + count)
    ]


def appended(writers: int, seconds: float, tag: str, append: Append) -> tuple[float, float]:
    """Events a second, and the median time of an append in ms."""
    end = time.perf_counter() + seconds
    begin = time.perf_counter()

    def write(writer: int) -> list[float]:
        name, version, times = f"{tag} {writer}", 0, list[float]()
        while time.perf_counter() < end:
            pair = events(name, version, 2)
            start = time.perf_counter()
            append(name, version, pair)
            times.append(time.perf_counter() - start)
            version += 2
        return times

    with ThreadPoolExecutor(writers) as pool:
        times = [each for found in pool.map(write, range(writers)) for each in found]
    return 2 * len(times) / (time.perf_counter() - begin), 1000 * median(times)


@contextmanager
def bare(url: str, writers: int) -> Iterator[Append]:
    """The statement of `PostgresStore.append`, and nothing around it."""
    with ExitStack() as stack:
        free = [stack.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(writers)]

        def append(name: str, version: int, pair: list[Event]) -> None:
            stored = [store_event(event) for event in pair]
            ids, times, kinds, refs = map(list, zip(*map(columns, stored), strict=True))
            data = [event.data for event in stored]
            connection: psycopg.Connection[Any] = free.pop()
            connection.execute(INSERT, (name, version, ids, times, kinds, refs, data))
            free.append(connection)

        yield append


def through(store: EventStore) -> Append:
    """The same through a store."""

    def append(name: str, version: int, pair: list[Event]) -> None:
        store.append(TimelineId(name), pair, expected_version=version)

    return append


def compare_appends(stores: dict[str, EventStore], url: str, options: argparse.Namespace) -> None:
    """A table: events a second and p50, the median of the rounds, which take turns."""
    for writers in map(int, options.writers.split(",")):
        found: dict[str, list[tuple[float, float]]] = {}
        for round_ in range(options.rounds):
            with bare(url, writers) as append:
                each: dict[str, Append] = {"bare insert": append}
                each |= {name: through(store) for name, store in stores.items()}
                for name, how in each.items():
                    tag = f"{name} {writers} {round_}"
                    found.setdefault(name, []).append(appended(writers, options.seconds, tag, how))
        base = median(rate for rate, _ in found["bare insert"])
        for name, results in found.items():
            rate = median(rate for rate, _ in results)
            print(
                f"{writers:3} writers  {name:12} {rate:8,.0f} events/s"
                f"  p50 {median(p50 for _, p50 in results):6.2f} ms  {rate / base:5.2f} of bare"
            )


def compare_windows(stores: dict[str, EventStore], options: argparse.Namespace) -> None:
    """The window of some 200 events behind logs of several lengths."""
    for count in map(int, options.events.split(",")):
        for name, store in stores.items():
            timeline, version = TimelineId(f"long {count}"), 0
            while version < count:
                page = events("long", version, min(PAGE, count - version))
                version = store.append(timeline, page, expected_version=version)
            fold = compacted("fold", cut=count - WINDOW + 1)
            store.append(timeline, [fold], expected_version=count)
            times = list[float]()
            for _ in range(50):
                start = time.perf_counter()
                window = store.load_window(timeline)
                times.append(time.perf_counter() - start)
            assert len(window.events) == WINDOW + 1
            print(f"{count:9,} events  {name:12} window {1000 * median(times):6.2f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--writers", default="1,8,32")
    parser.add_argument("--events", default="10000,100000")
    options = parser.parse_args()
    synced = ("fsync=on", "full_page_writes=on", "shared_buffers=128MB")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="foldline-")))
        url = stack.enter_context(running(*synced)).new_url()
        places = {
            "PostgreSQL": url,
            "SQLite": f"sqlite:///{folder}/a.sqlite",
            "DuckDB": f"duckdb:///{folder}/a.duckdb",
        }
        stores = {
            name: stack.enter_context(closing(open_store(place))) for name, place in places.items()
        }
        compare_appends(stores, url, options)
        compare_windows(stores, options)


if __name__ == "__main__":
    main()
