"""Measures how long appends pause when a PostgreSQL server is away, and whether anything is lost or doubled then.

    python -m benchmarks.failover [--rounds 5] [--keep]

Eight threads append, each to a timeline of its own.  The server is killed (-9) with all its processes. It is started again
after some seconds, or a standby is promoted at once.  A pause begins with the kill; `back` is when the server answers.
"""

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, pairwise
from statistics import median
from threading import Event
from typing import Final
from urllib.parse import quote

import attrs
import psycopg

from benchmarks.results import keep
from blocks import BlockAppended, BlockId, EventId, TimelineId, TurnId, UserPrompt
from persistence import PostgresStore
from tests._postgres import STANDBY, Server, running

WRITERS: Final = 8
SETTLED_SECONDS: Final = 1.5
"""How long is written before and after a failure."""
AWAY_SECONDS: Final = (1, 5, 20)


@attrs.define
class Round:
    """What one failure did."""

    pause: float
    """The longest time in seconds without an acknowledgement."""
    lag: float
    """Seconds from the server's return until the end of the pause."""
    acknowledged: int
    lost: int
    doubled: int


@attrs.define
class Load:
    """Threads that append, and when each event was acknowledged."""

    store: PostgresStore
    _over: Event = attrs.field(factory=Event, init=False)
    _at: list[list[float]] = attrs.field(factory=lambda: [[] for _ in range(WRITERS)], init=False)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Append inside this block."""
        with ThreadPoolExecutor(WRITERS) as pool:
            done = [pool.submit(self._write, worker) for worker in range(WRITERS)]
            try:
                time.sleep(SETTLED_SECONDS)
                yield
                time.sleep(SETTLED_SECONDS)
            finally:
                self._over.set()
            for each in done:
                each.result()

    def _write(self, worker: int) -> None:
        for number in count():
            if self._over.is_set():
                return
            prompt = UserPrompt(id=BlockId(f"b{number}"), turn=TurnId("t"), text="Go on. " * 40)
            event = BlockAppended(id=EventId(f"{worker}.{number}"), at=0.0, block=prompt)
            self.store.append(_name(worker), [event], expected_version=number)
            self._at[worker].append(time.monotonic())

    def round(self, back: float) -> Round:
        """The figures of a failure that was over at this time."""
        times = sorted(at for each in self._at for at in each)
        pause, end = max((after - before, after) for before, after in pairwise(times))
        lost = doubled = 0
        for worker, acknowledged in enumerate(self._at):
            ids: list[str] = []
            while page := self.store.read(_name(worker), after=len(ids)):
                ids += [event.id for _, event in page]
            due = {f"{worker}.{number}" for number in range(len(acknowledged))}
            lost, doubled = lost + len(due - set(ids)), doubled + len(ids) - len(set(ids))
        return Round(pause, end - back, len(times), lost, doubled)


def _name(worker: int) -> TimelineId:
    return TimelineId(f"writer {worker}")


def away(seconds: float) -> Round:
    """The server is killed, and starts again after so many seconds."""
    with running() as server, PostgresStore(server.new_url(), wait_seconds=60) as store:
        load = Load(store)
        with load.running():
            server.die()
            time.sleep(seconds)
            server.start()
            back = time.monotonic()
        return load.round(back)


def promoted() -> Round:
    """The server is killed, and its synchronous standby is promoted."""
    with running() as primary, running(primary=primary.folder) as standby:
        _synchronise(primary)
        hosts = quote(f"{primary.folder},{standby.folder}")
        url = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"
        with PostgresStore(url, wait_seconds=60) as store:
            load = Load(store)
            with load.running():
                primary.die()
                standby.promote()
                back = time.monotonic()
            return load.round(back)


def _synchronise(primary: Server) -> None:
    with psycopg.connect(f"host={primary.folder} user=postgres", autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
        connection.execute("SELECT pg_reload_conf()")
        state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        while connection.execute(state).fetchall() != [(1,)]:
            time.sleep(0.05)


def row(what: str, rounds: list[Round]) -> dict[str, str]:
    """The row of one kind of failure."""
    pauses, lags = [each.pause for each in rounds], [each.lag for each in rounds]
    return {
        "failure": what,
        "rounds": str(len(rounds)),
        "pause of appends": f"{median(pauses):.1f} s, at most {max(pauses):.1f} s",
        "after the server was back": f"{median(lags):.2f} s, at most {max(lags):.2f} s",
        "acknowledged": f"{sum(each.acknowledged for each in rounds):,}",
        "lost": str(sum(each.lost for each in rounds)),
        "doubled": str(sum(each.doubled for each in rounds)),
    }


def main() -> None:
    """Print the figures of all kinds of failure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--keep", action="store_true", help="keep the figures in benchmarks/results"
    )
    given = parser.parse_args()
    rows = [
        row(f"killed, started again after {each} s", [away(each) for _ in range(given.rounds)])
        for each in AWAY_SECONDS
    ]
    rows.append(
        row(
            "killed, synchronous standby promoted at once",
            [promoted() for _ in range(given.rounds)],
        )
    )
    for each in rows:
        print(each)
    if given.keep:
        keep("failover", rows)


if __name__ == "__main__":
    main()
