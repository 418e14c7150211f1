"""Damaged and cut files, and a full disk: each error is ours, `verify` finds what is wrong, `repair` saves the rest."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from blocks import (
    DamagedStoreError,
    FoldlineError,
    LogWindow,
    MisuseError,
    Recorded,
    StoreError,
    TimelineId,
)
from persistence import ArtifactDescription, SQLiteStore, open_store, repair, verify
from persistence._verify import RepairReport
from tests._sizes import sized
from tests.persistence._full_disk import full_disk
from tests.persistence.contract import T, U, compacted, forked, many, prompt

FLIPS = sized(20, 500)
PAGES = sized(6, 500)
APPENDS = 30


def filled(path: Path) -> None:
    with SQLiteStore(path) as store:
        store.append(T, [*many(40), compacted("c", cut=30)], expected_version=0)
        store.fork(T, U, forked(T, 41), at=41)
        store.artifacts(clock=lambda: 1.0).put(b"one" * 5000, ArtifactDescription(timeline=T))


@pytest.fixture(params=["closed", "killed"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Of a sound store: one file, or the newest events are in its write-ahead log."""
    made, folder = tmp_path / "made", tmp_path / str(request.param)
    for each in (made, folder):
        each.mkdir()
    filled(made / "talks.sqlite")
    with SQLiteStore(made / "talks.sqlite") as store:
        for n in range(APPENDS):
            store.append(T, many(1, first=100 + n), expected_version=41 + n)
        if request.param == "killed":
            shutil.copytree(made, folder, dirs_exist_ok=True)
            (folder / "talks.sqlite-shm").unlink()
    if request.param == "closed":
        shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder


def newest(folder: Path) -> Path:
    """The file that holds the newest events."""
    wal = folder / "talks.sqlite-wal"
    return wal if wal.exists() else folder / "talks.sqlite"


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/talks.sqlite"


def damaged(folder: Path, number: int, place: int, *, cut: bool = False) -> Path:
    """A copy whose newest file has one bit the other way at `place`, or ends there."""
    copy = folder.with_name(f"damaged {number}")
    shutil.copytree(folder, copy)
    file = newest(copy)
    content = bytearray(file.read_bytes())
    if cut:
        del content[place:]
    else:
        content[place] ^= 1 << number % 8
    file.write_bytes(content)
    return copy


def told(folder: Path) -> list[tuple[LogWindow, Sequence[Recorded]]]:
    with open_store(url(folder)) as store:
        store.list()
        return [(store.load_window(name), store.read(name)) for name in (T, U)]


def places(folder: Path) -> list[int]:
    size, chance = newest(folder).stat().st_size, Random(7)  # noqa: S311 -- places
    return [0, 20, *(chance.randrange(size - 1) for _ in range(FLIPS))]


def test_a_bit_that_flips_anywhere_is_found_or_does_no_harm(folder: Path) -> None:
    sound = told(folder.parent / "made")
    for number, place in enumerate(places(folder)):
        copy = damaged(folder, number, place)
        file = newest(copy)
        before = file.read_bytes()
        try:
            is_ok = verify(url(copy)).ok
        except MisuseError as error:  # it does not look like a database any more
            assert place < 100, error  # noqa: PT017 -- only then
            is_ok = False
        if not is_ok:
            assert file.read_bytes() == before, "it changes nothing"
        try:
            found = told(copy)
        except FoldlineError:
            found = []
        assert not is_ok or found == sound, f"byte {place}"


def test_what_comes_before_the_damage_of_a_log_is_saved_and_the_rest_is_said(
    folder: Path, tmp_path: Path
) -> None:
    if newest(folder).name == "talks.sqlite":
        return  # it has no log
    for number, place in enumerate(places(folder)[2:12]):
        copy, new = damaged(folder, number, place), tmp_path / f"saved {number}.sqlite"
        [problem] = verify(url(copy)).problems
        assert "let `foldline repair` save what comes before" in problem.what
        report = repair(url(copy), f"sqlite:///{new}")
        assert "damaged" in report.lost[0]
        assert 0 <= report.events < 41 + 42 + APPENDS
        assert verify(f"sqlite:///{new}").ok


def test_a_log_that_ends_early_is_taken_up_to_there(folder: Path, tmp_path: Path) -> None:
    """As after a power cut in the middle of a commit; of a file itself a cut is damage."""
    size = newest(folder).stat().st_size
    for number, part in enumerate((0.3, 0.6, 0.9)):
        copy = damaged(folder, number, int(part * size), cut=True)
        if newest(copy).name == "talks.sqlite":
            assert not verify(url(copy)).ok
            with pytest.raises(DamagedStoreError, match="restore it from a backup"):
                told(copy)
        else:
            assert verify(url(copy)).ok
            report = repair(url(copy), f"sqlite:///{tmp_path}/saved {number}.sqlite")
            assert (report.lost, report.timelines) == ((), 2 if report.events else 0)


