"""Heads are read when they are asked for, and are those of the log whatever was done to it."""

import gc
import tempfile
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from time import process_time

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import DamagedStoreError, Event, TimelineId
from persistence import DuckDBStore, MemoryStore, verify
from persistence.duckdb import _writer
from persistence.duckdb._writer import StoredTimeline, Writer
from tests._sizes import PATIENCE
from tests.persistence.contract import T, U, compacted, expanded, forked, many, prompt

NAMES = tuple(TimelineId(f"talk {n}") for n in range(4))
FEW, MANY = 30, 30_000
MORE_NAMES = "INSERT INTO timelines SELECT n, 'talk ' || n FROM range(2, ? + 1) r(n)"
MORE_HEADS = "INSERT INTO heads SELECT n, version, chain FROM heads, range(2, ? + 1) r(n)"
MORE_EVENTS = (
    "INSERT INTO events SELECT n, seq, ts, payload, link FROM events, range(2, ? + 1) r(n)"
)


# ---------------------------------------------------------------- whatever was done


class Both:
    """A DuckDB file, which keeps few heads, and the same in memory, to compare it with."""

    def __init__(self, path: Path) -> None:
        self.path, self.file, self.memory = path, DuckDBStore(path), MemoryStore()
        self._events = 0

    def append(self, name: TimelineId, size: int, *, is_interrupted: bool) -> None:
        events = [self._event(name, place) for place in range(size)]
        version = self.memory.append(name, events, expected_version=self.memory.head(name))
        before = version - size
        with pytest.MonkeyPatch.context() as patch:
            if is_interrupted:
                patch.setattr(Writer, "_publish", _interrupted)
                with pytest.raises(KeyboardInterrupt):
                    self.file.append(name, events, expected_version=before)
        assert self.file.append(name, events, expected_version=before) == version

    def _event(self, name: TimelineId, place: int) -> Event:
        self._events += 1
        version, unique = self.memory.head(name) + place + 1, str(self._events)
        if self._events % 3 or version < 3:
            return prompt(unique, at=float(self._events))
        if self._events % 2:
            return compacted(unique, cut=version - 1)
        return expanded(unique, version - 1)

    def fork(self, source: TimelineId, target: TimelineId) -> None:
        at = self.memory.head(source) // 2 + 1
        if self.memory.head(source) and not self.memory.head(target):
            for store in (self.file, self.memory):
                store.fork(source, target, forked(source, at), at=at)

    def reopen(self) -> None:
        self.file.close()
        self.file = DuckDBStore(self.path)

    def die(self) -> None:
        """As if the process had ended: the write-ahead log stays as it is."""
        with pytest.warns(ResourceWarning):
            self.file._dropped()
        self.file = DuckDBStore(self.path)

    def compare(self) -> None:
        for name in NAMES:
            assert self.file.head(name) == self.memory.head(name)
            assert self.file.load_window(name) == self.memory.load_window(name)
        assert self.file.list() == self.memory.list()
        assert self.file._writer.events_total == sum(map(self.memory.head, NAMES))


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def appending(name: TimelineId, size: int, is_interrupted: object) -> Callable[[Both], None]:
    return lambda both: both.append(name, size, is_interrupted=bool(is_interrupted))


def forking(source: TimelineId, target: TimelineId) -> Callable[[Both], None]:
    return lambda both: both.fork(source, target)


names = st.sampled_from(NAMES)
steps = st.one_of(
    st.builds(appending, names, st.integers(1, 4), st.sampled_from((False, False, True))),
    st.builds(forking, names, names),
    st.sampled_from((Both.reopen, Both.die)),
)


