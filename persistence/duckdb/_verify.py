"""Checks whether a DuckDB file is consistent: every promise about stored bytes, one by one."""

from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from blocks import CodecError, MisuseError, TimelineId, decode_event, kind_of
from persistence._archive import archive_problems
from persistence._log import ALTERED, Rest, Walk, chain_step, content_hash, event_problems, ref_of
from persistence._store import PROBLEMS_MAX, StoreProblem, StoreReport
from persistence.artifacts import KeyRing
from persistence.artifacts._duckdb import DuckDBBackend, examined_in
from persistence.artifacts._verify import Examination
from persistence.duckdb._file import (
    FileLock,
    Marks,
    check_magic,
    connect,
    cursor_of,
    errors,
    held_in,
    loss,
)
from persistence.duckdb._tables import Row, all_rests, whole

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE = 100
TOGETHER = 500_000
"""Timelines are read together up to this many events, because the block ids of all of them are in memory."""
Versions: TypeAlias = tuple[str, int, int, int, int | None, int | None]
"""A timeline: its name, number, number of events, number of distinct versions, first version, last version."""

VERSIONS = """
SELECT name, timeline, coalesce(events, 0), coalesce(different, 0), first, last
FROM timelines LEFT JOIN (
    SELECT timeline, count(*) AS events, count(DISTINCT seq) AS different,
           min(seq) AS first, max(seq) AS last
    FROM events GROUP BY timeline
) USING (timeline) ORDER BY timeline
"""
LEFT_OVER = """
SELECT coalesce(name, ''), seq, count(*)
FROM pieces ANTI JOIN events USING (timeline, seq) LEFT JOIN timelines USING (timeline)
GROUP BY ALL ORDER BY ALL
"""
NO_EVENT = """
SELECT coalesce(name, ''), timeline, seq FROM marks ANTI JOIN events USING (timeline, seq)
LEFT JOIN timelines USING (timeline) ORDER BY ALL
"""
UNIQUE = {
    "heads": "timeline",
    "marks": "timeline, seq",
    "pieces": "timeline, seq, number, piece",
    "trims": "timeline, first",
}
"""Tables, and the columns that together must be unique in each."""
NAMELESS = "SELECT DISTINCT timeline FROM events ANTI JOIN timelines USING (timeline)"
TWICE = """
SELECT coalesce(name, ''), count(*) FROM timelines
GROUP BY name HAVING count(*) > 1 OR count(DISTINCT timeline) > 1
"""
LOST_TIMELINES = "SELECT timeline, version FROM heads ANTI JOIN timelines USING (timeline)"
NO_HEAD = """
SELECT name FROM timelines ANTI JOIN heads USING (timeline), fold WHERE timeline <= fold.timelines
"""
HEADS = "SELECT timeline, version, chain FROM heads"
EVENTS = """
SELECT timeline, seq, payload, link, ts, kind, ref FROM events LEFT JOIN marks USING (timeline, seq)
WHERE timeline BETWEEN ? AND ?
"""


def verify_file(path: Path, keys: KeyRing | None) -> StoreReport:
    """The report on a file that is not open."""
    if not path.exists():
        raise MisuseError(f"there is no file {path} to verify")
    # First, because opening and closing the file would release the database's own lock.
    lock = FileLock.acquire(path)
    try:
        check_magic(path)
        connection = connect(path, access_mode="READ_ONLY")
        try:
            with errors(path), cursor_of(connection) as cursor:
                return verify_tables(cursor, path, lock.acknowledged, keys)
        finally:
            connection.close()
    finally:
        lock.abandon()


def verify_tables(
    cursor: "DuckDBPyConnection", path: Path, acknowledged: Marks | None, keys: KeyRing | None
) -> StoreReport:
    """The report on an open database."""
    cursor.execute("BEGIN")  # one snapshot for all queries
    try:
        counts = cursor.execute(VERSIONS).fetchall()
        what = loss(cursor, held_in(cursor), acknowledged)
        problems = [*islice(_problems(cursor, counts, all_rests(cursor)), PROBLEMS_MAX)]
        with errors(path):
            entries, damage = examined_in(cursor)
    finally:
        cursor.execute("ROLLBACK")
    if what:
        problems.insert(0, StoreProblem(what=f"the file holds {what}; was a .wal deleted?"))
    with cursor_of(cursor) as second:  # an error in the file ends the transaction of a cursor

        @contextmanager
        def lent() -> "Generator[DuckDBPyConnection]":
            with errors(path):
                yield second

        backend = DuckDBBackend(lent, lent, lambda _: None)
        contents = Examination(backend, keys).problems(entries)
        return StoreReport(
            timelines=len(counts),
            events=sum(row[2] for row in counts),
            artifacts=len(entries),
            problems=tuple(islice(chain(problems, damage, contents), PROBLEMS_MAX)),
        )


