"""A database is made as a whole, and one in the format of another version is left alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from blocks import DamagedStoreError, StoreError
from persistence import verify
from persistence.postgres import _schema as postgres
from persistence.sql._store import SQLStore
from persistence.sqlite import _database as sqlite
from tests.persistence.contract import T, many, opened

FOUND = "SELECT format FROM foldline"


def newest(where: str) -> int:
    return sqlite.FORMAT if where.startswith("sqlite") else postgres.FORMAT


def asked(store: SQLStore, query: str) -> list[tuple[object, ...]]:
    with store._database.lent() as connection:
        return connection.rows(query)


def test_a_new_database_has_the_newest_format(where: str) -> None:
    with opened(where) as store:
        assert asked(store, FOUND) == [(newest(where),)]


def test_a_store_that_fails_to_be_made_is_made_at_the_next_opening(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        for module in (sqlite, postgres):
            patched.setattr(module, "CREATE", (*module.CREATE, "SELECT nonsense"))
        with pytest.raises(DamagedStoreError, match="nonsense"):
            opened(where)
    with opened(where) as store:
        assert asked(store, FOUND) == [(newest(where),)]
        assert store.append(T, many(2), expected_version=0) == 2
    assert verify(where).ok


@pytest.mark.parametrize("other", [1, 9])
def test_another_format_is_refused(where: str, other: int) -> None:
    with opened(where) as store, store._database.writing() as connection:
        connection.run("UPDATE foldline SET format = ?", [other])
    with pytest.raises(
        StoreError, match=f"has format {other}, this version reads {newest(where)}; open"
    ):
        opened(where)


def test_processes_that_make_a_store_at_once_make_one(where: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = [*pool.map(opened, [where] * 8)]
    for n, store in enumerate(stores):
        store.append(T, many(1, first=n + 1), expected_version=n)
    assert stores[0].head(T) == 8
    for store in stores:
        store.close()


def test_views_of_another_version_are_replaced(where: str) -> None:
    with opened(where) as store, store._database.writing() as connection:
        store.head(T)
        connection.run("UPDATE foldline SET views = 'another'")
    with opened(where) as store:
        assert asked(store, "SELECT views FROM foldline") != [("another",)]
