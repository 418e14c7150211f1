"""Removal from a DuckDB file: it is there at once, and what is erased is gone."""

from pathlib import Path

import duckdb
import pytest

from blocks import StoreError, TimelineId
from persistence import DuckDBStore, verify
from persistence.duckdb import _writer
from tests.persistence.contract import T, U, compacted, many, prompt


def test_removal_is_in_the_file_at_once_and_the_log_beside_it_is_as_if_new(tmp_path: Path) -> None:
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        store.append(T, [*many(6), compacted("c", cut=4)], expected_version=0)
        store.trim(T, 4)
        wal = tmp_path / "a.duckdb.wal"
        assert wal.stat().st_size < 250, "it says only that there is no more"


def test_what_was_erased_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    noise = [prompt(f"noise {n} " + "y" * 900) for n in range(3_000)]
    with DuckDBStore(path) as store:
        store.append(U, noise, expected_version=0)
        secret = prompt("secret-4711 " + "x" * 50_000)
        store.append(T, [secret, prompt("a"), compacted("c", cut=2)], expected_version=0)
        store.append(U, [prompt("z")], expected_version=len(noise))
        store.trim(T, 2)
        store.erase()
        assert b"secret-4711" not in path.read_bytes()
        assert store.read(U, after=2_999) == [(3_000, noise[-1]), (3_001, prompt("z"))]
        assert store.append(T, many(2), expected_version=3) == 5
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.duckdb", "a.duckdb.lock"]
    with DuckDBStore(path) as store:
        assert (store.head(T), store.head(U)) == (5, 3_001)
        assert store.list()[1].created_at == 0.0


def test_views_and_artifacts_are_as_they_were_after_an_erasure(tmp_path: Path) -> None:
    from persistence import ArtifactDescription, Requester

    path = tmp_path / "a.duckdb"
    with DuckDBStore(path) as store:
        artifact = store.artifacts().put(b"content", ArtifactDescription(timeline=T))
        store.append(T, [*many(6), compacted("c", cut=4)], expected_version=0)
        store.trim(T, 4)
        store.erase()
        assert store.artifacts().read(artifact, Requester("me")) == b"content"
        store.append(U, many(3), expected_version=0)
    with duckdb.connect(str(path), read_only=True) as database:
        query = "SELECT timeline, count(*) FROM blocks GROUP BY ALL ORDER BY ALL"
        assert database.sql(query).fetchall() == [(U, 3), (T, 3)]
        assert database.sql("SELECT count(*) FROM compactions").fetchall() == [(1,)]
    assert verify(path).ok


def test_nothing_is_erased_while_somebody_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_writer, "PATIENCE_SECONDS", 0.05)
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        store.append(T, many(3), expected_version=0)
        with store.inspect(), pytest.raises(StoreError, match="repeat the call"):
            store.erase()
        store.erase()
        assert store.append(T, many(1, first=4), expected_version=3) == 4


def test_what_was_acknowledged_and_removed_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    for n in range(4):
        with DuckDBStore(path) as store:
            name = TimelineId(f"talk {n}")
            store.append(name, [*many(6), compacted("c", cut=4)], expected_version=0)
            store.trim(name, 3 + n % 2)
            store.fork(name, TimelineId(f"fork {n}"), prompt("f"), at=7)
            if n % 2:
                store.remove(name)
    assert verify(path).ok
    with DuckDBStore(path) as store:
        assert len(store.list()) == 6
    lost = path.with_name("lost.duckdb")
    lost.write_bytes(path.read_bytes())
    lock = path.with_name("a.duckdb.lock").read_text()
    held = next(line for line in lock.splitlines() if line.startswith("events"))
    more = f"events {int(held.split()[1]) + 1:>20}"
    lost.with_name("lost.duckdb.lock").write_text(lock.replace(held, more))
    assert not verify(lost).ok
