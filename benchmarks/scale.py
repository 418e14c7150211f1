"""Measures large DuckDB files: one with 100,000 timelines, and one with a million events in one timeline.

    .venv/bin/python -m benchmarks.scale --timelines 100000 --events 1000000

The database itself makes the files, so that nothing has to be appended first; `--keep FOLDER` keeps
them for the next run. Every opening is measured in its own process. Times are the best of a few.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from time import perf_counter
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.bench_append import Bare
from benchmarks.logs import NAME, fold_and_go_on
from benchmarks.scale_files import Size, make
from blocks import (
    BlockAppended,
    BlockId,
    EventId,
    TimelineForked,
    TimelineId,
    ToolCall,
    TurnId,
    UserPrompt,
    encode_event,
    path_stem,
)
from persistence import DuckDBStore, EventStore, block_at, verify

WINDOW: Final = 200
SHORT: Final = 10_000
"""The events of the log that the long one is compared with."""
THREADS: Final = 64
APPENDS: Final = 60
"""The appends of each thread."""
ROUNDS: Final = 5
OPEN: Final = """
import os, sys, time
import duckdb
from pathlib import Path
from persistence import DuckDBStore

def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

before = memory()
begin = time.perf_counter()
store = DuckDBStore(sys.argv[1])
print((time.perf_counter() - begin) * 1000, memory() - before)
store.close()
"""


class Report:
    """A table whose rows are printed as soon as they are known."""

    def __init__(self) -> None:
        self._table = Table("what", "file", "figure", "against", "ratio")

    def add(self, what: str, file: str, value: str, against: str = "", ratio: float = 0) -> None:
        """Add one figure."""
        shown = f"{ratio:.2f}" if ratio else ""
        self._table.add_row(what, file, value, against, shown)
        print(f"{what}, {file}: {value}  {against} {shown}", file=sys.stderr)

    def show(self) -> None:
        """Print all figures."""
        Console(width=120).print(self._table)


@attrs.frozen
class Files:
    """The files that are measured: empty, with a short log, with a long log, with many logs."""

    empty: Path
    short: Path
    long: Path
    many: Path


def files(folder: Path, size: Size) -> Files:
    """Make the files, as copies of those that are kept."""
    made = folder / "made"
    made.mkdir(exist_ok=True)
    found = Files(*(folder / f"{name}.duckdb" for name in ("empty", "short", "long", "many")))
    sizes = (Size(0, 0), Size(1, SHORT), Size(1, size.events), size)
    for path, each in zip(attrs.astuple(found), sizes, strict=True):
        of = make(made / f"{each.timelines}-{each.events}.duckdb", each)
        shutil.copy(of, path)
        path.with_name(path.name + ".lock").unlink(missing_ok=True)
    for path, version in ((found.short, SHORT), (found.long, size.events)):
        with DuckDBStore(path) as store:
            fold_and_go_on(store, version, WINDOW)
    return found


def best_ms(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The milliseconds of the fastest of some rounds."""
    times: list[float] = []
    for _ in range(rounds):
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times) * 1000


def opening(report: Report, found: Files) -> None:
    """Measure opening a file without reading from it."""

    def measured(path: Path) -> tuple[float, float]:
        command = [sys.executable, "-c", OPEN, str(path)]
        rows = [subprocess.check_output(command, text=True).split() for _ in range(ROUNDS)]
        return min(float(row[0]) for row in rows), min(float(row[1]) for row in rows)

    empty = measured(found.empty)
    report.add("open", "empty", f"{empty[0]:.0f} ms, {empty[1]:.0f} MB")
    for name, path in (("one timeline", found.long), ("many timelines", found.many)):
        took, memory = measured(path)
        against = f"empty; limit {2 * empty[0] + 50:.0f} ms"
        report.add("open", name, f"{took:.0f} ms, {memory:.0f} MB", against, took / empty[0])


def many_timelines(report: Report, found: Files, size: Size) -> None:
    """Measure operations on all timelines, and on one of many."""
    names = iter(range(2, size.timelines))
    with DuckDBStore(found.many) as store:
        took = best_ms(store.list, 2)
        report.add("list", "many timelines", f"{took:.0f} ms")
        first = best_ms(lambda: store.load_window(TimelineId(f"{NAME}{next(names)}")))
        report.add("window, asked for first", "many timelines", f"{first:.1f} ms")
    for name, path in (("one timeline", found.long), ("many timelines", found.many)):
        report.add("verify", name, f"{best_ms(partial(verify, path), 1) / 1000:.1f} s")


