"""A database of an earlier version is brought up to date, and one of a later version is left alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from blocks import DamagedStoreError, StoreError
from persistence import checked_events, verify
from persistence.postgres import _schema as postgres
from persistence.sql._rows import columns
from persistence.sql._store import SQLStore
from persistence.sqlite import _schema as sqlite
from tests.persistence.contract import T, U, compacted, forked, many, opened

FOUND = "SELECT format FROM foldline"
NOTES = "CREATE TABLE notes(note INTEGER)"


def newest(where: str) -> int:
    return len((sqlite if where.startswith("sqlite") else postgres).STEPS)


def asked(store: SQLStore, query: str) -> list[tuple[object, ...]]:
    with store._database.lent() as connection:
        return connection.rows(query)


def test_a_new_database_has_the_newest_format(where: str) -> None:
    with opened(where) as store:
        assert asked(store, FOUND) == [(newest(where),)]


def test_an_earlier_format_takes_the_steps_that_it_lacks(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(where) as store:
        store.append(T, many(2), expected_version=0)
    for module in (sqlite, postgres):
        monkeypatch.setattr(
            module, "STEPS", (*module.STEPS, (NOTES, "INSERT INTO notes VALUES (7)"))
        )
    with ThreadPoolExecutor(4) as pool:  # all at once, and the steps are taken once
        stores = [*pool.map(opened, [where] * 4)]
    assert asked(stores[0], "SELECT note FROM notes") == [(7,)]
    assert asked(stores[0], FOUND) == [(newest(where),)]
    assert stores[0].head(T) == 2
    for store in stores:
        store.close()


def test_a_step_that_fails_leaves_everything_as_it_was(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(where) as store:
        store.append(T, many(2), expected_version=0)
    with monkeypatch.context() as patched:
        for module in (sqlite, postgres):
            patched.setattr(module, "STEPS", (*module.STEPS, (NOTES, "SELECT nonsense")))
        with pytest.raises(DamagedStoreError, match="nonsense"):
            opened(where)
    with opened(where) as store:
        assert asked(store, FOUND) == [(newest(where),)]
        assert store.head(T) == 2
    assert verify(where).ok


def test_a_later_format_is_refused(where: str) -> None:
    with opened(where) as store, store._database.writing() as connection:
        connection.run("UPDATE foldline SET format = 9")
    with pytest.raises(
        StoreError, match=f"has format 9, this version reads up to {newest(where)}; up"
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


OLD_ROW = """
INSERT INTO events(timeline, seq, id, ts, kind, ref, payload, made) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""


def test_a_store_from_before_there_were_retention_and_checksums_gets_them(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        for module in (sqlite, postgres):
            patched.setattr(module, "STEPS", (module.FIRST,))
        with opened(where) as store, store._database.writing() as connection:
            for n, event in enumerate(checked_events(T, many(6), 0), 1):
                made = 1 if n == 1 else None
                connection.run(OLD_ROW, [T, n, *columns(event), event.data, made])
    assert verify(where).ok
    with opened(where) as store:
        assert store.kept(T).first == 1
        sums = "SELECT count(*), count(crc32) FROM events"
        assert asked(store, sums) == [(6, 0)]
        store.rewrite(T, {2: many(2)[1]})
        assert store.fork(T, U, forked(T, 6), at=6) == 7
        assert asked(store, sums) == [(13, 3)], "what is written has one, a copy what it had"
        store.append(T, [compacted("c", cut=4)], expected_version=6)
        assert store.trim(T, 4).events == 3
    assert verify(where).ok
