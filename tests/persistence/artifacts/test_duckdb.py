"""What only the DuckDB file can promise: artifacts beside the log, in one file, under one lock."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from blocks import ClosedError, Sensitivity, TimelineId
from persistence import DuckDBStore, verify
from persistence.artifacts._duckdb import PART_BYTES
from tests.persistence.contract import T, prompt, versions

from .places import ALICE, KEYS, NOW, Clock, about, noise, put_until_killed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talks.duckdb"


def wal_bytes(path: Path) -> int:
    wal = path.with_name(path.name + ".wal")
    return wal.stat().st_size if wal.exists() else 0


def test_a_file_without_tables_gets_them_at_first_use_and_not_before(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.append(T, [prompt("a")], expected_version=0)
    with duckdb.connect(str(path)) as connection:
        assert "artifacts" not in str(connection.execute("SHOW TABLES").fetchall())
    with DuckDBStore(path) as store:
        artifact = store.artifacts().put(b"abc", about())
        store.append(T, [prompt("b")], expected_version=1)
    with DuckDBStore(path) as store:
        assert store.artifacts().read(artifact, ALICE) == b"abc"
        assert versions(store.read(T)) == [1, 2]
        assert verify(store).ok


def test_new_tables_are_in_the_file_and_not_in_its_write_ahead_log(path: Path) -> None:
    with DuckDBStore(path) as store:
        store.artifacts()
        assert wal_bytes(path) == 0
        store.artifacts().put(b"abc", about())
        assert wal_bytes(path) > 0


def test_a_sweep_leaves_no_deletes_in_the_write_ahead_log(path: Path) -> None:
    clock = Clock()
    with DuckDBStore(path) as store:
        artifacts = store.artifacts(clock=clock)
        artifacts.put(b"abc", about(expires_at=NOW + 1))
        clock.now = NOW + 1
        assert artifacts.sweep() == 1
        assert wal_bytes(path) == 0
    with duckdb.connect(str(path)) as connection:
        for name in ("artifacts", "artifact_pieces"):
            assert connection.table(name).fetchall() == []


def test_no_row_is_large(path: Path) -> None:
    with DuckDBStore(path) as store:
        artifacts = store.artifacts(keys=KEYS)
        both: tuple[Sensitivity, ...] = ("internal", "restricted")
        for sensitivity in both:
            artifacts.put(noise("large", 2**21 + 5), about(sensitivity))
    with duckdb.connect(str(path)) as connection:
        sizes = connection.sql("SELECT max(octet_length(piece)) FROM artifact_pieces").fetchall()
    assert sizes == [(PART_BYTES,)]


def test_the_log_and_the_artifacts_are_written_at_the_same_time(path: Path) -> None:
    with DuckDBStore(path) as store, ThreadPoolExecutor(8) as pool:
        artifacts = store.artifacts(keys=KEYS)

        def both(worker: int) -> None:
            for n in range(8):
                content = noise(f"{worker}.{n}", 100_000)
                artifact = artifacts.put(content, about("confidential"))
                store.append(TimelineId(f"talk {worker}"), [prompt(str(n))], expected_version=n)
                assert artifacts.read(artifact, ALICE) == content
                if n % 3 == 0:
                    artifacts.sweep()

        list(pool.map(both, range(8)))
        assert verify(store).events == 64
        assert len(artifacts.list(ALICE)) == 64


def test_what_a_killed_put_left_is_gone_after_the_next_opening(path: Path) -> None:
    with DuckDBStore(path) as store:
        artifact = store.artifacts().put(b"abc", about())
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO artifact_pieces VALUES ('0', 0, 'half', 0)")
    with DuckDBStore(path) as store:
        assert store.artifacts().read(artifact, ALICE) == b"abc"
    with duckdb.connect(str(path)) as connection:
        [(left,)] = connection.sql("SELECT count(*) FROM artifact_pieces").fetchall()
    assert left == 1


def test_a_killed_process_loses_nothing_acknowledged(path: Path) -> None:
    for round_ in range(3):
        acknowledged = put_until_killed(path, round_)
        assert acknowledged
        with DuckDBStore(path) as store:
            artifacts = store.artifacts(keys=KEYS)
            for artifact in acknowledged:
                artifacts.read(artifact, ALICE)  # which checks the hash
            put = {record.artifact for record in artifacts.audit() if record.action == "put"}
            assert put >= set(acknowledged)
            assert verify(store).ok


def test_when_the_store_is_closed_so_are_its_artifacts(path: Path) -> None:
    with DuckDBStore(path) as store:
        artifacts = store.artifacts()
        artifact = artifacts.put(b"abc", about())
    for use in (artifacts.sweep, artifacts.audit, lambda: artifacts.read(artifact, ALICE)):
        with pytest.raises(ClosedError, match=path.name):
            use()
    with pytest.raises(ClosedError):
        store.artifacts()


def test_closing_the_artifacts_leaves_the_store_open(path: Path) -> None:
    with DuckDBStore(path) as store:
        with store.artifacts() as artifacts:
            artifact = artifacts.put(b"abc", about())
        assert store.append(T, [prompt("a")], expected_version=0) == 1
        assert store.artifacts().read(artifact, ALICE) == b"abc"


FORK = """
import os, sys
from blocks import ClosedError, Sensitivity, TimelineId
from persistence import ArtifactDescription, DuckDBStore, Requester
store = DuckDBStore(sys.argv[1])
artifacts = store.artifacts()
about = ArtifactDescription(timeline="t")
artifact = artifacts.put(b"abc", about)
if (child := os.fork()) == 0:
    refused = 0
    for use in (lambda: artifacts.put(b"x", about), artifacts.audit, artifacts.sweep):
        try:
            use()
        except ClosedError as error:
            refused += "forked" in str(error)
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
assert artifacts.read(artifact, Requester("me")) == b"abc"
"""


def test_a_forked_child_is_refused_and_harms_nothing(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
