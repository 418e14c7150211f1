"""What happens to a server while it is written to: nothing acknowledged is lost, nothing is there twice."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event, Thread

import psycopg
import pytest

from blocks import OutcomeUnknownError, StoreError, TimelineId
from persistence import ArtifactDescription, PostgresStore, Requester, verify
from persistence.postgres._database import translated
from persistence.sql._database import LostError, PassingError
from tests._postgres import Server, running
from tests._sizes import PATIENCE, until
from tests._table import for_each
from tests.persistence.contract import T, many, prompt, versions

WRITERS = 4
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"
END = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'foldline' AND query LIKE '%INSERT INTO events%' AND pid <> pg_backend_pid()
"""


def written_during(store: PostgresStore, disturb: Callable[[], None]) -> dict[TimelineId, int]:
    """What writers were acknowledged while something happened."""
    over, acknowledged = Event(), dict[TimelineId, int]()

    def write(worker: int) -> None:
        name, version = TimelineId(f"writer {worker}"), 0
        for n in count():
            if over.is_set():
                return
            batch = [prompt(f"{worker}.{n}.{part}") for part in range(3)]
            version = store.append(name, batch, expected_version=version)
            acknowledged[name] = version

    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(write, worker) for worker in range(WRITERS)]
        try:
            disturb()
        finally:
            over.set()
    for writer in writers:
        writer.result()
    return acknowledged


def check(store: PostgresStore, acknowledged: dict[TimelineId, int]) -> None:
    assert len(acknowledged) == WRITERS
    for name, version in acknowledged.items():
        found: list[str] = []
        while page := store.read(name, after=len(found)):
            found += [event.id for _, event in page]
        assert len(found) == version, "all that was acknowledged, and nothing else"
        assert len(set(found)) == len(found)
    assert verify(store).ok


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore(url) as store:
        yield store


def test_connections_that_are_ended_in_the_middle_of_appends_do_no_harm(
    store: PostgresStore, url: str
) -> None:
    def disturb() -> None:
        ended = 0
        with psycopg.connect(url, autocommit=True) as connection:
            while ended < 30:
                ended += sum(done for (done,) in connection.execute(END).fetchall())

    check(store, written_during(store, disturb))


def test_a_server_that_is_started_again_is_found_again(victim: Server) -> None:
    with PostgresStore(victim.new_url()) as store:

        def disturb() -> None:
            before = store.head(TimelineId("writer 0"))
            victim.restart()
            until(lambda: store.head(TimelineId("writer 0")) >= before + 9)

        check(store, written_during(store, disturb))


def test_a_read_goes_on_when_its_connections_were_ended(store: PostgresStore, url: str) -> None:
    store.append(T, many(3), expected_version=0)
    artifact = store.artifacts().put(b"abc", ArtifactDescription(timeline=T))
    end_all = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE application_name = 'foldline' AND pid <> pg_backend_pid()"""
    uses: list[Callable[[], bool]] = [
        lambda: versions(store.read(T)) == [1, 2, 3],
        lambda: store.head(T) == 3,
        lambda: store.artifacts().read(artifact, Requester("me")) == b"abc",
        lambda: len(store.list()) == 1,
        lambda: store.load_window(T).version == 3,
    ]
    for use in uses:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(end_all)
        assert use()


def test_a_server_that_stays_away_is_a_store_error_in_bounded_time() -> None:
    with running() as server:
        store = PostgresStore(server.new_url(), wait_seconds=0.5)
        store.append(T, many(1), expected_version=0)
    assert not server.folder.exists(), "nothing is left of a server of the tests"
    uses: list[Callable[[], int]] = [
        lambda: store.append(T, many(1, first=2), expected_version=1),
        lambda: store.head(T),
    ]
    for use in uses:
        with pytest.raises((StoreError, OutcomeUnknownError)):
            use()
    store.close()
    with pytest.raises(
        StoreError, match=r"cannot be reached.*start the server, or correct the URL"
    ):
        PostgresStore(f"postgresql://postgres@/postgres?host={server.folder}")


def test_threads_beyond_the_connections_wait_in_line(url: str) -> None:
    with PostgresStore(url, connections=2) as store, ThreadPoolExecutor(16) as pool:
        names = [TimelineId(f"talk {n}") for n in range(16)]
        done = [pool.submit(store.append, name, many(2), expected_version=0) for name in names]
        assert [each.result() for each in done] == [2] * 16


def test_a_lock_that_another_holds_is_waited_for(store: PostgresStore, url: str) -> None:
    """An administrator's lock, a migration: the append takes longer and goes through."""
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
        done: list[int] = []
        writer = Thread(target=lambda: done.append(store.append(T, many(1), expected_version=0)))
        writer.start()
        with psycopg.connect(url, autocommit=True) as watcher:
            until(lambda: watcher.execute(WAITING).fetchone() != (0,))
        assert done == []
        connection.rollback()
        writer.join(PATIENCE)
    assert done == [1]


@for_each(
    ("error", "kind"),
    [
        (psycopg.errors.SerializationFailure("try again"), PassingError),
        (psycopg.errors.DeadlockDetected("deadlock"), PassingError),
        (psycopg.errors.AdminShutdown("terminating"), LostError),
        (psycopg.errors.DiskFull("no space"), StoreError),
    ],
)
def test_each_error_is_told_by_what_may_be_done(
    error: psycopg.Error, kind: type[StoreError]
) -> None:
    assert type(translated(error, "the database", is_lost=False)) is kind


def test_a_serialization_failure_is_repeated(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As databases that spread a table over many servers have them."""
    insert, failures = type(store._database).insert, [1, 1, 1]

    def failing(database: object, connection: object, *given: object) -> bool:
        if failures:
            failures.pop()
            raise psycopg.errors.SerializationFailure("restart transaction")
        return bool(insert(database, connection, *given))  # type: ignore[arg-type]  # whatever it was given

    monkeypatch.setattr(type(store._database), "insert", failing)
    assert store.append(T, many(2), expected_version=0) == 2
    assert failures == []


TALKER = """
import sys
from persistence import PostgresStore
from persistence.testing._events import T, many

with PostgresStore(sys.argv[1]) as store:
    store.append(T, many(1), expected_version=0)
    print("open", flush=True)
    sys.stdin.readline()
    print(store.append(T, many(1, first=2), expected_version=1))
"""


def test_a_lost_connection_prints_nothing_on_the_terminal(victim: Server) -> None:
    """The driver warns of it; a program that has set up no logging would show that on its terminal."""
    with subprocess.Popen(
        [sys.executable, "-c", TALKER, victim.new_url()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "open\n"
        victim.restart()
        assert program.communicate("go\n", timeout=PATIENCE) == ("2\n", "")