def _problems(
    cursor: "DuckDBPyConnection", counts: Sequence[Versions], rests: Mapping[int, Rest]
) -> Iterator[StoreProblem]:
    for (number,) in cursor.execute(NAMELESS).fetchall():
        yield StoreProblem(what=f"events of timeline number {number}, which has no name")
    for name, count in cursor.execute(TWICE).fetchall():
        yield StoreProblem(timeline=name, what=f"the name is given {count} times")
    for name, number, count, different, first, last in counts:
        rest = rests.get(number, Rest())
        if not (count == different and first == rest.first and last == rest.removed + count):
            yield StoreProblem(
                timeline=name,
                what=f"versions are not {rest.first} to {rest.removed + count}, each once:"
                f" {different} different ones from {first} to {last}",
            )
    yield from _head_problems(cursor)
    for some in _together(counts):
        yield from _event_problems(cursor, some, rests)
    for name, number, seq in cursor.execute(NO_EVENT).fetchall():
        if seq >= rests.get(number, Rest()).first:  # marks of removed events stay
            yield StoreProblem(timeline=name, version=seq, what="a mark of no event")
    for table, key in UNIQUE.items():
        twice = f"SELECT {key} FROM {table} WHERE timeline <> 0 GROUP BY ALL HAVING count(*) > 1"  # noqa: S608 -- constants
        for place in cursor.execute(twice).fetchall():
            yield StoreProblem(what=f"table {table} has more than one row of {key} {place}")
    for name, seq, count in cursor.execute(LEFT_OVER).fetchall():
        yield StoreProblem(timeline=name, version=seq, what=f"{count} pieces of no event")


def _together(counts: Iterable[Versions]) -> Iterator[dict[int, str]]:
    """Groups of timelines to read in one query, as names by number: rows of timelines are interleaved in the file."""
    some, events = dict[int, str](), 0
    for name, number, count, *_ in counts:
        if some and events + count > TOGETHER:
            yield some
            some, events = {}, 0
        some[number] = name
        events += count
    if some:
        yield some


def _head_problems(cursor: "DuckDBPyConnection") -> Iterator[StoreProblem]:
    """Problems: rows of `heads` that are missing, or of no timeline."""
    for number, version in cursor.execute(LOST_TIMELINES).fetchall():
        yield StoreProblem(what=f"timeline number {number} of {version} events is missing")
    for (name,) in cursor.execute(NO_HEAD).fetchall():
        yield StoreProblem(timeline=name, what="table heads has no row of it")


def _event_problems(
    cursor: "DuckDBPyConnection", names: Mapping[int, str], rests: Mapping[int, Rest]
) -> Iterator[StoreProblem]:
    """Problems of the events of these timelines; `names` has every timeline from its lowest number to its highest."""
    blocks: dict[int, dict[str, int]] = {number: {} for number in names}
    chains = {number: array("q") for number in names}
    with cursor_of(cursor) as second:
        cursor.execute(EVENTS, [min(names), max(names)])
        while page := cursor.fetchmany(PAGE):
            for number, seq, payload, *columns in page:
                if number in names:
                    row = whole([(seq, payload)], second, number)
                    for what in _row_problems(row, columns, blocks[number], chains[number]):
                        yield StoreProblem(timeline=names[number], version=seq, what=what)
        heads = {
            number: (version, chain) for number, version, chain in second.execute(HEADS).fetchall()
        }
    for number, name in names.items():
        rest, head = rests.get(number, Rest()), heads.get(number, (0, 0))
        for version, what in _chain_problems(TimelineId(name), rest, chains[number], head):
            yield StoreProblem(timeline=name, version=version, what=what)


def _chain_problems(
    name: TimelineId, rest: Rest, links: "array[int]", head: tuple[int, int]
) -> Iterator[tuple[int, str]]:
    """Versions and problems of a timeline, from the version, the step and the chain of each event."""
    walk = Walk.of(name, rest)
    for problem in archive_problems(name, rest, walk):
        yield problem.version, problem.what
    version, chain = head
    due = rest.first
    for seq, addition, after in sorted(zip(links[::3], links[1::3], links[2::3], strict=True)):
        if seq != due:
            walk.lose()
        due = seq + 1
        if not walk.passes(addition, after):
            yield seq, ALTERED
        if seq == version and not walk.ends_in(chain):
            yield seq, "it is not the event for which its head stands"
    if due - 1 < version:
        yield 0, f"events {due} to {version}, which were written, are missing"


def _row_problems(
    row: Iterator[Row], columns: list[Any], blocks: dict[str, int], links: "array[int]"
) -> Iterator[str]:
    try:
        [(seq, payload)] = row
        event = decode_event(payload)
    except CodecError as error:
        yield str(error)
        return
    link, at, *mark = columns
    links.extend((seq, chain_step(seq, event.id), link ^ content_hash(payload.encode())))
    if isfinite(event.at) and at != event.at:
        yield f"column ts has {at}, the event has {event.at}"
    ref = ref_of(event)
    if mark != [None if ref is None else kind_of(event), ref]:
        yield f"it should have left the mark {ref} and left {mark[1]}"
    yield from event_problems(seq, event, blocks)
