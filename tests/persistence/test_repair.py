"""What can be read of a damaged store is saved; what cannot is said; the damaged one stays as it is."""

import shutil
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import DamagedStoreError, MisuseError, OpaqueEvent, StoreLockedError, TimelineId
from persistence import (
    ArtifactDescription,
    DuckDBStore,
    MemoryStore,
    Requester,
    copy_store,
    open_store,
    repair,
    verify,
)
from persistence._verify import _saved
from tests.persistence.contract import T, U, compacted, expanded, forked, many
from tests.strategies import Play, settings, steps
from timeline import Timeline

READER = Requester("host")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "talks.duckdb"
    with DuckDBStore(path) as store:
        store.append(T, [*many(5), compacted("c", cut=3), expanded("x", 6)], expected_version=0)
        store.fork(T, U, forked(T, 6), at=6)
        with store.artifacts(clock=lambda: 1.0) as artifacts:
            for content in (b"one", b"two" * 700_000):
                artifacts.put(content, ArtifactDescription(timeline=T))
    return path


def with_a_log(path: Path, appends: int = 30) -> Path:
    """A store that was killed: its newest events are in the write-ahead log."""
    folder = path.parent / "killed"
    folder.mkdir()
    with DuckDBStore(path) as store:
        for n in range(appends):
            store.append(T, many(1, first=8 + n), expected_version=7 + n)
        for name in (path.name, f"{path.name}.wal", f"{path.name}.lock"):
            shutil.copy(path.parent / name, folder)
    return folder / path.name


def lying(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".lock"}


def test_a_sound_store_is_saved_whole(path: Path, tmp_path: Path) -> None:
    report = repair(path, tmp_path / "new.duckdb")
    assert (report.timelines, report.events, report.artifacts, report.lost) == (2, 14, 2, ())
    with DuckDBStore(path) as old, open_store(tmp_path / "new.duckdb") as new:
        for name in (T, U):
            assert new.read_bytes(name) == old.read_bytes(name)
            assert new.load_window(name) == old.load_window(name)
        kept = new.artifacts(clock=lambda: 2.0).list(READER)
        assert [old.artifacts().read(a.id, READER) for a in kept] == [
            new.artifacts().read(a.id, READER) for a in kept
        ]


@pytest.mark.parametrize("seed", range(6))
def test_a_write_ahead_log_that_is_damaged_anywhere_gives_what_comes_before(
    path: Path, tmp_path: Path, seed: int
) -> None:
    killed = with_a_log(path)
    wal = killed.with_name(killed.name + ".wal")
    with wal.open("r+b") as file:
        file.seek(Random(seed).randrange(wal.stat().st_size - 10))  # noqa: S311 -- a place
        file.write(b"\xff" * 10)
    before = lying(killed.parent)
    report = repair(killed, tmp_path / "new.duckdb")
    assert lying(killed.parent) == before
    assert 14 <= report.events < 44
    assert (report.timelines, report.artifacts) == (2, 2)
    [lost] = report.lost
    assert f"the copy holds {report.events} events but 44 were acknowledged" in lost
    assert verify(tmp_path / "new.duckdb").ok


def test_a_log_that_is_missing_is_said(path: Path, tmp_path: Path) -> None:
    killed = with_a_log(path)
    killed.with_name(killed.name + ".wal").unlink()
    report = repair(killed, tmp_path / "new.duckdb")
    assert report.events == 14
    assert report.lost == ("the copy holds 14 events but 44 were acknowledged",)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE events SET payload = '[1]' WHERE seq IN (4, 5) AND timeline = 1",
        "DELETE FROM events WHERE seq IN (4, 5) AND timeline = 1",
    ],
)
def test_what_cannot_be_read_leaves_the_events_around_it_where_they_are(
    path: Path, tmp_path: Path, damage: str
) -> None:
    with DuckDBStore(path) as store:
        sound = dict(store.read(T))
    with duckdb.connect(str(path)) as connection:
        connection.execute(damage)
    report = repair(path, tmp_path / "new.duckdb")
    assert (report.events, report.timelines) == (5 + 7, 2)
    assert any(f"{T}: events 4 to 5: " in lost for lost in report.lost)
    assert verify(tmp_path / "new.duckdb").ok
    with DuckDBStore(tmp_path / "new.duckdb") as new:
        assert (new.head(T), new.head(U)) == (7, 7)
        for version, event in new.read(T):
            if version in (4, 5):
                assert isinstance(event, OpaqueEvent)
            else:
                assert event == sound[version]
        assert Timeline.open(str(T), store=new, window=20_000).render().messages


