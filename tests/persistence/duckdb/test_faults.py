"""A full disk and an interrupt: what was acknowledged is there, the rest is absent or whole, and the
store goes on as soon as the world does."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any, cast

import duckdb
import pytest

from blocks import ClosedError, Event, StoreError
from persistence import ArtifactDescription, DuckDBStore, Requester, verify
from persistence._log import store_event
from persistence.duckdb._writer import Append, Writer
from tests._sizes import PATIENCE, until
from tests.persistence._full_disk import full_disk
from tests.persistence.contract import T, U, forked, many, prompt

NOISE = Random(1).randbytes(1_000_000).hex()  # noqa: S311 -- content, not a key
SIZE = 6_000


def filled(store: DuckDBStore, size: int = 20) -> int:
    for version in range(size):
        store.append(T, [noise(version)], expected_version=version)
    return size


def noise(number: int) -> Event:
    """An event that nothing makes smaller."""
    return prompt(f"{number} {NOISE[number * SIZE : (number + 1) * SIZE]}")


def checkpoint(store: DuckDBStore) -> None:
    with store._writing() as cursor:
        cursor.execute("CHECKPOINT")


# ---------------------------------------------------------------- a full disk


def test_while_the_disk_is_full_an_append_says_what_is_true(path: Path) -> None:
    with DuckDBStore(path) as store:
        version = filled(store)
        with full_disk(path.with_name(path.name + ".wal").stat().st_size + 10):
            for _ in range(3):
                with pytest.raises(StoreError, match="free disk space and repeat the call"):
                    store.append(T, [noise(version)], expected_version=version)
            assert store.head(T) == version
            assert len(store.read(T)) == version, "what is there can be read"
        assert store.append(T, [noise(version)], expected_version=version) == version + 1
    assert_whole(path, version + 1)


def test_a_checkpoint_that_finds_no_room_does_not_end_the_store(path: Path) -> None:
    """DuckDB gives the whole database up then; it is attached anew."""
    with DuckDBStore(path) as store:
        version = filled(store)
        store.append(U, many(3), expected_version=0)
        with full_disk(path.stat().st_size + 4096):
            with pytest.raises(StoreError, match="free disk space and repeat the call"):
                checkpoint(store)
            assert len(store.read(T)) == version, "also while the disk is full"
            assert store.load_window(U).version == 3
        assert store.append(T, [prompt("more")], expected_version=version) == version + 1
        checkpoint(store)
    assert_whole(path, version + 1, 3)


def test_a_commit_whose_checkpoint_failed_is_a_success(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is durable in the write-ahead log: to call it failed would have it repeated."""
    with DuckDBStore(path) as store:
        version = filled(store, 60)
        checkpoint(store)
        store._connection.execute("SET GLOBAL checkpoint_threshold = '100KB'")
        recover, failures = Writer._recover, list[int]()

        def counted(writer: Writer) -> None:
            failures.append(version)
            recover(writer)

        monkeypatch.setattr(Writer, "_recover", counted)
        with full_disk(path.stat().st_size):
            for _ in range(20):  # the log of them has room, the file has not
                version = store.append(T, [noise(version)], expected_version=version)
            assert store.head(T) == version
        assert failures, "a checkpoint did fail"
    assert_whole(path, version)


def test_a_store_closes_while_the_disk_is_full_and_opens_again(path: Path) -> None:
    store = DuckDBStore(path)
    version = filled(store)
    with full_disk(path.stat().st_size + 4096):
        with pytest.raises(StoreError):
            checkpoint(store)
        store.close()
        with DuckDBStore(path) as store:
            assert store.head(T) == version
    assert_whole(path, version)


def test_a_file_that_could_not_be_made_leaves_nothing_behind(path: Path) -> None:
    with full_disk(5_000), pytest.raises(StoreError, match="disk space"):
        DuckDBStore(path)
    assert list(path.parent.iterdir()) == []
    DuckDBStore(path).close()


