"""`verify` reads every artifact: what is damaged, cut short or gone is named, in every place."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from blocks import DamagedStoreError, MisuseError
from persistence import DuckDBStore, MemoryStore, Requester, open_artifacts, verify
from persistence._store import StoreProblem, StoreReport
from persistence.artifacts import ArtifactStore, MemoryBackend

from .places import ALICE, KEYS, T, about, noise

LARGE = noise("large", 2_500_000)
SMALL = b"a small one"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a large artifact, a small one, and an encrypted one."""
    path = tmp_path / "talks.duckdb"
    with DuckDBStore(path) as store:
        fill(store.artifacts(keys=KEYS))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with open_artifacts(tmp_path / "artifacts", keys=KEYS) as artifacts:
        fill(artifacts)
    return tmp_path / "artifacts"


def fill(artifacts: ArtifactStore) -> None:
    artifacts.put(LARGE, about())
    artifacts.put(SMALL, about())
    artifacts.put(LARGE[::-1], about("restricted"))


def changed(path: Path, statement: str) -> list[StoreProblem]:
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement)
    report = verify(path)
    assert report.artifacts == 3
    return list(report.problems)


def flipped(path: Path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


def slot_of(path: Path, size: int) -> str:
    with duckdb.connect(str(path)) as connection:
        query = "SELECT slot FROM artifacts WHERE entry->>'$.metadata.size' = ?"
        [(slot,)] = connection.execute(query, [str(size)]).fetchall()
    return str(slot)


# ---------------------------------------------------------------- sound ones


@pytest.mark.parametrize("keys", [None, KEYS], ids=["without keys", "with keys"])
def test_sound_artifacts_are_no_problem(path: Path, folder: Path, keys: object) -> None:
    given = KEYS if keys else None
    assert verify(path, keys=given) == StoreReport(artifacts=3)
    assert verify(folder, keys=given) == StoreReport(artifacts=3)
    with DuckDBStore(path) as store:
        assert verify(store, keys=given) == StoreReport(artifacts=3)
    with open_artifacts(folder, keys=given) as artifacts:
        assert verify(artifacts) == StoreReport(artifacts=3)


def test_nor_are_those_in_memory() -> None:
    with MemoryStore().artifacts(keys=KEYS) as artifacts:
        fill(artifacts)
        assert verify(artifacts) == StoreReport(artifacts=3)


def test_an_empty_content_and_content_of_whole_pieces_are_sound(tmp_path: Path) -> None:
    with DuckDBStore(tmp_path / "talks.duckdb") as store:
        artifacts = store.artifacts(keys=KEYS)
        for size in (0, 2**20 - 16, 2**20, 2**20 + 1, 2**21):
            artifacts.put(noise(str(size), size), about())
            artifacts.put(noise(str(size), size), about("confidential"))
        assert verify(store) == verify(store, keys=KEYS) == StoreReport(artifacts=10)


def test_what_has_expired_and_was_swept_is_not_missing(tmp_path: Path) -> None:
    with DuckDBStore(tmp_path / "talks.duckdb") as store:
        artifacts = store.artifacts(clock=lambda: 5.0)
        artifacts.put(SMALL, about(expires_at=9.0))
        artifacts.put(SMALL, about())
        store.artifacts(clock=lambda: 10.0).sweep()
        assert verify(store) == StoreReport(artifacts=1)


def test_it_puts_nothing_on_record_and_changes_nothing(path: Path, folder: Path) -> None:
    before = path.read_bytes(), (folder / "audit.jsonl").read_bytes()
    verify(path, keys=KEYS)
    verify(folder, keys=KEYS)
    assert (path.read_bytes(), (folder / "audit.jsonl").read_bytes()) == before


# ---------------------------------------------------------------- in a DuckDB file


@pytest.mark.parametrize("size", [len(LARGE), len(SMALL)])
def test_a_piece_of_other_content_is_found(path: Path, size: int) -> None:
    slot = slot_of(path, size) if size == len(SMALL) else plain_slot(path)
    statement = f"""UPDATE artifact_pieces SET piece = CAST('x' || substr(piece::VARCHAR, 2) AS BLOB)
                    WHERE slot = '{slot}' AND number = 0 AND part = 0"""  # noqa: S608 -- ours
    if size == len(LARGE):
        statement = statement.replace(
            "CAST('x' || substr(piece::VARCHAR, 2) AS BLOB)", "repeat('x', 1500)::BLOB"
        )
    [problem] = changed(path, statement)
    assert problem.artifact.startswith("art-")
    assert problem.timeline == T
    assert "its content differs from what was stored" in problem.what


def plain_slot(path: Path) -> str:
    with duckdb.connect(str(path)) as connection:
        query = """SELECT slot FROM artifacts WHERE entry->>'$.metadata.size' = ?
                   AND entry->>'$.metadata.sensitivity' = 'internal'"""
        [(slot,)] = connection.execute(query, [str(len(LARGE))]).fetchall()
    return str(slot)


def test_a_piece_that_is_missing_is_found(path: Path) -> None:
    statement = f"DELETE FROM artifact_pieces WHERE slot = '{plain_slot(path)}' AND number = 1"  # noqa: S608
    [problem] = changed(path, statement)
    assert f"{len(LARGE)} bytes were put, {len(LARGE) - 2**20} are there" in problem.what


def test_an_artifact_that_is_missing_is_found(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"DELETE FROM artifacts WHERE slot = '{plain_slot(path)}'")  # noqa: S608
    [problem] = verify(path).problems
    assert "was put 1 times and is there 0 times" in problem.what


def test_an_entry_that_is_none_is_found(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE artifacts SET entry = '{}'")
    problems = verify(path).problems
    assert len({problem.artifact for problem in problems}) == len(problems) > 1
    assert all("invalid entry of an artifact" in problem.what for problem in problems)


def test_encrypted_content_is_compared_by_size_and_with_its_key_wholly(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            """UPDATE artifact_pieces SET piece = repeat('x', octet_length(piece)::BIGINT)::BLOB
               WHERE number = 1 AND slot = (SELECT slot FROM artifacts
                                            WHERE entry->>'$.metadata.sensitivity' = 'restricted')"""
        )
    assert verify(path).ok
    [problem] = verify(path, keys=KEYS).problems
    assert "piece 1 was altered" in problem.what
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            """DELETE FROM artifact_pieces WHERE number = 1 AND slot =
               (SELECT slot FROM artifacts WHERE entry->>'$.metadata.sensitivity' = 'restricted')"""
        )
    [problem] = verify(path).problems
    assert "bytes were put" in problem.what


def test_a_description_that_was_altered_is_found_with_the_key(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            """UPDATE artifacts SET entry = replace(entry, '"restricted"', '"confidential"')"""
        )
    [problem] = verify(path, keys=KEYS).problems
    assert "its metadata was altered" in problem.what


def test_a_flipped_bit_in_the_file_is_laid_to_the_artifact(tmp_path: Path) -> None:
    path = tmp_path / "talks.duckdb"
    with DuckDBStore(path) as store:
        artifacts = store.artifacts()
        artifact = artifacts.put(LARGE, about())
    flipped(path, path.read_bytes().find(LARGE[100_000:100_064]) + 5)
    [problem] = verify(path).problems
    assert problem.artifact == artifact
    with DuckDBStore(path) as store, pytest.raises(DamagedStoreError):
        store.artifacts().read(artifact, ALICE)


DIE = """
import os, sys
from persistence import DuckDBStore
from tests.persistence.artifacts.places import about
from tests.persistence.contract import T, many
store = DuckDBStore(sys.argv[1])
store.append(T, many(2), expected_version=0)
artifacts = store.artifacts()
with store._writing() as cursor:
    cursor.execute("CHECKPOINT")  # as the database does by itself now and then
print(artifacts.put(b"paid for", about()))
sys.stdout.flush()
os._exit(0)
"""


def test_artifacts_that_went_with_a_write_ahead_log_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "talks.duckdb"
    died = subprocess.run(
        [sys.executable, "-c", DIE, str(path)], capture_output=True, text=True, check=True
    )
    wal = path.with_name(path.name + ".wal")
    moved = wal.rename(tmp_path / "moved")
    [problem] = verify(path).problems
    assert "holds 0 artifact records but 1 were acknowledged" in problem.what
    with pytest.raises(DamagedStoreError, match=r"restore talks\.duckdb\.wal"):
        DuckDBStore(path)
    moved.rename(wal)
    assert verify(path).ok
    with DuckDBStore(path) as store:
        assert store.artifacts().read(died.stdout.strip(), ALICE) == b"paid for"
    assert verify(path).ok


def test_reading_counts_too(tmp_path: Path) -> None:
    """Each use leaves a record, and a record that is lost was acknowledged like an artifact."""
    with DuckDBStore(tmp_path / "talks.duckdb") as store:
        artifacts = store.artifacts()
        artifact = artifacts.put(SMALL, about())
        artifacts.read(artifact, ALICE)
        artifacts.list(Requester("bob"))
        marks = store._lock.acknowledged
        assert marks
        assert marks.records == len(artifacts.audit()) == 3
    with DuckDBStore(tmp_path / "talks.duckdb") as store:
        store.artifacts().read(artifact, ALICE)
        marks = store._lock.acknowledged
        assert marks
        assert marks.records == 4


# ---------------------------------------------------------------- in a folder and elsewhere


def content_of(folder: Path, size: int) -> Path:
    [found] = [file for file in (folder / "content").iterdir() if file.stat().st_size == size]
    return found


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "flipped": (lambda file: flipped(file, 1_500_000), "its content differs from what was stored"),
    "cut": (lambda file: file.write_bytes(file.read_bytes()[:-1]), "bytes were put"),
    "longer": (lambda file: file.write_bytes(file.read_bytes() + b"x"), "bytes"),
    "gone": (lambda file: file.unlink(), "0 are there"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_in_a_folder_is_found(folder: Path, damage: str) -> None:
    spoil, said = DAMAGES[damage]
    spoil(content_of(folder, len(LARGE)))
    for report in (verify(folder), verify(str(folder))):
        [problem] = report.problems
        assert said in problem.what
        assert problem.artifact in problem.what
        assert report.artifacts == 3


def test_damage_in_memory_is_found() -> None:
    store = MemoryStore()
    with store.artifacts() as artifacts:
        artifact = artifacts.put(SMALL, about())
        backend = store._backend
        assert isinstance(backend, MemoryBackend)
        backend._content = dict.fromkeys(backend._content, (SMALL[::-1],))
        [problem] = verify(artifacts).problems
        assert problem.artifact == artifact


def test_a_folder_of_something_else_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="is a folder"):
        verify(tmp_path)
    assert list(tmp_path.iterdir()) == []
