"""Checks whether a database is consistent: every promise about its rows, one by one."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, Final

from blocks import CodecError, TimelineId, clean_json, decode_event, kind_of
from persistence._archive import archive_problems
from persistence._log import ALTERED, Rest, StoredEvent, Walk, chain_start, event_problems, ref_of
from persistence._store import PROBLEMS_MAX, StoreProblem, StoreReport
from persistence.artifacts import KeyRing
from persistence.artifacts._sql import SQLBackend
from persistence.artifacts._verify import Examination, examined
from persistence.sql._database import BUCKETS, Connection, Database, format_problems
from persistence.sql._retention import all_trimmed, pass_row, trim_problems
from persistence.sql._rows import columns, wrong_end

PAGE: Final = 100
COUNTS: Final = "SELECT count(DISTINCT timeline), count(*) FROM events"
HEADS: Final = "SELECT timeline, version, chain FROM heads"
CENSUS: Final = "SELECT bucket, timelines, names FROM census ORDER BY bucket"
EVENTS: Final = """
SELECT timeline, seq, id, ts, kind, ref, made, link, payload FROM events
WHERE (timeline, seq) > (?, ?) ORDER BY timeline, seq LIMIT ?
"""
ARTIFACTS: Final = "SELECT artifact, slot, entry FROM artifacts ORDER BY artifact, slot"
PIECE_COUNTS: Final = "SELECT slot, count(*) FROM artifact_pieces GROUP BY slot"
COLUMNS: Final = ("id", "ts", "kind", "ref")


def verify_tables(database: Database, backend: SQLBackend, keys: KeyRing | None) -> StoreReport:
    """The report on an open database."""
    with database.snapshot() as connection:
        [(timelines, events)] = connection.rows(COUNTS)
        texts = [*database.page_problems(connection), *format_problems(connection)]
        problems = [StoreProblem(what=what) for what in texts]
        problems += trim_problems(connection)
        heads = {name: (version, chain) for name, version, chain in connection.rows(HEADS)}
        if database.counts:
            problems += _census_problems(connection, heads)
        problems += islice(_problems(connection, all_trimmed(connection), heads), PROBLEMS_MAX)
        entries, damage = examined(
            connection.rows(ARTIFACTS),
            dict(connection.rows(PIECE_COUNTS)),
            [data for (data,) in connection.rows(backend.RECORDS)],
        )
    all_problems = chain(problems, damage, Examination(backend, keys).problems(entries))
    return StoreReport(
        timelines=timelines,
        events=events,
        artifacts=len(entries),
        problems=tuple(islice(all_problems, PROBLEMS_MAX)),
    )


def _rows(connection: Connection) -> Iterator[tuple[Any, ...]]:
    place: tuple[object, ...] = ("", 0)
    while page := connection.rows(EVENTS, [*place, PAGE]):
        yield from page
        place = page[-1][:2]


def _census_problems(
    connection: Connection, heads: Mapping[TimelineId, tuple[int, int]]
) -> Iterator[StoreProblem]:
    """Problems: timelines of which nothing is left, not even a head."""
    counts, names = [0] * BUCKETS, [0] * BUCKETS
    for name in heads:
        counts[chain_start(name) % BUCKETS] += 1
        names[chain_start(name) % BUCKETS] ^= chain_start(name)
    due = [*zip(range(BUCKETS), counts, names, strict=True)]
    census = connection.rows(CENSUS)
    if census != due:
        total = sum(row[1] for row in census)
        what = f"{total} timelines were made and not removed, and there are {len(heads)}, or others"
        yield StoreProblem(what=f"{what}, says table census")


def _problems(
    connection: Connection,
    rests: Mapping[TimelineId, Rest],
    heads: Mapping[TimelineId, tuple[int, int]],
) -> Iterator[StoreProblem]:
    names = set[TimelineId]()
    for name, rows in groupby(_rows(connection), itemgetter(0)):
        names.add(name)
        yield from _log_problems(name, rests.get(name, Rest()), heads.get(name, (0, 0)), rows)
    for name in (rests.keys() | heads.keys()) - names:
        version, _ = heads.get(name, (0, 0))
        what = (
            f"it has no events; {version} were written"
            if version
            else "events were removed, and all later events are missing"
        )
        yield StoreProblem(timeline=name, what=what)
        yield from archive_problems(name, rests.get(name, Rest()))


def _log_problems(
    name: TimelineId, rest: Rest, head: tuple[int, int], rows: Iterable[tuple[Any, ...]]
) -> Iterator[StoreProblem]:
    """Problems of the rows of a timeline; `head` is its version, and the chain after it."""

    def problem(version: int, what: str) -> StoreProblem:
        return StoreProblem(timeline=name, version=version, what=what)

    walk = Walk.of(name, rest)
    yield from archive_problems(name, rest, walk)
    blocks, due = dict[str, int](), rest.first
    for _, seq, *row in rows:
        if seq != due:
            yield problem(due, f"version {due} is missing, version {seq} is in its place")
            walk.lose()
        due = seq + 1
        for what in _row_problems(seq, row, blocks, walk):
            yield problem(seq, what)
        if (row[4] is None) == (seq == rest.first):
            yield problem(seq, "column made is for the first event of a timeline, and for no other")
    version, chain = head
    if due - 1 != version:
        yield problem(0, wrong_end(due - 1, version))
    elif not walk.ends_in(chain):
        yield problem(0, "its events are not those that its head stands for")


def _row_problems(seq: int, row: list[Any], blocks: dict[str, int], walk: Walk) -> Iterator[str]:
    *held, _, link, payload = row
    is_right = pass_row(walk, seq, payload, link)
    try:
        event = decode_event(payload)
    except CodecError as error:
        yield str(error)
        return
    if not is_right:
        yield ALTERED
    stored = StoredEvent(
        id=clean_json(event.id),
        kind=clean_json(kind_of(event)),
        at=float(event.at),
        ref=ref_of(event),
        data=b"",
    )
    for name, there, due in zip(COLUMNS, held, columns(stored), strict=True):
        if there != due:
            yield f"column {name} has {there!r:.100}, the event has {due!r:.100}"
    yield from event_problems(seq, event, blocks)
