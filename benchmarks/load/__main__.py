"""Measures stores under load and as they grow; prints the figures and saves them as JSON.

    python -m benchmarks.load duckdb sqlite postgres --writers 1,8,32,64 --json load.json
    python -m benchmarks.load postgresql://… --mix 8:1:1 --processes 4 --timelines 1000
    python -m benchmarks.load sqlite --lengths 10000,1000000 --counts 1000,100000 --json load.json --keep

A store is a URL, or `duckdb`, `sqlite` or `postgres` for a new one that is deleted afterwards (PostgreSQL from
the wheel that the tests use, with every commit synced).  Logs that are written to a URL's store stay there.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.load.growth import Row, grown
from benchmarks.load.work import Figures, Load
from benchmarks.results import keep, kept
from blocks import MisuseError
from tests._postgres import running

SYNCED = ("fsync=on", "full_page_writes=on", "shared_buffers=128MB")


def loaded(url: str, options: argparse.Namespace) -> Iterator[Row]:
    """A row for each number of writers and each kind of step, from the best round."""
    mix = tuple(float(part) for part in options.mix.split(":"))
    if len(mix) != 3:
        raise MisuseError(f"--mix {options.mix}: three numbers, appends, windows and reads")
    for writers in numbers(options.writers):
        found: dict[str, list[Figures]] = {}
        for round_ in range(options.rounds):
            load = Load(
                url=url,
                writers=writers,
                processes=min(options.processes, writers),
                seconds=options.seconds,
                timelines=max(1, options.timelines // writers),
                mix=(mix[0], mix[1], mix[2]),
                tag=f"load {os.getpid()} {writers} {round_}",
            )
            for what, times in load.run().items():
                found.setdefault(what, []).append(Figures.of(times, options.seconds))
        for what, rounds in found.items():
            best = max(rounds, key=lambda figures: figures.a_second)
            yield {"what": what, "writers": writers, **best.row()}


def numbers(text: str) -> list[int]:
    """Parse the numbers of an option: `1,8,32`."""
    return [int(part) for part in text.split(",") if part]


def shown(row: Row) -> str:
    """A row as one line of text."""
    if "writers" in row:
        events = f"{2 * row['a_second']:10,.0f} events/s" if row["what"] == "append" else ""
        rate = f"{row['a_second']:10,.0f}/s  p50 {row['p50']:8.2f} ms  p99 {row['p99']:8.2f} ms"
        return f"{row['what']:16} {row['writers']:10,} writers {rate}{events}"
    return f"{row['what']:16} {row['at']:10,} {row['ms']:10.2f} ms, best {row['best']:.2f} ms"


NAMES = {
    "duckdb": "DuckDB",
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "postgresql": "PostgreSQL",
}
"""The columns of the table on the page about scale."""


def counted(number: int, unit: str) -> str:
    """A number of things in words: `1 writer`, `10,000 events`."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def keep_column(kind: str, rows: list[Row]) -> None:
    """Keep the figures of one store in the table on the page about scale, beside those of the others."""
    results = kept("scale")
    table = {row[0]: dict(zip(results.columns, row, strict=True)) for row in results.rows}
    for row in rows:
        if "writers" in row:
            what = f"{row['what']}, {counted(row['writers'], 'writer')}"
            figure = f"{row['a_second']:,.0f}/s, p99 {row['p99']:.0f} ms"
        else:
            unit = "timeline" if row["what"] in ("open", "list") else "event"
            what, figure = f"{row['what']}, {counted(row['at'], unit)}", f"{row['best']:.1f} ms"
        table.setdefault(what, dict.fromkeys(results.columns, "")).update(what=what)
        table[what][NAMES[kind]] = figure
    keep("scale", table.values())


def machine() -> dict[str, Any]:
    """The machine and the date of the measurement."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def url_of(store: str, stack: ExitStack) -> str:
    """The URL itself, or that of a new store of this kind."""
    if store == "postgres":
        return stack.enter_context(running(*SYNCED)).new_url()
    if store in ("duckdb", "sqlite"):
        folder = stack.enter_context(TemporaryDirectory(prefix="foldline-"))
        return f"{store}:///{folder}/load.{store}"
    return store


def main(arguments: list[str]) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.load", description=__doc__.partition("\n")[0])
    parser.add_argument("stores", nargs="+", help="duckdb, sqlite, postgres or a URL")
    parser.add_argument("--writers", default="", help="how many at once, such as 1,8,32,64")
    parser.add_argument("--processes", type=int, default=1, help="that share them")
    parser.add_argument(
        "--timelines", type=int, default=1, help="of all writers; at least one each"
    )
    parser.add_argument("--mix", default="1:0:0", help="appends : windows : reads")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lengths", default="", help="events in one log: 10000,100000,1000000")
    parser.add_argument("--counts", default="", help="timelines: 1000,10000,100000")
    parser.add_argument("--json", type=Path, help="a file; what is in it already stays")
    parser.add_argument(
        "--keep", action="store_true", help="keep the figures in benchmarks/results"
    )
    options = parser.parse_args(arguments)
    for store in options.stores:
        with ExitStack() as stack:
            url, rows = url_of(store, stack), list[Row]()
            kind = url.partition(":")[0]
            for row in measured(url, options):
                print(f"{kind:10} {shown(row)}", flush=True)
                rows.append({"store": kind, **row})
        if options.json:
            add(options.json, rows)
        if options.keep:
            keep_column(kind, rows)


def measured(url: str, options: argparse.Namespace) -> Iterator[Row]:
    """All requested rows for one store."""
    if options.writers:
        yield from loaded(url, options)
    if options.lengths or options.counts:
        yield from grown(url, numbers(options.lengths), numbers(options.counts))


def add(path: Path, rows: list[Row]) -> None:
    """Add rows to those in a file."""
    there = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    text = json.dumps({**machine(), "rows": [*there, *rows]}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
