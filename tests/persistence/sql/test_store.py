"""What a store that many processes share promises, whatever database it is in."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore

import pytest

from blocks import (
    ClosedError,
    CodecError,
    EventId,
    MisuseError,
    OpaqueEvent,
    OutcomeUnknownError,
    RangeCompacted,
    TimelineExistsError,
    TimelineId,
    UnknownTimelineError,
    VersionConflictError,
)
from persistence import verify
from persistence._log import RECENT_MAX
from persistence.sql._database import LostError, Patience
from persistence.sql._store import SQLStore
from tests._sizes import PATIENCE
from tests.persistence.contract import T, U, compacted, forked, many, opened, prompt, versions

BATCH = 3


# Appends batches to its own timeline and to one for all, and prints what was acknowledged.
WRITER = f"""
import sys
import time
from blocks import BlockAppended, UserPrompt, VersionConflictError
from persistence import open_store

where, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = open_store(where)

def batch(version):
    for n in range({BATCH}):
        said = f"{{name}}.{{version}}.{{n}}"
        block = UserPrompt(id=f"block {{said}}", turn="t1", text="x" * 500)
        yield BlockAppended(id=said, at=0.0, block=block)

while rounds:
    rounds -= 1
    for timeline in (name, "all"):
        while True:
            version = store.head(timeline)
            try:
                version = store.append(timeline, [*batch(version)], expected_version=version)
                break
            except VersionConflictError:
                pass
        sys.stdout.write(f"{{timeline}} {{version}}\\n")
        sys.stdout.flush()
store.close()
"""


def writing(where: str, name: str, rounds: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, where, name, str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_write_their_own_timelines_and_one_together(where: str) -> None:
    """Nothing is lost, nothing is there twice, no batch is torn, and no reader sees half of one."""
    with opened(where) as store:
        writers = [writing(where, f"writer {n}", 10) for n in range(4)]
        seen = [0]
        while any(writer.poll() is None for writer in writers):
            seen.append(store.head(TimelineId("all")))
            assert store.load_window(TimelineId("all")).version % BATCH == 0
        assert seen == sorted(seen)
        assert all(version % BATCH == 0 for version in seen)
        for writer in writers:
            writer.communicate()
            assert writer.returncode == 0
        together = store.read(TimelineId("all"))
        assert versions(together) == list(range(1, 4 * 10 * BATCH + 1))
        assert len({event.id for _, event in together}) == len(together)
        for at in range(0, len(together), BATCH):
            batch = [str(event.id).rpartition(".") for _, event in together[at : at + BATCH]]
            assert [n for _, _, n in batch] == ["0", "1", "2"]
            assert len({whose for whose, _, _ in batch}) == 1
        for n in range(4):
            assert store.head(TimelineId(f"writer {n}")) == 10 * BATCH
        assert verify(store).ok


def test_what_one_store_writes_another_reads_at_once(where: str) -> None:
    with opened(where) as one, opened(where) as other:
        assert one.append(T, many(2), expected_version=0) == 2
        assert other.head(T) == 2
        assert other.append(T, many(2, first=3), expected_version=2) == 4
        assert one.append(T, many(2, first=3), expected_version=2) == 4, "a repeat of the other's"
        with pytest.raises(VersionConflictError, match="expected version 2, found 4"):
            one.append(T, [prompt("x")], expected_version=2)
        one.fork(T, U, forked(T, 3), at=3)
        assert versions(other.read(U)) == [1, 2, 3, 4]
        assert [info.id for info in other.list()] == [T, U]
    with opened(where) as again:
        assert versions(again.read(T)) == [1, 2, 3, 4]


def test_only_one_of_many_forks_gets_the_name(where: str) -> None:
    with opened(where) as one, opened(where) as other:
        one.append(T, many(5), expected_version=0)

        def fork(n: int) -> bool:
            try:
                return bool((one, other)[n % 2].fork(T, U, forked(T, 1 + n % 5), at=1 + n % 5))
            except TimelineExistsError:
                return False

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(fork, range(8))) == 1
        assert verify(one).ok


def test_a_name_that_cannot_be_one_is_unknown(where: str) -> None:
    with opened(where) as store:
        for name in (TimelineId("nul\0"), TimelineId("surrogate \ud800")):
            assert store.head(name) == 0
            assert list(store.read(name)) == []
            assert store.load_window(name).version == 0
            with pytest.raises(UnknownTimelineError):
                store.fork(name, T, forked(name, 1), at=1)
        with pytest.raises(MisuseError, match="more than 1000 bytes"):
            store.append(TimelineId("x" * 1001), many(1), expected_version=0)
        assert store.append(TimelineId("語" * 333), many(1), expected_version=0) == 1


def test_versions_that_no_log_has_are_conflicts_and_empty_pages(where: str) -> None:
    with opened(where) as store:
        store.append(T, many(2), expected_version=0)
        for expected in (2**62, 2**63, 10**30):
            with pytest.raises(VersionConflictError, match="found 2"):
                store.append(T, [prompt("x")], expected_version=expected)
            assert list(store.read(T, after=expected)) == []
            assert versions(store.read(T, limit=expected)) == [1, 2]
        beyond = RangeCompacted(
            id=EventId("c"), at=1.0, start=1, cut=2**63, summary=compacted("c", cut=2).summary
        )
        with pytest.raises(CodecError, match="which is not a version"):
            store.append(T, [beyond], expected_version=2)


def test_ids_kinds_and_times_of_any_shape_are_kept_and_compared(where: str) -> None:
    odd = ["nul \0", "\\0", "\\", "half \ud800", "語", ""]
    events = [OpaqueEvent(f"kind {id_}", {"id": id_, "at": 1.0}) for id_ in odd]
    events.append(OpaqueEvent("never", {"id": "nan", "at": float("nan")}))
    with opened(where) as store:
        store.append(T, events, expected_version=0)
        assert store.append(T, events, expected_version=0) == len(events)
        with pytest.raises(VersionConflictError):
            store.append(T, [events[1], *events[1:]], expected_version=0)
        assert verify(store).ok, verify(store).problems


def test_an_older_compaction_that_was_undone_leaves_the_window_small(where: str) -> None:
    """The marks are found by an index; the events between them are not read."""
    with opened(where) as store:
        store.append(T, [*many(50), compacted("c", cut=48)], expected_version=0)
        assert versions(store.load_window(T).events) == [48, 49, 50, 51]


def test_a_dropped_store_says_so(where: str) -> None:
    store = opened(where)
    store.append(T, many(1), expected_version=0)
    kept = [store]
    del store
    with pytest.warns(ResourceWarning, match=r"unclosed store .*; call close\(\)"):
        kept.clear()
    with opened(where) as again:
        assert again.head(T) == 1


FORK = """
import os, sys
from blocks import ClosedError
from persistence import open_store
store = open_store(sys.argv[1])
store.head("t")
pid = os.fork()
if pid == 0:
    try:
        store.head("t")
    except ClosedError as error:
        store.close()
        os._exit(7 if "forked" in str(error) else 1)
    os._exit(1)
