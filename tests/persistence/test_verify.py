"""Any store can be verified, whether it has a way of its own or not."""

import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import attrs
import duckdb
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    DamagedStoreError,
    FoldlineError,
    MisuseError,
    OpaqueEvent,
    StoreError,
    StoreLockedError,
    TimelineId,
)
from persistence import (
    ArtifactDescription,
    DuckDBStore,
    MemoryStore,
    Requester,
    open_store,
    repair,
    verify,
)
from persistence._verify import _saved
from persistence.duckdb._file import FileLock
from persistence.duckdb._store import DuckDBLocation
from tests.persistence._full_disk import full_disk
from tests.persistence.contract import T, U, compacted, expanded, forked, many, prompt
from tests.strategies import Play, settings, steps
from timeline import Timeline


def test_a_store_without_a_way_of_its_own_is_verified_through_its_protocol() -> None:
    class Gap(MemoryStore):
        def read(self, *given: Any, **named: Any) -> Any:
            return [each for each in super().read(*given, **named) if each[0] != 2]

    for store, problems in ((MemoryStore(), []), (Gap(), [(T, 2)])):
        store.append(T, many(3), expected_version=0)
        report = verify(store)
        assert (report.timelines, report.events) == (1, 3)
        assert [(each.timeline, each.version) for each in report.problems] == problems


def test_a_block_id_that_is_used_twice_is_found_in_every_store() -> None:
    store = MemoryStore()
    store.append(T, [*many(2), *many(1)], expected_version=0)
    [problem] = verify(store).problems
    assert (problem.version, problem.what) == (
        3,
        "block id 'block 1' was already used at version 1",
    )


@pytest.mark.parametrize("target", [3, None, object(), DuckDBStore, MemoryStore, []])
def test_what_is_no_store_is_not_verified(target: Any) -> None:
    with pytest.raises(
        MisuseError, match="is not a store; give a store, or the path or URL of one"
    ):
        verify(target)


# `verify` looks at every table of every store, and at each of its columns.


# ruff: noqa: S608 -- the names are those that the database gives


SAYS_NOTHING = {
    "artifact_audit.id": "drawn by chance, so that a repeat is known",
    "artifact_audit.made": "the order of the audit, which promises none between processes",
    "artifact_pieces.at": "how old what a killed put has left is",
    "fold.timelines": "up to which number a timeline must have a head; none has a higher number",
    "trims.anchor": "of an archive it is 0; `test_disasters` alters that of what was forgotten",
    "foldline.views": "which views there are; they are made anew when it differs",
    "timelines.name": "the name itself is written nowhere else",
    "trims.began_at": "the time of an event that is gone",
}
"""Columns that nothing can be compared with."""
HARMLESS = {
    ("duckdb", "DELETE FROM foldline"): "the highest of its rows counts, and this is the first",
    ("duckdb", "INSERT INTO foldline SELECT * FROM foldline"): "the same",
    ("duckdb", "UPDATE trims SET file = '[' || file"): "the archive is found beside the store",
}
TABLES = {
    "duckdb": """SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns()
                 JOIN duckdb_tables() USING (table_name)""",
    "sqlite": """SELECT t.name, c.name, c.type, NOT c."notnull" AND NOT c.pk FROM sqlite_master t,
                 pragma_table_info(t.name) c WHERE t.type = 'table'""",
    "postgres": """SELECT table_name, column_name, data_type, is_nullable = 'YES'
                   FROM information_schema.columns JOIN information_schema.tables
                       USING (table_schema, table_name)
                   WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'""",
}
ROW = {"duckdb": "rowid", "sqlite": "rowid", "postgres": "ctid"}
CHANGED = {
    "BIGINT": "{} + 1000",
    "DOUBLE": "{} + 1000",
    "VARCHAR": "'[' || {}",
    "TEXT": "'[' || {}",
    "JSON": "'{{}}'",
    "BLOB": "'x'",
    "BYTEA": "'x'",
    "BOOLEAN": "NOT {}",
}


@attrs.frozen
class Place:
    """A store that nobody has open, and its tables."""

    kind: str
    url: str

    def asked(self, statement: str) -> list[tuple[Any, ...]]:
        """
        Raises:
            RefusedError: the database does not let it be done.
        """
        try:
            if self.kind == "postgres":
                with psycopg.connect(self.url, autocommit=True) as server:
                    cursor = server.execute(statement.encode())
                    return cursor.fetchall() if cursor.description else []
            path = self.url.partition(":///")[2]
            if self.kind == "sqlite":
                with closing(sqlite3.connect(path, isolation_level=None)) as file:
                    return file.execute(statement).fetchall()
            with duckdb.connect(path) as database:
                return database.execute(statement).fetchall()
        except (
            sqlite3.IntegrityError,
            psycopg.IntegrityError,
            duckdb.ConstraintException,
        ) as error:
            raise RefusedError from error

    def problems(self) -> Sequence[str]:
        try:
            return [problem.what for problem in verify(self.url).problems]
        except FoldlineError as error:
            return [str(error)]


