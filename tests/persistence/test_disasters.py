"""After a disaster, `verify` or the opening of the store finds it, or nothing is lost.

Rows are changed by hand, and files are swapped, cut or copied without what belongs to them, in every store on disk.  A
test fails if a store is called sound while an event of it is missing or another.
"""
# ruff: noqa: S608 -- statements of these tests

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import duckdb
import psycopg
import pytest

from blocks import DamagedStoreError, FoldlineError, TimelineId
from persistence import EventStore, open_store, repair, verify
from tests._table import for_each
from tests.persistence.contract import T, U, compacted, forked, many, prompt

V, W = TimelineId("a third talk"), TimelineId("a fourth talk")
KINDS: Final = ("duckdb", "sqlite", "postgres")
Content: TypeAlias = Mapping[str, list[tuple[int, bytes]]]


@attrs.frozen
class Disk:
    """A store on disk, which nobody has open."""

    kind: str
    url: str

    @property
    def path(self) -> Path:
        return Path(self.url.partition(":///")[2])

    def asked(self, *statements: str) -> None:
        """Run statements of the database, in which `{t}`, `{u}`, `{v}` stand for the keys of timelines, and `{w}` for a key that
        is free."""
        for statement in statements:
            with self._cursor() as run:
                run(self._filled(statement))

    def _cursor(self) -> Any:
        match self.kind:
            case "postgres":
                return _running(psycopg.connect(self.url, autocommit=True))
            case "sqlite":
                return _running(sqlite3.connect(self.path, isolation_level=None))
            case _:
                return _running(duckdb.connect(str(self.path)))

    def _filled(self, statement: str) -> str:
        keys: dict[str, object] = {"t": f"'{T}'", "u": f"'{U}'", "v": f"'{V}'", "w": "'another'"}
        if self.kind == "duckdb":  # a number stands for the name
            keys = {"t": 1, "u": 2, "v": 3, "w": 99}
        return statement.format(**keys)

    def content(self) -> Content:
        with closing(open_store(self.url)) as store:
            return content(store)


def _running(connection: Any) -> Any:
    return closing(_Runner(connection))


@attrs.frozen
class _Runner:
    connection: Any

    def __call__(self, statement: str) -> None:
        self.connection.execute(statement)

    def close(self) -> None:
        self.connection.close()


def content(store: EventStore) -> Content:
    return {
        info.id: [*store.read_bytes(info.id, after=store.kept(info.id).forgotten)]
        for info in store.list()
    }


def fill(store: EventStore, folder: Path) -> None:
    store.append(T, many(20), expected_version=0)
    store.append(U, [*many(9), compacted("c", cut=5)], expected_version=0)
    store.append(V, [*many(12), prompt("x" * 20_000), compacted("d", cut=8)], expected_version=0)
    store.fork(T, W, forked(T, 15), at=15)
    store.trim(U, 4)
    store.trim(V, 5, archive=folder)
    store.append(V, many(4, first=20), expected_version=14)
    store.append(T, many(4, first=21), expected_version=20)


