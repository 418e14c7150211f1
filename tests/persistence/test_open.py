"""A store is opened by a path or a URL, the same way everywhere."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from blocks import FoldlineError, MisuseError, StoreError, TimelineId
from persistence import (
    DuckDBStore,
    EventStore,
    StoreLocation,
    locate_store,
    look,
    open_store,
    verify,
)
from persistence._memory import MemoryLocation
from persistence._open import SCHEMES
from persistence.duckdb._store import DuckDBLocation
from persistence.postgres._store import PostgresLocation
from persistence.sqlite._store import SQLiteLocation
from tests._table import for_each
from timeline import Timeline
from timeline.replay import reserve_store

from .contract import T, U, many


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def filled(store: EventStore) -> int:
    with closing(store):
        return store.append(T, many(2), expected_version=store.head(T))


@pytest.mark.parametrize(
    "where",
    ["a.duckdb", "./a.duckdb", "duckdb:///a.duckdb", "DuckDB:///a.duckdb", "duckdb:///%61.duckdb"],
)
def test_a_path_and_its_url_are_one_store(where: str, here: Path) -> None:
    assert filled(open_store(Path("a.duckdb"))) == 2
    assert filled(open_store(where)) == 4
    assert filled(open_store(f"duckdb:///{here}/a.duckdb")) == 6, "four slashes: an absolute path"
    assert verify(where).events == 6


def test_a_store_in_memory_is_new_each_time() -> None:
    first, second = open_store("memory:"), open_store("memory:")
    first.append(T, many(1), expected_version=0)
    assert (first.head(T), second.head(T)) == (1, 0)
    with pytest.raises(MisuseError, match="store in memory cannot be verified"):
        verify("memory:")


def test_a_scheme_that_nobody_knows_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(MisuseError) as caught:
        open_store("mysql://user:secret@host/db")
    assert str(caught.value).startswith("mysql:// is not a known kind of store; give one of")
    assert "secret" not in str(caught.value)
    for _, written in SCHEMES.values():
        assert written in str(caught.value)


@for_each(
    ("where", "error", "said"),
    [
        ("duckdb://a.duckdb", MisuseError, "does not name a file; write duckdb:///path"),
        ("duckdb://", MisuseError, "does not name a file"),
        ("duckdb:///a.duckdb?read_only=1", MisuseError, "without options"),
        ("duckdb:///", MisuseError, "path of a store is empty"),
        ("duckdb:///nul%00", MisuseError, "cannot be a path"),
        ("duckdb:///:memory:", MisuseError, r"MemoryStore\(\) is a store in memory"),
        (":memory:", MisuseError, r"MemoryStore\(\) is a store in memory"),
        ("sqlite://a.sqlite", MisuseError, "does not name a file; write sqlite:///path"),
        ("sqlite:///", MisuseError, "path of a store is empty"),
        ("sqlite:///folder", MisuseError, "is a folder"),
        ("sqlite:///nowhere/a.sqlite", MisuseError, "does not exist; create it"),
        ("postgresql://me@host:secret/db", MisuseError, "no URL of a PostgreSQL database; write"),
        ("postgresql://me@/db?host=/nowhere", StoreError, "cannot be reached"),
        ("memory://", MisuseError, "memory:// is not a known kind of store"),
        ("duckdb:///nowhere/a.duckdb", MisuseError, "does not exist; create it"),
        ("duckdb:///folder", MisuseError, "is a folder; give the path of a file in it"),
        ("duckdb:///circle", StoreError, "symbolic links form a cycle"),
        ("duckdb://" + "x" * 5000, MisuseError, "does not name a file"),
        ("x" * 5000 + "://", MisuseError, "not a known kind of store"),
        (3, MisuseError, "3 is not a path"),
        (None, MisuseError, "None is not a path"),
    ],
)
def test_what_is_no_store_is_one_typed_error_everywhere(
    where: Any, error: type[FoldlineError], said: str, here: Path
) -> None:
    (here / "folder").mkdir(exist_ok=True)
    if not (here / "circle").is_symlink():
        (here / "circle").symlink_to("circle")
    before = sorted(here.iterdir())
    with pytest.raises(error, match=f"(?i){said}") as caught:
        open_store(where)
    assert len(str(caught.value)) < 500
    if isinstance(where, str):
        with pytest.raises(error, match=f"(?i){said}"):
            Timeline.open("talk", store=where)
    assert sorted(here.iterdir()) == before


def test_a_timeline_opens_and_closes_the_store_at_a_url() -> None:
    with Timeline.open("talk", store="duckdb:///a.duckdb") as timeline:
        assert timeline.user("hello") == 2
    with DuckDBStore("a.duckdb") as store:
        assert store.head(TimelineId("talk")) == 2
    with Timeline.open("talk", store="memory:") as timeline:
        assert timeline.user("hello") == 2


KINDS: dict[str, tuple[str, type[StoreLocation]]] = {
    "": ("a.duckdb", DuckDBLocation),
    "duckdb://": ("duckdb:///a.duckdb", DuckDBLocation),
    "sqlite://": ("sqlite:///a.sqlite", SQLiteLocation),
    "postgresql://": ("postgresql://me@host/db", PostgresLocation),
    "postgres://": ("postgres://me@host/db", PostgresLocation),
    "memory:": ("memory:", MemoryLocation),
}
"""What the table says in names, said in types."""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.sqlite", SQLiteLocation),
        ("a.SQLite", SQLiteLocation),
        ("a.sqlite3", SQLiteLocation),
        ("a.db", SQLiteLocation),
        ("a.b.sqlite", SQLiteLocation),
        ("a.duckdb", DuckDBLocation),
        ("a", DuckDBLocation),
        (".sqlite", DuckDBLocation),
        ("sqlite", DuckDBLocation),
        ("a.sqlite.old", DuckDBLocation),
    ],
)
def test_the_ending_of_a_new_file_says_what_it_becomes(
    name: str, kind: type[StoreLocation], here: Path
) -> None:
    for where in (name, Path(name), here / name, f"{here}/{name}"):
        assert type(locate_store(where)) is kind
    assert filled(open_store(name)) == 2
    assert type(locate_store(name)) is kind
    assert filled(open_store(name)) == 4
    assert verify(name).events == 4


@pytest.mark.parametrize("name", ["a.sqlite", "a.db", "a.duckdb", "a"])
@pytest.mark.parametrize("scheme", ["duckdb", "sqlite"])
def test_an_existing_file_is_what_it_is_whatever_its_name(
    scheme: str, name: str, here: Path
) -> None:
    """Earlier versions made DuckDB files of any name."""
    url = f"{scheme}:///{name}"
    kind = type(locate_store(url))
    assert filled(open_store(url)) == 2
    (here / "link.db").symlink_to(name)
    for where in (name, Path(name), "link.db", here / name):
        assert type(locate_store(where)) is kind
        assert verify(where).events == 2
    with closing(open_store(name)) as held:
        assert type(locate_store(name)) is kind, "it is in use"
        assert held.append(T, many(2), expected_version=2) == 4
    with look(name) as (seen, _):
        assert seen.head(T) == 4
    other = {"duckdb": "sqlite", "sqlite": "duckdb"}[scheme]
    with pytest.raises(MisuseError, match=f"write {url.replace(name, str(here / name))}"):
        open_store(f"{other}:///{name}")


def test_asking_what_a_file_is_leaves_the_locks_of_who_has_it_open(here: Path) -> None:
    """Whoever opens and closes a file in the process that has locked it drops the lock."""
    del here
    for where in ("a.sqlite", "a.duckdb"):
        with closing(open_store(where)) as store:
            before = locks()
            for _ in range(3):
                locate_store(where)
            assert locks() == before
            store.append(T, many(1), expected_version=0)


def locks() -> int:
    """How many file locks this process holds, as the system counts them."""
    table = Path("/proc/locks")
    lines = table.read_text(encoding="ascii").splitlines() if table.exists() else []
    return sum(f" {os.getpid()} " in line for line in lines)


def test_every_row_of_the_table_leads_to_a_location() -> None:
    assert set(KINDS) == set(SCHEMES)
    for where, kind in KINDS.values():
        assert type(locate_store(where)) is kind


@pytest.mark.parametrize("scheme", ["duckdb", "sqlite"])
def test_a_location_knows_whether_there_is_a_store_and_makes_none(scheme: str, here: Path) -> None:
    place = locate_store(f"{scheme}:///a.{scheme}")
    assert (str(place), place.exists()) == (f"a.{scheme}", False)
    assert list(here.iterdir()) == []
    place.open().close()
    assert place.exists()
    place.remove()
    assert list(here.iterdir()) == []
    assert not locate_store("memory:").exists()


def test_a_server_knows_whether_it_has_a_store_and_keeps_it(url: str) -> None:
    place = locate_store(url)
    assert str(place).startswith("postgresql://postgres@")
    assert not place.exists()
    assert filled(place.open()) == 2
    place.remove()
    assert place.exists(), "others may use the tables by now"


def test_a_file_that_others_have_open_is_not_taken_away(here: Path) -> None:
    place = locate_store("sqlite:///a.sqlite")
    with closing(place.open()):
        place.remove()
        assert place.exists()
    place.remove()
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("where", ["folder", "pipe", "text", "text/a.duckdb", "nowhere/a.duckdb"])
def test_what_is_there_stays_when_no_store_can_be_reserved_in_its_place(
    where: str, here: Path
) -> None:
    import os

    (here / "folder").mkdir()
    (here / "text").write_text("hello, this is no database at all")
    os.mkfifo(here / "pipe")
    before = sorted(here.iterdir())
    with pytest.raises(MisuseError), reserve_store(locate_store(where), T):
        raise AssertionError
    assert sorted(here.iterdir()) == before


def test_a_store_that_was_made_for_nothing_goes_again_and_one_with_content_stays(
    here: Path,
) -> None:
    place = locate_store("a.duckdb")
    with pytest.raises(KeyError), reserve_store(place, T):
        raise KeyError
    assert list(here.iterdir()) == []
    with reserve_store(place, T) as store:
        store.append(T, many(1), expected_version=0)
    said = "duckdb already has a timeline 'my talk'"
    with pytest.raises(MisuseError, match=said), reserve_store(place, T):
        raise AssertionError
    assert place.exists()


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The system takes no permission from what is made."""
    before = os.umask(0)
    yield
    os.umask(before)


def permissions(folder: Path) -> set[int]:
    """The permissions of all files, but not of those in a folder that nobody else can enter."""
    entries = [
        entry for entry in folder.iterdir() if entry.is_file() or entry.stat().st_mode & 0o077
    ]
    own = {entry.stat().st_mode & 0o777 for entry in entries if entry.is_file()}
    return own.union(*(permissions(entry) for entry in entries if entry.is_dir()))


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("name", ["a.duckdb", "a.sqlite"])
def test_the_files_of_a_store_are_their_owners_alone_and_then_as_the_owner_wants(
    name: str, here: Path
) -> None:
    """A log holds what anybody has said."""
    for mode in (0o600, 0o660):
        for _ in range(2):
            with closing(cast("DuckDBStore", open_store(name))) as store:
                assert permissions(here) == {mode}
                head = store.head(T)
                for each in many(3, first=head + 1):
                    store.append(T, [each], expected_version=store.head(T))
                    assert permissions(here) == {mode}
                store.append(U, many(2), expected_version=0)
                store.remove(U)
                assert permissions(here) == {mode}
            assert permissions(here) == {mode}
        for path in here.iterdir():
            path.chmod(0o660)