_, status = os.waitpid(pid, 0)
store.head("t")
store.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_is_refused_and_does_not_harm_its_parent(where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK, where],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, "")


def test_close_while_others_read_is_an_error_for_them_and_no_more(where: str) -> None:
    store = opened(where)
    store.append(T, many(50), expected_version=0)

    begun = Semaphore(0)

    def reading() -> None:
        while True:
            assert versions(store.read(T)) == list(range(1, 51))
            begun.release()

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(reading) for _ in range(4)]
        for _ in range(8):
            assert begun.acquire(timeout=PATIENCE)
        store.close()
    for reader in readers:
        assert isinstance(reader.exception(), ClosedError)
    with opened(where) as again:
        assert verify(again).ok


# ---- a connection that breaks in the middle of a write


class Breaking:
    """The connection breaks in some writes, before they are done or when they are."""

    def __init__(self, store: SQLStore, breaks: str) -> None:
        self._append, self._breaks = store._database.append, list(breaks)

    def __call__(self, *given: object) -> bool:
        how = self._breaks.pop(0) if self._breaks else ""
        if how == "b":
            raise LostError("the connection broke")
        done = self._append(*given)  # type: ignore[arg-type]  # whatever it was given
        if how == "a":
            raise LostError("the connection broke")
        return done


@pytest.mark.parametrize("breaks", ["b", "a", "ba", "bb", "aa"])
def test_an_append_whose_connection_broke_is_there_once(
    where: str, breaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(where) as store:
        store.append(T, many(2), expected_version=0)
        monkeypatch.setattr(type(store._database), "append", Breaking(store, breaks))
        assert store.append(T, many(2, first=3), expected_version=2) == 4
        assert versions(store.read(T)) == [1, 2, 3, 4]


@pytest.mark.parametrize("breaks", ["b", "a"])
def test_an_append_that_lost_a_race_while_its_connection_broke_is_a_conflict(
    where: str, breaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(where) as store, opened(where) as rival:
        rival.append(T, [prompt("x")], expected_version=0)
        monkeypatch.setattr(type(store._database), "append", Breaking(store, breaks))
        with pytest.raises(VersionConflictError, match="found 1"):
            store.append(T, many(1), expected_version=0)


def test_an_outcome_that_cannot_be_found_out_is_said_to_be_unknown(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(where) as store:
        now = [0.0]
        store._patience = Patience(
            seconds=5.0, clock=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s)
        )
        monkeypatch.setattr(type(store._database), "append", Breaking(store, "a" + "b" * 1000))
        with pytest.raises(OutcomeUnknownError, match="repeat the call with the same events"):
            store.append(T, many(2), expected_version=0)
        monkeypatch.undo()
        assert store.append(T, many(2), expected_version=0) == 2
        assert store.head(T) == 2


def test_an_append_of_unknown_outcome_is_repeated_at_whatever_version_the_log_has_by_then(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it had happened or not, it is there once, and whoever asks need not keep the version."""
    for name, breaks in ((T, "a"), (U, "b")):
        with opened(where) as store, opened(where) as rival:
            store._patience = Patience(seconds=0.0)
            monkeypatch.setattr(type(store._database), "append", Breaking(store, breaks))
            with pytest.raises(OutcomeUnknownError, match="on this store, at any version"):
                store.append(name, many(2), expected_version=0)
            monkeypatch.undo()
            rival.append(name, [prompt("theirs")], expected_version=store.head(name))
            for n in range(2 * RECENT_MAX):
                store.append(TimelineId("other"), [prompt(f"{name} {n}")], expected_version=n)
            for _ in range(2):
                store.append(name, many(2), expected_version=store.head(name))
            ids = [event.id for _, event in store.read(name)]
            assert sorted(ids) == ["1", "2", "theirs"]
            store.remove(TimelineId("other"))
