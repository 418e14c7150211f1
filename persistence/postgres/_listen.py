"""Listening for appends of other processes: one connection and one thread per store, while it has watchers.

Notifications are only hints.  Watchers also poll from time to time, and are woken whenever a notification may have
been missed: when listening on a channel begins, when all appenders must have noticed this, and when it ends.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from random import random
from selectors import EVENT_READ, DefaultSelector
from socket import socket, socketpair
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from blocks import TimelineId
from persistence._store import Watchers
from persistence.postgres._channels import ANYBODY, LOCKS, LOOK_SECONDS, SCOPE, Scope
from persistence.postgres._database import PostgresConnection
from persistence.postgres._settings import is_pooled

if TYPE_CHECKING:
    from psycopg import Connection

WHERE: Final = f"SELECT {SCOPE}"
HOLD: Final = f"SELECT pg_advisory_lock_shared({LOCKS}, ?)"
LET_GO: Final = f"SELECT pg_advisory_unlock_shared({LOCKS}, ?)"
PATIENCE: Final = "SET lock_timeout = '2s'"
"""How long to wait for an advisory lock. Only appenders compete for them, and only for an instant."""
KNOWN_SECONDS: Final = LOOK_SECONDS + 0.2
"""Seconds after which all appenders know of a new listener."""
PAUSES: Final = (0.1, 30.0)
"""Seconds between two attempts to connect: the first pause, and the longest."""
CLOSE_SECONDS: Final = 2.0
NAME: Final = "foldline-listen"


class PooledError(Exception):
    """The connection goes through a pooler, which shares it between clients."""


@attrs.define(eq=False)
class _Bell:
    """Ends the wait of a thread from any other thread."""

    _ends: tuple[socket, socket] = attrs.field(factory=socketpair, init=False)

    def __attrs_post_init__(self) -> None:
        for end in self._ends:
            end.settimeout(0)

    def ring(self) -> None:
        with suppress(OSError):  # it is full of unread rings, or closed
            self._ends[0].send(b"!")

    def wait(self, seconds: float, connection: "Connection[Any] | None" = None) -> None:
        """Wait until `ring` is called, the connection has data to read, or `seconds` have passed."""
        with DefaultSelector() as selector:
            selector.register(self._ends[1], EVENT_READ)
            if connection:
                selector.register(connection.fileno(), EVENT_READ)
            selector.select(None if seconds == float("inf") else seconds)
        with suppress(BlockingIOError):
            while self._ends[1].recv(1000):
                pass

    def close(self) -> None:
        for end in self._ends:
            end.close()


@attrs.define(eq=False)
class _Ear:
    """Listens on one connection."""

    connection: PostgresConnection
    _scope: Scope
    _clock: Callable[[], float]
    _hashes: dict[str, TimelineId] = attrs.field(factory=dict[str, TimelineId], init=False)
    _channels: dict[int, tuple[float, ...]] = attrs.field(
        factory=dict[int, tuple[float, ...]], init=False
    )
    """Channels that are listened to, each with the times at which to report all its timelines, because an append may
    have been missed."""

    @classmethod
    def of(cls, raw: "Connection[Any]", clock: Callable[[], float]) -> Self:
        """Prepare a connection for listening.

        Raises:
            PooledError: the connection goes through a pooler.
        """
        connection = PostgresConnection(raw)
        if is_pooled(raw):
            raise PooledError
        connection.run(PATIENCE)
        [(store, tenant)] = connection.rows(WHERE)
        connection.run(HOLD, [ANYBODY])
        return cls(connection, Scope(store, tenant), clock)

    @property
    def due(self) -> float:
        """The next time at which to report a timeline that may have been missed; infinity if there is none."""
        return min((dues[0] for dues in self._channels.values() if dues), default=float("inf"))

    def listen_to(self, timelines: Iterable[TimelineId]) -> None:
        """Listen to the channels of these timelines, and to no others."""
        marks = {timeline: self._scope.mark(timeline) for timeline in timelines}
        self._hashes = {mark.hash: timeline for timeline, mark in marks.items()}
        wanted = {mark.channel for mark in marks.values()}
        for channel in wanted - self._channels.keys():
            self.connection.run(f"LISTEN foldline_{channel}")  # before an appender can know of it
            self.connection.run(HOLD, [channel])
            now = self._clock()
            self._channels[channel] = (now, now + KNOWN_SECONDS)
        for channel in self._channels.keys() - wanted:
            self.connection.run(LET_GO, [channel])
            self.connection.run(f"UNLISTEN foldline_{channel}")
            del self._channels[channel]

    def heard(self) -> list[TimelineId]:
        """The timelines that have grown, or may have grown unnoticed."""
        told = {notify.payload for notify in self.connection.raw.notifies(timeout=0)}
        now = self._clock()
        missed = [channel for channel, dues in self._channels.items() if dues and dues[0] <= now]
        for channel in missed:
            self._channels[channel] = self._channels[channel][1:]
        return [
            timeline
            for hash_, timeline in self._hashes.items()
            if hash_ in told or (missed and self._scope.mark(timeline).channel in missed)
        ]


@attrs.define(eq=False)
class Listener:
    """Wakes watchers when other processes append. Its thread runs while there are watchers."""

    _connect: Callable[[], "Connection[Any]"]
    _watchers: Watchers
    _clock: Callable[[], float] = time.monotonic
    hears: bool = attrs.field(default=False, init=False)
    """Whether all appends of other processes are reported, except after a failure."""
    pid: int = attrs.field(default=0, init=False)
    """The process id of the server process of the listening connection; 0: there is none."""
    _is_over: bool = attrs.field(default=False, init=False)
    _thread: Thread | None = attrs.field(default=None, init=False)
    _bell: _Bell | None = attrs.field(default=None, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)

    def start(self) -> None:
        """Start the thread if it is not running, and have it look at the watchers."""
        with self._lock, suppress(RuntimeError, OSError):  # without a thread, watchers poll
            if self._thread is None and not self._is_over:
                self._bell = _Bell()
                thread = Thread(target=self._run, args=[self._bell], name=NAME, daemon=True)
                thread.start()
                self._thread = thread
        self.changed()

    def changed(self) -> None:
        """Have the thread look at the watchers. Takes no lock, because the garbage collector may call it."""
        if bell := self._bell:
            bell.ring()

    def close(self) -> None:
        """Stop listening for good."""
        self._is_over = True
        thread = self._thread
        self.changed()
        if thread:
            thread.join(CLOSE_SECONDS)

    def _run(self, bell: _Bell) -> None:
        import psycopg

        with closing(bell):
            pause, longest = PAUSES
            while self._goes_on():
                try:
                    with closing(self._connect()) as raw:
                        self._listen(_Ear.of(raw, self._clock), bell)
                except PooledError:
                    self._is_over = True
                except (psycopg.Error, OSError):
                    pause = PAUSES[0] if self.hears else min(2 * pause, longest)
                    self._lost()
                    bell.wait(pause * (0.5 + random()))  # noqa: S311 -- else all reconnect at once
                else:
                    self._lost()

    def _goes_on(self) -> bool:
        with self._lock:
            if self._is_over or not self._watchers.timelines():
                self._thread = None
            return self._thread is not None

    def _listen(self, ear: _Ear, bell: _Bell) -> None:
        raw = ear.connection.raw
        self.pid = raw.info.backend_pid
        known: tuple[TimelineId, ...] = ()
        while not self._is_over and (watched := self._watchers.timelines()):
            if watched != known:
                ear.listen_to(watched)
                known = watched
            for timeline in ear.heard():
                self._watchers.wake(timeline)
            self.hears = ear.due == float("inf")
            bell.wait(max(ear.due - self._clock(), 0), raw)

    def _lost(self) -> None:
        self.hears, self.pid = False, 0
        for timeline in self._watchers.timelines():
            self._watchers.wake(timeline)
