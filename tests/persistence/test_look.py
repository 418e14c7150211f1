"""A store that is not free is looked at all the same: a copy of one moment, never a wrong answer."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from blocks import StoreLockedError
from persistence import (
    DuckDBStore,
    EventStore,
    locate_store,
    look,
    open_store,
    verify,
)
from persistence._file import copy_of_a_moment
from tests.persistence.contract import T, many

URLS = {"duckdb": "{}/a.duckdb", "sqlite": "sqlite:///{}/a.sqlite"}

HOLD = """
import sys
from persistence import open_store
from tests.persistence.contract import T, many
store = open_store(sys.argv[1])
store.append(T, many(3), expected_version=0)
print("held", flush=True)
sys.stdin.readline()
"""
"""Has a store open, with what it appended still in the write-ahead log."""

WRITE = """
import sys
from persistence import open_store
from tests.persistence.contract import T, many
store, version = open_store(sys.argv[1]), 0
events = many(20_000)
print("began", flush=True)
while version < len(events):
    version = store.append(T, events[version:version + 7], expected_version=version)
    print(version, flush=True)
store.close()
"""


@contextmanager
def other_process(code: str, where: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code, where]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def held_in(store: EventStore) -> list[int]:
    return [version for version, _ in store.read(T, limit=100_000)]


@pytest.mark.parametrize("kind", URLS)
def test_what_another_process_has_open_is_seen_with_its_newest_events(
    tmp_path: Path, kind: str
) -> None:
    where = URLS[kind].format(tmp_path)
    with other_process(HOLD, where):
        with look(where) as (store, is_copy):
            assert held_in(store) == [1, 2, 3]
            assert is_copy is (kind == "duckdb")
        if kind == "duckdb":
            with pytest.raises(StoreLockedError, match="the other commands that only read"):
                open_store(where)


def test_a_look_while_another_process_writes_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    where = str(tmp_path / "a.duckdb")
    with other_process(WRITE, where) as writer:
        assert writer.stdout is not None
        for _ in range(5):
            acknowledged = int(writer.stdout.readline())
            with look(where) as (store, is_copy):
                seen = store.head(T)
                assert is_copy
                assert seen >= acknowledged
                assert held_in(store) == list(range(1, seen + 1))


@pytest.mark.parametrize("kind", URLS)
@pytest.mark.parametrize("is_closed", [True, False])
def test_where_nothing_can_be_written_it_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_closed: object
) -> None:
    """The system says so of a read-only disk; as root, nobody else is told so."""
    folder = tmp_path / "disk"
    folder.mkdir()
    where = URLS[kind].format(tmp_path)
    with closing(open_store(where)) as store:
        store.append(T, many(3), expected_version=0)
        if not is_closed:
            copied(tmp_path, folder)
    if is_closed:
        copied(tmp_path, folder)
    before = contents(folder)
    monkeypatch.setattr(
        os, "access", lambda path, mode: not (mode & os.W_OK and "disk" in str(path))
    )
    with look(URLS[kind].format(folder)) as (looked, is_copy):
        assert held_in(looked) == [1, 2, 3]
        assert is_copy
    assert contents(folder) == before


def copied(folder: Path, into: Path) -> None:
    for path in folder.iterdir():
        if path.is_file():
            shutil.copyfile(path, into / path.name)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_store_that_is_free_is_no_copy(tmp_path: Path) -> None:
    with DuckDBStore(tmp_path / "a.duckdb") as store:
        store.append(T, many(1), expected_version=0)
    with look(tmp_path / "a.duckdb") as (looked, is_copy):
        assert (held_in(looked), is_copy) == ([1], False)


def test_one_that_this_process_has_open_is_not_touched(tmp_path: Path) -> None:
    """To open and close its file would take the database's lock away."""
    path = tmp_path / "a.duckdb"
    with (
        DuckDBStore(path) as store,
        pytest.raises(StoreLockedError, match="already open in this process"),
        look(path),
    ):
        store.head(T)


def test_nothing_is_left_of_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    where = str(tmp_path / "a.duckdb")
    with other_process(HOLD, where), look(where):
        assert [*temporary.rglob("a.duckdb")] != []
    assert [*temporary.iterdir()] == []


def test_a_copy_is_made_again_until_nothing_was_folded_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = tmp_path / "a", tmp_path / "copy"
    folder.mkdir()
    path.write_text("old")
    states = iter([1, 2, 3, 3])
    monkeypatch.setattr("persistence._file.PAUSE_SECONDS", 0.0)

    def folded(path: Path) -> int:
        state = next(states)
        path.write_text(f"state {state}")
        return state

    assert copy_of_a_moment(path, ("",), folder, folded).read_text() == "state 3"
    states = iter(range(1_000))
    with pytest.raises(StoreLockedError, match="attempts to copy it"):
        copy_of_a_moment(path, ("",), folder, folded)


def test_a_moment_holds_together(tmp_path: Path) -> None:
    where, folder = str(tmp_path / "a.duckdb"), tmp_path / "copy"
    folder.mkdir()
    with other_process(HOLD, where):
        report = verify(str(locate_store(where).moment(folder)))
    assert report.ok
    assert report.events == 3
