"""Opening and closing: what does not come through holds no file, what is no store says so."""

import asyncio
import gc
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from threading import Event as Signal
from typing import Any

import duckdb
import pytest

from blocks import (
    ArgumentError,
    DamagedStoreError,
    EventId,
    MisuseError,
    Provenance,
    StoreError,
    StructuredSummary,
    SummaryPrepared,
    TimelineExistsError,
    TimelineId,
    UnknownPathError,
    VersionConflictError,
)
from persistence import DuckDBStore, MemoryStore
from tests._builders import open_timeline, response, text
from tests._sizes import PATIENCE, until
from tests._table import for_each
from timeline import AsyncTimeline, Timeline
from timeline.engine._engine import time_ordered


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talks.duckdb"


def assert_free(path: Path) -> None:
    """Nobody holds the file."""
    DuckDBStore(path).close()


# ---------------------------------------------------------------- what does not come through


def test_a_damaged_file_is_not_held_and_says_the_same_again(path: Path) -> None:
    with open_timeline(store=path) as timeline:
        timeline.user("one")
        timeline.user("two")
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM events WHERE seq = 2")
        connection.execute("UPDATE events SET seq = 9 WHERE seq = 3")
    path.with_name(path.name + ".lock").unlink()
    for _ in range(2):
        with pytest.raises(DamagedStoreError, match="3 events but 4 were acknowledged"):
            Timeline.open("talk", store=path)
        with pytest.raises(DamagedStoreError, match="3 events but 4 were acknowledged"):
            asyncio.run(AsyncTimeline.open("talk", store=path))
    duckdb.connect(str(path)).close()  # nobody holds it


