"""The connections of a store: few, kept while they are used, and found again soon after the server was away."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Semaphore
from typing import Any

import attrs
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import ClosedError
from persistence.postgres._pool import IDLE_SECONDS, PAUSES, Lent, Pool
from persistence.sql._database import PassingError


@attrs.define(eq=False)
class Fake:
    """A connection."""

    closed: bool = False

    def close(self) -> None:
        self.closed = True

    def add_notice_handler(self, handler: Callable[[Any], None]) -> None:
        """Nobody warns."""


@attrs.define(eq=False)
class World:
    """A server that is away until a time, and a clock that only moves when somebody waits."""

    back: float = 0.0
    now: float = 0.0
    random: float = 0.5
    attempts: list[float] = attrs.field(factory=list[float])

    def connect(self) -> Any:
        self.attempts.append(self.now)
        if self.now < self.back:
            raise psycopg.OperationalError("connection refused\nis it running?")
        return Fake()

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def pool(self, size: int = 4, seconds: float = 30.0) -> Pool:
        clock, sleep, random = lambda: self.now, self.sleep, lambda: self.random
        return Pool("db", self.connect, size, seconds, clock, sleep, random)


def given_back(pool: Pool, *lents: Lent) -> None:
    for lent in lents:
        pool.give(lent)


@given(back=st.floats(0.01, 25), random=st.floats(0, 1))
def test_a_server_that_is_back_is_found_within_a_second(back: float, random: float) -> None:
    world = World(back=back, random=random)
    world.pool().lend()
    assert back <= world.now < back + 1
    assert world.attempts[1] < 2 * PAUSES[0]
    assert len(world.attempts) < 10 + back / (0.5 * PAUSES[1]), "and it is not asked all the time"


def test_processes_knock_at_different_times() -> None:
    worlds = [World(back=5, random=each / 10) for each in range(10)]
    for world in worlds:
        world.pool().lend()
    assert len({world.attempts[5] for world in worlds}) == 10


def test_when_time_is_up_the_reason_is_told() -> None:
    world = World(back=float("inf"))
    with pytest.raises(PassingError, match=r"within 3 seconds .*\(connection refused\); start it"):
        world.pool(seconds=3).lend()


def test_of_many_threads_one_knocks() -> None:
    knocking, together, is_back, begun = Semaphore(1), list[int](), Event(), Barrier(9)

    def connect() -> Any:
        if is_back.is_set():
            return Fake()
        if not knocking.acquire(blocking=False):
            together.append(1)
        is_back.wait(0.02)  # long enough for the others to come, too
        knocking.release()
        raise psycopg.OperationalError("refused")

    pool = Pool("db", connect, 8, 60.0)
    with pytest.raises(PassingError):
        pool.lend(0.1)  # now it is known that the server is away

    def lend() -> Lent:
        begun.wait()
        return pool.lend()

    with ThreadPoolExecutor(8) as threads:
        lents = [threads.submit(lend) for _ in range(8)]
        begun.wait()
        is_back.wait(0.3)  # time enough for several attempts; with fewer it only shows less
        is_back.set()
        assert len({id(each.result()) for each in lents}) == 8
    assert not together


def test_connections_are_made_when_needed_and_used_again() -> None:
    world = World()
    pool = world.pool(size=2)
    one, other = pool.lend(), pool.lend()
    with pytest.raises(PassingError, match=r"all 2 are in use.*open the store with more"):
        pool.lend(0)
    given_back(pool, one, other)
    assert pool.lend() is other, "the one that was used last, so that others may rest"
    assert len(world.attempts) == 2


def test_a_connection_that_broke_is_not_lent_again_nor_those_beside_it() -> None:
    world = World()
    pool = world.pool(size=3)
    one, other = pool.lend(), pool.lend()
    given_back(pool, other)
    one.raw.close()
    pool.refresh()
    given_back(pool, one)
    assert pool.lend() not in (one, other)
    assert other.raw.closed


def test_what_is_not_used_for_long_is_closed() -> None:
    world = World()
    pool = world.pool()
    one, other = pool.lend(), pool.lend()
    given_back(pool, one, other)
    world.now += IDLE_SECONDS + 1
    given_back(pool, pool.lend())
    assert (one.raw.closed, other.raw.closed) == (True, False)


def test_a_connection_that_an_interrupted_thread_dropped_is_closed_and_replaced() -> None:
    pool = World().pool(size=1)
    raw = pool.lend().raw
    assert raw.closed
    assert not pool.lend().raw.closed


def test_after_close_nothing_is_lent_and_nothing_stays_open() -> None:
    pool = World().pool()
    one, other = pool.lend(), pool.lend()
    given_back(pool, one)
    pool.close()
    assert one.raw.closed
    with pytest.raises(ClosedError, match="open the store again"):
        pool.lend()
    given_back(pool, other)
    assert other.raw.closed
