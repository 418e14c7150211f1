"""One file, one holder: whatever it is called, and never longer than somebody has it."""

import asyncio
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from blocks import DamagedStoreError, FoldlineError, MisuseError, StoreError, StoreLockedError
from persistence import DuckDBStore, repair, share_store, verify
from persistence.duckdb._file import FileLock, Marks, lock_path
from tests._table import for_each
from tests.persistence.contract import T, many
from timeline import AsyncTimeline, Timeline


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


# ---------------------------------------------------------------- other names of the same file


def hard_link(path: Path) -> Path:
    other = path.with_name("other.duckdb")
    other.hardlink_to(path)
    return other


def hard_link_elsewhere(path: Path) -> Path:
    folder = path.parent / "elsewhere"
    folder.mkdir()
    (folder / path.name).hardlink_to(path)
    return folder / path.name


def symbolic_link(path: Path) -> Path:
    other = path.with_name("link.duckdb")
    other.symlink_to(path)
    return other


def linked_folder(path: Path) -> Path:
    folder = path.parent / "folder"
    folder.symlink_to(path.parent)
    return folder / path.name


def roundabout(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / "." / path.name


def relative(path: Path) -> Path:
    return Path(os.path.relpath(path))


NAMES = [hard_link, hard_link_elsewhere, symbolic_link, linked_folder, roundabout, relative]

OPEN = "import sys; from persistence import DuckDBStore; DuckDBStore(sys.argv[1])"


@pytest.mark.parametrize("named", NAMES)
def test_the_same_file_by_another_name_is_open_already(
    path: Path, named: Callable[[Path], Path]
) -> None:
    with DuckDBStore(path) as store:
        store.append(T, many(1), expected_version=0)
        other = named(path)
        with pytest.raises(StoreLockedError, match="already open in this process"):
            DuckDBStore(other)
        with pytest.raises(StoreLockedError, match="already open in this process"):
            verify(other)
        assert "StoreLockedError" in run(OPEN, other).stderr, "and for other processes too"
        store.append(T, many(1, first=2), expected_version=1)
    with DuckDBStore(other) as store:
        assert store.head(T) == 2


def test_a_new_store_is_known_by_its_other_names_at_once(path: Path) -> None:
    path.symlink_to(path.with_name("target.duckdb"))
    with DuckDBStore(path), pytest.raises(StoreLockedError, match="already open"):
        DuckDBStore(path.with_name("target.duckdb"))


def test_a_file_that_was_renamed_while_open_is_still_the_same_file(path: Path) -> None:
    with DuckDBStore(path):
        moved = path.rename(path.with_name("moved.duckdb"))
        with pytest.raises(StoreLockedError, match="already open"):
            DuckDBStore(moved)


def test_a_symbolic_link_finds_the_write_ahead_log_of_its_target(path: Path) -> None:
    die_with_a_wal(path)
    with DuckDBStore(symbolic_link(path)) as store:
        assert store.head(T) == 3


def test_a_hard_link_does_not_pass_over_the_newest_events(path: Path) -> None:
    """They are in the write-ahead log, which only the other name leads to."""
    die_with_a_wal(path)
    other = hard_link(path)
    with pytest.raises(MisuseError, match=f"open {path} and close it first"):
        DuckDBStore(other)
    DuckDBStore(path).close()  # as the message says
    with DuckDBStore(other) as store:
        assert store.head(T) == 3


DIE = """
import os, sys
from persistence import DuckDBStore
from tests.persistence.contract import T, many
DuckDBStore(sys.argv[1]).append(T, many(3), expected_version=0)
os._exit(0)
"""


def die_with_a_wal(path: Path) -> None:
    ended = run(DIE, path)
    assert ended.returncode == 0, ended.stderr
    assert path.with_name(path.name + ".wal").exists()


# ---------------------------------------------------------------- nobody has it any more


def test_a_dropped_store_lets_go_of_its_file_and_says_so(path: Path) -> None:
    store = DuckDBStore(path)
    store.append(T, many(2), expected_version=0)
    with pytest.warns(ResourceWarning, match="unclosed store"):
        del store
    with DuckDBStore(path) as store:
        assert store.head(T) == 2, "what was acknowledged is there"


def test_a_dropped_store_that_nobody_has_collected_yet_is_collected_when_it_is_in_the_way(
    path: Path,
) -> None:
    store = DuckDBStore(path)
    store.artifacts()  # which know their store: a circle
    gc.disable()
    try:
        del store
        with pytest.warns(ResourceWarning, match="unclosed store"):
            store = DuckDBStore(path)
        store.close()
    finally:
        gc.enable()


def test_a_store_that_was_closed_warns_of_nothing(path: Path) -> None:
    store = DuckDBStore(path)
    store.close()
    store.close()
    del store
    gc.collect()


STEPS = [
    "persistence.duckdb._file.refuse_unfolded_log",
    "persistence.duckdb._store.open_database",
    "persistence.duckdb._store.Writer",
    "persistence.duckdb._store.GroupCommit",
    "persistence.duckdb._store.CursorPool",
    "persistence.duckdb._store.Reader",
    "persistence.duckdb._file.FileLock.holds",
    "persistence.duckdb._file.cursor_of",
]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("step", STEPS)
def test_an_open_that_fails_at_any_step_holds_nothing(
    path: Path, step: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    with DuckDBStore(path) as store:
        store.append(T, many(2), expected_version=0)
    with monkeypatch.context() as patch:
        patch.setattr(step, fail)
        with pytest.raises(error):
            DuckDBStore(path)
    with DuckDBStore(path) as store:
        assert store.head(T) == 2


CLOSING = ["Writer.close", "CursorPool.close"]


@pytest.mark.parametrize("step", CLOSING)
def test_a_close_that_is_interrupted_lets_go_all_the_same(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    store = DuckDBStore(path)
    store.append(T, many(2), expected_version=0)
    with monkeypatch.context() as patch:
        patch.setattr(f"persistence.duckdb._store.{step}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.close()
    store.close()
    with DuckDBStore(path) as store:
        assert store.head(T) == 2


def test_a_forked_child_that_drops_the_store_leaves_it_to_its_parent(path: Path) -> None:
    code = """if True:
        import gc, os, sys
        from persistence import DuckDBStore
        from tests.persistence.contract import T, many
        store = DuckDBStore(sys.argv[1])
        store.append(T, many(1), expected_version=0)
        if (child := os.fork()) == 0:
            del store
            gc.collect()
            os._exit(0)
        os.waitpid(child, 0)
        store.append(T, many(1, first=2), expected_version=1)
        try:
            DuckDBStore(sys.argv[1])
        except Exception as error:
            print(type(error).__name__)
        store.close()
    """
    ended = run(code, path)
    assert (ended.returncode, ended.stdout) == (0, "StoreLockedError\n"), ended.stderr


# ---------------------------------------------------------------- the lock's own file


def test_a_lock_file_that_its_holder_took_away_meanwhile_is_made_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening it and locking it: to hold a file that has no name would lock nobody out."""
    import fcntl

    flock, calls = fcntl.flock, list[int]()

    def late(file: Any, operation: int) -> None:
        calls.append(operation)
        if len(calls) == 1:
            lock_path(path).unlink()
        flock(file, operation)

    monkeypatch.setattr("fcntl.flock", late)
    lock = FileLock.acquire(path)
    assert lock_path(path).exists()
    with pytest.raises(StoreLockedError):
        FileLock.acquire(path)
    lock.release()
    lock.release()


def test_the_marks_of_an_earlier_version_are_read(path: Path) -> None:
    lock_path(path).write_text("pid          7\nevents                   12\n")
    lock = FileLock.acquire(path)
    assert lock.acknowledged == Marks(events=12)
    lock.note(records=3)
    lock.release()
    lock = FileLock.acquire(path)
    assert lock.acknowledged == Marks(events=12, records=3)
    lock.release()


def test_what_was_committed_does_not_fail_because_it_cannot_be_noted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with DuckDBStore(path) as store:
        monkeypatch.setattr("os.pwrite", full)
        assert store.append(T, many(2), expected_version=0) == 2


# ---------------------------------------------------------------- what is no store


@pytest.fixture
def no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "text").write_text("hello, this is no database at all")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    yield tmp_path
    assert sorted(tmp_path.iterdir()) == before, "nothing is left beside it"


@for_each(
    ("given", "error", "said"),
    [
        (3, MisuseError, "3 is not a path"),
        (None, MisuseError, "None is not a path"),
        (b"talks.duckdb", MisuseError, "is not a path"),
        ("", MisuseError, "is empty"),
        (" ", MisuseError, "is empty"),
        (":memory:", MisuseError, r"MemoryStore\(\) is a store in memory"),
        ("nul\0", MisuseError, "cannot be a path"),
        ("half \ud800", MisuseError, "cannot be a path"),
        ("folder", MisuseError, "is a folder; give the path of a file in it"),
        (".", MisuseError, "is a folder"),
        ("text", MisuseError, "is not a DuckDB database"),
        ("empty", MisuseError, "is empty"),
        ("pipe", MisuseError, "is not a regular file"),
        ("/dev/null", MisuseError, "is not a regular file"),
        ("nowhere/talks.duckdb", MisuseError, "does not exist; create it"),
        ("text/talks.duckdb", MisuseError, "does not exist; create it"),
        ("circle", StoreError, "links form a cycle"),
        ("x" * 5000, StoreError, "name too long"),
    ],
)
@pytest.mark.usefixtures("no_store")
def test_what_is_no_store_is_one_typed_error(
    given: Any, error: type[FoldlineError], said: str
) -> None:
    with pytest.raises(error, match=f"(?i){said}") as caught:
        DuckDBStore(given)
    assert len(str(caught.value)) < 500


@pytest.mark.usefixtures("no_store")
@for_each("given", [3, "", "folder", "text", "pipe", "circle", "nothing"])
def test_nor_is_it_verified(given: Any) -> None:
    with pytest.raises((MisuseError, StoreError)):
        verify(given)


# ---------------------------------------------------------------- what the errors advise


def test_a_copy_of_a_held_store_shows_all_that_was_acknowledged(path: Path) -> None:
    """As the page on stores says: the file, its .wal and its .lock together; the message says what is easier."""
    with DuckDBStore(path) as store:
        store.append(T, many(5), expected_version=0)
        refused = run(OPEN, path).stderr
        copied = [path.name, f"{path.name}.wal", f"{path.name}.lock"]
        assert "`foldline list`, `show`" in refused
        assert "persistence.look" in refused
        assert "PostgreSQL" not in refused
        folder = path.parent / "copy"
        folder.mkdir()
        for name in copied:
            run("import shutil, sys; shutil.copy(*sys.argv[1:])", path.with_name(name), folder)
        with DuckDBStore(folder / path.name) as copy:
            assert copy.head(T) == 5
            assert verify(copy).ok
        (folder / f"{path.name}.wal").unlink(missing_ok=True)
        shutil.copy(lock_path(path), folder)


def test_a_copy_without_its_write_ahead_log_does_not_pass_for_the_whole(path: Path) -> None:
    die_with_a_wal(path)
    folder = path.parent / "copy"
    folder.mkdir()
    shutil.copy(path, folder)
    shutil.copy(lock_path(path), folder)
    with pytest.raises(DamagedStoreError, match="0 events but 3 were acknowledged"):
        DuckDBStore(folder / path.name)
    shutil.copy(path.with_name(path.name + ".wal"), folder)  # "put it back"
    with DuckDBStore(folder / path.name) as copy:
        assert copy.head(T) == 3


def test_a_store_that_is_open_here_is_shared_as_the_error_says(path: Path) -> None:
    with DuckDBStore(path) as store:
        with pytest.raises(StoreLockedError, match=r"pass it to every Timeline.open as store="):
            Timeline.open("one", store=path)
        Timeline.open("one", store=store).user("hello")
        assert Timeline.open("one", store=store).version == 2


# ---------------------------------------------------------------- timelines that open one file


def test_timelines_of_one_path_share_its_store_until_the_last_one_closes(path: Path) -> None:
    first, second = (
        Timeline.open("one", store=path),
        Timeline.open("two", store=symbolic_link(path)),
    )
    for number in range(3):
        assert first.user(f"a {number}") == second.user(f"b {number}") == 2 * number + 2
    first.close()
    first.close()
    assert second.user("still here") == 8
    assert "StoreLockedError" in run(OPEN, path).stderr, "other processes are kept out as ever"
    second.close()
    with DuckDBStore(path) as store:
        assert [(info.id, info.version) for info in store.list()] == [("one", 6), ("two", 8)]


def test_one_timeline_that_is_open_twice_has_one_log(path: Path) -> None:
    with Timeline.open("one", store=path) as first, Timeline.open("one", store=path) as second:
        assert (first.user("here"), second.user("there"), first.user("here again")) == (2, 4, 6)
        assert "there" in str(first.render().messages)


def test_a_timeline_of_asyncio_shares_the_store_of_the_others(path: Path) -> None:
    async def talk(name: str) -> int:
        async with await AsyncTimeline.open(name, store=path) as timeline:
            return await timeline.user("hello")

    async def both() -> tuple[int, int]:
        return await asyncio.gather(talk("two"), talk("three"))

    with Timeline.open("one", store=path) as timeline:
        assert [*asyncio.run(both())] == [2, 2]
        assert timeline.user("hello") == 2


def test_threads_may_open_and_close_timelines_of_one_path_at_once(path: Path) -> None:
    def talk(name: str) -> list[int]:
        said = list[int]()
        for _ in range(5):
            with Timeline.open(name, store=path) as timeline:
                said.append(timeline.user("hello"))
        return said

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(talk, "abcdefgh")] == [[2, 4, 6, 8, 10]] * 8
    DuckDBStore(path).close()


def test_a_file_that_was_replaced_while_it_is_shared_is_still_the_same(path: Path) -> None:
    store, share = share_store(path)
    with closing(share), Timeline.open("one", store=path) as first:
        before = path.stat().st_ino
        store.erase()
        assert path.stat().st_ino != before
        with Timeline.open("two", store=path) as second:
            assert first.user("hello") == second.user("hello") == 2


def test_a_timeline_that_was_dropped_keeps_the_file_from_nobody(path: Path) -> None:
    dropped = Timeline.open("one", store=path)
    with Timeline.open("two", store=path):
        del dropped
        gc.collect()
    DuckDBStore(path).close()


def test_an_open_that_fails_leaves_the_store_to_the_others(path: Path) -> None:
    with Timeline.open("one", store=path) as timeline:
        with pytest.raises(MisuseError):
            Timeline.open("two", store=path, retention=cast("Any", "shred"))
        assert timeline.user("hello") == 2


def test_a_forked_child_does_not_share_its_parents_store(path: Path) -> None:
    code = """if True:
        import os, sys
        from blocks import FoldlineError
        from timeline import Timeline
        def tell(*said):
            print(*said, flush=True)
        parent = Timeline.open("one", store=sys.argv[1])
        parent.user("hello")
        if (child := os.fork()) == 0:
            for name, attempt in (
                ("used", lambda: parent.user("again")),
                ("opened", lambda: Timeline.open("two", store=sys.argv[1])),
            ):
                try:
                    attempt()
                except FoldlineError as error:
                    tell(name, type(error).__name__)
            parent.close()
            os._exit(0)
        os.waitpid(child, 0)
        tell("parent", parent.user("goes on"))
        parent.close()
        if (child := os.fork()) == 0:
            with Timeline.open("two", store=sys.argv[1]) as own:
                tell("child", own.user("free now"))
            os._exit(0)
        os.waitpid(child, 0)
    """
    ended = run(code, path)
    expected = ["used ClosedError", "opened StoreLockedError", "parent 4", "child 2"]
    assert (ended.returncode, ended.stdout.splitlines()) == (0, expected), ended.stderr


def test_what_is_left_after_the_loss_of_the_newest_events_can_be_saved(path: Path) -> None:
    die_with_a_wal(path)
    path.with_name(path.name + ".wal").unlink()
    for lost in ("0 events but 3 were acknowledged", "no write-ahead log"):
        with pytest.raises(DamagedStoreError, match=f"has {lost}.*`foldline repair` save"):
            DuckDBStore(path)
        report = repair(path, path.with_name(f"saved {lost[0]}.duckdb"))
        assert lost in report.lost[0]
        lock_path(path).unlink(missing_ok=True)
    with DuckDBStore(path.with_name("saved n.duckdb")) as store:
        assert store.head(T) == 0


def test_a_write_ahead_log_without_its_file_may_be_moved_away_or_completed(path: Path) -> None:
    die_with_a_wal(path)
    moved = path.rename(path.with_name("moved"))
    with pytest.raises(DamagedStoreError, match=r"restore .*, or move .* away"):
        DuckDBStore(path)
    moved.rename(path)
    with DuckDBStore(path) as store:
        assert store.head(T) == 3, "and the mark is still the old one"
    path.unlink()
    with DuckDBStore(path) as store:
        assert store.head(T) == 0


@pytest.mark.parametrize("position", [0.1, 0.5, 0.8])
def test_what_lies_before_the_damage_of_a_write_ahead_log_can_be_saved(
    path: Path, position: float
) -> None:
    import re

    code = (
        DIE.replace("many(3)", "many(1)")
        .replace(
            "os._exit",
            "[s.append(T, many(1, first=n + 1), expected_version=n) for n in range(1, 40)]; os._exit",
        )
        .replace("DuckDBStore(sys.argv[1]).append", "s = DuckDBStore(sys.argv[1]); s.append")
    )
    assert run(code, path).returncode == 0
    wal = path.with_name(path.name + ".wal")
    with wal.open("r+b") as file:
        file.seek(int(wal.stat().st_size * position))
        file.write(b"\xff" * 10)
    with pytest.raises(DamagedStoreError, match="into another folder, truncate") as caught:
        DuckDBStore(path)
    found = re.search(r"byte position (\d+)", str(caught.value))
    assert found
    folder = path.parent / "copy"
    folder.mkdir()
    shutil.copy(path, folder)
    shutil.copy(wal, folder)
    os.truncate(folder / wal.name, int(found[1]))
    with DuckDBStore(folder / path.name) as copy:
        assert 0 < copy.head(T) < 40
        assert verify(copy).ok


def test_a_write_ahead_log_whose_beginning_is_damaged_is_no_reason_to_repeat_the_call(
    path: Path,
) -> None:
    die_with_a_wal(path)
    with path.with_name(path.name + ".wal").open("r+b") as file:
        file.seek(5)
        file.write(b"\xff" * 10)
    with pytest.raises(DamagedStoreError, match="`foldline repair` save talks"):
        DuckDBStore(path)
    new = path.parent / "new.duckdb"
    assert len(repair(path, new).lost) == 1
    with DuckDBStore(new) as saved:
        assert saved.head(T) == 0


def test_whoever_holds_the_file_removes_what_a_killed_process_left_of_its_copy(
    tmp_path: Path,
) -> None:
    """A process that is killed while it creates the file, or erases it, leaves a readable copy in a folder."""
    path = tmp_path / "a.duckdb"
    ours = ("a.duckdb.0a1b2c3_.new/a.duckdb", "a.duckdb.0a1b2c3d.new/a.duckdb.wal")
    others = (
        "a.duckdb.b.0a1b2c3d.new/a.duckdb.b",
        "a.duckdb.documents.new/notes",
        "b.duckdb.0a1b2c3d.new/b.duckdb",
        "a.duckdb.0a1b2c3d.old/a.duckdb",
    )
    for name in (*ours, *others):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("what was said")
    (tmp_path / "a.duckdb.01234567.new").write_text("a file")
    with DuckDBStore(path):
        assert not any((tmp_path / name).parent.exists() for name in ours)
        assert all((tmp_path / name).exists() for name in others)
        assert (tmp_path / "a.duckdb.01234567.new").exists()
        (tmp_path / ours[0]).parent.mkdir()
        with pytest.raises(StoreLockedError):
            DuckDBStore(path)
        assert (tmp_path / ours[0]).parent.exists(), "it may be being written"