class RefusedError(Exception):
    """The database guards it by itself."""


Make = Callable[[], Place]


@pytest.fixture(params=list(TABLES))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes one more store, each the same."""
    kind, file = request.param, tmp_path / f"talks.{request.param}"
    if kind == "postgres":
        return lambda: _filled(Place(kind, request.getfixturevalue("postgres").new_url()), tmp_path)
    _filled(Place(kind, f"{kind}:///{file}"), tmp_path)
    numbers = count()

    def copied() -> Place:
        copy = tmp_path / f"copy {next(numbers)}"
        shutil.copyfile(file, copy)
        return Place(kind, f"{kind}:///{copy}")

    return copied


def _filled(place: Place, folder: Path) -> Place:
    """Rows in every table: a large event, a compaction, artifacts, and what a removal leaves."""
    with closing(open_store(place.url)) as store:
        store.append(T, [*many(5), compacted("c", cut=3), prompt("x" * 20_000)], expected_version=0)
        store.fork(T, U, forked(T, 6), at=6)
        for content in (Random(1).randbytes(1_100_000), b"two"):  # noqa: S311 -- content
            store.artifacts(clock=lambda: 1.0).put(content, ArtifactDescription(timeline=T))
        store.trim(T, 3, archive=folder)
    return place


def _damages(place: Place) -> Iterator[tuple[str, str]]:
    columns = place.asked(TABLES[place.kind])
    for table in sorted({table for table, *_ in columns}):
        yield table, f"DROP TABLE {table}" + (" CASCADE" if place.kind == "postgres" else "")
        yield table, f"DELETE FROM {table} WHERE {_first(place, table)}"
        yield table, f"INSERT INTO {table} SELECT * FROM {table}"
    for table, column, type_, is_nullable in sorted(columns):
        kind = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "DOUBLE PRECISION": "DOUBLE"}.get(
            type_.upper(), type_.upper().partition("(")[0].replace("CHARACTER VARYING", "VARCHAR")
        )
        value = "NULL" if is_nullable else CHANGED[kind].format(column)
        one = _first(place, table, f"{column} IS NOT NULL")
        yield f"{table}.{column}", f"UPDATE {table} SET {column} = {value} WHERE {one}"


def _first(place: Place, table: str, condition: str = "true") -> str:
    row = ROW[place.kind]
    return f"{row} = (SELECT min({row}) FROM {table} WHERE {condition})"


def test_damage_of_any_table_and_any_column_is_a_problem(make: Make) -> None:
    sound = make()
    assert sound.problems() == []
    unseen = list[str]()
    for where, damage in _damages(sound):
        if (
            where.removeprefix("stored_") in SAYS_NOTHING
            or (sound.kind, damage.partition(" WHERE")[0]) in HARMLESS
        ):
            continue
        place = make()
        try:
            place.asked(damage)
        except RefusedError:
            continue
        problems = place.problems()
        if not problems or any("repeat the call" in problem for problem in problems):
            unseen.append(f"{damage}: {problems}")
    assert not unseen, "\n".join(unseen)


def test_pieces_of_a_put_that_was_killed_are_no_damage_and_a_sweep_removes_them(make: Make) -> None:
    place = make()
    columns = {column for table, column, *_ in place.asked(TABLES[place.kind]) if "pieces" in table}
    at = ", 0" if "at" in columns else ""
    part = ", 0" if "part" in columns else ""
    place.asked(f"INSERT INTO artifact_pieces VALUES ('left', 0{at}, 'x'{part})")
    assert place.problems() == []
    with closing(open_store(place.url)) as store:
        store.artifacts(clock=lambda: 1e6).sweep()
    assert place.asked("SELECT count(*) FROM artifact_pieces WHERE slot = 'left'") == [(0,)]


# What can be read of a damaged store is saved; what cannot is said; the damaged one stays as it is.


READER = Requester("host")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "talks.duckdb"
    with DuckDBStore(path) as store:
        store.append(T, [*many(5), compacted("c", cut=3), expanded("x", 6)], expected_version=0)
        store.fork(T, U, forked(T, 6), at=6)
        with store.artifacts(clock=lambda: 1.0) as artifacts:
            for content in (b"one", b"two" * 700_000):
                artifacts.put(content, ArtifactDescription(timeline=T))
    return path


def with_a_log(path: Path, appends: int = 30) -> Path:
    """A store that was killed: its newest events are in the write-ahead log."""
    folder = path.parent / "killed"
    folder.mkdir()
    with DuckDBStore(path) as store:
        for n in range(appends):
            store.append(T, many(1, first=8 + n), expected_version=7 + n)
        for name in (path.name, f"{path.name}.wal", f"{path.name}.lock"):
            shutil.copy(path.parent / name, folder)
    return folder / path.name


def lying(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".lock"}


def test_a_sound_store_is_saved_whole(path: Path, tmp_path: Path) -> None:
    report = repair(path, tmp_path / "new.duckdb")
    assert (report.timelines, report.events, report.artifacts, report.lost) == (2, 14, 2, ())
    with DuckDBStore(path) as old, open_store(tmp_path / "new.duckdb") as new:
        for name in (T, U):
            assert new.read_bytes(name) == old.read_bytes(name)
            assert new.load_window(name) == old.load_window(name)
        kept = new.artifacts(clock=lambda: 2.0).list(READER)
        assert [old.artifacts().read(a.id, READER) for a in kept] == [
            new.artifacts().read(a.id, READER) for a in kept
        ]


@pytest.mark.parametrize("seed", range(6))
def test_a_write_ahead_log_that_is_damaged_anywhere_gives_what_comes_before(
    path: Path, tmp_path: Path, seed: int
) -> None:
    killed = with_a_log(path)
    wal = killed.with_name(killed.name + ".wal")
    with wal.open("r+b") as file:
        file.seek(Random(seed).randrange(wal.stat().st_size - 10))  # noqa: S311 -- a place
        file.write(b"\xff" * 10)
    before = lying(killed.parent)
    report = repair(killed, tmp_path / "new.duckdb")
    assert lying(killed.parent) == before
    assert 14 <= report.events < 44
    assert (report.timelines, report.artifacts) == (2, 2)
    [lost] = report.lost
    assert f"the copy holds {report.events} events but 44 were acknowledged" in lost
    assert verify(tmp_path / "new.duckdb").ok


def test_a_log_that_is_missing_is_said(path: Path, tmp_path: Path) -> None:
    killed = with_a_log(path)
    killed.with_name(killed.name + ".wal").unlink()
    report = repair(killed, tmp_path / "new.duckdb")
    assert report.events == 14
    assert report.lost == ("the copy holds 14 events but 44 were acknowledged",)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE events SET payload = '[1]' WHERE seq IN (4, 5) AND timeline = 1",
        "DELETE FROM events WHERE seq IN (4, 5) AND timeline = 1",
    ],
)
def test_what_cannot_be_read_leaves_the_events_around_it_where_they_are(
    path: Path, tmp_path: Path, damage: str
) -> None:
    with DuckDBStore(path) as store:
        sound = dict(store.read(T))
    with duckdb.connect(str(path)) as connection:
        connection.execute(damage)
    report = repair(path, tmp_path / "new.duckdb")
    assert (report.events, report.timelines) == (5 + 7, 2)
    assert any(f"{T}: events 4 to 5: " in lost for lost in report.lost)
    assert verify(tmp_path / "new.duckdb").ok
    with DuckDBStore(tmp_path / "new.duckdb") as new:
        assert (new.head(T), new.head(U)) == (7, 7)
        for version, event in new.read(T):
            if version in (4, 5):
                assert isinstance(event, OpaqueEvent)
            else:
                assert event == sound[version]
        assert Timeline.open(str(T), store=new, window=20_000).render().messages


class Broken(MemoryStore):
    """A store of which some events of every timeline cannot be read."""

    unread: Collection[int] = ()

    def read_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[tuple[int, bytes]]:
        page = super().read_bytes(timeline_id, after=after, limit=limit)
        if any(version in self.unread for version, _ in page):
            raise DamagedStoreError("a bad page")
        return page


@given(steps(), settings(), st.sets(st.integers(1, 60)))
def test_a_log_with_holes_is_rendered_to_a_request_that_a_provider_takes(
    all_steps: list[Any], options: dict[str, Any], unread: set[int]
) -> None:
    play = Play(options).run([*all_steps, ("render",)])
    broken, saved = Broken(), MemoryStore()
    play.store.copy_to(broken)
    sound = {i.id: broken.read_bytes(i.id, limit=10_000) for i in broken.list()}
    broken.unread = unread
    report = _saved(broken, saved, "")
    broken.unread = ()
    assert verify(saved).ok
    for name, log in sound.items():
        gone, head = saved.kept(name).forgotten, saved.head(name)
        assert {v for v, _ in log if v > head or v <= gone} <= unread
        for there, (version, data) in zip(
            saved.read_bytes(name, after=gone, limit=10_000), log[gone:], strict=False
        ):
            assert there == (version, data) or version in unread
    assert report.events == sum(v not in unread for log in sound.values() for v, _ in log)
    for info in saved.list():
        assert play.open(str(info.id), saved).render().violations == ()


def test_the_end_of_a_log_that_cannot_be_read_is_cut_off(path: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE events SET payload = '[1]' WHERE seq > 5 AND timeline = 1")
    report = repair(path, tmp_path / "new.duckdb")
    assert any(f"{T}: events 6 to 7: " in lost for lost in report.lost)
    with DuckDBStore(tmp_path / "new.duckdb") as new:
        assert (new.head(T), new.head(U)) == (5, 7)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_of_a_timeline_without_one_of_its_archives_all_else_is_saved(
    tmp_path: Path, kind: str
) -> None:
    where, saved = f"{kind}:///{tmp_path}/old.{kind}", f"{kind}:///{tmp_path}/new.{kind}"
    with closing(open_store(where)) as store:
        log = [*many(9), compacted("c", cut=9), *many(3, first=11)]
        store.append(T, log, expected_version=0)
        for before in (4, 6, 9):
            store.trim(T, before, archive=tmp_path)
        sound, window = dict(store.read(T)), store.load_window(T)
        first, second, _ = store.kept(T).archives
    Path(second.file).unlink()
    report = repair(where, saved)
    assert report.events == 11
    [lost] = report.lost
    assert f"{T}: events 4 to 5: archive {second.file} " in lost
    with closing(open_store(saved)) as store:
        found = dict(store.read(T))
        assert {v for v in sound if found[v] != sound[v]} == {4, 5}
        assert store.load_window(T) == window
    assert verify(saved).ok
    Path(first.file).unlink()
    Path(saved.partition(":///")[2]).unlink()
    assert repair(where, saved).events == 8
    with closing(open_store(saved)) as store:
        assert store.load_window(T) == window
        assert store.kept(T).forgotten == 5, "what is lost at the beginning is forgotten"
    assert verify(saved).ok


def test_an_artifact_that_is_damaged_is_left_out(path: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM artifact_pieces WHERE part = 7")
    report = repair(path, tmp_path / "new.duckdb")
    assert report.artifacts == 1
    [lost] = report.lost
    assert "2100000 bytes were put" in lost
    assert verify(tmp_path / "new.duckdb").ok


def test_a_file_of_which_nothing_can_be_read_leaves_nothing_behind(
    path: Path, tmp_path: Path
) -> None:
    with path.open("r+b") as file:
        file.seek(20_000)
        file.write(b"\xff" * 300)
    with pytest.raises(DamagedStoreError, match="restore it from a backup"):
        repair(path, tmp_path / "new.duckdb")
    assert not [file for file in tmp_path.iterdir() if not file.name.startswith("talks")]


@pytest.mark.parametrize("form", ["{}", "duckdb:///{}", "sqlite:///{}"])
def test_the_copy_that_is_read_lies_beside_the_new_store(
    path: Path, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk with room for the one has room for the other; the system's temporary folder may have none."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    (tmp_path / "disk").mkdir()
    assert repair(path, form.format(tmp_path / "disk" / "new.store")).lost == ()


def test_a_disk_without_room_for_the_copy_is_named(path: Path, tmp_path: Path) -> None:
    (disk := tmp_path / "disk").mkdir()
    with full_disk(5_000), pytest.raises(StoreError, match=f"^{disk}/.*free disk space"):
        repair(path, disk / "new.duckdb")
    assert list(disk.iterdir()) == []


def test_a_store_on_read_only_media_is_repaired(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing beside it is written or locked."""

    def acquire(database: Path) -> FileLock:
        assert media not in database.parents
        return unchanged(database)

    media, unchanged = with_a_log(path).parent, FileLock.acquire
    before = {file.name: file.read_bytes() for file in media.iterdir()}
    monkeypatch.setattr(FileLock, "acquire", acquire)
    monkeypatch.setattr(DuckDBLocation, "is_writable", lambda _: False)
    report = repair(media / path.name, tmp_path / "new.duckdb")
    assert (report.events, report.lost) == (44, ())
    assert {file.name: file.read_bytes() for file in media.iterdir()} == before


def test_only_a_store_that_nobody_has_open_becomes_a_new_one(path: Path, tmp_path: Path) -> None:
    with DuckDBStore(path), pytest.raises(StoreLockedError):
        repair(path, tmp_path / "new.duckdb")
    with pytest.raises(MisuseError, match="already exists"):
        repair(path, path)
    with pytest.raises(MisuseError, match="no store"):
        repair(tmp_path / "none.duckdb", tmp_path / "new.duckdb")
    with pytest.raises(MisuseError, match="no store"):
        repair("memory:", tmp_path / "new.duckdb")
