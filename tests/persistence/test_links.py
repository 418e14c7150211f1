"""What a store creates is its owner's alone, and is not written through a link that somebody may have laid there."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blocks import MisuseError
from persistence import DuckDBStore, EventStore, SQLiteStore, open_artifacts, open_store
from tests._table import for_each
from tests.persistence.contract import T, many

STORES: tuple[Callable[[Path], EventStore], ...] = (DuckDBStore, SQLiteStore)
NOBODY = 65534


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """A process whose files anybody may read and write, if nothing else is said."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file of ours that has nothing to do with a store, and is the same afterwards."""
    path = tmp_path / "victim"
    path.write_bytes(b"precious")
    yield path
    assert path.read_bytes() == b"precious"


@for_each("opened", STORES)
def test_a_store_and_all_files_beside_it_are_for_their_owner_alone(
    opened: Callable[[Path], EventStore], tmp_path: Path
) -> None:
    path = tmp_path / opened.__name__
    with opened(path) as store:
        store.append(T, many(3), expected_version=0)
        found = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert len(found) >= 3
    assert set(found.values()) == {0o600}, found


@for_each("ending", [".lock", ".wal"])
@for_each("file", ["new", "there"])
def test_duckdb_writes_nothing_through_a_link_beside_the_file(
    ending: str, file: str, tmp_path: Path, victim: Path
) -> None:
    _refused(DuckDBStore, tmp_path / f"a{ending}{file}", ending, victim)


@for_each("ending", ["-wal", "-shm", "-journal"])
@for_each("file", ["new", "there"])
def test_sqlite_writes_nothing_through_a_link_beside_the_file(
    ending: str, file: str, tmp_path: Path, victim: Path
) -> None:
    _refused(SQLiteStore, tmp_path / f"a{ending}{file}", ending, victim)


def _refused(opened: Callable[[Path], EventStore], path: Path, ending: str, victim: Path) -> None:
    if path.name.endswith("there"):
        opened(path).close()
    link = path.with_name(path.name + ending)
    link.unlink(missing_ok=True)
    link.symlink_to(victim)
    with pytest.raises(MisuseError, match=rf"{link.name} is a symbolic link"):
        opened(path)
    link.unlink()
    opened(path).close()


@for_each("name", ["audit.jsonl", "content", "entries"])
def test_artifacts_are_written_through_no_link(name: str, tmp_path: Path, victim: Path) -> None:
    root = tmp_path / name
    root.mkdir()
    (root / name).symlink_to(victim if name == "audit.jsonl" else tmp_path)
    with pytest.raises(MisuseError, match=rf"{name} is a symbolic link"):
        open_artifacts(root)


def test_a_link_of_ones_own_leads_to_the_store(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"link{number}").symlink_to(tmp_path / f"link{number + 1}")
    with DuckDBStore(tmp_path / "link0") as store:
        assert store.path == tmp_path / "link3"


# A link of another user needs `chown`, which the system allows to root alone.
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
@for_each("opened", STORES)
def test_a_link_of_another_user_is_not_followed(
    opened: Callable[[Path], EventStore], tmp_path: Path
) -> None:
    first, second = tmp_path / f"first-{opened.__name__}", tmp_path / f"second-{opened.__name__}"
    first.symlink_to(second)
    second.symlink_to(tmp_path / "new")
    os.lchown(second, NOBODY, NOBODY)
    with pytest.raises(MisuseError, match=rf"{second.name} is a symbolic link that another user"):
        opened(first)
    assert not (tmp_path / "new").exists()


# ---------------------------------------------------------------- what is no path


@for_each(
    "where",
    [
        "host=db user=me password=c4nary",
        "password = 'c4nary' host=db",
        "Server=db;User=me;Password=c4nary",
        "me:c4nary@db/agents",
        "//me:c4nary@db/agents",
        "postgresql:/me:c4nary@db/agents",
        "postgres:me:c4nary@db",
        "db.example.org/agents?user=me&password=c4nary",
    ],
)
def test_the_address_of_a_server_that_is_no_url_is_refused_without_a_word_of_it(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for opened in (open_store, DuckDBStore, SQLiteStore):
        with pytest.raises(MisuseError, match="looks like the address of a server") as caught:
            opened(where)
        assert "c4nary" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@for_each(
    "name", ["mail-me@db.duckdb", "12:30.duckdb", "passwords.duckdb", "./a:b@c", "./x password=y"]
)
def test_a_path_with_such_signs_is_a_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with DuckDBStore(name) as store:
        assert store.path == tmp_path / name