def one_timeline(report: Report, found: Files, size: Size) -> None:
    """Measure window, path, search and fork, in a short and a long log."""
    with DuckDBStore(found.short) as short, DuckDBStore(found.long) as long:
        for what, again in (("window, asked for first", 1), ("window", 20)):
            one, other = (best_ms(partial(s.load_window, NAME), again) for s in (short, long))
            report.add(what, "one timeline", f"{other:.1f} ms", f"{SHORT:,} events", other / one)
        path, word = folded_path(long, NAME, size.events // 2), "parse_order_138"
        took = best_ms(lambda: block_at(long, NAME, path), 3)
        report.add("folded path", "one timeline", f"{took:.0f} ms")
        for what, query in (("search, no hit", f"nowhere {word}"), ("search, hits", word)):
            took = best_ms(partial(long.search, query, NAME), 3)
            report.add(what, "one timeline", f"{took:.0f} ms")
        at = min(100_000, size.events)
        event = TimelineForked(id=EventId("fork"), at=1.0, parent=NAME, version=at)
        took = best_ms(lambda: long.fork(NAME, TimelineId("fork"), event, at=at), 1)
        report.add(f"fork at {at:,}", "one timeline", f"{took:.0f} ms")


def folded_path(store: EventStore, name: TimelineId, version: int) -> str:
    """The path of a call in the middle of a log."""
    events = (event for _, event in store.read(name, after=version, limit=50))
    blocks = (event.block for event in events if isinstance(event, BlockAppended))
    return next(path_stem(block) for block in blocks if isinstance(block, ToolCall))


def appends(report: Report, found: Files) -> None:
    """Measure appends of 64 threads, each to its own timeline, against a loop that only commits."""
    kinds = {"one timeline": found.long, "many timelines": found.many}
    rates: dict[str, list[float]] = {}
    for again in range(ROUNDS):  # alternately, so that other work of the machine affects all alike
        rate = _bare(found.empty.with_name("bare.duckdb"))
        rates.setdefault("bare loop", []).append(rate)
        for name, path in kinds.items():
            rates.setdefault(name, []).append(_rate_of(path, again))
    bare = max(rates["bare loop"])
    for name, found_rates in rates.items():
        rate = max(found_rates)
        report.add("64 appenders", name, f"{rate:,.0f} appends/s", "bare loop", rate / bare)


def _rate_of(path: Path, again: int) -> float:
    with DuckDBStore(path) as store:

        def talk(number: int) -> None:
            name = TimelineId(f"talk {again}.{number}")
            for n in range(APPENDS):
                store.append(name, [_said(n)], expected_version=n)

        return _rate(talk)


def _said(number: int) -> BlockAppended:
    block = UserPrompt(id=BlockId(f"b{number}"), turn=TurnId("t1"), text="word " * 150)
    return BlockAppended(id=EventId(f"e{number}"), at=float(number), block=block)


def _rate(work: Callable[[int], None]) -> float:
    threads = [Thread(target=work, args=(number,)) for number in range(THREADS)]
    begin = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return THREADS * APPENDS / (perf_counter() - begin)


def _bare(path: Path) -> float:
    """Appends per second of a bare loop that commits whatever is waiting."""
    path.unlink(missing_ok=True)
    bare, waiting = Bare(path), SimpleQueue[tuple[str, Lock] | None]()

    def commit() -> None:
        while first := waiting.get():
            batch = [first]
            while not waiting.empty() and (item := waiting.get()):
                batch.append(item)
            bare.append([text for text, _ in batch])
            for _, turn in batch:
                turn.release()

    def talk(_: int) -> None:
        turn = Lock()
        turn.acquire()
        for n in range(APPENDS):
            waiting.put((encode_event(_said(n)).decode(), turn))
            turn.acquire()

    loop = Thread(target=commit)
    loop.start()
    rate = _rate(talk)
    waiting.put(None)
    loop.join()
    return rate


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="How a DuckDB file of a size behaves.")
    parser.add_argument("--timelines", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="a folder for the files")
    options = parser.parse_args()
    size, report = Size(options.timelines, options.events), Report()
    with tempfile.TemporaryDirectory() as temporary:
        found = files(options.keep or Path(temporary), size)
        opening(report, found)
        one_timeline(report, found, size)
        appends(report, found)
        many_timelines(report, found, size)
    report.show()


if __name__ == "__main__":
    main()
