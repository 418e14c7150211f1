"""Measures durable appends of two events with `eventsourcing` on PostgreSQL; prints events/s and p50 in ms.

    python eventsourcing_appends.py HOST SCHEMA KIND WRITERS SECONDS

KIND: `recorder` writes ready bytes, without the global order of events that the library's followers need;
`application` does what its applications do: it encodes events as JSON and keeps that order.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from statistics import median
from uuid import uuid4

from eventsourcing.domain import DomainEvent
from eventsourcing.persistence import (
    DatetimeAsISO,
    EventStore,
    JSONTranscoder,
    Mapper,
    StoredEvent,
)
from eventsourcing.postgres import (
    PostgresAggregateRecorder,
    PostgresApplicationRecorder,
    PostgresDatastore,
)

TEXT = "Why does the nightly job fail? " * 26
STATE = f'{{"text": "{TEXT}"}}'.encode()


class Said(DomainEvent):
    """An event as large as ours."""

    text: str


def recorder(store):
    """An append function that writes the bytes of events into the table of one kind of aggregate."""
    made = PostgresAggregateRecorder(store, events_table_name="stored_events")
    made.create_table()

    def append(name, version):
        made.insert_events([StoredEvent(name, version + n, "Said", STATE) for n in range(2)])

    return append


def application(store):
    """An append function that saves events as an application does."""
    made = PostgresApplicationRecorder(store, events_table_name="stored_events")
    made.create_table()
    transcoder = JSONTranscoder()
    transcoder.register(DatetimeAsISO())
    kept = EventStore(Mapper(transcoder), made)

    def append(name, version):
        at = Said.create_timestamp()
        kept.put([Said(name, version + n, at, TEXT) for n in range(2)])

    return append


def write(append, seconds):
    """Run one writer, which has its own sequence."""
    name, times, end = uuid4(), [], time.perf_counter() + seconds
    versions = count(1, 2)
    while (start := time.perf_counter()) < end:
        append(name, next(versions))
        times.append(time.perf_counter() - start)
    return times


def main(host, schema, kind, writers, seconds):
    """Measure, and print the figures."""
    given = {"pool_size": int(writers), "schema": schema}
    with PostgresDatastore("postgres", host, 5432, "postgres", "", **given) as store:
        with store.transaction(commit=True) as cursor:
            cursor.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        append = {"recorder": recorder, "application": application}[kind](store)
        with ThreadPoolExecutor(int(writers)) as pool:
            begin = time.perf_counter()
            found = pool.map(write, [append] * int(writers), [float(seconds)] * int(writers))
            times = [each for part in found for each in part]
            rate = 2 * len(times) / (time.perf_counter() - begin)
    print(rate, 1000 * median(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