class Broken(MemoryStore):
    """A store of which some events of every timeline cannot be read."""

    unread: Collection[int] = ()

    def read_bytes(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[tuple[int, bytes]]:
        page = super().read_bytes(timeline_id, after=after, limit=limit)
        if any(version in self.unread for version, _ in page):
            raise DamagedStoreError("a bad page")
        return page


@given(steps(), settings(), st.sets(st.integers(1, 60)))
def test_a_log_with_holes_is_rendered_to_a_request_that_a_provider_takes(
    all_steps: list[Any], options: dict[str, Any], unread: set[int]
) -> None:
    play = Play(options).run([*all_steps, ("render",)])
    broken, saved = Broken(), MemoryStore()
    copy_store(play.store, broken)
    sound = {i.id: broken.read_bytes(i.id, limit=10_000) for i in broken.list()}
    broken.unread = unread
    report = _saved(broken, saved, "")
    broken.unread = ()
    assert verify(saved).ok
    for name, log in sound.items():
        gone, head = saved.kept(name).forgotten, saved.head(name)
        assert {v for v, _ in log if v > head or v <= gone} <= unread
        for there, (version, data) in zip(
            saved.read_bytes(name, after=gone, limit=10_000), log[gone:], strict=False
        ):
            assert there == (version, data) or version in unread
    assert report.events == sum(v not in unread for log in sound.values() for v, _ in log)
    for info in saved.list():
        assert play.open(str(info.id), saved).render().violations == ()


def test_the_end_of_a_log_that_cannot_be_read_is_cut_off(path: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE events SET payload = '[1]' WHERE seq > 5 AND timeline = 1")
    report = repair(path, tmp_path / "new.duckdb")
    assert any(f"{T}: events 6 to 7: " in lost for lost in report.lost)
    with DuckDBStore(tmp_path / "new.duckdb") as new:
        assert (new.head(T), new.head(U)) == (5, 7)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_of_a_timeline_without_one_of_its_archives_all_else_is_saved(
    tmp_path: Path, kind: str
) -> None:
    where, saved = f"{kind}:///{tmp_path}/old.{kind}", f"{kind}:///{tmp_path}/new.{kind}"
    with closing(open_store(where)) as store:
        log = [*many(9), compacted("c", cut=9), *many(3, first=11)]
        store.append(T, log, expected_version=0)
        for before in (4, 6, 9):
            store.trim(T, before, archive=tmp_path)
        sound, window = dict(store.read(T)), store.load_window(T)
        first, second, _ = store.kept(T).archives
    Path(second.file).unlink()
    report = repair(where, saved)
    assert report.events == 11
    [lost] = report.lost
    assert f"{T}: events 4 to 5: archive {second.file} " in lost
    with closing(open_store(saved)) as store:
        found = dict(store.read(T))
        assert {v for v in sound if found[v] != sound[v]} == {4, 5}
        assert store.load_window(T) == window
    assert verify(saved).ok
    Path(first.file).unlink()
    Path(saved.partition(":///")[2]).unlink()
    assert repair(where, saved).events == 8
    with closing(open_store(saved)) as store:
        assert store.load_window(T) == window
        assert store.kept(T).forgotten == 5, "what is lost at the beginning is forgotten"
    assert verify(saved).ok


def test_an_artifact_that_is_damaged_is_left_out(path: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM artifact_pieces WHERE part = 7")
    report = repair(path, tmp_path / "new.duckdb")
    assert report.artifacts == 1
    [lost] = report.lost
    assert "2100000 bytes were put" in lost
    assert verify(tmp_path / "new.duckdb").ok


def test_a_file_of_which_nothing_can_be_read_leaves_nothing_behind(
    path: Path, tmp_path: Path
) -> None:
    with path.open("r+b") as file:
        file.seek(20_000)
        file.write(b"\xff" * 300)
    with pytest.raises(DamagedStoreError, match="restore it from a backup"):
        repair(path, tmp_path / "new.duckdb")
    assert not [file for file in tmp_path.iterdir() if not file.name.startswith("talks")]


def test_only_a_store_that_nobody_has_open_becomes_a_new_one(path: Path, tmp_path: Path) -> None:
    with DuckDBStore(path), pytest.raises(StoreLockedError):
        repair(path, tmp_path / "new.duckdb")
    with pytest.raises(MisuseError, match="already exists"):
        repair(path, path)
    with pytest.raises(MisuseError, match="no store"):
        repair(tmp_path / "none.duckdb", tmp_path / "new.duckdb")
    with pytest.raises(MisuseError, match="no store"):
        repair("memory:", tmp_path / "new.duckdb")
