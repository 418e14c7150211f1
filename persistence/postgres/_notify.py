"""Notifying listeners in other processes that a timeline has grown.

A NOTIFY holds a lock of the whole server until its transaction ends. Inside an append's transaction it would
make all commits wait for one another's disk write.  Here it is a statement of its own that changes no
row, so the server need not flush anything for it.  It is sent from a separate thread, so that no append
waits for it; one statement covers all appends since the last one; and it is sent only if somebody listens.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Final

import attrs

from blocks import FoldlineError, TimelineId
from persistence.postgres._channels import (
    ANYBODY,
    CHANNELS,
    LOCKS,
    LOOK_SECONDS,
    SCOPE,
    Mark,
    Scope,
)
from persistence.postgres._database import PostgresDatabase
from persistence.sql._patience import Patience

LOOK: Final = f"""
SELECT {SCOPE}, ARRAY(
  SELECT DISTINCT objid::bigint FROM pg_locks
  WHERE (SELECT NOT pg_try_advisory_xact_lock({LOCKS}, {ANYBODY}))
    AND locktype = 'advisory' AND classid = {LOCKS} AND objsubid = 2 AND objid < {CHANNELS}
    AND mode = 'ShareLock' AND granted AND pid <> ?
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""  # noqa: S608 -- constants
"""The channels on which others listen. Reading the list of all locks is expensive on a busy server, so this happens
only if the lock that every listener holds is taken."""
TELL: Final = """
SELECT pg_notify('foldline_' || channel, hash) FROM unnest(?::int[], ?::text[]) AS told(channel, hash)
"""
WAIT_SECONDS: Final = 0.1
"""How long an append waits for a connection to look for listeners."""
FAILED_SECONDS: Final = 10.0
"""How long to wait after a failed query before the next one."""
CLOSE_SECONDS: Final = 1.0
REST_SECONDS: Final = 0.005
"""Pause between two notifications; appends in this time are sent together."""


def _one_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="foldline-notify")


@attrs.define(eq=False)
class Notifier:
    """Notifies other processes of the appends of one store. It never raises, because followers also poll."""

    _database: PostgresDatabase
    _own_listener: Callable[[], int]
    """Returns the server's process id of our own listener, which does not need these notifications."""
    _clock: Callable[[], float] = time.monotonic
    _look_at: float = attrs.field(default=float("-inf"), init=False)
    _scope: Scope | None = attrs.field(default=None, init=False)
    _channels: frozenset[int] = attrs.field(default=frozenset(), init=False)
    _pending: set[Mark] = attrs.field(factory=set[Mark], init=False)
    _sending: Future[None] | None = attrs.field(default=None, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)
    _thread: ThreadPoolExecutor = attrs.field(factory=_one_thread, init=False)
    """Started with the first notification."""

    def appended(self, timeline: TimelineId) -> None:
        """Notify listeners soon, if there are any."""
        if self._clock() >= self._look_at:
            self._look()
        if self._channels and self._scope:
            mark = self._scope.mark(timeline)
            if mark.channel in self._channels:
                self._told(mark)

    def close(self) -> None:
        """Send what is pending, for at most `CLOSE_SECONDS`, and stop."""
        if self._sending:
            wait([self._sending], CLOSE_SECONDS)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _look(self) -> None:
        self._look_at = self._clock() + LOOK_SECONDS  # so that no other thread looks meanwhile
        try:
            with self._database.lent(WAIT_SECONDS) as connection:
                [(store, tenant, channels)] = connection.rows(LOOK, [self._own_listener()])
        except FoldlineError:
            self._channels, self._look_at = frozenset(), self._clock() + FAILED_SECONDS
        else:
            self._scope, self._channels = Scope(store, tenant), frozenset(channels)

    def _told(self, mark: Mark) -> None:
        with self._lock:
            is_due = not self._pending
            self._pending.add(mark)
            if is_due:
                with suppress(RuntimeError):  # the notifier is being closed
                    self._sending = self._thread.submit(self._send)

    def _send(self) -> None:
        with self._lock:
            marks, self._pending = [*self._pending], set()
        given = [list(column) for column in zip(*marks, strict=True)]
        with suppress(FoldlineError):
            Patience(seconds=CLOSE_SECONDS).repeated(partial(self._tell, given))
        time.sleep(REST_SECONDS)

    def _tell(self, given: list[list[object]]) -> None:
        with self._database.lent(CLOSE_SECONDS) as connection:
            connection.run(TELL, given)
