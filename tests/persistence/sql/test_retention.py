"""Removal from a shared store: readers and writers of other processes see nothing torn, and what was erased is not
in the files."""

import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event as Signal
from typing import Any

import psycopg
import pytest

from blocks import (
    DamagedStoreError,
    ForgottenError,
    StoreError,
    StoreLockedError,
    TimelineId,
    UnknownTimelineError,
    VersionConflictError,
)
from persistence import PostgresStore, SQLiteStore, block_at, verify
from persistence.sql import _retention
from persistence.sql._database import LostError
from persistence.sql._store import SQLStore
from persistence.testing._retention import saying
from tests._postgres import Server
from tests.persistence.contract import T, U, compacted, expanded, many, opened, prompt, versions

SECRET = "secret-4711-plugh"  # noqa: S105 -- of nobody
FOLDED = [*many(6), compacted("c", cut=4)]
"""Its window begins at version 4 of 7."""

# Talks and renders; prints how long each request is.
TALKER = """
import sys
from timeline import Timeline

with Timeline.open("talk", store=sys.argv[1], window=1_500, counter="estimate") as timeline:
    for number in range(int(sys.argv[2])):
        timeline.user(f"question {number}\\n" + "pad and on\\n" * 100)
        timeline.record({"id": f"r{number}", "content": [{"type": "text", "text": "fine"}]})
        timeline.render()
        print(timeline.version, flush=True)
"""


