"""Notifications of appends: a store tells other processes of its appends, and hears of theirs.

They go through NOTIFY channels.  A timeline belongs to one of a few channels, by a hash of its name, its tenant and the
store's table; a notification contains only the hash.  A listener on a channel holds a shared advisory lock with the
channel's number, and another one that shows that anybody listens at all.  So an appender can find out whether there
is a listener, and the locks are released with the connection.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from functools import partial
from hashlib import blake2b
from random import random
from selectors import EVENT_READ, DefaultSelector
from socket import socket, socketpair
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import attrs

from blocks import FoldlineError, TimelineId
from persistence._log import Wake, Watchers
from persistence.postgres._address import TENANT, is_pooled
from persistence.postgres._database import PostgresConnection, PostgresDatabase
from persistence.sql._database import Patience

if TYPE_CHECKING:
    from psycopg import Connection

CHANNELS: Final = 32
"""The number of channels. A listener holds a lock for each, at most half of the 64 per connection that a server allows
for by default."""
LOCKS: Final = 731003324
"""The first key of all these advisory locks; an arbitrary number."""
ANYBODY: Final = CHANNELS
"""The second key of the lock that every listener holds."""
LOOK_SECONDS: Final = 1.0
"""How long an appender relies on what it last learned about listeners."""
SCOPE: Final = f"to_regclass('stored_events')::oid::bigint, {TENANT}"


class Notification(NamedTuple):
    """The notification about a timeline: its channel, and a hash of the timeline as payload."""

    channel: int
    hash: str


@attrs.frozen
class Scope:
    """The store and tenant of a timeline; a store is identified by the object id of its table."""

    store: int
    tenant: str

    def notification(self, timeline: TimelineId) -> Notification:
        name = f"{self.store}\0{self.tenant}\0{timeline}".encode()
        digest = blake2b(name, digest_size=8)
        return Notification(digest.digest()[0] % CHANNELS, digest.hexdigest())


class Hints(Watchers):
    """The watchers of one store, with its listener and its notifier."""

    def __init__(
        self, database: PostgresDatabase, connect: "Callable[[], Connection[Any]]"
    ) -> None:
        super().__init__()
        self.listener = Listener(connect, self)
        self._notifier = Notifier(database, lambda: self.listener.pid)

    def add(self, timeline_id: TimelineId, wake: Wake) -> Callable[[], None]:
        end = super().add(timeline_id, wake)

        def ended() -> None:
            end()
            self.listener.changed()

        self.listener.start()
        return ended

    def grown(self, timeline_id: TimelineId) -> None:
        super().grown(timeline_id)
        self._notifier.appended(timeline_id)

    def closed(self) -> None:
        super().closed()
        self._notifier.close()
        self.listener.close()


# Notifying listeners in other processes that a timeline has grown.
#
# A NOTIFY holds a lock of the whole server until its transaction ends. Inside an append's transaction it would
# make all commits wait for one another's disk write.  Here it is a statement of its own that changes no
# row, so the server need not flush anything for it.  It is sent from a separate thread, so that no append
# waits for it; one statement covers all appends since the last one; and it is sent only if somebody listens.

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
    _pending: set[Notification] = attrs.field(factory=set[Notification], init=False)
    _sending: Future[None] | None = attrs.field(default=None, init=False)
    _lock: Lock = attrs.field(factory=Lock, init=False)
    _thread: ThreadPoolExecutor = attrs.field(
        factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="foldline-notify"), init=False
    )
    """Started with the first notification."""

    def appended(self, timeline: TimelineId) -> None:
        """Notify listeners soon, if there are any."""
        if self._clock() >= self._look_at:
            self._look()
        if self._channels and self._scope:
            notification = self._scope.notification(timeline)
            if notification.channel in self._channels:
                self._notify(notification)

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

    def _notify(self, notification: Notification) -> None:
        with self._lock:
            is_due = not self._pending
            self._pending.add(notification)
            if is_due:
                with suppress(RuntimeError):  # the notifier is being closed
                    self._sending = self._thread.submit(self._send)

    def _send(self) -> None:
        with self._lock:
            notifications, self._pending = [*self._pending], set()
        columns = [list(column) for column in zip(*notifications, strict=True)]
        with suppress(FoldlineError):
            Patience(seconds=CLOSE_SECONDS).repeated(partial(self._tell, columns))
        time.sleep(REST_SECONDS)

    def _tell(self, columns: list[list[object]]) -> None:
        with self._database.lent(CLOSE_SECONDS) as connection:
            connection.run(TELL, columns)


# Listening for appends of other processes: one connection and one thread per store, while it has watchers.
#
# Notifications are only hints.  Watchers also poll from time to time, and are woken whenever a notification may have
# been missed: when listening on a channel begins, when all appenders must have noticed this, and when it ends.

WHERE: Final = f"SELECT {SCOPE}"
HOLD: Final = f"SELECT pg_advisory_lock_shared({LOCKS}, ?)"
LET_GO: Final = f"SELECT pg_advisory_unlock_shared({LOCKS}, ?)"
PATIENCE: Final = "SET lock_timeout = '2s'"
"""How long to wait for an advisory lock. Only appenders compete for them, and only for an instant."""
KNOWN_SECONDS: Final = LOOK_SECONDS + 0.2
"""Seconds after which all appenders know of a new listener."""
PAUSES: Final = (0.1, 5.0)
"""Seconds between two attempts to connect: the first pause, and the longest."""
JOIN_SECONDS: Final = 2.0
NAME: Final = "foldline-listen"


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
        """Prepare a connection for listening."""
        connection = PostgresConnection(raw)
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
        notifications = {timeline: self._scope.notification(timeline) for timeline in timelines}
        self._hashes = {each.hash: timeline for timeline, each in notifications.items()}
        wanted = {each.channel for each in notifications.values()}
        for channel in wanted - self._channels.keys():
            self.connection.run(f"LISTEN foldline_{channel}")  # before an appender can know of it
            self.connection.run(HOLD, [channel])
            now = self._clock()
            self._channels[channel] = (now, now + KNOWN_SECONDS)
        for channel in self._channels.keys() - wanted:
            self.connection.run(LET_GO, [channel])
            self.connection.run(f"UNLISTEN foldline_{channel}")
            del self._channels[channel]

    def grown(self) -> list[TimelineId]:
        """The timelines that have grown, or may have grown unnoticed."""
        hashes = {notify.payload for notify in self.connection.raw.notifies(timeout=0)}
        now = self._clock()
        missed = [channel for channel, dues in self._channels.items() if dues and dues[0] <= now]
        for channel in missed:
            self._channels[channel] = self._channels[channel][1:]
        return [
            timeline
            for hash_, timeline in self._hashes.items()
            if hash_ in hashes or (missed and self._scope.notification(timeline).channel in missed)
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
            thread.join(JOIN_SECONDS)

    def _run(self, bell: _Bell) -> None:
        import psycopg

        with closing(bell):
            pause, longest = PAUSES
            while self._goes_on():
                try:
                    with closing(self._connect()) as raw:
                        if is_pooled(raw):  # a pooler shares a connection between clients
                            self._is_over = True
                            continue
                        self._listen(_Ear.of(raw, self._clock), bell)
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
        current: tuple[TimelineId, ...] = ()
        while not self._is_over and (watched := self._watchers.timelines()):
            if watched != current:
                ear.listen_to(watched)
                current = watched
            for timeline in ear.grown():
                self._watchers.wake(timeline)
            self.hears = ear.due == float("inf")
            bell.wait(max(ear.due - self._clock(), 0), raw)

    def _lost(self) -> None:
        self.hears, self.pid = False, 0
        for timeline in self._watchers.timelines():
            self._watchers.wake(timeline)
