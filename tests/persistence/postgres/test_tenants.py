"""Tenants that share a database do not meet, and a role may do what it needs and nothing else."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import LiteralString, cast

import psycopg
import pytest

from blocks import AccessRefusedError, MisuseError, StoreError, UnknownTimelineError
from persistence import (
    ArtifactDescription,
    EventStore,
    PostgresStore,
    Requester,
)
from persistence.postgres.__main__ import roles
from persistence.postgres._notify import CHANNELS
from persistence.sql._rows import WINDOW
from persistence.testing import StoreContract
from tests._postgres import Server
from tests._table import for_each
from tests.persistence.contract import T, U, compacted, forked, many, prompt
from tests.persistence.postgres._escapes import leaks
from tests.persistence.postgres._woken import LONG, Woken

TABLES = ("stored_events", "stored_artifacts", "stored_artifact_pieces", "stored_artifact_audit")


def asked(url: str, *queries: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        for query in queries:
            cursor = connection.execute(cast("LiteralString", query))
        return cursor.fetchall() if cursor.description else []


def script(url: str, *tenants: tuple[str, str]) -> str:
    return roles(url.rpartition("%3D")[2], tenants)


@pytest.fixture(scope="module")
def members(postgres: Server) -> None:
    """Logins for the three roles, and one for each of two tenants."""
    url = postgres.new_url()
    PostgresStore(url).close()
    asked(url, *(f"CREATE ROLE {role} LOGIN" for role in ("own", "app", "look", "acme", "globex")))
    asked(url, script(url))
    asked(url, "GRANT foldline_owner TO own", "GRANT foldline_app TO app")
    asked(url, "GRANT foldline_reader TO look")


@pytest.fixture
def login(url: str, members: None) -> Callable[[str], str]:
    """The URL of a store with its roles, for a login."""
    del members
    PostgresStore(url).close()
    asked(url, script(url, ("acme", "acme"), ("globex", "globex")))
    return lambda role: url.replace("postgres@", f"{role}@")


class TestTheContractAsTheRoleOfAProgram(StoreContract):
    @pytest.fixture
    def store(self, url: str, login: Callable[[str], str]) -> Iterator[EventStore]:
        asked(url, roles(url.rpartition("%3D")[2], extra="DELETE, UPDATE"))
        with PostgresStore(login("app"), tenant="it's /ours") as store:
            yield store

    def test_what_was_removed_can_be_erased(self, store: EventStore) -> None:
        """By the owner of the tables, and no one else."""
        with pytest.raises(StoreError, match="let its owner run VACUUM FULL"):
            store.erase()


@pytest.fixture(params=["a superuser", "a program of many", "logins of their own"])
def urls(request: pytest.FixtureRequest, login: Callable[[str], str]) -> tuple[str, str]:
    """Of two tenants, acme and globex, in one database."""
    users = {"a superuser": ("postgres",) * 2, "a program of many": ("app",) * 2}
    one, other = users.get(request.param, ("acme", "globex"))
    return login(one), login(other)


@pytest.fixture
def both(urls: tuple[str, str]) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """Their stores."""
    one, other = urls
    with (
        PostgresStore(one, tenant="acme") as store,
        PostgresStore(other, tenant="globex") as second,
    ):
        yield store, second


def test_the_same_name_is_another_timeline_for_another_tenant(
    both: tuple[PostgresStore, PostgresStore],
) -> None:
    one, other = both
    one.append(T, many(3), expected_version=0)
    assert (other.head(T), other.list(), other.read(T)) == (0, [], [])
    assert [*other.search("text")] == []
    with pytest.raises(UnknownTimelineError):
        other.fork(T, U, forked(T, 2), at=2)
    other.append(T, [prompt("a secret")], expected_version=0)
    assert (one.head(T), other.head(T)) == (3, 1)
    assert len(one.list()) == len(other.list()) == 1
    assert [*one.search("secret")] == []
    assert [hit.timeline for hit in other.search("secret")] == [T]
    assert (one.verify().events, other.verify().events) == (3, 1)


def test_who_follows_hears_of_what_its_tenant_appends_and_others_of_a_hash(
    urls: tuple[str, str], both: tuple[PostgresStore, PostgresStore]
) -> None:
    """No role needs a right for that."""
    mine, theirs = Woken(both[0]), Woken(both[1])
    mine.settle(), theirs.settle()
    with psycopg.connect(urls[1], autocommit=True) as stranger:
        for channel in range(CHANNELS):
            stranger.execute(cast("LiteralString", f"LISTEN foldline_{channel}"))
        with PostgresStore(urls[0], tenant="acme") as other:
            other.append(T, many(1), expected_version=0)
        assert mine.waits()
        [heard] = stranger.notifies(timeout=LONG, stop_after=1)
    assert re.fullmatch("[0-9a-f]{16}", heard.payload)
    assert not theirs.event.is_set()


def test_artifacts_and_what_is_on_record_of_them_are_a_tenants_own(
    both: tuple[PostgresStore, PostgresStore],
) -> None:
    one, other = both
    me, about = Requester("me"), ArtifactDescription(timeline=T, expires_at=1.0)
    name = one.artifacts().put(b"abc", ArtifactDescription(timeline=T))
    one.artifacts().put(b"old", about)
    assert other.artifacts().list(me) == []
    with pytest.raises(AccessRefusedError) as refused:
        other.artifacts().read(name, me)
    assert refused.value.reason == "unknown"
    assert {record.action for record in other.artifacts().audit()} == {"list", "read"}
    assert other.artifacts().sweep() == 0
    assert one.artifacts().sweep() == 1
    assert one.artifacts().read(name, me) == b"abc"
    assert (one.verify().ok, other.verify().artifacts) == (True, 0)


def test_no_statement_of_a_login_of_one_tenant_touches_the_rows_of_another(
    login: Callable[[str], str],
) -> None:
    """Whatever it sets, and whether it goes to the tables or to the views."""
    with PostgresStore(login("acme")) as store:  # the tenant is that of the role
        store.append(T, many(2), expected_version=0)
        store.artifacts().put(b"abc", ArtifactDescription(timeline=T))
    assert asked(login("postgres"), "SELECT DISTINCT tenant FROM stored_events") == [("acme",)]
    for setting in ("", "acme", "globex"):
        pretends = f"SET foldline.tenant = '{setting}'"
        for name in (*TABLES, "events", "log", "blocks", "artifacts", "artifact_audit"):
            assert asked(login("globex"), pretends, f"TABLE {name}") == [], name
    row = "SELECT 't', 1, '1', 0, 'k', NULL, '{}', NULL"
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        asked(login("globex"), "SET foldline.tenant = 'acme'", f"INSERT INTO events {row}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="set role"):
        asked(login("globex"), "SET ROLE foldline_app")
    with pytest.raises(StoreError, match="the tenant that the role is bound to"):
        PostgresStore(login("globex"), tenant="acme")


SPY = """
CREATE FUNCTION pg_temp.spy(anyelement) RETURNS bool COST 0.0000001 LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'seen: %', $1; END $$
"""
THEIRS = "SELECT payload FROM stored_events WHERE tenant = 'acme'"


@for_each(
    "statements",
    [
        ("SELECT set_config('foldline.tenant', 'acme', false)", THEIRS),
        ("SELECT set_config('foldline.tenant', 'acme', true)", THEIRS),
        ("SET SESSION AUTHORIZATION acme", THEIRS),
        ("SET ROLE acme", THEIRS),
        ("SET ROLE foldline_owner", THEIRS),
        ("SET row_security = off", THEIRS),
        (SPY, "SELECT 1 FROM stored_events WHERE pg_temp.spy(payload)"),
        (SPY, "SELECT 1 FROM events WHERE pg_temp.spy(payload)"),
        (SPY, "SELECT 1 FROM blocks WHERE pg_temp.spy(text)"),
        ("SELECT convert_from(payload, 'UTF8')::int FROM stored_events WHERE tenant = 'acme'",),
        (THEIRS + " FOR UPDATE",),
        ("COPY stored_events TO STDOUT",),
        ("COPY (TABLE stored_events) TO PROGRAM 'cat'",),
        ("PREPARE theirs AS " + THEIRS, "EXECUTE theirs"),
        ("DECLARE theirs CURSOR WITH HOLD FOR " + THEIRS, "FETCH ALL FROM theirs"),
        ("CREATE TEMP TABLE mine AS " + THEIRS, "TABLE mine"),
        ("SELECT most_common_vals::text FROM pg_stats WHERE tablename LIKE 'stored%'",),
        (
            "SELECT query FROM pg_stat_activity WHERE query LIKE '%c4nary%' AND pid <> pg_backend_pid()",
        ),
        ("SELECT stavalues1::text FROM pg_statistic",),
        ("DELETE FROM stored_events WHERE tenant = 'acme' RETURNING payload",),
        ("UPDATE stored_events SET tenant = 'globex' WHERE tenant = 'acme' RETURNING payload",),
        ("ALTER ROLE globex SET foldline.tenant = 'acme'", THEIRS),
        ("CREATE POLICY mine ON stored_events USING (true)",),
        ("SELECT lo_get(oid) FROM pg_largeobject_metadata",),
        ("SELECT pg_read_file('PG_VERSION')",),
        (
            "DO $$ BEGIN PERFORM set_config('role', 'postgres', false); END $$",
            THEIRS,
        ),
    ],
)
def test_no_known_way_around_row_level_security_shows_a_row_of_another_tenant(
    login: Callable[[str], str], statements: tuple[str, ...]
) -> None:
    """Nothing, or an error of the server, neither of which has a word of the other's."""
    with PostgresStore(login("acme")) as store:
        if store.head(T) == 0:
            store.append(T, [prompt("c4nary")], expected_version=0)
            asked(login("postgres"), "ANALYZE stored_events")
    with PostgresStore(login("globex")) as store:  # has rows of its own, which a scan meets first
        if store.head(U) == 0:
            store.append(U, many(1), expected_version=0)
    try:
        found = str(asked(login("globex"), *statements))
    except psycopg.Error as error:
        found = f"{error} {error.diag.message_detail} {error.diag.context}"
    assert "c4nary" not in found
    assert len(asked(login("acme"), "TABLE events")) == 1


