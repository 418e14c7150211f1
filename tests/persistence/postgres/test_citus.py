"""What holds on Citus, PostgreSQL on many servers: where `FOLDLINE_CITUS_URL` is the URL of a superuser at its coordinator."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event
from typing import LiteralString, cast
from uuid import uuid4

import psycopg
import pytest

from blocks import (
    OutcomeUnknownError,
    StoreError,
    TimelineId,
    UnknownTimelineError,
    VersionConflictError,
)
from persistence import ArtifactDescription, EventStore, PostgresStore, Requester
from persistence.postgres.__main__ import roles
from persistence.postgres._citus import in_words_of_tables
from persistence.sql._rows import HEAD, PAGE, WINDOW
from persistence.testing import StoreContract
from tests._sizes import until
from tests._table import for_each
from tests.persistence.contract import T, U, compacted, forked, many, prompt
from tests.persistence.postgres._escapes import leaks

URL = os.environ.get("FOLDLINE_CITUS_URL", "")
# Citus is built from source, so there is none in an ordinary test run; docs/scale.md says how to get one.
pytestmark = [pytest.mark.network, pytest.mark.skipif(not URL, reason="no FOLDLINE_CITUS_URL")]


def asked(url: str, *queries: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        *first, last = queries
        for query in first:
            connection.execute(cast("LiteralString", query))
        cursor = connection.execute(cast("LiteralString", last))
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a new schema whose tables are distributed."""
    schema = f"t{uuid4().hex}"
    url = f"{URL}?options=-csearch_path%3D{schema}"
    PostgresStore(url).close()
    command = [sys.executable, "-m", "persistence.postgres", "--schema", schema, "--distribute"]
    script = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    alone = "SELECT pg_advisory_lock(7310033)"  # else changes of several tables lock one another
    asked(url, alone, *filter(str.strip, script.split(";")))
    yield url
    asked(url, alone, f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture(params=["", "it's /ours"], ids=["no tenant", "a tenant"])
def store(request: pytest.FixtureRequest, url: str) -> Iterator[EventStore]:
    with PostgresStore(url, tenant=request.param) as store:
        yield store


class TestTheContract(StoreContract):
    @pytest.fixture
    def store(self, store: EventStore) -> EventStore:
        return store


@pytest.fixture(params=["postgres", "citus_app"])
def login(request: pytest.FixtureRequest, url: str) -> str:
    """The URL for a superuser, and for a program of many tenants."""
    role: str = request.param
    schema = url.rpartition("%3D")[2]
    if role != "postgres":
        script = roles(schema, extra="DELETE, UPDATE") + MEMBER
        each = re.split(
            r";\n(?!END)", script
        )  # Citus sends a worker all that came with a statement
        asked(url, "SELECT pg_advisory_lock(7310033)", *each)
    return url.replace("//postgres@", f"//{role}@")


MEMBER = """
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'citus_app') THEN CREATE ROLE citus_app LOGIN; END IF;
END $$;
GRANT foldline_app TO citus_app
"""


def test_tenants_do_not_meet_whatever_they_do(login: str) -> None:
    with (
        PostgresStore(login, tenant="acme") as one,
        PostgresStore(f"{login}%20-cfoldline.tenant%3Dglobex") as other,
        PostgresStore(login) as nobody,
    ):
        one.append(T, many(3), expected_version=0)
        one.append(T, [compacted("c", cut=3)], expected_version=3)
        one.artifacts().put(b"abc", ArtifactDescription(timeline=T, expires_at=1.0))
        for store in (other, nobody):
            assert (store.head(T), store.list(), store.read(T)) == (0, [], [])
            assert [*store.search("text")] == []
            with pytest.raises(UnknownTimelineError):
                store.fork(T, U, forked(T, 2), at=2)
            with pytest.raises(UnknownTimelineError):
                store.remove(T)
            assert store.artifacts().list(Requester("me")) == []
            assert store.artifacts().sweep() == 0
        other.append(T, [prompt("a secret")], expected_version=0)
        nobody.append(T, [prompt("public")], expected_version=0)
        one.trim(T, 3)
        assert [one.head(T), other.head(T), nobody.head(T)] == [4, 1, 1]
        assert [store.verify().events for store in (one, other, nobody)] == [2, 1, 1]
        assert all(store.verify().ok for store in (one, other, nobody))
        other.remove(T)
        assert [one.head(T), other.head(T), nobody.head(T)] == [4, 0, 1]
    for tenant, rows in (("acme", 1), ("globex", 0), ("", 1)):
        setting = f"SET foldline.tenant = '{tenant}'"
        assert asked(login, setting, "SELECT count(*) FROM blocks") == [(rows,)], (
            "also in the views"
        )


def test_no_name_and_no_text_is_a_way_to_what_another_tenant_has(login: str) -> None:
    assert leaks(login) == []


@for_each("query", [WINDOW, HEAD, PAGE])
def test_what_is_read_of_a_timeline_is_asked_of_one_shard(url: str, query: str) -> None:
    words = in_words_of_tables(query)
    # a page is of versions too; all else is asked with the timeline alone
    versions = (1, 2, 4) if query == PAGE else ()
    given = {"tenant": "acme", **{f"p{n}": 1 if n in versions else T for n in range(5)}}
    with psycopg.connect(url) as connection:
        plan = "".join(row[0] for row in connection.execute("EXPLAIN " + words, given))
    assert "Task Count: 1 " in plan + " ", plan


REFUSAL = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {}; END'
"""
REFUSED = """
CREATE CONSTRAINT TRIGGER refuses AFTER INSERT ON %s DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION {}.refuse()
"""


@pytest.mark.parametrize(
    "end",
    ["RAISE ''the disk is full''", "PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(9)"],
    ids=["refuses", "breaks off"],
)
def test_a_commit_that_fails_on_a_worker_is_never_acknowledged(url: str, end: str) -> None:
    """The coordinator says that with a warning or with an internal error, which is no damage."""
    schema = url.rpartition("%3D")[2]
    refused = REFUSED.format(schema).replace("'", "''")
    with PostgresStore(url, wait_seconds=0.2) as store:
        store.append(T, many(2), expected_version=0)
        asked(
            url,
            REFUSAL.format(end),
            f"SELECT run_command_on_shards('stored_events', '{refused}')",
        )
        with pytest.raises(OutcomeUnknownError, match="could not commit"):
            store.append(T, many(2, first=3), expected_version=2)
        assert store.head(T) == 2
        asked(url, "SELECT run_command_on_shards('stored_events', 'DROP TRIGGER refuses ON %s')")
        assert store.append(T, many(2, first=3), expected_version=2) == 4


CUT = """
SELECT coalesce(sum(result::int), 0) FROM run_command_on_workers(
  'SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
   WHERE application_name LIKE ''citus_internal%'' AND pid <> pg_backend_pid()')
WHERE success
"""
"""Breaks the coordinator's connections to the workers, and counts them."""


WRITERS = 4


def check_talks(url: str, disturb: Callable[[], object]) -> None:
    """Nothing that was acknowledged is lost and nothing is there twice, while `disturb` is done again and again."""
    done = Event()

    def talk(where: PostgresStore, worker: int) -> int:
        """Append one by one until it is over, and however often an append must be repeated; return how many there are."""
        name = TimelineId(f"talk {worker}")
        for n in count():
            if done.is_set() and n >= EACH:
                return n
            for _ in range(1000):
                try:
                    where.append(name, [prompt(f"{worker}.{n}")], expected_version=where.head(name))
                    break
                except (StoreError, VersionConflictError):
                    continue
        raise AssertionError

    with PostgresStore(url, wait_seconds=60) as store, ThreadPoolExecutor(WRITERS) as pool:
        talks = [pool.submit(talk, store, worker) for worker in range(WRITERS)]
        try:
            disturb()
        finally:
            done.set()
        for worker, each in enumerate(talks):
            name, length = TimelineId(f"talk {worker}"), each.result()
            ids = [event.id for _, event in store.read(name, limit=length + 10)]
            assert ids == [f"{worker}.{n}" for n in range(length)]
        assert store.verify().ok


EACH = 30
"""Events that a writer appends at least."""


def wait_for_writing(url: str) -> None:
    """Wait until one more event is there: the writers are at work."""

    def written() -> int:
        return cast("int", asked(url, "SELECT count(*) FROM stored_events")[0][0])

    before = written()
    until(lambda: written() > before)


def test_workers_whose_connections_break_at_any_moment_lose_and_double_nothing(url: str) -> None:
    def cut() -> None:
        broken = [cast("int", asked(url, CUT)[0][0]) for _ in range(60)]
        assert sum(broken) > 30, broken

    check_talks(url, cut)


PLACES = """
SELECT shardid, nodename, nodeport FROM citus_shards
WHERE table_name = 'stored_events'::regclass ORDER BY shardid
"""
WORKERS = "SELECT nodename, nodeport FROM pg_dist_node WHERE isactive AND noderole = 'primary' AND shouldhaveshards"
MOVE = """
SELECT citus_move_shard_placement({shard}, '{old[0]}', {old[1]}, '{new[0]}', {new[1]}, '{mode}')
"""


@for_each("mode", ["force_logical", "block_writes"])
def test_shards_that_move_while_programs_append_lose_and_double_nothing(
    url: str, mode: str
) -> None:
    workers = asked(url, WORKERS)
    if len(workers) < 2:
        pytest.skip("there is one worker")
    used = {
        asked(url, f"SELECT get_shard_id_for_distribution_column('stored_events', 'talk {n}')")[0]
        for n in range(WRITERS)
    }

    def move() -> None:
        wait_for_writing(url)
        for shard, host, port in asked(url, PLACES):
            if (shard,) in used:
                new = next(worker for worker in workers if worker != (host, port))
                asked(url, MOVE.format(shard=shard, old=(host, port), new=new, mode=mode))

    with PostgresStore(url) as store:
        for info in store.list():
            store.remove(info.id)
    check_talks(url, move)


KILL = os.environ.get("FOLDLINE_CITUS_KILL", "")
STARTS = "SELECT result FROM run_command_on_workers('SELECT pg_postmaster_start_time()') ORDER BY 1"


@pytest.mark.skipif(not KILL, reason="no FOLDLINE_CITUS_KILL")
def test_a_worker_that_is_killed_while_programs_append_loses_and_doubles_nothing(url: str) -> None:
    """`FOLDLINE_CITUS_KILL` is a command that kills a worker with all its processes and starts it again."""

    def kill() -> None:
        starts = asked(url, STARTS)
        for _ in range(3):
            wait_for_writing(url)
            subprocess.run(shlex.split(KILL), check=True)
        assert asked(url, STARTS) != starts

    check_talks(url, kill)
