"""Who follows hears of what other processes append, and who appends pays nothing while nobody does."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from threading import enumerate as all_threads
from types import SimpleNamespace
from typing import Any, cast

import attrs
import psycopg
import pytest

from blocks import TimelineId
from persistence import PostgresStore
from persistence.postgres import _notify
from persistence.postgres._notify import NAME
from tests._postgres import Server
from tests._sizes import until
from tests.persistence.contract import T, U, forked, many
from tests.persistence.postgres._woken import LONG, Woken

LOOK_SECONDS = 0.25
FOLLOW = """
import sys
from timeline import Timeline

with Timeline.open("my talk", store=sys.argv[1]).follow(interval=(600, 600)) as events:
    for version, _ in events:
        print(version, flush=True)
"""
STUCK = "pg_stat_activity WHERE wait_event = 'SyncRep'"
EVERY_CHANNEL = "generate_series(0, 31) AS n"
LISTENING = "SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory'"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who appends notices sooner who listens, so that the tests wait less, and on a busy machine too."""
    monkeypatch.setattr(_notify, "LOOK_SECONDS", LOOK_SECONDS)
    monkeypatch.setattr(_notify, "WAIT_SECONDS", LONG)
    monkeypatch.setattr(_notify, "KNOWN_SECONDS", 1.2 * LOOK_SECONDS)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore(url) as store:
        yield store


@pytest.fixture
def other(url: str, store: PostgresStore) -> Iterator[PostgresStore]:
    """One of another process, for all that it knows."""
    del store  # has made the tables
    with PostgresStore(url) as other:
        yield other


def asked(store: PostgresStore, query: str) -> list[tuple[Any, ...]]:
    with store._database.lent() as connection:
        return connection.rows(query)


def append(store: PostgresStore, name: TimelineId = T) -> None:
    head = store.head(name)
    store.append(name, many(1, first=head + 1), expected_version=head)


# ---------------------------------------------------------------- what is heard


def test_a_follower_in_another_process_hears_an_append_long_before_it_would_look(
    url: str, store: PostgresStore
) -> None:
    append(store)
    command = [sys.executable, "-c", FOLLOW, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "1\n", "what is there"
        begun = time.monotonic()
        for version in range(2, 6):
            append(store)
            assert follower.stdout.readline() == f"{version}\n"
        assert time.monotonic() - begun < LONG
        follower.kill()


def test_each_append_and_each_fork_is_told_to_who_watches_it_and_to_nobody_else(
    store: PostgresStore, other: PostgresStore
) -> None:
    mine, unrelated, forks = Woken(store), Woken(store, TimelineId("unrelated")), Woken(store, U)
    append(other)
    for each in (unrelated, forks):
        each.settle()
    mine.settle()
    for _ in range(3):
        append(other)
        assert mine.waits()
    other.fork(T, U, forked(T, 1), at=1)
    assert forks.waits()
    assert not unrelated.event.is_set()


def test_what_is_appended_while_the_listening_begins_is_not_missed(
    store: PostgresStore, other: PostgresStore
) -> None:
    """Who appends has just found out that nobody listens, and believes it for a while."""
    other._hints._notifier._look_at = float("inf")
    watching = Woken(store)
    assert watching.waits(), "it may have missed something before"
    append(other)
    assert watching.waits()
    watching.settle()
    append(other)
    assert not watching.waits(0.05), "it was not told"


def test_a_server_that_is_started_again_is_listened_to_again(victim: Server) -> None:
    url = victim.new_url()
    with PostgresStore(url) as store, PostgresStore(url) as other:
        watching = Woken(store).settle()
        victim.restart()
        assert watching.waits(), "it is on its own now"
        until(lambda: not store.hears_others())
        append(other)
        watching.settle()
        append(other)
        assert watching.waits()


def test_while_the_server_does_not_let_it_listen_it_says_so_and_tries_again(
    store: PostgresStore, other: PostgresStore
) -> None:
    watching, listener, tries = Woken(store).settle(), store._hints.listener, list[float]()
    connect = listener._connect

    def refused() -> "psycopg.Connection[Any]":
        tries.append(time.monotonic())
        raise psycopg.OperationalError("too many connections")

    listener._connect = refused
    asked(other, f"SELECT pg_terminate_backend({listener.pid})")
    assert watching.waits()
    assert not store.hears_others()
    until(lambda: len(tries) == 3)
    listener._connect = connect
    watching.settle()
    append(other)
    assert watching.waits()


def test_what_anybody_sends_on_our_channels_does_no_harm(
    store: PostgresStore, other: PostgresStore
) -> None:
    watching = Woken(store).settle()
    for payload in ("NULL", "'junk'", "repeat('0', 16)", "repeat('x', 7999)"):
        asked(other, f"SELECT pg_notify('foldline_' || n, {payload}) FROM {EVERY_CHANNEL}")  # noqa: S608
    append(other)
    assert watching.waits()
    assert watching.count == 3, "twice because it began, once for the append"


# ---------------------------------------------------------------- what it costs


@attrs.define
class Log:
    """The statements that a server was sent from now on."""

    file: Path
    begin: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.begin = self.file.stat().st_size

    def count(self, text: str) -> int:
        return self.file.read_bytes()[self.begin :].count(text.encode())


def test_nobody_is_told_where_nobody_listens(url: str, postgres: Server) -> None:
    logged = f"{url}%20-clog_statement%3Dall"
    with PostgresStore(logged) as store, PostgresStore(url) as other:
        own, log = Woken(store).settle(), Log(postgres.folder / "log")
        begun = time.monotonic()
        for _ in range(40):
            append(store)
        assert own.event.is_set(), "without the server"
        assert log.count("INSERT INTO events") == 40
        assert log.count("pg_notify") == 0
        assert (
            1
            <= log.count("pg_try_advisory_xact_lock")
            <= 1 + (time.monotonic() - begun) / LOOK_SECONDS
        )
        watching = Woken(other).settle()
        append(store)
        assert watching.waits()
        assert log.count("pg_notify") > 0, "else it would not be seen here"


@pytest.fixture
def stuck(victim: Server) -> Iterator[str]:
    """The URL of a store in a server where the commit of one who notifies does not end, and ours do."""
    url = f"{victim.new_url()}%20-csynchronous_commit%3Dlocal"

    def wait_for_a_standby() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = on")
            connection.execute("CREATE TEMP TABLE t AS SELECT pg_notify('x', 'y')::text")

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        connection.execute("SELECT pg_reload_conf()")
        until(
            lambda: connection.execute("SHOW synchronous_standby_names").fetchone() == ("nobody",)
        )
        waiting = Thread(target=wait_for_a_standby)
        waiting.start()
        until(lambda: connection.execute(f"SELECT FROM {STUCK}").fetchall())
        yield url
        connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"SELECT pg_cancel_backend(pid) FROM {STUCK}")  # noqa: S608
        waiting.join(LONG)