PAGE = 4096
NAMES = [TimelineId(f"talk {n}") for n in range(3)]


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A file of many pages, in each table."""
    path = tmp_path / "wide.sqlite"
    with SQLiteStore(path) as store:
        for n in range(40):
            for name in NAMES:
                batch = [prompt(f"{name} {n} {part} " + "x" * 40 * n) for part in range(3)]
                store.append(name, batch, expected_version=3 * n)
        store.append(NAMES[0], [compacted("c", cut=100)], expected_version=120)
        store.trim(NAMES[0], 50, archive=tmp_path)
        for n in range(30):
            store.artifacts().put(f"{n}".encode() * 2000, ArtifactDescription(timeline=NAMES[1]))
    return path


def lost_events(report: RepairReport) -> set[tuple[str, int]]:
    """As the report names them."""
    found = (re.match(r"(talk \d): events (\d+) to (\d+): ", lost) for lost in report.lost)
    return {
        (each[1], version)
        for each in found
        if each
        for version in range(int(each[2]), int(each[3]) + 1)
    }


def test_around_a_page_that_cannot_be_read_everything_is_saved(wide: Path, tmp_path: Path) -> None:
    with SQLiteStore(wide) as store:
        sound = {(str(n), v): data for n in NAMES for v, data in _all(store, n)}
    content, chance = wide.read_bytes(), Random(3)  # noqa: S311 -- places
    pages = len(content) // PAGE
    unread = 0
    for page in chance.sample(range(1, pages), min(PAGES, pages - 1)):
        damage = chance.randbytes(PAGE)
        bad, new = tmp_path / f"{page}.sqlite", tmp_path / f"new {page}.sqlite"
        bad.write_bytes(content[: page * PAGE] + damage + content[(page + 1) * PAGE :])
        try:
            report = repair(url_of(bad), url_of(new))
        except DamagedStoreError:  # the tables are not even named any more
            unread += 1
            continue
        assert verify(url_of(new)).ok
        with SQLiteStore(new) as store:
            saved = {(str(i.id), v): data for i in store.list() for v, data in _all(store, i.id)}
        missing = {place for place in sound if saved.get(place) != sound[place]}
        assert missing == lost_events(report), page
        assert bool(missing) <= bool(report.lost)
        assert len(missing) < 60, f"page {page}"
    assert unread <= 1


def _all(store: SQLiteStore, name: TimelineId) -> Sequence[tuple[int, bytes]]:
    return store.read_bytes(name, after=store.kept(name).forgotten)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def test_a_letter_that_is_another_is_saved_and_said(folder: Path, tmp_path: Path) -> None:
    with SQLiteStore(folder / "talks.sqlite") as store:
        [(_, payload)] = store.read_bytes(T, after=6, limit=1)
        altered = payload.replace(b'"text 7"', b'"texu 7"')
        with store._database.writing() as connection:
            connection.run(
                "UPDATE events SET payload = ? WHERE timeline = ? AND seq = 7", [altered, T]
            )
    report = repair(url(folder), url_of(tmp_path / "new.sqlite"))
    assert report.lost == (f"{T}: event 7 was altered, its checksum says; it is saved as it is",)
    with SQLiteStore(tmp_path / "new.sqlite") as store:
        assert store.read_bytes(T, after=6, limit=1) == [(7, altered)]


def test_while_the_disk_is_full_an_append_says_what_is_true(tmp_path: Path) -> None:
    path = tmp_path / "talks.sqlite"
    filled(path)
    with SQLiteStore(path) as store:
        about = ArtifactDescription(timeline=T)
        with full_disk(path.stat().st_size + 4096):
            for _ in range(3):
                with pytest.raises(StoreError, match="free disk space and repeat the call"):
                    store.append(T, [prompt("x" * 300_000)], expected_version=41)
            with pytest.raises(StoreError, match="free disk space and repeat the call"):
                store.artifacts().put(b"y" * 300_000, about)
            assert (store.head(T), len(store.read(T))) == (41, 41), "what is there can be read"
        assert store.append(T, [prompt("x" * 300_000)], expected_version=41) == 42
        assert store.artifacts().put(b"y" * 300_000, about)
        assert verify(store).ok
    report = verify(f"sqlite:///{path}")
    assert (report.ok, report.artifacts) == (True, 2)


def test_a_file_that_could_not_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    with full_disk(5_000), pytest.raises(StoreError, match="free disk space and repeat the call"):
        SQLiteStore(tmp_path / "talks.sqlite")
    assert [file.name for file in tmp_path.iterdir()] in ([], ["talks.sqlite"])
    SQLiteStore(tmp_path / "talks.sqlite").close()
    assert verify(f"sqlite:///{tmp_path}/talks.sqlite").ok


def test_a_checkpoint_that_finds_no_room_does_not_end_the_store(tmp_path: Path) -> None:
    path = tmp_path / "talks.sqlite"
    with SQLiteStore(path) as store:
        for n in range(40):
            store.append(T, [prompt(f"{n} " + "x" * 20_000)], expected_version=n)
        with full_disk(path.stat().st_size + 4096):
            store.close()
        with SQLiteStore(path) as again:
            assert again.head(T) == 40
    assert verify(f"sqlite:///{path}").ok
