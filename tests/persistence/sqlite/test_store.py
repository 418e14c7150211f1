"""The SQLite store keeps the contract, and what only a file of many processes can promise."""

import io
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from blocks import DamagedStoreError, MisuseError, StoreLockedError, TimelineId
from persistence import DuckDBStore, EventStore, SQLiteStore, open_store, verify
from persistence.sqlite._checkpoint import LOG_BYTES, WRITES
from persistence.sqlite._database import IDLE_MAX
from persistence.testing import StoreContract
from tests.persistence.contract import T, many, prompt, versions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talks.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    with SQLiteStore(path) as store:
        yield store


class TestSQLiteStore(StoreContract):
    @pytest.fixture
    def store(self, path: Path) -> Iterator[EventStore]:
        with SQLiteStore(path) as store:
            yield store


def test_the_log_is_folded_and_no_file_is_opened_beside_sqlite(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To close a file releases the locks that SQLite has on it in this process; then another process would take the
    index of the log for its own, and cut it off under us."""
    opened: list[str] = []

    def noted(file: object, *args: object, **named: object) -> object:
        opened.append(str(file))
        return really(file, *args, **named)

    really: Callable[..., object] = io.open
    with SQLiteStore(path) as store:
        monkeypatch.setattr(io, "open", noted)
        monkeypatch.setattr("builtins.open", noted)
        largest = 0
        for n in range(6 * WRITES):
            store.append(T, [prompt(f"{n} {'x' * 30_000}")], expected_version=n)
            largest = max(largest, path.with_name(f"{path.name}-wal").stat().st_size)
        assert store.verify().ok
    assert LOG_BYTES < largest < 3 * LOG_BYTES < path.stat().st_size
    assert [name for name in opened if path.name in name] == []


def test_what_is_no_store_is_refused_and_left_as_it_is(path: Path) -> None:
    for content, said_of_it in (
        (b"", "is empty, not an SQLite database"),
        (b"hello, this is no database at all" * 100, "is not an SQLite database"),
    ):
        path.write_bytes(content)
        with pytest.raises(MisuseError, match=said_of_it):
            SQLiteStore(path)
        assert path.read_bytes() == content
        assert list(path.parent.iterdir()) == [path]
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE events(what)")
    with pytest.raises(MisuseError, match="a database of another application"):
        SQLiteStore(path)
    with pytest.raises(MisuseError, match="is a folder"):
        SQLiteStore(path.parent)
    with pytest.raises(MisuseError, match="does not exist; create it"):
        SQLiteStore(path.parent / "nowhere" / "a.sqlite")


def test_a_file_of_one_kind_given_as_another_says_which_url_to_write(path: Path) -> None:
    refused = pytest.raises(MisuseError, match=f"is an SQLite database; write sqlite:///{path}")
    with SQLiteStore(path) as store:
        store.append(T, many(1), expected_version=0)
        with refused:
            open_store(f"duckdb:///{path}")  # in use
        assert store.append(T, many(1, first=2), expected_version=1) == 2
    with refused:
        DuckDBStore(path)
    other = path.with_name("talks.duckdb")
    refused = pytest.raises(MisuseError, match=f"is a DuckDB database; write duckdb:///{other}")
    with DuckDBStore(other) as held:
        held.append(T, many(1), expected_version=0)
        with refused:
            open_store(f"sqlite:///{other}")  # in use
        assert held.append(T, many(1, first=2), expected_version=1) == 2
    with refused:
        SQLiteStore(other)


def test_damage_is_told_as_damage(path: Path) -> None:
    with SQLiteStore(path) as store:
        for n in range(20):
            store.append(T, [prompt(f"{n} {'x' * 5000}")], expected_version=n)
    content = bytearray(path.read_bytes())
    for at in range(4096 * 3, len(content), 4096):
        content[at : at + 100] = b"\xff" * 100
    path.write_bytes(content)
    assert "is damaged" in verify(f"sqlite:///{path}").problems[0].what
    damaged = pytest.raises(DamagedStoreError, match=r"is damaged .*restore it from a backup")
    with damaged, SQLiteStore(path) as store:
        store.read(T)


def test_a_file_that_is_cut_off_is_damage(path: Path) -> None:
    with SQLiteStore(path) as store:
        for n in range(20):
            store.append(T, [prompt(f"{n} {'x' * 5000}")], expected_version=n)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(DamagedStoreError), SQLiteStore(path) as store:
        store.read(T)


def test_a_writer_that_does_not_end_is_waited_for_in_bounded_time(path: Path) -> None:
    SQLiteStore(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    with SQLiteStore(path, wait_seconds=0.1) as store, closing(holder):
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLockedError, match=r"another process was writing.*wait_"):
            store.append(T, many(1), expected_version=0)
        assert store.head(T) == 0, "who reads does not wait"
        holder.execute("ROLLBACK")
        assert store.append(T, many(1), expected_version=0) == 1


def test_what_is_acknowledged_is_synced(path: Path) -> None:
    with SQLiteStore(path) as store, store._database.lent() as connection:
        assert connection.rows("PRAGMA journal_mode") == [("wal",)]
        assert connection.rows("PRAGMA synchronous") == [(2,)]


def test_a_closed_store_is_one_file(path: Path) -> None:
    with SQLiteStore(path) as store:
        store.append(T, many(1), expected_version=0)
        assert len(list(path.parent.iterdir())) == 3
    assert list(path.parent.iterdir()) == [path]


def test_reads_go_on_while_others_write(path: Path) -> None:
    """Many connections, one thread each: no rows are mixed up."""
    with SQLiteStore(path) as store, ThreadPoolExecutor(16) as pool:
        store.append(T, many(40), expected_version=0)

        def use(n: int) -> bool:
            if n % 4 == 0:
                name = TimelineId(f"talk {n}")
                return store.append(name, many(3), expected_version=0) == 3
            return versions(store.read(T)) == list(range(1, 41))

        assert all(pool.map(use, range(200)))
        assert len(store._database._idle) <= IDLE_MAX  # type: ignore[attr-defined]  # of SQLite
