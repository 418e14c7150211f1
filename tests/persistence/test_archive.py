"""An archive is one Parquet file, whole or not there, whose JSON is byte for byte what the store held."""

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from blocks import DamagedStoreError, MisuseError, StoreError, TimelineId, encode_event
from persistence import Kept
from persistence._archive import (
    archive_problems,
    archived_events,
    archived_rows,
    rewritten,
    write_archive,
)
from persistence._log import ArchivedRange
from tests._sizes import PATIENCE
from tests.persistence.contract import T, many, said

ROWS = [(n, encode_event(event).decode()) for n, event in enumerate(many(1200, first=5), 5)]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=50)


@limits(max_examples=15)
@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS)
def test_bytes_come_back_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], name: str
) -> None:
    folder = tmp_path_factory.mktemp("old's")
    rows = [(n, encode_event(said(text)).decode()) for n, text in enumerate(texts, 7)]
    archive = write_archive(folder, TimelineId(name or "x"), rows)
    assert (archive.first, archive.last) == (7, 6 + len(rows))
    assert archived_rows(archive, 1, 100) == rows
    assert Path(archive.file).is_absolute()
    assert [path.suffix for path in folder.iterdir()] == [".parquet"]


def test_a_part_is_read_alone_and_any_database_reads_the_file(tmp_path: Path) -> None:
    archive = write_archive(tmp_path, T, ROWS)
    assert archived_rows(archive, 700, 702) == ROWS[695:698]
    assert [version for version, _ in archived_events(archive, 1, 6)] == [5, 6]
    query = "SELECT count(*), min(timeline), min(version) FROM read_parquet(?)"
    assert duckdb.execute(query, [archive.file]).fetchall() == [(1200, T, 5)]


def test_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    mode = Path(write_archive(tmp_path, T, ROWS).file).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_the_same_events_are_the_same_file(tmp_path: Path) -> None:
    assert write_archive(tmp_path, T, ROWS) == write_archive(tmp_path, T, ROWS)
    assert len(list(tmp_path.iterdir())) == 1


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="repeat the call"):
        write_archive(tmp_path, T, [(2**70, "{}")])
    with pytest.raises(MisuseError, match="create it"):
        write_archive(tmp_path / "missing", T, ROWS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("harm", ["gone", "cut", "other", "renamed"])
def test_a_file_that_is_not_the_one_that_was_written_is_not_read(tmp_path: Path, harm: str) -> None:
    archive = write_archive(tmp_path, T, ROWS)
    file, kept = Path(archive.file), Kept(archives=(archive,))
    assert list(archive_problems(T, kept)) == []
    data = file.read_bytes()
    if harm == "gone":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif harm == "other":
        other = write_archive(tmp_path, T, ROWS[1:])
        Path(other.file).replace(file)
    else:
        file.rename(file.with_name("other.parquet"))
    with pytest.raises(DamagedStoreError, match=file.name):
        archived_rows(archive, 5, 5)
    [problem] = archive_problems(T, kept)
    assert (problem.timeline, problem.version) == (T, 5)
    file.write_bytes(data)
    assert list(archive_problems(T, kept)) == []


def test_a_manifest_that_promises_more_than_there_is_is_a_problem(tmp_path: Path) -> None:
    archive = write_archive(tmp_path, T, ROWS)
    wrong = ArchivedRange(first=4, last=archive.last, file=archive.file, sha256=archive.sha256)
    with pytest.raises(DamagedStoreError, match="does not contain exactly these versions"):
        archived_rows(wrong, 1, 10)


def test_only_the_files_of_what_changes_are_written_anew(tmp_path: Path) -> None:
    first, second = write_archive(tmp_path, T, ROWS[:10]), write_archive(tmp_path, T, ROWS[10:])
    before = Kept(archives=(first, second))
    after = rewritten(before, T, {7: "{}"})
    assert after.archives[1] == second
    assert archived_rows(after.archives[0], 6, 8) == [ROWS[1], (7, "{}"), ROWS[3]]
    assert archived_rows(first, 7, 7) == [ROWS[2]], "the old file is its owner's to remove"
    assert rewritten(before, T, {}) == before


def test_threads_read_at_once(tmp_path: Path) -> None:
    archives = [write_archive(tmp_path, TimelineId(f"t{n}"), ROWS) for n in range(3)]

    def read(n: int) -> bool:
        return archived_rows(archives[n % 3], 5 + n, 9 + n) == ROWS[n : n + 5]

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(read, range(60)))


FORKED = """
import os, sys
from persistence import MemoryStore
from persistence.testing._events import T, compacted, many

store = MemoryStore()
store.append(T, [*many(6), compacted("c", cut=4)], expected_version=0)
store.trim(T, 4, archive=sys.argv[1])
before = store.read(T)
child = os.fork()
assert store.read(T) == before
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0)
"""


def test_a_forked_child_reads_archives(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)], timeout=PATIENCE, check=False
    )
    assert run.returncode == 0