@pytest.mark.parametrize(
    "options",
    [{"policy": "none such"}, {"window": 0}, {"counter": "none such"}, {"observers": 3}],
    ids=repr,
)
def test_options_that_are_none_hold_no_file(path: Path, options: dict[str, Any]) -> None:
    with pytest.raises((ArgumentError, MisuseError, TypeError)):
        Timeline.open("talk", store=path, **options)
    with pytest.raises((ArgumentError, MisuseError, TypeError)):
        asyncio.run(AsyncTimeline.open("talk", store=path, **options))
    assert_free(path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
@pytest.mark.parametrize(
    "step", ["_timeline.operations_of", "_timeline.ArtifactService", "engine._engine.Engine.load"]
)
def test_whatever_goes_wrong_after_the_file_is_open_lets_go_of_it(
    path: Path, step: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(f"timeline.{step}", fail)
        with pytest.raises(error):
            Timeline.open("talk", store=path)
    assert_free(path)


MOMENTS = [
    "persistence.duckdb._file.FileLock.acquire",
    "persistence.duckdb._store.open_database",
    "persistence.duckdb._store.Writer",
    "persistence.duckdb._store.DuckDBStore.load_window",
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_open_that_is_cancelled_at_any_moment_holds_nothing(
    path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that opens cannot be cancelled: it is waited for, and what it opened is closed."""
    arrived, go_on = Signal(), Signal()
    original = _found(moment)

    def slow(*given: Any, **named: Any) -> Any:
        arrived.set()
        assert go_on.wait(PATIENCE)
        return original(*given, **named)

    async def cancelled() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(moment, slow)
            task = asyncio.create_task(AsyncTimeline.open("talk", store=path))
            await asyncio.to_thread(arrived.wait, PATIENCE)
            task.cancel()
            await asyncio.sleep(0)  # one turn for the task
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
        await (await AsyncTimeline.open("talk", store=path)).close()

    asyncio.run(cancelled())
    assert_free(path)


def _found(name: str) -> Callable[..., Any]:
    from pydoc import locate

    found: Any = locate(name)
    return found  # type: ignore[no-any-return]


def test_a_loop_that_ends_during_an_open_leaves_nothing_held(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cancels every task there is, also those that wait for a thread."""
    arrived, go_on = Signal(), Signal()
    original = DuckDBStore.load_window

    def slow(store: DuckDBStore, timeline: TimelineId) -> Any:
        arrived.set()
        go_on.wait(0.2)  # the loop ends meanwhile, or a little later
        return original(store, timeline)

    async def left() -> None:
        task = asyncio.create_task(AsyncTimeline.open("talk", store=path))
        await asyncio.to_thread(arrived.wait, PATIENCE)
        assert not task.done()

    monkeypatch.setattr(DuckDBStore, "load_window", slow)
    asyncio.run(left())
    assert_free(path)


# ---------------------------------------------------------------- who is dropped


def test_a_dropped_timeline_lets_go_of_its_file_and_says_so(path: Path) -> None:
    timeline = open_timeline(store=path)
    timeline.user("hello")
    timeline.render()
    gc.disable()  # nobody has to wait for the collector
    try:
        with pytest.warns(ResourceWarning, match="unclosed store"):
            del timeline
        with open_timeline(store=path) as timeline:
            assert timeline.version == 3
    finally:
        gc.enable()


def test_a_dropped_async_timeline_does_too(path: Path) -> None:
    async def dropped() -> None:
        timeline = await AsyncTimeline.open("talk", store=path)
        await timeline.user("hello")

    with pytest.warns(ResourceWarning, match="unclosed store"):
        asyncio.run(dropped())
    assert_free(path)


def test_a_fork_keeps_the_store_of_a_parent_that_was_dropped(path: Path) -> None:
    parent = open_timeline(store=path)
    parent.user("hello")
    fork = parent.fork("other")
    del parent
    gc.collect()
    fork.user("still here")
    assert fork.version == 5
    with pytest.warns(ResourceWarning, match="unclosed store"):
        del fork
    assert_free(path)


# ---------------------------------------------------------------- close


def with_something_pending(timeline: Timeline | AsyncTimeline) -> None:
    """A summary was paid for, and its commit failed."""
    paid = SummaryPrepared(
        id=EventId("paid"),
        at=0.0,
        key="k",
        cut=1,
        summary=StructuredSummary(),
        provenance=Provenance(source_hash="h", model="m"),
    )
    timeline._operations.engine._hold([paid])


def test_a_close_whose_flush_fails_closes_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise StoreError("no space left")

    timeline = open_timeline(store=path)
    timeline.user("hello")
    with_something_pending(timeline)
    with monkeypatch.context() as patch:
        patch.setattr(DuckDBStore, "append", full)
        with pytest.raises(StoreError, match="no space left"):
            timeline.close()
    timeline.close()
    with open_timeline(store=path) as timeline:
        assert timeline.version == 2


def test_an_async_close_whose_flush_fails_or_is_cancelled_closes_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise StoreError("no space left")

    arrived, append = Signal(), DuckDBStore.append

    def slow(*given: Any, **named: Any) -> int:
        arrived.set()
        return append(*given, **named)

    async def closed(broken: Callable[..., int]) -> None:
        timeline = await AsyncTimeline.open("talk", store=path)
        await timeline.user("hello")
        with_something_pending(timeline)
        with monkeypatch.context() as patch:
            patch.setattr(DuckDBStore, "append", broken)
            task = asyncio.create_task(timeline.close())
            if broken is slow:
                await asyncio.to_thread(arrived.wait, PATIENCE)
                task.cancel()
            with pytest.raises((StoreError, asyncio.CancelledError)):
                await task
        await timeline.close()
        assert_free(path)

    asyncio.run(closed(full))
    asyncio.run(closed(slow))


def test_an_append_to_a_store_that_is_closed_meanwhile_is_refused_and_nothing_hangs(
    path: Path,
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from blocks import ClosedError

    store = DuckDBStore(path)
    durable = list[int]()

    def talk(worker: int) -> None:
        timeline = open_timeline(f"talk {worker}", store=store)
        try:
            while True:
                durable.append(timeline.steer("more"))
        except ClosedError:
            return

    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(talk, n) for n in range(4)]
        until(lambda: len(durable) >= 20)
        store.close()
        for worker in workers:
            worker.result(PATIENCE)
    with DuckDBStore(path) as store:
        assert sum(info.version for info in store.list()) == len(durable)


# ---------------------------------------------------------------- what is no store, and no name


@for_each("name", [3, None, b"talk", "", " ", "nul\0", "half \ud800", ["talk"]])
def test_what_cannot_be_a_name_is_refused_at_once(name: Any, path: Path) -> None:
    with pytest.raises(MisuseError, match="name"):
        Timeline.open(name, store=path)
    with pytest.raises(MisuseError, match="name"):
        asyncio.run(AsyncTimeline.open(name, store=path))
    assert not path.exists()


@for_each(
    "store", ["", "  ", ".", Path(), 3, 0, False, b"a", [], {}, object(), DuckDBStore, ":memory:"]
)
def test_what_is_no_store_is_refused_and_never_taken_for_none(store: Any) -> None:
    with pytest.raises(MisuseError):
        Timeline.open("talk", store=store)


def test_without_a_store_a_timeline_is_in_memory() -> None:
    assert Timeline.open("talk").user("hello") == 2
    assert Timeline.open("talk", store=None).version == 0  # type: ignore[arg-type]


# ---------------------------------------------------------------- names that are taken or unknown


@for_each("other", ["talk", "fork"])
def test_a_fork_onto_a_name_that_is_taken_says_so(other: str) -> None:
    timeline = open_timeline(store=MemoryStore())
    timeline.user("hello")
    timeline.fork("fork")
    with pytest.raises(TimelineExistsError, match=f"timeline '{other}' already exists") as found:
        timeline.fork(other)
    assert isinstance(found.value, VersionConflictError)
    assert found.value.found in (2, 3)
    with pytest.raises(TimelineExistsError):
        timeline.snapshot().fork(other)


def test_an_unknown_path_names_those_that_may_have_been_meant() -> None:
    timeline = open_timeline(window=2000)
    timeline.user("What is in the invoices?")
    for number in range(30):
        timeline.record(response(text(f"step {number} " + "word " * 60), id=f"r{number}"))
    timeline.render()
    assert timeline.view.compaction, "the beginning is folded"
    for use in (timeline.read, timeline.hide):
        with pytest.raises(UnknownPathError, match=r"did you mean 'ar:t1\.user\.prompt'") as found:
            use("ar:t1.user.promt")
        assert found.value.near[0] == "ar:t1.user.prompt"
    with pytest.raises(
        UnknownPathError, match=r"no block at path 'x{90,120}…x{80,120}'; `foldline"
    ):
        timeline.read("x" * 1_000_000)


def test_ids_are_time_ordered_uuids() -> None:
    """RFC 9562, version 7: the first 48 bits are milliseconds, the version and the variant are set."""
    before = time.time_ns() // 1_000_000
    made = [uuid.UUID(time_ordered()) for _ in range(200)]
    after = time.time_ns() // 1_000_000
    assert all(each.version == 7 and each.variant == uuid.RFC_4122 for each in made)
    assert all(before <= each.int >> 80 <= after for each in made)
    assert len(set(made)) == len(made)
