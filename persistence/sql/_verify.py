"""Checks whether a database is consistent: every promise about its rows, one by one."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

from blocks import CodecError, Event, TimelineId, clean_json, decode_event, kind_of
from persistence._archive import archive_problems
from persistence._log import Kept, StoredEvent, event_problems, ref_of
from persistence._store import PROBLEMS_MAX, StoreProblem, StoreReport
from persistence.artifacts import KeyRing
from persistence.artifacts._sql import SQLBackend
from persistence.artifacts._verify import ArtifactTables, Examination
from persistence.sql._database import Connection, Database, format_problems
from persistence.sql._retention import all_trimmed, trim_problems
from persistence.sql._rows import checksum, columns

PAGE: Final = 100
COUNTS: Final = "SELECT count(DISTINCT timeline), count(*) FROM events"
EVENTS: Final = """
SELECT timeline, seq, id, ts, kind, ref, made, crc32, payload FROM events
WHERE (timeline, seq) > (?, ?) ORDER BY timeline, seq LIMIT ?
"""
ARTIFACTS: Final = "SELECT artifact, slot, entry FROM artifacts ORDER BY artifact, slot"
PIECE_COUNTS: Final = "SELECT slot, count(*) FROM artifact_pieces GROUP BY slot"
RECORDS: Final = "SELECT record FROM artifact_audit ORDER BY made"
ALTERED: Final = "its content is not what was written: the checksum beside it is another"
COLUMNS: Final = ("id", "ts", "kind", "ref")


def verify_tables(database: Database, backend: SQLBackend, keys: KeyRing | None) -> StoreReport:
    """The report on an open database."""
    with database.snapshot() as connection:
        [(timelines, events)] = connection.rows(COUNTS)
        said = [*database.page_problems(connection), *format_problems(connection)]
        problems = [StoreProblem(what=what) for what in said]
        problems += trim_problems(connection)
        problems += islice(_problems(connection, all_trimmed(connection)), PROBLEMS_MAX)
        entries, damage = _artifacts(connection).examined()
    found = chain(problems, damage, Examination(backend, keys).problems(entries))
    return StoreReport(
        timelines=timelines,
        events=events,
        artifacts=len(entries),
        problems=tuple(islice(found, PROBLEMS_MAX)),
    )


def _artifacts(connection: Connection) -> ArtifactTables:
    return ArtifactTables(
        rows=connection.rows(ARTIFACTS),
        pieces=dict(connection.rows(PIECE_COUNTS)),
        records=[data for (data,) in connection.rows(RECORDS)],
    )


def _rows(connection: Connection) -> Iterator[tuple[Any, ...]]:
    place: tuple[object, ...] = ("", 0)
    while page := connection.rows(EVENTS, [*place, PAGE]):
        yield from page
        place = page[-1][:2]


def _problems(connection: Connection, left: Mapping[TimelineId, Kept]) -> Iterator[StoreProblem]:
    name, first, due, blocks, named = "", 1, 1, dict[str, int](), set[str]()
    for timeline, seq, *row in _rows(connection):
        if timeline != name:
            name, blocks = timeline, {}
            first = due = left.get(timeline, Kept()).first
            named.add(name)
        if seq != due:
            what = f"version {due} is missing, version {seq} is in its place"
            yield StoreProblem(timeline=name, version=due, what=what)
        due = seq + 1
        for what in _row_problems(seq, row, blocks):
            yield StoreProblem(timeline=name, version=seq, what=what)
        if (row[-3] is None) == (seq == first):
            what = "column made is for the first event of a timeline, and for no other"
            yield StoreProblem(timeline=name, version=seq, what=what)
    for timeline, kept in left.items():
        if timeline not in named:
            yield StoreProblem(
                timeline=timeline, what="events were removed, and all later events are missing"
            )
        yield from archive_problems(timeline, kept)


def _row_problems(seq: int, row: list[Any], blocks: dict[str, int]) -> Iterator[str]:
    *held, _, sum_, payload = row
    try:
        event = decode_event(payload)
    except CodecError as error:
        yield str(error)
        return
    if sum_ not in (None, checksum(payload)):
        yield ALTERED
    for name, there, due in zip(COLUMNS, held, _columns(event), strict=True):
        if there != due:
            yield f"column {name} has {there!r:.100}, the event has {due!r:.100}"
    yield from event_problems(seq, event, blocks)


def _columns(event: Event) -> tuple[object, ...]:
    told = StoredEvent(
        id=clean_json(event.id),
        kind=clean_json(kind_of(event)),
        at=float(event.at),
        ref=ref_of(event),
        data=b"",
    )
    return columns(told)
