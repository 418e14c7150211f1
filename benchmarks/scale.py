"""Where a DuckDB file ends: one of 100,000 timelines, and one with a million events in one timeline.

    .venv/bin/python -m benchmarks.scale --timelines 100000 --events 1000000

The files are made by the database itself (`--keep FOLDER` keeps them for the next run), so none of it has
to be appended first. Every opening is a process of its own; times are the best of `--rounds`.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Final, TypeVar

import attrs
import duckdb
import msgspec

from benchmarks.logs import NAME, fill, history
from benchmarks.material import Writer, appended
from blocks import BlockAppended, EventId, TimelineForked, TimelineId, encode_event
from persistence import DuckDBStore, search_blocks, verify
from timeline import Timeline

T = TypeVar("T")

WINDOW = 200
SHORT = 10_000
"""Events of the log that the long one is compared with."""
LARGE = 4_000
"""Bytes of an event that is left out of the material: here it is the number that matters."""
OPEN = """
import resource, sys, time
import duckdb
from persistence import DuckDBStore
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.perf_counter()
store = DuckDBStore(sys.argv[1])
took = time.perf_counter() - begin
print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
store.close()
"""
MATERIAL = "CREATE TEMP TABLE material(number BIGINT, text VARCHAR)"
NAMES = "INSERT INTO timelines SELECT n, '{name}' || CASE WHEN n > 1 THEN n::VARCHAR ELSE '' END FROM range(1, {timelines} + 1) r(n)"
EVENTS = """
INSERT INTO events
SELECT timeline, seq, 1.7e9 + place,
       replace(replace(replace(text, '@SEQ@', seq::VARCHAR), '@CYCLE@', (seq // {material})::VARCHAR),
               '@AT@', (1700000000 + place)::VARCHAR || '.0')
FROM (SELECT place, place % {timelines} + 1 AS timeline, place // {timelines} + 1 AS seq
      FROM range({start}, {stop}) r(place)) JOIN material ON number = (timeline * 7 + seq) % {material}
ORDER BY place
"""
PAGE = 50_000


@attrs.frozen
class Size:
    """Of a file: its timelines, and the events of all of them."""

    timelines: int
    events: int


def make(path: Path, size: Size) -> Path:
    """A file whose timelines were all appended to in turn, so that rows of one lie far apart."""
    if path.exists():
        return path
    DuckDBStore(path).close()
    texts = list(_material())
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(f"ATTACH '{path}' AS store (ROW_GROUP_SIZE 2048)")
        database.execute(MATERIAL)
        rows = [list(range(len(texts))), texts]
        database.execute("INSERT INTO material SELECT unnest(?), unnest(?)", rows)
        database.execute("USE store")
        names = NAMES.format(name=NAME, timelines=size.timelines)
        database.execute(names)
        for start in range(0, size.events, PAGE):
            stop = min(start + PAGE, size.events)
            bounds = {"start": start, "stop": stop, "timelines": size.timelines}
            database.execute(
                EVENTS.format(material=len(texts), **bounds).replace(
                    "JOIN material", "JOIN temp.material"
                )
            )
        database.execute("CHECKPOINT")
    return path


def _material() -> Iterator[str]:
    """Events as JSON, in which number, place and time are left open."""
    for version, event in enumerate(history(1_000), 1):
        text = encode_event(event).decode()
        if len(text) > LARGE:
            continue
        yield (
            text.replace(f'"event.{version}"', '"event.@SEQ@"')
            .replace(f'"{event.block.id}"', '"block.@SEQ@"', 1)
            .replace('"turn":"t', '"turn":"t@CYCLE@_')
            .replace('"call_id":"call_', '"call_id":"call_@CYCLE@_')
            .replace(f'"at":{event.at}', '"at":@AT@')
        )