@settings(max_examples=15)
@given(st.lists(steps, max_size=10), st.integers(1, 3))
def test_heads_are_those_of_the_log(done: list[Callable[[Both], None]], held: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(_writer, "HELD_MAX", held)
        both = Both(Path(folder) / "talks.duckdb")
        for step in done:
            step(both)
            both.compare()
            assert len(both.file._writer.heads._held) <= held
        assert verify(both.file).ok
        both.file.close()


def test_a_head_that_was_read_before_a_commit_is_not_kept_after_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that asked the file just before a commit must not put the old head back."""
    write, publish, read = Writer._write, Writer._publish, _writer._read
    has_read, published = Signal(), Signal()

    def slow(
        cursor: duckdb.DuckDBPyConnection, names: list[TimelineId]
    ) -> dict[TimelineId, StoredTimeline]:
        found = read(cursor, names)
        has_read.set()
        published.wait(0.3)  # in vain if the commit waits for the reader, as it may
        return found

    def overtaken(writer: Writer, *given: object) -> None:
        writer.heads.forget()
        monkeypatch.setattr(_writer, "_read", slow)
        reader.start()
        assert has_read.wait(PATIENCE)
        _called(write, writer, *given)

    def told(writer: Writer, *given: object) -> None:
        _called(publish, writer, *given)
        published.set()

    with DuckDBStore(path) as store:
        store.append(T, many(1), expected_version=0)
        reader = Thread(target=store.head, args=(T,))
        monkeypatch.setattr(Writer, "_write", overtaken)
        monkeypatch.setattr(Writer, "_publish", told)
        store.append(T, many(1, first=2), expected_version=1)
        reader.join(PATIENCE)
        assert store.head(T) == 2


def _called(function: Callable[..., None], *given: object) -> None:
    function(*given)


def test_writers_and_readers_of_more_timelines_than_are_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_writer, "HELD_MAX", 2)
    wrong: list[str] = []

    def talk(name: TimelineId) -> None:
        for version in range(30):
            store.append(name, [prompt(str(version))], expected_version=version)
            for other in NAMES:
                found = store.head(other)
                if other == name and found != version + 1:
                    wrong.append(f"{name}: {found} instead of {version + 1}")

    with DuckDBStore(path) as store:
        threads = [Thread(target=talk, args=(name,)) for name in NAMES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert not wrong
        assert [info.version for info in store.list()] == [30] * len(NAMES)
        assert verify(store).ok


def test_heads_that_cannot_be_read_are_an_error_and_nothing_is_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise duckdb.IOException("Corrupt database file")

    with DuckDBStore(path) as store:
        store.append(T, many(1), expected_version=0)
        store._writer.heads.forget()
        with monkeypatch.context() as patch:
            patch.setattr(_writer, "_read", broken)
            for use in (
                lambda: store.append(T, many(1, first=2), expected_version=1),
                lambda: store.fork(T, U, forked(T, 1), at=1),
                lambda: store.head(T),
                lambda: store.load_window(T),
            ):
                with pytest.raises(DamagedStoreError, match="restore it from a backup"):
                    use()
        assert store.append(T, many(1, first=2), expected_version=1) == 2
        assert [info.id for info in store.list()] == [T]


def test_two_appends_to_a_new_timeline_in_one_commit_give_it_one_number(path: Path) -> None:
    with DuckDBStore(path) as store:
        threads = [
            Thread(target=store.append, args=(name, many(1)), kwargs={"expected_version": 0})
            for name in (T, U, T, U, T, U)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert {info.id: info.version for info in store.list()} == {T: 1, U: 1}
        assert verify(store).ok


# ---------------------------------------------------------------- opening asks for none


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Path]:
    """Files of few and of many timelines, two events each."""
    folder = tmp_path_factory.mktemp("many")
    return {number: filled(folder / f"{number}.duckdb", number) for number in (FEW, MANY)}


def filled(path: Path, timelines: int) -> Path:
    with DuckDBStore(path) as store:
        store.append(TimelineId("talk 1"), many(2), expected_version=0)
    with duckdb.connect() as database:
        database.execute(f"ATTACH '{path}' AS store (ROW_GROUP_SIZE 2048)")
        database.execute("USE store")
        for statement in (MORE_NAMES, MORE_EVENTS, MORE_HEADS):
            database.execute(statement, [timelines])
        database.execute("UPDATE fold SET events = 2 * $1, timelines = $1", [timelines])
    return path


def opened(path: Path) -> float:
    begin = process_time()
    store = DuckDBStore(path)
    took = process_time() - begin
    store.close()
    return took


def peak_of_opening(path: Path) -> int:
    """Bytes that Python had at once."""
    gc.collect()
    tracemalloc.start()
    try:
        opened(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_opening_takes_no_memory_for_timelines(paths: Mapping[int, Path]) -> None:
    opened(paths[FEW])  # what is imported and compiled once
    assert peak_of_opening(paths[MANY]) <= 1.2 * peak_of_opening(paths[FEW]) + 100_000


def test_opening_takes_no_time_for_timelines(paths: Mapping[int, Path]) -> None:
    few, much = (min(opened(paths[number]) for _ in range(5)) for number in (FEW, MANY))
    assert much <= 2.5 * few


def test_every_timeline_of_many_is_there(paths: Mapping[int, Path]) -> None:
    with DuckDBStore(paths[MANY]) as store:
        last = TimelineId(f"talk {MANY}")
        assert store.load_window(last).version == 2
        assert store.head(TimelineId("talk 0")) == 0
        assert store.append(last, many(1, first=3), expected_version=2) == 3
        assert store.append(TimelineId("new"), many(1), expected_version=0) == 1
        found = store.list()
        assert len(found) == MANY + 1
        assert (found[-1].id, found[-1].version) == ("new", 1)