def test_artifacts_that_did_not_fit_are_absent_and_the_others_whole(path: Path) -> None:
    about, reader = ArtifactDescription(timeline=T), Requester("ann")
    with DuckDBStore(path) as store:
        artifacts = store.artifacts()
        first = artifacts.put(b"first" * 1000, about)
        with (
            full_disk(path.with_name(path.name + ".wal").stat().st_size + 65_536),
            pytest.raises(StoreError, match="disk space"),
        ):
            artifacts.put(b"second" * 100_000, about)
        third = artifacts.put(b"third" * 100_000, about)
        assert [m.id for m in artifacts.list(reader)] == [first, third]
        assert verify(store).ok
    report = verify(path)
    assert (report.ok, report.artifacts) == (True, 2)


def assert_whole(path: Path, *versions: int) -> None:
    with DuckDBStore(path) as store:
        assert [info.version for info in store.list()] == list(versions)
        assert verify(store).ok


# ---------------------------------------------------------------- errors that are raised again


def depth(error: BaseException) -> int:
    found, trace = 0, error.__traceback__
    while trace is not None:
        found, trace = found + 1, trace.tb_next
    return found


def refused(store: DuckDBStore) -> BaseException:
    with pytest.raises((StoreError, ClosedError)) as caught:
        store.append(T, many(1), expected_version=0)
    return caught.value


