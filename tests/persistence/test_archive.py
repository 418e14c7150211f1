"""An archive is one Parquet file, whole or not there, whose JSON is byte for byte what the store held."""

import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from blocks import DamagedStoreError, MisuseError, StoreError, TimelineId, encode_event
from persistence import DuckDBStore, EventStore, MemoryStore, Rest, SQLiteStore, repair, verify
from persistence._archive import (
    archive_problems,
    archived_events,
    archived_rows,
    remove_archive,
    rewritten,
    write_archive,
)
from persistence._bucket import Objects
from persistence._log import ArchivedRange
from persistence.testing._retention import LOG, saying
from tests._s3 import Bucket
from tests._sizes import PATIENCE
from tests.persistence.contract import T, forked, many, prompt
from timeline import Timeline

ROWS = [(n, encode_event(event).decode()) for n, event in enumerate(many(1200, first=5), 5)]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=50)


@limits(max_examples=15)
@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS)
def test_bytes_come_back_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], name: str
) -> None:
    folder = tmp_path_factory.mktemp("old's")
    rows = [(n, encode_event(prompt(text)).decode()) for n, text in enumerate(texts, 7)]
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
    file, kept = Path(archive.file), Rest(archives=(archive,))
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
    before = Rest(archives=(first, second))
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


# ---------------------------------------------------------------- in a bucket


STORES: dict[str, Callable[[Path], EventStore]] = {
    "memory": lambda _: MemoryStore(),
    "duckdb": lambda folder: DuckDBStore(folder / "a.duckdb"),
    "sqlite": lambda folder: SQLiteStore(folder / "a.sqlite"),
}


@pytest.mark.parametrize("kind", STORES)
def test_every_store_archives_in_a_bucket_and_reads_from_it(
    kind: str, bucket: Bucket, tmp_path: Path
) -> None:
    with closing(STORES[kind](tmp_path)) as store:
        store.append(T, LOG, expected_version=0)
        before = list(store.read(T)), store.load_window(T)
        assert store.trim(T, 9, archive=bucket.url).events == 8
        [archive] = store.kept(T).archives
        assert archive.file.startswith(f"{bucket.url}/")
        assert (list(store.read(T)), store.load_window(T)) == before
        fork = TimelineId("fork")
        store.fork(T, fork, forked(T, 5), at=5)
        assert list(store.read(fork))[:5] == before[0][:5]
        assert verify(store).ok
        new = saying("gone", prompt("2", at=2.0))
        assert store.rewrite(T, {2: new}).unused == (), "the fork reads it"
        assert store.read(T)[1] == (2, new)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
@pytest.mark.parametrize("folder", [".", "old"])
def test_an_archive_that_was_moved_with_its_store_is_found(
    kind: str, folder: str, tmp_path: Path
) -> None:
    """Whoever moves a project moves the folder with the store and its archives."""
    (tmp_path / "here" / folder).mkdir(parents=True)
    with closing(STORES[kind](tmp_path / "here")) as store:
        store.append(T, LOG, expected_version=0)
        before = list(store.read(T))
        store.trim(T, 9, archive=tmp_path / "here" / folder)
    (tmp_path / "here").rename(there := tmp_path / "there")
    assert repair(there / f"a.{kind}", tmp_path / "saved.sqlite").lost == ()
    with closing(STORES[kind](there)) as store:
        assert list(store.read(T)) == before
        assert verify(store).ok
        new = saying("gone", prompt("2", at=2.0))
        [old] = store.rewrite(T, {2: new}).unused
        assert remove_archive(old)
        [archive] = store.kept(T).archives
        assert Path(archive.file) in {*(there / folder).iterdir()}
        assert store.read(T)[1] == (2, new)
    assert len([*there.rglob("*.parquet")]) == 1


def test_a_page_of_an_archive_in_a_bucket_is_read_without_a_further_request(
    bucket: Bucket,
) -> None:
    archive = write_archive(bucket.url, T, ROWS)
    assert archived_rows(archive, 5, 70) == ROWS[:66]
    before = bucket.requests()
    assert archived_rows(archive, 71, 2000) == ROWS[66:]
    assert bucket.requests() == before


def test_the_same_events_are_the_same_object_and_leave_no_file(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert write_archive(bucket.url, T, ROWS) == write_archive(bucket.url, T, ROWS)
    archived_rows(write_archive(bucket.url, T, ROWS), 5, 6)
    assert len(Objects.at(bucket.url).list("")) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_object_that_was_changed_or_is_gone_is_damage_and_is_named(bucket: Bucket) -> None:
    archive = write_archive(bucket.url, T, ROWS)
    objects, name = Objects.at(bucket.url), archive.file.rpartition("/")[2]
    objects.put(name, [b"changed"])
    with pytest.raises(DamagedStoreError, match=rf"{name} .*was changed"):
        archived_rows(archive, 5, 6)
    remove_archive(archive.file)
    remove_archive(archive.file)
    with pytest.raises(DamagedStoreError, match=rf"{name} .*No such object"):
        archived_rows(archive, 5, 6)


def test_verify_reads_what_is_in_the_bucket_and_not_what_was_read_before(bucket: Bucket) -> None:
    archive = write_archive(bucket.url, T, ROWS)
    assert list(archive_problems(T, Rest(archives=(archive,)))) == []
    remove_archive(archive.file)
    [problem] = archive_problems(T, Rest(archives=(archive,)))
    assert problem.version == 5


def test_no_archive_is_begun_in_a_bucket_that_does_not_exist(bucket: Bucket) -> None:
    del bucket
    store = MemoryStore()
    store.append(T, LOG, expected_version=0)
    with pytest.raises(MisuseError, match="there is no such bucket; create it"):
        store.trim(T, 9, archive="s3://nobody/x")
    assert store.kept(T) == Rest()
    with pytest.raises(MisuseError, match="there is no such bucket; create it"):
        Timeline.open("t", store=store, retention="archive", archive="s3://nobody/x")
