"""The PostgreSQL store keeps the contract, and what only a server can promise."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from traceback import format_exception
from typing import LiteralString, cast
from urllib.parse import quote

import psycopg
import pytest

from blocks import ClosedError, MisuseError, StoreError, VersionConflictError
from persistence import (
    ArtifactDescription,
    EventStore,
    PostgresStore,
    Requester,
    locate_store,
    open_store,
    repair,
    verify,
)
from persistence.postgres._database import FEW
from persistence.sql._rows import WINDOW
from persistence.testing import StoreContract
from tests._postgres import Server
from tests.persistence.contract import T, U, compacted, forked, many, prompt


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore(url) as store:
        yield store


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def store(self, url: str) -> Iterator[EventStore]:
        with PostgresStore(url) as store:
            yield store


def asked(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(cast("LiteralString", query))
        return cursor.fetchall() if cursor.description else []


def with_password(url: str, password: str) -> str:
    return url.replace("postgres@", f"postgres:{quote(password, safe='')}@")


def test_a_damaged_file_is_saved_into_a_server_with_a_password(url: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "old.duckdb") as old:
        old.append(T, many(3), expected_version=0)
    assert repair(tmp_path / "old.duckdb", with_password(url, "s:e/c@ret")).events == 3
    with PostgresStore(url) as store:
        assert store.head(T) == 3


@pytest.mark.parametrize("count", [1, FEW, FEW + 1])
def test_few_events_and_many_are_written_alike(store: PostgresStore, count: int) -> None:
    """They are bound in two ways; what they refer to and what is escaped included."""
    events = [*many(count), compacted("a\\b\0c", cut=1)][-count:]
    assert store.append(T, events, expected_version=0) == count
    assert [event for _, event in store.read(T)] == events
    assert store.append(T, events, expected_version=0) == count, "the repeat of a success"
    with pytest.raises(VersionConflictError):
        store.append(T, many(count, first=1_000), expected_version=0)
    assert store.load_window(T).version == count
    assert verify(store).ok


def test_the_tables_lie_in_the_schema_that_the_url_names(url: str, postgres: Server) -> None:
    elsewhere = postgres.new_url()
    with PostgresStore(url) as one, PostgresStore(elsewhere) as other:
        one.append(T, many(2), expected_version=0)
        assert (one.head(T), other.head(T)) == (2, 0)
    [(schema,)] = asked(url, "SELECT current_schema()")
    assert url.endswith(f"search_path%3D{schema}")


def test_both_ways_to_write_the_scheme_are_one_store(url: str) -> None:
    with closing(open_store(url)) as store:
        store.append(T, many(2), expected_version=0)
    with closing(open_store(url.replace("postgresql://", "postgres://"))) as store:
        assert store.head(T) == 2
    assert verify(url).ok


@pytest.mark.parametrize("password", ["s3cret", "p@ss:w/rd", "%&?#"])
def test_a_password_is_never_shown(
    url: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret = with_password(url, password)
    place = locate_store(secret)
    shown = [str(place), repr(place)]
    with PostgresStore(secret) as store:
        shown += [str(store), repr(store), repr(store._database), repr(store.block_index())]
        store.append(T, many(1), expected_version=0)
        with pytest.raises(VersionConflictError) as conflict:
            store.append(T, [prompt("x")], expected_version=0)
    with pytest.raises(ClosedError) as closed:
        store.head(T)
    with pytest.raises(StoreError) as unreached:
        PostgresStore(secret.replace("host=", "host=/nowhere"))
    for error in (conflict, closed, unreached):
        shown += [str(error.value), "".join(format_exception(error.value))]
    everything = "\n".join([*shown, caplog.text])
    assert "postgresql://postgres@" in everything
    assert password not in everything
    assert quote(password, safe="") not in everything


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://me:p@ss:w@rd@[host/db",
        "postgresql://me:secret@host:port/db?no=1",
        "postgresql://%zz:secret@h",
        "postgres://me:pa/secret@h/db",
    ],
)
def test_a_url_that_is_none_is_refused_without_what_may_be_a_password(where: str) -> None:
    with pytest.raises(MisuseError, match="no URL of a PostgreSQL database; write") as caught:
        open_store(where)
    text = "".join(format_exception(caught.value))
    assert "secret" not in text.split("open_store(where)")[-1]
    assert "w@rd" not in text.split("open_store(where)")[-1]


def test_tables_of_somebody_else_are_left_alone(url: str) -> None:
    schema = url.rpartition("%3D")[2]
    asked(url, f"CREATE SCHEMA {schema}")
    asked(url, "CREATE TABLE events(what text)")
    with pytest.raises(
        MisuseError, match="a table named events of another application; use a separate schema"
    ):
        PostgresStore(url)
    assert asked(url, "SELECT * FROM events") == []
    assert not locate_store(url).exists()


def test_a_role_that_may_not_make_tables_says_what_to_run_and_uses_those_that_are_there(
    url: str, postgres: Server
) -> None:
    schema = url.rpartition("%3D")[2]
    asked(url, f"CREATE SCHEMA {schema}")
    asked(url, f"CREATE ROLE {schema} LOGIN")
    asked(url, f"GRANT USAGE ON SCHEMA {schema} TO {schema}")
    theirs = url.replace("postgres@", f"{schema}@")
    with pytest.raises(StoreError, match=r"permission denied .*GRANT USAGE, CREATE ON SCHEMA"):
        PostgresStore(theirs)
    with PostgresStore(url) as store:
        store.append(T, many(2), expected_version=0)
    asked(url, f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {schema} TO {schema}")
    asked(url, f"GRANT UPDATE ON heads, stored_heads, census, stored_census TO {schema}")
    asked(
        url,
        f"GRANT DELETE ON artifacts, artifact_pieces, stored_artifacts, stored_artifact_pieces TO {schema}",
    )
    with PostgresStore(theirs) as store:
        assert store.append(T, many(2, first=3), expected_version=2) == 4
        store.fork(T, U, forked(T, 3), at=3)
        artifact = store.artifacts().put(b"abc", ArtifactDescription(timeline=T))
        assert store.artifacts().read(artifact, Requester("me")) == b"abc"
        assert verify(store).ok
        with pytest.raises(StoreError, match="permission denied"), store._database.writing() as c:
            c.run("DELETE FROM events")
    del postgres


def test_no_plan_of_ours_is_parallel(store: PostgresStore) -> None:
    with store._database.lent() as connection:
        assert connection.rows("SHOW max_parallel_workers_per_gather") == [("0",)]


@pytest.mark.parametrize(
    ("theirs", "ours"), [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")]
)
def test_a_commit_is_durable_also_where_the_server_would_not_wait_for_it(
    url: str, theirs: str, ours: str
) -> None:
    asked(url, f"ALTER ROLE postgres IN DATABASE postgres SET synchronous_commit = {theirs}")
    try:
        with PostgresStore(url) as store, store._database.lent() as connection:
            assert connection.rows("SHOW synchronous_commit") == [(ours,)]
    finally:
        asked(url, "ALTER ROLE postgres IN DATABASE postgres RESET synchronous_commit")


def test_a_window_is_found_by_the_index_on_marks(store: PostgresStore, url: str) -> None:
    """One range from the cut: what is older is not touched, however much it is."""
    asked(
        url,
        """INSERT INTO events SELECT 'my talk', n, n::text, 0, 'BlockAppended', NULL, '{}', NULL, 0
           FROM generate_series(1, 20000) AS n""",
    )
    asked(url, "INSERT INTO heads VALUES ('my talk', 20000, 0)")
    store.append(T, [compacted("c", cut=19_990)], expected_version=20_000)
    asked(url, "ANALYZE stored_events")
    plan = "EXPLAIN (ANALYZE, FORMAT TEXT) " + WINDOW
    with store._database.lent() as connection:
        lines = [line for (line,) in connection.rows(plan, [T] * 4)]
    text = "\n".join(lines)
    assert "Seq Scan on" not in text
    assert "events_marks" in text
    assert "rows=12.00" in text or "rows=12 " in text, text


def test_connections_are_made_when_they_are_needed(url: str) -> None:
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'foldline'"
    with PostgresStore(url, connections=8) as store:
        for n in range(5):
            store.append(T, many(1, first=n + 1), expected_version=n)
        [(made,)] = asked(url, count)
        assert made == 1
