"""Group commit: no hand-over for one, one commit for many, nobody left waiting."""

import sys
from collections.abc import Sequence
from threading import Event as Signal
from threading import Thread
from types import FrameType

import pytest

from persistence.duckdb._group_commit import GroupCommit


class Log:
    """Notes the batches; the first one waits until `go`."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.started = Signal()
        self.go = Signal()

    def commit(self, batch: Sequence[int]) -> None:
        self.batches.append(list(batch))
        self.started.set()
        assert self.go.wait(10)


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
    assert log.started.wait(10)
    others = [Thread(target=group.submit, args=(n,)) for n in range(1, 6)]
    for thread in others:
        thread.start()
    while len(group._waiting) < 5:
        pass
    log.go.set()
    for thread in (first, *others):
        thread.join(10)
        assert not thread.is_alive()
    assert [sorted(batch) for batch in log.batches] == [[0], [1, 2, 3, 4, 5]]


@pytest.mark.parametrize(("waiting", "batches"), [(3, [1, 3]), (4, [1, 3, 1]), (7, [1, 3, 3, 1])])
def test_a_commit_takes_no_more_than_its_limit_and_leaves_the_rest_to_the_next(
    monkeypatch: pytest.MonkeyPatch, waiting: int, batches: list[int]
) -> None:
    monkeypatch.setattr("persistence.duckdb._group_commit.BATCH_MAX", 3)
    log = Log()
    group = GroupCommit(log.commit)
    threads: list[Thread] = []
    for item in range(waiting + 1):  # one after the other: their order is that of their arrival
        threads.append(Thread(target=group.submit, args=(item,)))
        threads[-1].start()
        assert log.started.wait(10)
        while len(group._waiting) < item:
            pass
    log.go.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert [len(batch) for batch in log.batches] == batches
    assert [item for batch in log.batches for item in batch] == list(range(waiting + 1))


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


@pytest.mark.parametrize("moment", range(1, 16))
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
    next_one.join(10)
    assert not next_one.is_alive()