def test_an_error_that_is_raised_again_and_again_does_not_grow(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise duckdb.IOException("Could not write file: no")

    store = DuckDBStore(path)
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_load", broken)
        patch.setattr(Writer, "_write", broken)
        errors = [refused(store) for _ in range(5)]
    assert len({depth(error) for error in errors[1:]}) == 1
    assert len({id(error) for error in errors}) == 5
    assert all(error.__context__ is None for error in errors[1:])
    assert store.append(T, many(1), expected_version=0) == 1, "and it is not for ever"
    store.close()
    writer, errors = store._writer, []
    for _ in range(3):
        append = Append(timeline=T, expected=1, events=[store_event(prompt("x"))])
        writer.commit([append])
        assert append.error
        errors.append(append.error)
    assert len({id(error) for error in errors}) == 3


# ---------------------------------------------------------------- an interrupt


WHERE = ["_write", "_publish", "_add_events", "_accept"]


@pytest.mark.parametrize("where", WHERE)
def test_a_commit_that_is_interrupted_anywhere_is_there_or_not_and_the_store_goes_on(
    path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with DuckDBStore(path) as store:
        store.append(T, many(2), expected_version=0)
        with monkeypatch.context() as patch:
            patch.setattr(Writer, where, interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.append(T, many(2, first=3), expected_version=2)
        assert store.head(T) in (2, 4)
        assert store.append(T, many(2, first=3), expected_version=2) == 4, "a repeat is no harm"
        assert store.fork(T, U, forked(T, 4), at=4) == 5
        assert verify(store).ok


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
def test_an_interrupt_beside_a_statement_of_a_fold_leaves_no_transaction_open(
    path: Path, statement: str
) -> None:
    """It may come when the statement has run, and before the next line of ours has."""

    class Interrupting:
        def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
            self.cursor = cursor

        def execute(self, query: str, *values: Any) -> Any:
            result = self.cursor.execute(query, *values)
            if query == statement:
                raise KeyboardInterrupt
            return result

        def __getattr__(self, name: str) -> Any:
            return getattr(self.cursor, name)

    with DuckDBStore(path) as store:
        store.append(T, many(2), expected_version=0)
        writer, cursor = store._writer, store._writer._cursor
        writer._cursor = cast("Any", Interrupting(cursor))
        with pytest.raises(KeyboardInterrupt):
            writer._note_fold(is_whole=False)
        writer._cursor = cursor
        writer._note_fold(is_whole=False)
        assert store.append(T, many(2, first=3), expected_version=2) == 4
    assert verify(path).ok


def test_who_shared_an_interrupted_commit_learns_whether_it_happened(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt is that of one thread; the others were only in the same commit."""
    publish = Writer._publish

    def interrupted(*_: object) -> None:
        monkeypatch.setattr(Writer, "_publish", publish)
        raise KeyboardInterrupt

    with DuckDBStore(path) as store:
        store.append(T, many(1), expected_version=0)
        other = Append(timeline=U, expected=0, events=[store_event(prompt("a"))])
        mine = Append(timeline=T, expected=1, events=[store_event(prompt("b"))])
        monkeypatch.setattr(Writer, "_publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store._writer.commit([mine, other])
        assert store._is_there(other)
        assert store.head(U) == 1


def test_the_databases_own_word_for_an_interrupt_is_not_shown(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise RuntimeError("Query interrupted")  # what duckdb makes of Ctrl-C

    with DuckDBStore(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(Writer, "_write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.append(T, many(1), expected_version=0)
        with pytest.raises(KeyboardInterrupt), store._reading():
            interrupted()
        assert store.append(T, many(1), expected_version=0) == 1


def test_an_interrupt_while_the_file_is_asked_what_is_true_is_an_interrupt(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Writer) -> None:
        monkeypatch.undo()
        raise RuntimeError("Query interrupted")  # as the database tells it

    with DuckDBStore(path) as store:
        store._writer.is_suspect = True
        monkeypatch.setattr(Writer, "_load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.append(T, many(1), expected_version=0)
        assert store.append(T, many(1), expected_version=0) == 1


def test_appends_that_waited_for_an_interrupted_leader_are_not_forgotten() -> None:
    from persistence.duckdb._writer import GroupCommit

    seen: list[int] = []

    def commit(batch: Sequence[int]) -> None:
        seen.extend(batch)
        if len(seen) == 1:
            until(lambda: len(group._waiting) >= 3)
            raise KeyboardInterrupt

    group = GroupCommit(commit)
    others = [Thread(target=group.submit, args=(n,)) for n in (1, 2, 3)]

    def leading() -> None:
        with pytest.raises(KeyboardInterrupt):
            group.submit(0)

    leader = Thread(target=leading)
    leader.start()
    until(lambda: seen)
    for thread in others:
        thread.start()
    for thread in (leader, *others):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert sorted(seen) == [0, 1, 2, 3]


# Ctrl-C at some moment, again and again: the process says what it was told, then others look.
INTERRUPTED = """
import random, signal, sys
from timeline import Timeline
from blocks import text_of

signal.signal(signal.SIGALRM, signal.default_int_handler)
chance = random.Random(int(sys.argv[2]))
timeline = Timeline.open("talk", store=sys.argv[1], counter="estimate", window=4000)
tried, told, others = [], [], []
for number in range(150):
    text = f"{number} " + "word " * chance.choice([5, 50, 2000])
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.006))
        tried.append(text)
        timeline.user(text)
        told.append(text)
        timeline.render()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        others.append(repr(error))
    tried.append(f"check {number}")
    timeline.steer(tried[-1])  # it is usable
    told.append(tried[-1])
log = [text_of(e.block) for _, e in timeline.events() if type(e).__name__ == "BlockAppended"]
log = [text for text in log if text]
assert not others, others
assert len(log) == len(set(log)), "doubled"
assert not set(told) - set(log), "lost"
assert log == [text for text in tried if text in set(log)], "in another order"
live = [entry.block.id for entry in timeline.view.entries]
timeline.close()
with Timeline.open("talk", store=sys.argv[1], counter="estimate", window=4000) as timeline:
    assert [entry.block.id for entry in timeline.view.entries] == live, "live is not reopened"
print("usable")
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_a_timeline_that_is_interrupted_at_any_moment_stays_usable(path: Path, seed: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(path), str(seed)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ended.stdout == "usable\n", ended.stderr
    assert verify(path).ok
