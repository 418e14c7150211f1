"""Group commit: no hand-over for one, one commit for many, nobody left waiting."""

from collections.abc import Sequence
from threading import Event as Signal
from threading import Thread

import pytest

from persistence._group import GroupCommit


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
