"""`verify` looks at every table of every store, and at each of its columns.

Which tables and columns there are is asked of the database, so that a new one is not forgotten: it is looked
at, or it is said here why not.
"""
# ruff: noqa: S608 -- the names are those that the database gives

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import attrs
import duckdb
import psycopg
import pytest

from blocks import FoldlineError
from persistence import ArtifactDescription, open_store, verify
from tests.persistence.contract import T, U, compacted, forked, many, said

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
        store.append(T, [*many(5), compacted("c", cut=3), said("x" * 20_000)], expected_version=0)
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
