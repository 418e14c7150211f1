"""Whether a store holds together: every promise about stored bytes, checked one by one."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from blocks import BlockAppended, CodecError, DamagedStoreError, MisuseError, decode_event, kind_of
from persistence._place import database_path, is_sound
from persistence._stored import ref_of
from persistence.artifacts import (
    ArtifactProblem,
    Artifacts,
    DuckDBReader,
    Examination,
    KeyRing,
    open_artifacts,
)
from persistence.duckdb._file_lock import FileLock, Marks, lost
from persistence.duckdb._large_events import Row, fetching, whole
from persistence.duckdb._schema import (
    audit_records,
    check_magic,
    connect,
    cursor_of,
    errors,
    has_pieces,
)
from persistence.duckdb._store import DuckDBStore

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PROBLEMS_MAX = 100
"""A report stops here: a store with so many is broken, and they repeat each other."""

PAGE = 100

VERSIONS = """
SELECT name, timeline, count(seq), count(DISTINCT seq), min(seq), max(seq)
FROM timelines LEFT JOIN events USING (timeline) GROUP BY ALL ORDER BY timeline
"""
LEFT_OVER = """
SELECT coalesce(name, ''), seq, count(*)
FROM pieces ANTI JOIN events USING (timeline, seq) LEFT JOIN timelines USING (timeline)
GROUP BY ALL ORDER BY ALL
"""
NAMELESS = "SELECT DISTINCT timeline FROM events ANTI JOIN timelines USING (timeline)"
TWICE = """
SELECT coalesce(name, ''), count(*) FROM timelines
GROUP BY name HAVING count(*) > 1 OR count(DISTINCT timeline) > 1
"""
EVENTS = """
SELECT seq, payload, kind, ref FROM events LEFT JOIN marks USING (timeline, seq) WHERE timeline = ?
"""


@attrs.frozen(kw_only=True)
class StoreProblem:
    """One thing that is not as it should be."""

    timeline: str = ""
    """Empty: it concerns the whole file."""
    version: int = 0
    """0: it concerns the whole timeline."""
    artifact: str = ""
    """Empty: it concerns no artifact."""
    what: str


@attrs.frozen(kw_only=True)
class StoreReport:
    """What `verify` found."""

    timelines: int = 0
    events: int = 0
    artifacts: int = 0
    problems: tuple[StoreProblem, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(
    target: DuckDBStore | Artifacts | str | Path, *, keys: KeyRing | None = None
) -> StoreReport:
    """Read the whole store, open or at a path, and report what does not hold together.

    Versions are gap-free; every event can be read and is the one its row says; no block id occurs
    twice in a timeline; every artifact is there and is what was put; nothing acknowledged is missing.
    Changes nothing.  `target` may also be a store of artifacts, open, or the folder or URL of one.
    Of artifacts that are encrypted the size is compared, and with their `keys` the content.

    Raises:
        StoreLockedError: somebody else has the file open.
        MisuseError: there is no such file, or it is no store.
    """
    try:
        if isinstance(target, DuckDBStore):
            with target.inspect() as (cursor, acknowledged):
                return _examined(cursor, target.path, acknowledged, keys)
        if isinstance(target, Artifacts):
            return _examined_artifacts(target)
        if _is_place_of_artifacts(target):
            with open_artifacts(target, keys=keys) as artifacts:
                return _examined_artifacts(artifacts)
        return _examined_file(database_path(target), keys)
    except DamagedStoreError as damage:
        return StoreReport(problems=(StoreProblem(what=str(damage)),))


def _is_place_of_artifacts(target: object) -> bool:
    if isinstance(target, str) and "://" in target:
        return True
    if not is_sound(target) and not isinstance(target, Path):
        return False
    return all((Path(target) / name).is_dir() for name in ("content", "entries"))


def _examined_artifacts(artifacts: Artifacts) -> StoreReport:
    count, problems = artifacts.examined()
    return StoreReport(artifacts=count, problems=tuple(islice(_ours(problems), PROBLEMS_MAX)))


def _ours(problems: Iterable[ArtifactProblem]) -> Iterator[StoreProblem]:
    for each in problems:
        name = each.artifact or ""
        what = f"artifact {name}: {each.what}" if name else each.what
        yield StoreProblem(timeline=each.timeline or "", artifact=name, what=what)


def _examined_file(path: Path, keys: KeyRing | None) -> StoreReport:
    if not path.exists():
        raise MisuseError(f"no file {path} to verify")
    lock = FileLock.acquire(path)  # first: to open and close a file drops the database's own lock
    try:
        check_magic(path)
        connection = connect(path, access_mode="READ_ONLY")
        try:
            with errors(path), cursor_of(connection) as cursor:
                return _examined(cursor, path, lock.acknowledged(), keys)
        finally:
            connection.close()
    finally:
        lock.abandon()


def _examined(
    cursor: "DuckDBPyConnection", path: Path, acknowledged: Marks, keys: KeyRing | None
) -> StoreReport:
    cursor.execute("BEGIN")  # one snapshot for all questions
    try:
        counts = cursor.execute(VERSIONS).fetchall()
        events = sum(row[2] for row in counts)
        held = Marks(events, audit_records(cursor))
        problems = tuple(islice(_problems(cursor, counts), PROBLEMS_MAX))
    finally:
        cursor.execute("ROLLBACK")
    if what := lost(held, acknowledged):
        missing = StoreProblem(what=f"the file holds {what}; was a .wal deleted?")
        problems = (missing, *problems)
    with cursor_of(cursor) as second:  # an error of the file's ends a snapshot
        reader = DuckDBReader(second, path)
        examination = Examination(reader, keys)
        entries, damage = examination.entries()
        found = chain(_ours(damage), _gone(reader), _ours(examination.problems(entries)))
        return StoreReport(
            timelines=len(counts),
            events=events,
            artifacts=len(entries),
            problems=tuple(islice(chain(problems, found), PROBLEMS_MAX)),
        )


def _gone(reader: DuckDBReader) -> Iterator[StoreProblem]:
    for artifact, due, there in reader.gone():
        what = f"artifact {artifact}: it was put {due} times and is there {there} times"
        yield StoreProblem(artifact=artifact, what=what)


def _problems(
    cursor: "DuckDBPyConnection",
    counts: list[tuple[str, int, int, int, int | None, int | None]],
) -> Iterator[StoreProblem]:
    for (number,) in cursor.execute(NAMELESS).fetchall():
        yield StoreProblem(what=f"events of timeline number {number}, which has no name")
    for name, count in cursor.execute(TWICE).fetchall():
        yield StoreProblem(timeline=name, what=f"the name is given {count} times")
    for name, number, count, distinct, first, last in counts:
        if not (count == distinct == last and first == 1):
            yield StoreProblem(
                timeline=name,
                what=f"versions are not 1 to {count}, each once: {distinct} different ones"
                f" from {first} to {last}",
            )
        yield from _event_problems(cursor, name, number)
    if has_pieces(cursor):
        for name, seq, count in cursor.execute(LEFT_OVER).fetchall():
            yield StoreProblem(timeline=name, version=seq, what=f"{count} pieces of no event")


def _event_problems(cursor: "DuckDBPyConnection", name: str, number: int) -> Iterator[StoreProblem]:
    blocks: dict[str, int] = {}
    with cursor_of(cursor) as second:
        fetch = fetching(second, number)
        cursor.execute(EVENTS, [number])
        while page := cursor.fetchmany(PAGE):
            for seq, payload, *mark in page:
                for what in _row_problems(whole([(seq, payload)], fetch), mark, blocks):
                    yield StoreProblem(timeline=name, version=seq, what=what)


def _row_problems(
    row: Iterator[Row], mark: list[str | int | None], blocks: dict[str, int]
) -> Iterator[str]:
    try:
        [(seq, payload)] = row
        event = decode_event(payload)
    except CodecError as error:
        yield str(error)
        return
    ref = ref_of(event)
    if mark != [None if ref is None else kind_of(event), ref]:
        yield f"it should have left the mark {ref} and left {mark[1]}"
    if ref is not None and not 1 <= ref <= seq:
        yield f"it refers to version {ref}, which is not before it"
    if isinstance(event, BlockAppended):
        first = blocks.setdefault(event.block.id, seq)
        if first != seq:
            yield f"block id {event.block.id!r} was already used at version {first}"
