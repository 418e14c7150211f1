"""Behind a pooler that lends its connections for a transaction, a store is the same, and nothing of it stays there."""

from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString, cast
from urllib.parse import quote

import psycopg
import pytest

from blocks import StoreError
from persistence import EventStore, PostgresStore
from persistence.postgres._address import options
from persistence.testing import StoreContract
from tests._postgres import Server
from tests._sizes import until
from tests._table import for_each
from tests.persistence.contract import T, U, many, prompt
from tests.persistence.postgres._pooler import CONNECTIONS, pooler
from tests.persistence.postgres._woken import Woken

KEPT = """
SELECT coalesce(current_setting('foldline.tenant', true), ''), current_setting('enable_bitmapscan'),
       current_setting('search_path'), current_setting('lock_timeout'),
       (SELECT count(*) FROM pg_prepared_statements)
"""
NOTHING = ("", "on", '"$user", public', "0", 0)


@pytest.fixture(scope="module")
def place(postgres: Server) -> Iterator[Path]:
    """Where the pooler is."""
    with pooler(postgres.folder) as folder:
        yield folder


@pytest.fixture
def behind(url: str, postgres: Server, place: Path) -> str:
    """The URL of a store, by way of the pooler."""
    return url.replace(quote(str(postgres.folder)), quote(str(place)))


class TestTheContract(StoreContract):
    @pytest.fixture
    def store(self, behind: str) -> Iterator[EventStore]:
        with PostgresStore(behind, tenant="it's /ours") as store:
            yield store

    def test_what_was_removed_can_be_erased(self, store: EventStore) -> None:
        """Not by way of a pooler."""
        with pytest.raises(StoreError, match="open the store at the server itself"):
            store.erase()


def lent_each(place: Path, query: str) -> list[object]:
    """What each of the pooler's connections to the server answers."""
    url = f"postgresql://postgres@/postgres?host={quote(str(place))}"
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        query = f"SELECT pg_backend_pid(), answer.* FROM ({query}) AS answer"  # noqa: S608 -- a constant
        found = [
            connection.execute(cast("LiteralString", query)).fetchall()[0]
            for _ in range(CONNECTIONS)
        ]
    assert len({pid for pid, *_ in found}) == CONNECTIONS
    return [tuple(answer) for _, *answer in found]


def test_tenants_who_take_turns_do_not_meet(url: str, behind: str) -> None:
    with (
        PostgresStore(behind, tenant="acme") as acme,
        PostgresStore(behind + quote(" -cfoldline.tenant=globex")) as globex,
    ):
        for n in range(8):
            acme.append(T, [prompt(f"acme {n}")], expected_version=n)
            globex.append(U, [prompt(f"globex {n}")], expected_version=n)
        for store, name in ((acme, T), (globex, U)):
            for _ in range(CONNECTIONS):
                assert [(info.id, info.version) for info in store.list()] == [(name, 8)]
    for tenant, names in (("acme", [T]), ("globex", [U]), ("", [])):
        with PostgresStore(url, tenant=tenant) as store:
            assert [info.id for info in store.list()] == names


def test_who_names_no_tenant_has_none_whatever_others_have_left_there(
    url: str, behind: str, place: Path
) -> None:
    """Not everybody behind a pooler is careful."""
    lent_each(place, "SELECT set_config('foldline.tenant', 'globex', false)")
    try:
        with PostgresStore(behind) as store:
            for n in range(CONNECTIONS):
                store.append(T, many(1, first=n + 1), expected_version=n)
        with PostgresStore(url) as store:
            assert store.head(T) == CONNECTIONS
    finally:
        lent_each(place, "SELECT set_config('foldline.tenant', '', false)")


def test_nothing_of_a_store_stays_at_the_pooler(behind: str, place: Path) -> None:
    """Neither settings nor what was prepared: others have the connection next."""
    with PostgresStore(behind, tenant="acme") as store:
        watching = Woken(store)
        until(lambda: store._hints.listener._is_over)
        assert not store.hears_others()
        for n in range(20):
            store.append(T, many(1, first=n + 1), expected_version=n)
        assert watching.waits()
        assert store.verify().ok
    assert lent_each(place, KEPT) == [NOTHING] * CONNECTIONS


def test_what_is_acknowledged_behind_a_pooler_is_durable(behind: str) -> None:
    """Where the role has it otherwise, too."""
    with PostgresStore(behind + quote(" -c synchronous_commit=off")) as store:
        for lend in (store._database.lent, store._database.writing):
            with lend() as connection:
                assert connection.rows("SHOW synchronous_commit") == [("on",)]


@for_each(
    ("text", "settings"),
    [
        ("", []),
        ("-csearch_path=foldline", [("search_path", "foldline")]),
        (r"-c search_path=a\ b\\c  -cfoldline.tenant=x=y", [("search_path", r"a b\c"), ("foldline.tenant", "x=y")]),
        ("--lock-timeout=5s -e", [("lock_timeout", "5s")]),
    ],
)  # fmt: skip
def test_settings_in_a_url_are_read_as_the_server_reads_them(
    text: str, settings: list[tuple[str, str]]
) -> None:
    assert [*options(text)] == settings
