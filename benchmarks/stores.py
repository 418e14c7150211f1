"""Compares stores in one run: durable appends of two events, against the bare database.

    python -m benchmarks.stores [--seconds 2] [--rounds 3] [--writers 1,8,32] [--eventsourcing] [--keep]

PostgreSQL is a separate server from the wheel that the tests use, here with every commit synced.  *Bare* is
only the statement of an append, with a connection for each thread: the limit of the server.  `--eventsourcing`
installs that library into its own environment and measures its recorders on the same server.  All take turns
in each round; a ratio is the median over the rounds.
"""

import argparse
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from benchmarks.load.work import Steps, events, timed
from benchmarks.peers.driver import Peer
from benchmarks.peers.install import install
from benchmarks.results import keep
from blocks import Event, TimelineId
from persistence import EventStore, open_store
from persistence._log import store_event
from persistence.postgres._database import insertion
from tests._postgres import running

Append = Callable[[str, int, list[Event]], object]
Measure = Callable[[int, float, str], tuple[float, float]]
"""Takes the number of writers, the seconds and a tag; returns events per second and p50 in ms."""
LIBRARY = Peer(name="eventsourcing", adapter="eventsourcing_appends.py", place="eventsourcing")
SYNCED = ("fsync=on", "full_page_writes=on", "shared_buffers=128MB")


def appended(append: Append, writers: int, seconds: float, tag: str) -> tuple[float, float]:
    """See `Measure`."""

    def steps(writer: int) -> Steps:
        for version in count(0, 2):
            append(f"{tag} {writer}", version, events(f"{tag} {writer}", version, 2))
            yield "append"

    begin = time.perf_counter()
    times = timed(writers, seconds, steps)["append"]
    return 2 * len(times) / (time.perf_counter() - begin), 1000 * median(times)


@contextmanager
def bare(url: str, writers: int) -> Iterator[Append]:
    """Append functions that run only the statement of `PostgresStore.append`."""
    with ExitStack() as stack:
        free = [stack.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(writers)]

        def append(name: str, version: int, pair: list[Event]) -> None:
            stored = [store_event(event) for event in pair]
            statement, given = insertion(name, version, stored)
            connection: psycopg.Connection[Any] = free.pop()
            connection.execute(statement, given)
            free.append(connection)

        yield append


def without_store(url: str, writers: int, seconds: float, tag: str) -> tuple[float, float]:
    """See `Measure`."""
    with bare(url, writers) as append:
        return appended(append, writers, seconds, tag)


def through(store: EventStore) -> Append:
    """An append function that uses a store."""

    def append(name: str, version: int, pair: list[Event]) -> None:
        store.append(TimelineId(name), pair, expected_version=version)

    return append


def by_library(
    kind: str, folder: Path, writers: int, seconds: float, tag: str
) -> tuple[float, float]:
    """See `Measure`; runs in its own process, which connects before the measurement begins."""
    schema = "library_" + "".join(sign for sign in tag if sign.isalnum())
    command = [*LIBRARY.line, str(folder), schema.lower(), kind, str(writers), str(seconds)]
    rate, p50 = subprocess.check_output(command, text=True).split()
    return float(rate), float(p50)


def compare(measures: dict[str, Measure], options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Print a table, relative to the first measure; returns it as rows of the page on scale."""
    base = next(iter(measures))
    rows = {name: {"appends": name} for name in measures}
    for writers in map(int, options.writers.split(",")):
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in measures}
        for round_ in range(options.rounds):
            for name, measure in measures.items():
                tag = f"{name} {writers} {round_}"
                found[name].append(measure(writers, options.seconds, tag))
        for name, results in found.items():
            ratio = median(
                rate / other for (rate, _), (other, _) in zip(results, found[base], strict=True)
            )
            rate, p50 = median(rate for rate, _ in results), median(p50 for _, p50 in results)
            print(
                f"{writers:3} writers  {name:26} {rate:8,.0f} events/s  p50 {p50:6.2f} ms"
                f"  {ratio:5.2f} of {base}",
                flush=True,
            )
            of_base = "" if name == base else f", {ratio:.2f}"
            rows[name][f"{writers} writer{'s' * (writers > 1)}"] = (
                f"{rate:,.0f}/s, {p50:.2f} ms{of_base}"
            )
    return rows


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--writers", default="1,8,32")
    parser.add_argument("--eventsourcing", action="store_true")
    parser.add_argument(
        "--keep", action="store_true", help="keep the figures in benchmarks/results"
    )
    options = parser.parse_args()
    if options.eventsourcing and (failed := install(LIBRARY)):
        parser.error(f"eventsourcing could not be installed: {failed}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="foldline-")))
        server = stack.enter_context(running(*SYNCED))
        url = server.new_url()
        places = {
            "PostgreSQL": url,
            "SQLite": f"sqlite:///{folder}/a.sqlite",
            "DuckDB": f"duckdb:///{folder}/a.duckdb",
        }
        measures: dict[str, Measure] = {"bare insert": partial(without_store, url)}
        for name, place in places.items():
            store = stack.enter_context(closing(open_store(place)))
            measures[name] = partial(appended, through(store))
        for kind in ("recorder", "application") if options.eventsourcing else ():
            measures[f"eventsourcing, {kind}"] = partial(by_library, kind, server.folder)
        rows = compare(measures, options)
    if options.keep:
        keep("stores", rows.values())


if __name__ == "__main__":
    main()