Make: TypeAlias = Callable[[], Disk]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes one more store, each the same."""

    def filled(url: str) -> Disk:
        with closing(open_store(url)) as store:
            fill(store, tmp_path)
        return Disk(request.param, url)

    if request.param == "postgres":
        return lambda: filled(request.getfixturevalue("postgres").new_url())
    file, numbers = filled(f"{request.param}:///{tmp_path}/made").path, count()

    def copied() -> Disk:
        copy = tmp_path / f"copy {next(numbers)}"
        shutil.copyfile(file, copy)
        return Disk(request.param, f"{request.param}:///{copy}")

    return copied


@pytest.fixture
def disk(make: Make) -> Disk:
    return make()


def problems(where: str, expect: str | None = None) -> list[str]:
    try:
        return [problem.what for problem in verify(where, expect=expect).problems]
    except FoldlineError as error:
        return [str(error)]


NEWEST: Final = "(SELECT max(seq) FROM events WHERE timeline = {u})"
SWAP: Final = (
    "UPDATE events SET {column} = CASE seq WHEN 9 THEN (SELECT {column} FROM events WHERE timeline = {{t}} AND seq = 10)"
    " ELSE (SELECT {column} FROM events WHERE timeline = {{t}} AND seq = 9) END"
    " WHERE timeline = {{t}} AND seq IN (9, 10)"
)
RENAMED: Final = "UPDATE {table} SET timeline = {{w}} WHERE timeline = {{v}}"
DISASTERS: Final = {
    "the newest events of a timeline are cut": (
        f"DELETE FROM events WHERE timeline = {{u}} AND seq > {NEWEST} - 2",
    ),
    "the newest event is cut": (f"DELETE FROM events WHERE timeline = {{u}} AND seq = {NEWEST}",),
    "all but the first are cut": ("DELETE FROM events WHERE timeline = {t} AND seq > 1",),
    "a timeline is lost": ("DELETE FROM events WHERE timeline = {t}",),
    "a timeline is lost with its head": (
        "DELETE FROM events WHERE timeline = {t}",
        "DELETE FROM heads WHERE timeline = {t}",
    ),
    "all events are lost": ("DELETE FROM events",),
    "all events and heads are lost": ("DELETE FROM events", "DELETE FROM heads"),
    "all heads are lost": ("DELETE FROM heads",),
    "two payloads are swapped": (SWAP.format(column="payload"),),
    "two payloads are swapped with their checksums": (
        SWAP.format(column="payload"),
        SWAP.format(column="link"),
    ),
    "two rows are swapped": (
        "UPDATE events SET seq = 1000 WHERE timeline = {t} AND seq = 9",
        "UPDATE events SET seq = 9 WHERE timeline = {t} AND seq = 10",
        "UPDATE events SET seq = 10 WHERE timeline = {t} AND seq = 1000",
    ),
    "rows of two timelines are swapped": (
        "UPDATE events SET timeline = {w} WHERE timeline = {t} AND seq = 9",
        "UPDATE events SET timeline = {t} WHERE timeline = {v} AND seq = 9",
        "UPDATE events SET timeline = {v} WHERE timeline = {w}",
    ),
    "a row is moved to the end of another timeline": (
        "UPDATE events SET timeline = {t}, seq = 25 WHERE timeline = {v} AND seq = 18",
    ),
    "a timeline is renamed in one table": (RENAMED.format(table="events"),),
    "a timeline is renamed in two": (RENAMED.format(table="events"), RENAMED.format(table="heads")),
    "checksums are cleared": ("UPDATE events SET link = 0 WHERE timeline = {t}",),
    "checksums of one event are cleared": (
        "UPDATE events SET link = 0 WHERE timeline = {t} AND seq = 9",
    ),
    # Five more.
    "a timeline is cut below its compaction": (
        "DELETE FROM events WHERE timeline = {v} AND seq > 10",
    ),
    "the rest of the head is the only thing that is left": (
        "DELETE FROM events WHERE timeline = {v}",
        "DELETE FROM trims WHERE timeline = {v}",
    ),
    "an event in the middle goes, and the later ones move up": (
        "DELETE FROM events WHERE timeline = {t} AND seq = 9",
        "UPDATE events SET seq = -(seq - 1) WHERE timeline = {t} AND seq > 9",
        "UPDATE events SET seq = -seq WHERE timeline = {t} AND seq < 0",
    ),
    "one text becomes another of the same length, everywhere": (
        "UPDATE events SET payload = {altered}",
    ),
    "the anchor of what was forgotten is another": ("{anchor}",),
    "what was removed is no longer known": ("DELETE FROM trims",),
    "the newest events take the place of older ones": (
        "DELETE FROM events WHERE timeline = {t} AND seq IN (3, 4)",
        "UPDATE events SET seq = seq - 20 WHERE timeline = {t} AND seq IN (23, 24)",
    ),
}
ALTERED: Final = {
    "duckdb": "replace(payload, 'text 7', 'texu 7')",
    "sqlite": "CAST(replace(CAST(payload AS TEXT), 'text 7', 'texu 7') AS BLOB)",
    "postgres": "convert_to(replace(convert_from(payload, 'UTF8'), 'text 7', 'texu 7'), 'UTF8')",
}

MANIFEST: Final = "UPDATE trims SET manifest = {} WHERE timeline = {{u}}"
ANCHOR: Final = {
    "duckdb": "UPDATE trims SET anchor = anchor + 1 WHERE timeline = {u}",
    "sqlite": MANIFEST.format(
        "CAST(replace(CAST(manifest AS TEXT), '\"anchor\":', '\"anchor\":1') AS BLOB)"
    ),
    "postgres": MANIFEST.format(
        "convert_to(replace(convert_from(manifest, 'UTF8'), '\"anchor\":', '\"anchor\":1'), 'UTF8')"
    ),
}


@for_each("name", DISASTERS)
def test_rows_that_were_changed_by_hand_are_found_or_nothing_is_lost(make: Make, name: str) -> None:
    disk = make()
    sound = disk.content()
    assert problems(disk.url) == []
    for each in DISASTERS[name]:
        statement = each.replace("{altered}", ALTERED[disk.kind])
        disk.asked(statement.replace("{anchor}", ANCHOR[disk.kind]))
    if problems(disk.url):
        return
    assert disk.content() == sound


def test_whoever_opens_a_timeline_whose_end_is_cut_is_told_so(disk: Disk) -> None:
    disk.asked("DELETE FROM events WHERE timeline = {t} AND seq > 22")
    told = pytest.raises(DamagedStoreError, match=r"events 23 to 24.*missing|repair` save")
    with told, closing(open_store(disk.url)) as store:
        store.load_window(T)


def test_repair_saves_what_is_whole_and_says_what_is_not(disk: Disk, tmp_path: Path) -> None:
    sound = disk.content()
    disk.asked(
        "DELETE FROM events WHERE timeline = {t} AND seq > 22",
        "DELETE FROM events WHERE timeline = {u}",
    )
    saved = Disk("sqlite", f"sqlite:///{tmp_path}/saved.sqlite")
    lost = " ".join(repair(disk.url, saved.url).lost)
    assert f"{T}: events 23 to 24" in lost
    assert f"{U}: events 4 to 10" in lost
    assert problems(saved.url) == []
    there = saved.content()
    assert there[T] == sound[T][:22]
    assert (there[V], there[W]) == (sound[V], sound[W])


# ---------------------------------------------------------------- whole files


@pytest.fixture(params=["duckdb", "sqlite"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    """A file that was written in two sessions."""
    place = Disk(request.param, f"{request.param}:///{tmp_path}/talks.{request.param}")
    with closing(open_store(place.url)) as store:
        store.append(T, many(5), expected_version=0)
    return place


def beside(path: Path) -> Iterator[Path]:
    """The file, and what is beside it."""
    return (each for each in path.parent.iterdir() if each.name.startswith(path.name))


def test_a_copy_of_an_open_file_is_whole_or_refused_whatever_is_copied(
    file: Disk, tmp_path: Path
) -> None:
    with closing(open_store(file.url)) as store:
        store.append(T, many(5, first=6), expected_version=5)
        files = [*beside(file.path)]
        for number in range(2 ** len(files)):
            folder = tmp_path / f"{number}"
            folder.mkdir()
            for place, each in enumerate(files):
                if number & 1 << place:
                    shutil.copyfile(each, folder / each.name)
            copy = Disk(file.kind, f"{file.kind}:///{folder}/{file.path.name}")
            if copy.path.exists() and not problems(copy.url):
                assert len(copy.content()[T]) == 10, sorted(each.name for each in beside(copy.path))


def test_a_copy_of_a_closed_file_is_whole(file: Disk, tmp_path: Path) -> None:
    copy = Disk(file.kind, f"{file.kind}:///{tmp_path}/copy")
    shutil.copyfile(file.path, copy.path)
    assert problems(copy.url) == []
    assert len(copy.content()[T]) == 5


def test_what_a_copy_without_its_log_has_can_be_saved(file: Disk, tmp_path: Path) -> None:
    copy, saved = tmp_path / "copy", Disk(file.kind, f"{file.kind}:///{tmp_path}/saved")
    with closing(open_store(file.url)) as store:
        store.append(T, many(5, first=6), expected_version=5)
        shutil.copyfile(file.path, copy)
    report = repair(f"{file.kind}:///{copy}", saved.url)
    assert report.events == 5
    assert "log" in report.lost[0] or "wal" in report.lost[0]
    assert problems(saved.url) == []


# ---------------------------------------------------------------- what only a receipt can tell


def test_a_receipt_tells_an_older_copy_of_everything(disk: Disk, tmp_path: Path) -> None:
    with closing(open_store(disk.url)) as store:
        with closing(open_store(f"sqlite:///{tmp_path}/older.sqlite")) as older:
            store.copy_to(older)
        store.append(T, many(1, first=30), expected_version=24)
        told = store.receipt()
    assert problems(disk.url, told) == []
    [problem] = problems(f"sqlite:///{tmp_path}/older.sqlite", told)
    assert "the receipt has 25 events, and there are 24" in problem


def test_a_receipt_holds_for_a_store_that_has_grown_and_for_copies(disk: Disk) -> None:
    with closing(open_store(disk.url)) as store:
        told = store.receipt()
        store.append(T, many(3, first=40), expected_version=24)
        store.rewrite(T, {7: prompt("7", at=7.0)})
        store.trim(V, 8)
        with closing(open_store("memory:")) as copy:
            store.copy_to(copy)
            assert verify(copy, expect=told).ok
    assert problems(disk.url, told) == []


def test_a_receipt_tells_a_history_that_went_another_way(disk: Disk) -> None:
    with closing(open_store(disk.url)) as store:
        told = store.receipt()
        store.remove(T)
        store.append(T, many(40, first=100), expected_version=0)
    assert ["are not those of the receipt" in what for what in problems(disk.url, told)] == [True]


Change: TypeAlias = Callable[[EventStore, Path], object]
CHANGES: Final[dict[str, Change]] = {
    "a fork": lambda store, _: store.fork(V, TimelineId("fork"), forked(V, 10), at=10),
    "a fork in an archive": lambda store, _: store.fork(V, TimelineId("fork"), forked(V, 3), at=3),
    "a fork of a fork": lambda store, _: store.fork(W, TimelineId("fork"), forked(W, 16), at=16),
    "a rewrite": lambda store, _: store.rewrite(
        V, {9: prompt("9", at=9.0), 13: prompt("x" * 20_000)}
    ),
    "a rewrite in an archive": lambda store, _: store.rewrite(V, {2: prompt("2", at=2.0)}),
    "an archive": lambda store, folder: store.trim(V, 8, archive=folder),
    "forgetting an archive": lambda store, _: store.trim(V, 8),
    "a removal": lambda store, _: store.remove(V),
    "a new timeline of an old name": lambda store, _: (
        store.remove(T),
        store.append(T, many(2), expected_version=0),
    ),
    "erasing": lambda store, _: store.erase(),
}


@for_each("name", CHANGES)
def test_what_the_store_itself_changes_is_no_damage(make: Make, name: str, tmp_path: Path) -> None:
    disk = make()
    with closing(open_store(disk.url)) as store:
        CHANGES[name](store, tmp_path)
        for info in store.list():
            store.append(info.id, [prompt("more")], expected_version=info.version)
            assert store.load_window(info.id).version == info.version + 1
        assert verify(store).problems == ()
    assert problems(disk.url) == []