def test_no_append_waits_where_a_transaction_that_notifies_holds_up_all_others(stuck: str) -> None:
    """Such a one holds a lock of the whole server until it is durable."""
    with PostgresStore(stuck) as store, PostgresStore(stuck) as other:
        Woken(store).settle()

        def write() -> None:
            while not asked(other, "SELECT FROM pg_locks WHERE NOT granted"):  # whoever tells
                append(other)  # who could not find out at once that somebody listens tries again
            for _ in range(20):
                append(other)

        writer = Thread(target=write, daemon=True)
        writer.start()
        writer.join(LONG)
        assert not writer.is_alive()


def test_an_append_takes_one_statement_more_while_somebody_listens(
    url: str, postgres: Server
) -> None:
    with PostgresStore(f"{url}%20-clog_statement%3Dall") as other, PostgresStore(url) as store:

        def statements() -> int:
            log = Log(postgres.folder / "log")
            for _ in range(20):
                append(other)
            return log.count("LOG:  ")

        append(other)
        alone = statements()
        Woken(store).settle()
        append(other)
        assert statements() <= 2 * alone


@pytest.mark.parametrize("statement", ["LOOK", "TELL"])
def test_what_fails_in_telling_fails_no_append(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    Woken(store).settle()
    monkeypatch.setattr(_notify, statement, "SELECT no_such_function()")
    for _ in range(3):
        append(other)
    assert other.head(T) == 3


# ---------------------------------------------------------------- when it ends


def threads() -> list[str]:
    return [thread.name for thread in all_threads() if thread.name == NAME]


@pytest.mark.parametrize("ending", ["the last watcher", "close", "dropped"])
def test_a_thread_and_a_connection_are_there_while_somebody_watches(
    url: str, other: PostgresStore, ending: str
) -> None:
    store = PostgresStore(url)
    one, two = Woken(store).settle(), Woken(store, U)
    two.settle()
    assert (threads(), asked(other, LISTENING)) == ([NAME], [(1,)])
    one.end()
    two.settle()
    if ending == "close":
        store.close()
        assert threads() == []
    elif ending == "dropped":
        two.store = one.store = other
        with pytest.warns(ResourceWarning, match="unclosed store"):
            del store
    else:
        two.end()
    until(lambda: not threads() and asked(other, LISTENING) == [(0,)])
    if ending == "the last watcher":
        assert not store.hears_others()
        Woken(store).settle()
        append(other)
        store.close()


def test_what_was_appended_last_is_told_before_the_store_is_closed(
    store: PostgresStore, url: str
) -> None:
    watching = Woken(store).settle()
    for n in range(5):
        with PostgresStore(url) as brief:
            brief.append(T, many(1, first=n + 1), expected_version=n)
        assert watching.waits()


def test_behind_a_pooler_one_looks(store: PostgresStore, other: PostgresStore) -> None:
    """Which would lend the connection that listens, and its locks, to others."""

    class Pooled:
        info = SimpleNamespace(backend_pid=1)  # as poolers make one up

        def __init__(self, raw: Any) -> None:
            self.raw = raw

        def __getattr__(self, name: str) -> Any:
            return getattr(self.raw, name)

    connect = store._hints.listener._connect
    store._hints.listener._connect = lambda: cast("psycopg.Connection[Any]", Pooled(connect()))
    watching = Woken(store)
    until(lambda: not threads())
    assert not store.hears_others()
    assert asked(other, LISTENING) == [(0,)]
    append(store)
    assert watching.waits()
    Woken(store, U)
    assert threads() == [], "once is enough"