@for_each("role", ["app", "postgres"])
def test_no_name_and_no_text_is_a_way_to_what_another_tenant_has(
    login: Callable[[str], str], role: str, postgres: Server
) -> None:
    """As a program of many tenants, and as a superuser, whom no policy limits."""
    assert leaks(login(role) if role == "app" else postgres.new_url()) == []


@for_each("role", ["app", "look"])
@for_each(
    "statement",
    [
        "UPDATE events SET payload = '{}'",
        "DELETE FROM events",
        "DELETE FROM stored_events",
        "TRUNCATE stored_events",
        "DELETE FROM artifact_audit",
        "UPDATE foldline SET format = 1",
        "ALTER TABLE stored_events DISABLE ROW LEVEL SECURITY",
        "DROP POLICY own_rows ON stored_events",
        "CREATE TABLE more(n int)",
    ],
)
def test_what_was_written_is_changed_by_nobody_but_the_owner(
    login: Callable[[str], str], role: str, statement: str
) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        asked(login(role), statement)


def test_a_reader_reads_the_log_of_its_tenant_and_writes_nothing(
    login: Callable[[str], str],
) -> None:
    with PostgresStore(login("app"), tenant="acme") as store:
        store.append(T, many(2), expected_version=0)
    count = "SELECT count(*) FROM blocks"
    assert asked(login("look"), count) == [(0,)]
    assert asked(login("look"), "SET foldline.tenant = 'acme'", count) == [(2,)]
    for statement in ("INSERT INTO events SELECT * FROM events", "SELECT * FROM artifacts"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            asked(login("look"), statement)


def test_a_window_of_a_role_is_found_by_the_index(login: Callable[[str], str]) -> None:
    """The policy lets no condition through that might tell of rows: ours are of those that it does."""
    with PostgresStore(login("app"), tenant="acme") as store:
        store.append(T, many(300), expected_version=0)
        store.append(T, [compacted("c", cut=290)], expected_version=300)
        with store._database.lent() as connection:
            plan = [line for (line,) in connection.rows(f"EXPLAIN {WINDOW}", [T] * 4)]
    assert any("Index Cond" in line and "(seq >= " in line for line in plan), plan


@pytest.mark.usefixtures("members")
def test_views_of_another_version_are_replaced_by_the_owner_of_the_tables_alone(url: str) -> None:
    asked(url, f"CREATE SCHEMA {url.rpartition('%3D')[2]} AUTHORIZATION foldline_owner")
    owner = url.replace("postgres@", "own@").replace(
        "options=", "options=-crole%3Dfoldline_owner%20"
    )
    with PostgresStore(owner) as store:
        store.append(T, many(3), expected_version=0)
    asked(url, script(url))
    asked(url, "UPDATE foldline SET views = 'older'")
    with pytest.raises(StoreError, match="let an administrator open the store once"):
        PostgresStore(url.replace("postgres@", "app@"))
    with PostgresStore(owner) as store:
        assert store.verify().problems == ()
    asked(url, script(url))
    with PostgresStore(url.replace("postgres@", "app@")) as store:
        assert [version for version, _ in store.read(T)] == [1, 2, 3]
        store.append(T, many(1, first=4), expected_version=3)


@pytest.mark.parametrize("name", ["\0", "x" * 201, "\ud800"])
def test_a_name_that_no_tenant_can_have_is_refused(url: str, name: str) -> None:
    with pytest.raises(MisuseError, match="is not a valid name of a tenant; use printable text"):
        PostgresStore(url, tenant=name)


@pytest.mark.usefixtures("members")
def test_hostile_names_in_the_script_stay_names(url: str) -> None:
    PostgresStore(url).close()
    role, tenant = 'a"; DROP TABLE x; --', "o'; DROP TABLE stored_events; --"
    asked(url, 'CREATE ROLE "a""; DROP TABLE x; --" LOGIN')
    asked(url, script(url, (role, tenant)))
    bound = "SELECT qual FROM pg_policies WHERE permissive = 'RESTRICTIVE' AND schemaname = current_schema()"
    assert {tenant.replace("'", "''") in str(qual) for (qual,) in asked(url, bound)} == {True}


def test_the_command_prints_the_script_and_connects_to_nothing() -> None:
    def said(*given: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "persistence.postgres", *given]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert said("--schema", "s", "me=acme").stdout == roles("s", [("me", "acme")])
    assert (
        "GRANT DELETE, UPDATE ON stored_events, events, stored_heads, heads, stored_trims, trims TO foldline_app"
        in said("--retention").stdout
    )
    assert "is not a valid name of a schema or role" in said("=acme").stderr