def started(program: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    (tmp_path / "old").mkdir()
    return tmp_path / "old"


def test_one_process_talks_while_another_removes(where: str, old: Path) -> None:
    with started(TALKER, where, 12) as talker, opened(where) as store:
        name, turn = TimelineId("talk"), 0
        while talker.poll() is None:
            window = store.load_window(name)
            if window.compaction:
                turn += 1
                store.trim(name, window.events[0][0], archive=None if turn % 3 else old)
            gone = store.kept(name).forgotten
            found = versions(store.read(name, after=gone, limit=10_000))
            assert found == list(range(gone + 1, gone + len(found) + 1))
        out, _ = talker.communicate()
        assert len(out.split()) == 12
        assert store.head(name) >= int(out.split()[-1])
        assert store.kept(name).first > 1
        assert verify(store).ok


def test_a_reader_finds_every_event_while_they_are_moved(where: str, old: Path) -> None:
    with opened(where) as store, opened(where) as other:
        store.append(T, many(60), expected_version=0)
        before, stop, reads = list(store.read(T)), Signal(), list[int]()

        def look() -> None:
            while not stop.is_set():
                assert list(other.read(T))[:60] == before
                assert other.load_window(T).version in (60, 61)
                reads.append(1)

        with ThreadPoolExecutor(2) as pool:
            looking = [pool.submit(look) for _ in range(2)]
            try:
                store.append(T, [compacted("c", cut=60)], expected_version=60)
                for cut in range(10, 61, 10):
                    store.trim(T, cut, archive=old)
                    store.rewrite(T, {cut - 1: prompt(str(cut - 1), at=float(cut - 1))})
            finally:
                stop.set()
            for each in looking:
                each.result()
        assert len(store.kept(T).archives) == 6
        assert reads


def test_a_timeline_goes_whole_while_others_append_to_it(where: str) -> None:
    """A row behind a removed one would be a log that begins in the middle."""
    with opened(where) as store, opened(where) as other:
        stop = Signal()

        def grow(worker: int) -> None:
            n = 0
            while not stop.is_set():
                n += 1
                with suppress(VersionConflictError):
                    other.append(T, [prompt(f"{worker}.{n}")], expected_version=other.head(T))

        with ThreadPoolExecutor(4) as pool:
            growing = [pool.submit(grow, worker) for worker in range(4)]
            gone = 0
            try:
                while gone < 10:
                    with suppress(UnknownTimelineError):
                        gone += bool(store.remove(T).events)
                    found = versions(store.read(T, limit=10_000))
                    assert found == list(range(1, len(found) + 1))
            finally:
                stop.set()
            for each in growing:
                each.result()
        assert verify(store).ok


def test_of_a_removal_and_an_expansion_at_once_one_is_refused(where: str) -> None:
    with opened(where) as store, opened(where) as other, ThreadPoolExecutor(2) as pool:
        for n in range(12):
            name = TimelineId(f"talk {n}")
            store.append(name, FOLDED, expected_version=0)
            one = pool.submit(store.trim, name, 4)
            two = pool.submit(other.append, name, [expanded("x", 7)], expected_version=7)
            failed = [each.exception() for each in (one, two)]
            assert sum(each is None for each in failed) == 1, failed
            assert store.load_window(name).version == (7 if failed[1] else 8)
        assert verify(store).ok


def test_a_fork_while_its_parent_is_removed_is_whole_or_not_there(where: str) -> None:
    with opened(where) as store, opened(where) as other, ThreadPoolExecutor(2) as pool:
        for n in range(10):
            parent, child = TimelineId(f"talk {n}"), TimelineId(f"fork {n}")
            store.append(parent, FOLDED, expected_version=0)
            one = pool.submit(store.remove if n % 2 else store.trim, parent, *[] if n % 2 else [4])  # type: ignore[arg-type]  # one of two methods
            two = pool.submit(other.fork, parent, child, prompt("f"), at=7)
            one.result()
            assert isinstance(two.exception(), UnknownTimelineError | None)
            assert store.head(child) == (0 if two.exception() else 8)
            store.load_window(child)
        assert verify(store).ok


def test_a_connection_that_breaks_at_the_end_of_a_removal_is_no_harm(
    where: str, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(where) as store:
        store.append(T, FOLDED, expected_version=0)
        store.append(U, many(3), expected_version=0)
        with breaking(store, monkeypatch):
            assert store.trim(T, 4, archive=old).events == 3
        with breaking(store, monkeypatch):
            assert store.rewrite(T, {2: prompt("2", at=2.0)}).events == 1
        with breaking(store, monkeypatch):
            assert store.remove(U).events == 3
        [archive] = store.kept(T).archives
        with breaking(store, monkeypatch):
            assert store.trim(T, 4).unused == (archive.file,)
        assert (store.head(U), store.kept(T).forgotten) == (0, 3)


@contextmanager
def breaking(store: SQLStore, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The first transaction is committed, and nobody is told."""
    database, left = store._database, [1]
    writing: Callable[[], Any] = database.writing

    @contextmanager
    def once(_: object) -> Generator[Any]:
        with writing() as connection:
            yield connection
        if left:
            left.pop()
            raise LostError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(type(database), "writing", once)
        yield
    assert not left


def test_an_archive_that_is_replaced_while_it_is_read_is_read_again(
    where: str, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(where) as store, opened(where) as other:
        store.append(T, FOLDED, expected_version=0)
        store.trim(T, 4, archive=old)
        found = _retention.trimmed_of
        new, replaced = prompt("2", at=2.0), list[str]()

        def late(*given: Any) -> Any:
            answer = found(*given)
            if not replaced:
                replaced.append("")
                replaced.extend(other.rewrite(T, {2: new}).unused)
                for file in replaced[1:]:
                    Path(file).unlink()
            return answer

        monkeypatch.setattr("persistence.sql._retention.trimmed_of", late)
        assert versions(store.read(T)) == list(range(1, 8))
        [file] = old.iterdir()
        file.unlink()
        with pytest.raises(DamagedStoreError, match=file.name):
            store.read(T)


def test_what_is_archived_is_found_and_what_is_forgotten_says_so(where: str, old: Path) -> None:
    with opened(where) as store:
        store.append(
            T,
            [saying("the zebra", prompt("a")), *many(5), compacted("c", cut=4)],
            expected_version=0,
        )
        store.trim(T, 4, archive=old)
        [hit] = store.search("zebra")
        found = block_at(store, T, hit.path)
        assert found is not None
        assert getattr(found, "text", "") == "the zebra"
        store.trim(T, 4)
        assert store.search("zebra") == []
        with pytest.raises(ForgottenError):
            block_at(store, T, hit.path)


def test_damage_to_what_is_left_is_named(where: str, old: Path) -> None:
    with opened(where) as store:
        store.append(T, FOLDED, expected_version=0)
        store.trim(T, 4, archive=old)
        changed(store, "UPDATE events SET made = NULL WHERE seq = 4")
        assert [p.version for p in verify(store).problems] == [4]
        changed(store, "UPDATE events SET made = 1 WHERE seq = 4")
        changed(store, "INSERT INTO trims SELECT 'nobody', first, began_at, manifest FROM trims")
        assert [p.timeline for p in verify(store).problems] == ["nobody"]
        changed(store, "UPDATE trims SET manifest = '[1]' WHERE timeline = 'my talk'")
        with pytest.raises(DamagedStoreError, match="its retention record is invalid"):
            store.kept(T)
        assert not verify(store).ok


def changed(store: SQLStore, statement: str) -> None:
    with store._database.writing() as connection:
        connection.run(statement)


# What is in the files.


def with_secret(store: SQLStore) -> None:
    """A store that was told something in three timelines."""
    store.append(U, [prompt(f"noise {n} " + "y" * 900) for n in range(300)], expected_version=0)
    large = saying(SECRET + "x" * 50_000, prompt("s"))
    store.append(T, [large, saying(SECRET, prompt("b")), *FOLDED[2:]], expected_version=0)
    store.append(TimelineId("gone"), [saying(SECRET, prompt("g"))], expected_version=0)
    store.append(U, [saying(SECRET, prompt("z"))], expected_version=300)


def forget_it(store: SQLStore) -> None:
    store.trim(T, 4)
    store.remove(TimelineId("gone"))
    store.rewrite(U, {301: saying("other", prompt("z"))})


def test_what_was_erased_is_not_in_the_files_of_sqlite(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.sqlite") as store:
        with_secret(store)
        assert in_files(tmp_path)
        forget_it(store)
        assert store.erase() == ()
        assert in_files(tmp_path) == []
        assert {path.name for path in tmp_path.iterdir()} >= {"a.sqlite-wal", "a.sqlite-shm"}
        assert versions(store.read(U, after=299)) == [300, 301]
        assert verify(store).ok
    assert in_files(tmp_path) == []


def test_deleted_rows_are_overwritten_in_sqlite_even_without_that(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.sqlite") as store:
        with_secret(store)
        forget_it(store)
    assert in_files(tmp_path) == []


def in_files(folder: Path) -> list[str]:
    return [p.name for p in folder.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]


def test_nothing_is_erased_from_sqlite_while_somebody_reads(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "a.sqlite", wait_seconds=0.1) as store:
        with_secret(store)
        with store._database.snapshot() as reading:
            reading.rows("SELECT count(*) FROM events")
            forget_it(store)
            with pytest.raises(StoreLockedError, match="repeat the call when all reads have ended"):
                store.erase()
        store.erase()
        assert in_files(tmp_path) == []


def test_what_was_erased_is_not_in_the_files_of_postgresql(postgres: Server, url: str) -> None:
    """Its write-ahead log keeps it, which is said."""
    with opened(url) as store:
        with_secret(store)
        checkpoint(url)
        relations = postgres.folder / "data" / "base"
        assert in_files(relations)
        forget_it(store)
        checkpoint(url)
        assert in_files(relations), "this is what erase is for"
        [place] = store.erase()
        assert "write-ahead log" in place
        checkpoint(url)
        assert in_files(relations) == []
        with store._database.lent() as connection:
            query = "SELECT count(*) FROM events WHERE position(?::bytea IN payload) > 0"
            assert connection.rows(query, [SECRET.encode()]) == [(0,)]
        assert verify(store).ok


def checkpoint(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")


def test_rows_that_an_older_transaction_may_see_are_not_called_erased(url: str) -> None:
    with opened(url) as store:
        with_secret(store)
        with psycopg.connect(url) as older:
            older.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            older.execute("SELECT 1 FROM foldline")
            forget_it(store)
            with pytest.raises(
                StoreError, match=r"can still see \d+ removed rows of .*end it and repeat"
            ):
                store.erase()
        store.erase()


def test_a_role_that_does_not_own_the_tables_says_who_can_erase(url: str) -> None:
    with opened(url) as store:
        with_secret(store)
        schema = url.rpartition("%3D")[2]
        role = f"clerk_{schema}"
        for statement in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        ):
            changed(store, statement)
    with opened(url.replace("postgres@", f"{role}@")) as clerk:
        forget_it(clerk)
        assert clerk.kept(T).forgotten == 3
        with pytest.raises(StoreError, match="let its owner run VACUUM FULL"):
            clerk.erase()


def test_one_connection_is_enough_to_say_what_is_wrong_with_an_archive(url: str, old: Path) -> None:
    with PostgresStore(url, connections=1, wait_seconds=5) as store:
        store.append(T, FOLDED, expected_version=0)
        store.trim(T, 4, archive=old)
        assert versions(store.read(T)) == list(range(1, 8))
        [file] = old.iterdir()
        file.unlink()
        with pytest.raises(DamagedStoreError, match=file.name):
            store.read(T)
