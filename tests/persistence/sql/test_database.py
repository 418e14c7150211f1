"""A database is made as a whole, and one in the format of another version is left alone."""

from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

from blocks import DamagedStoreError, StoreError
from persistence import verify
from persistence.postgres import _schema as postgres
from persistence.sql._database import FIRST_PAUSE, LONGEST_PAUSE, PassingError, Patience
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


# What did not work is repeated, with growing pauses, until time is up.


@attrs.define
class World:
    """A clock that sleeping moves, and an action that fails so many times."""

    failures: int
    now: float = 100.0
    pauses: list[float] = attrs.field(factory=list[float])
    error: type[StoreError] = PassingError

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def act(self) -> str:
        if self.failures:
            self.failures -= 1
            raise self.error("not now")
        return "done"

    def patience(self, chance: float = 0.5) -> Patience:
        return Patience(
            seconds=10.0, clock=lambda: self.now, sleep=self.sleep, random=lambda: chance
        )


def test_what_works_is_not_waited_for() -> None:
    world = World(failures=0)
    assert world.patience().repeated(world.act) == "done"
    assert world.pauses == []


def test_pauses_grow_up_to_the_longest() -> None:
    world = World(failures=12)
    assert world.patience().repeated(world.act) == "done"
    assert world.pauses[:4] == [FIRST_PAUSE * 2**n for n in range(4)]
    assert world.pauses[-1] == LONGEST_PAUSE
    assert world.pauses == sorted(world.pauses)


def test_rivals_part_by_chance() -> None:
    early, late = World(failures=3), World(failures=3)
    early.patience(0.0).repeated(early.act)
    late.patience(1.0).repeated(late.act)
    assert all(a < b for a, b in zip(early.pauses, late.pauses, strict=True))


def test_when_time_is_up_the_last_error_is_raised() -> None:
    world = World(failures=10**9)
    with pytest.raises(StoreError, match="not now") as caught:
        world.patience().repeated(world.act)
    assert type(caught.value) is StoreError, "an error with a public name"
    assert world.now <= 100.0 + 10.0 + LONGEST_PAUSE


def test_what_will_not_pass_is_raised_at_once() -> None:
    world = World(failures=1, error=StoreError)
    with pytest.raises(StoreError):
        world.patience().repeated(world.act)
    assert world.pauses == []
