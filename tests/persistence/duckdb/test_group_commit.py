"""Group commit: no hand-over for one, one commit for many, nobody left waiting."""

import sys
from collections.abc import Callable, Sequence
from threading import Event as Signal
from threading import Thread
from types import FrameType

import pytest

from persistence.duckdb._writer import GroupCommit
from tests._sizes import PATIENCE, until
from tests._table import for_each


class Log:
    """Notes the batches; the first one waits until `go`."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.started = Signal()
        self.go = Signal()

    def commit(self, batch: Sequence[int]) -> None:
        self.batches.append(list(batch))
        self.started.set()
        assert self.go.wait(PATIENCE)


def until_waiting(group: GroupCommit[int], count: int) -> None:
    until(lambda: len(group._waiting) >= count)


def test_a_lone_item_is_committed_by_its_own_thread() -> None:
    log = Log()
    log.go.set()
    group = GroupCommit(log.commit)
    group.submit(1)
    group.submit(2)
    assert log.batches == [[1], [2]]


def test_whoever_waits_during_a_commit_shares_the_next() -> None:
    log = Log()
    group = GroupCommit(log.commit)
    first = Thread(target=group.submit, args=(0,))
    first.start()
    assert log.started.wait(PATIENCE)
    others = [Thread(target=group.submit, args=(n,)) for n in range(1, 6)]
    for thread in others:
        thread.start()
    until_waiting(group, 5)
    log.go.set()
    for thread in (first, *others):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert [sorted(batch) for batch in log.batches] == [[0], [1, 2, 3, 4, 5]]


@pytest.mark.parametrize(("waiting", "batches"), [(3, [1, 3]), (4, [1, 3, 1]), (7, [1, 3, 3, 1])])
def test_a_commit_takes_no_more_than_its_limit_and_leaves_the_rest_to_the_next(
    monkeypatch: pytest.MonkeyPatch, waiting: int, batches: list[int]
) -> None:
    monkeypatch.setattr("persistence.duckdb._writer.BATCH_MAX", 3)
    log = Log()
    group = GroupCommit(log.commit)
    threads: list[Thread] = []
    for item in range(waiting + 1):  # one after the other: their order is that of their arrival
        threads.append(Thread(target=group.submit, args=(item,)))
        threads[-1].start()
        assert log.started.wait(PATIENCE)
        until_waiting(group, item)
    log.go.set()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert [len(batch) for batch in log.batches] == batches
    assert [item for batch in log.batches for item in batch] == list(range(waiting + 1))


class Moments:
    """In place of `sleep`: in each moment so many come back as `coming` says next, then nobody."""

    def __init__(self, group: GroupCommit[int], coming: Sequence[int]) -> None:
        self.group = group
        self.coming = list(coming)
        self.passed = 0
        self.threads: list[Thread] = []

    def __call__(self, _: float) -> None:
        self.passed += 1
        for _ in range(self.coming.pop(0) if self.coming else 0):
            there = len(self.group._waiting)
            self.threads.append(Thread(target=self.group.submit, args=(-1,)))
            self.threads[-1].start()
            until_waiting(self.group, there + 1)


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Moments]:
    def made(group: GroupCommit[int], *coming: int) -> Moments:
        moments = Moments(group, coming)
        monkeypatch.setattr("persistence.duckdb._writer.sleep", moments)
        return moments

    return made


@pytest.mark.parametrize(("coming", "second"), [(1, [1, -1]), (0, [1])])
def test_who_comes_back_from_a_commit_is_in_the_next(
    moments: Callable[..., Moments], coming: int, second: list[int]
) -> None:
    """Alone it would take an fsync of its own, for which the others would wait in vain."""
    log = Log()
    group = GroupCommit(log.commit)
    back = moments(group, coming)
    threads = [Thread(target=group.submit, args=(item,)) for item in range(2)]
    threads[0].start()
    assert log.started.wait(PATIENCE)
    threads[1].start()
    until_waiting(group, 1)
    log.go.set()
    for thread in threads:
        thread.join(PATIENCE)
    for thread in back.threads:
        thread.join(PATIENCE)
    assert log.batches == [[0], second]
    assert back.passed == 1


@pytest.mark.parametrize(
    ("coming", "taken", "passed"),
    [
        ([5], 6, 1),  # all that were there
        ([2, 3], 6, 2),
        ([1, 0, 4], 2, 2),  # no longer than they keep coming
        ([1, 1, 1, 1], 4, 3),  # nor than the limit
    ],
)
def test_those_who_come_back_are_waited_for_as_long_as_they_keep_coming(
    moments: Callable[..., Moments],
    monkeypatch: pytest.MonkeyPatch,
    coming: list[int],
    taken: int,
    passed: int,
) -> None:
    monkeypatch.setattr("persistence.duckdb._writer.MOMENTS_MAX", 3)
    taken_each: list[int] = []
    group = GroupCommit[int](lambda batch: taken_each.append(len(batch)))
    group._around = 6
    back = moments(group, *coming)
    group.submit(0)
    for thread in back.threads:
        thread.join(PATIENCE)
    assert (taken_each, back.passed) == ([taken], passed)


def test_who_is_alone_waits_for_nobody(moments: Callable[..., Moments]) -> None:
    group = GroupCommit[int](lambda _: None)
    back = moments(group)
    for item in range(3):
        group.submit(item)
    assert back.passed == 0


def test_an_interrupt_while_they_come_back_leaves_the_lead_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log()
    log.go.set()
    group = GroupCommit(log.commit)
    group._around = 2
    next_one = Thread(target=group.submit, args=(2,), daemon=True)

    def interrupt(_: float) -> None:
        monkeypatch.undo()
        next_one.start()
        until_waiting(group, 2)
        raise KeyboardInterrupt

    monkeypatch.setattr("persistence.duckdb._writer.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        group.submit(1)
    next_one.join(PATIENCE)
    assert log.batches == [[2]]


def test_after_a_commit_that_blew_up_the_next_one_goes_on() -> None:
    calls: list[Sequence[int]] = []

    def commit(batch: Sequence[int]) -> None:
        calls.append(batch)
        if len(calls) == 1:
            raise KeyboardInterrupt

    group = GroupCommit(commit)
    with pytest.raises(KeyboardInterrupt):
        group.submit(1)
    group.submit(2)
    assert calls == [[1], [2]]


class Interrupting:
    """Raises an interrupt where a function of the group's begins or ends for the so-manieth time; there, and behind
    calls of others, Python delivers one."""

    def __init__(self, moment: int) -> None:
        self.left = moment

    def __call__(self, frame: FrameType, event: str, _: object) -> "Interrupting | None":
        if not frame.f_code.co_filename.endswith("_group_commit.py"):
            return None
        self.left -= event in ("call", "return")
        if self.left == 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return self


@for_each("moment", range(1, 18))
def test_an_interrupt_on_the_way_in_or_out_leaves_nobody_waiting(moment: int) -> None:
    """Also behind the commit, on the way out: the next one would wait for a leader that has gone."""
    group = GroupCommit[str](lambda _: None)
    before = sys.gettrace()
    sys.settrace(Interrupting(moment))
    try:
        group.submit("interrupted")
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    next_one = Thread(target=group.submit, args=("next",), daemon=True)
    next_one.start()
    next_one.join(PATIENCE)
    assert not next_one.is_alive()
