"""Connections to a server, opened when they are needed and lent to one thread at a time.

A thread of the pool opens them, so that nobody waits longer than it wants to, and an interrupt (Ctrl-C) loses none. While the
server is away, it tries to connect several times a second, at random moments; all others wait for it. So a server that
is back, or a standby that took over, is found within a second, and not by all threads of all processes at once.
"""

import os
import random
import time
from collections.abc import Callable
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import attrs

from blocks import ClosedError, StoreError
from persistence.sql._database import PassingError

if TYPE_CHECKING:
    from psycopg import Connection as Raw
    from psycopg.errors import Diagnostic

PAUSES: Final = (0.05, 0.4)
"""Seconds between two attempts to connect: the first pause, and the longest. Each is varied by half."""
IDLE_SECONDS: Final = 600.0
"""A connection that was not used for so long is closed when another one is given back."""
LOOK_SECONDS: Final = 1.0
"""How often who waits looks whether a connection was dropped by an interrupted thread."""


@attrs.define(eq=False)
class Lent:
    """A connection, and the warnings that the server has sent since it was lent.

    One that is dropped without being given back, because its thread was interrupted, is closed.
    """

    raw: "Raw[Any]"
    warnings: list[str] = attrs.field(factory=list[str])
    since: float = 0.0
    """When it was opened or given back."""
    _pid: int = attrs.field(factory=os.getpid, init=False)

    def __attrs_post_init__(self) -> None:
        warnings = self.warnings

        def note(notice: "Diagnostic") -> None:
            if notice.severity_nonlocalized == "WARNING":
                warnings.append((notice.message_primary or "")[:300])

        self.raw.add_notice_handler(note)

    def __del__(self) -> None:
        if os.getpid() == self._pid:  # in a forked child, it belongs to the parent
            self.raw.close()


class _Waiter:
    """Somebody who waits; gone with its thread's frame, also after an interrupt."""


@attrs.define(eq=False)
class Pool:
    """At most `size` connections, made by `connect`."""

    name: str
    """The name of the database, for messages."""
    _connect: Callable[[], "Raw[Any]"]
    size: int
    seconds: float
    """How long to wait for a connection."""
    _clock: Callable[[], float] = time.monotonic
    _sleep: Callable[[float], None] = time.sleep  # a default; tests pass their own
    _random: Callable[[], float] = random.random
    _turn: Condition = attrs.field(factory=Condition, init=False)
    """Held for each access to what follows; notified when one of them changes."""
    _free: list[Lent] = attrs.field(factory=list[Lent], init=False)
    """Those last used come last, and are lent first."""
    _all: WeakSet[Lent] = attrs.field(factory=WeakSet[Lent], init=False)
    _waiting: WeakSet[_Waiter] = attrs.field(factory=WeakSet[_Waiter], init=False)
    _opener: Thread | None = attrs.field(default=None, init=False)
    _failure: str = attrs.field(default="", init=False)
    """Why the latest attempt to connect failed; empty: it did not."""
    _closed: bool = attrs.field(default=False, init=False)

    def lend(self, seconds: float | None = None) -> Lent:
        """A connection, for which the caller waits at most `seconds` (None: those of the pool).

        Raises:
            ClosedError: the pool is closed.
            PassingError: there was none in time.
        """
        waiter, end = _Waiter(), self._clock() + (self.seconds if seconds is None else seconds)
        with self._turn:
            self._waiting.add(waiter)
            while True:
                if self._closed:
                    raise ClosedError(f"{self.name} is closed; open the store again")
                while self._free:
                    lent = self._free.pop()
                    if not lent.raw.closed:
                        lent.warnings.clear()
                        return lent
                    self._all.discard(lent)
                left = end - self._clock()
                if left <= 0:
                    raise self._none_in_time()
                self._open_more()
                self._turn.wait(min(left, LOOK_SECONDS))

    def give(self, lent: Lent) -> None:
        """Take a connection back."""
        lent.since = self._clock()
        idle: list[Lent] = []
        with self._turn:
            if lent.raw.closed or self._closed:
                self._all.discard(lent)
                idle.append(lent)
            else:
                self._free.append(lent)
                while self._free[0].since < lent.since - IDLE_SECONDS:
                    idle.append(self._free.pop(0))
                    self._all.discard(idle[-1])
            self._turn.notify()
        for each in idle:
            each.raw.close()

    def refresh(self) -> None:
        """Close the connections that are free now: the server may have failed."""
        with self._turn:
            old, self._free = self._free, []
            for lent in old:
                self._all.discard(lent)
            self._turn.notify_all()
        for lent in old:
            lent.raw.close()

    def close(self) -> None:
        """Refuse new borrowers, and close connections that are not in use."""
        self._closed = True
        self.refresh()

    def _open_more(self) -> None:
        """Start the thread that opens connections, if one more may be opened; the caller holds `_turn`."""
        if self._opener is None and self._is_wanted():
            opener = Thread(target=self._open, name="foldline-connect", daemon=True)
            try:
                opener.start()
            except RuntimeError as error:
                raise StoreError(f"{self.name}: no thread can be started: {error}") from error
            self._opener = opener

    def _is_wanted(self) -> bool:
        is_short = len(self._free) < len(self._waiting) and len(self._all) < self.size
        return is_short and not self._closed

    def _open(self) -> None:
        """Open connections as long as somebody waits for one."""
        import psycopg

        pause, longest = PAUSES
        while True:
            with self._turn:
                if not self._is_wanted():
                    self._opener = None
                    return
            if self._failure:
                self._sleep(pause * (0.5 + self._random()))  # else all knock at once
                pause = min(2 * pause, longest)
            try:
                lent, failure = Lent(self._connect(), since=self._clock()), ""
            except (psycopg.Error, OSError) as error:
                lent, failure = None, str(error).strip().partition("\n")[0][:300] or "no answer"
            with self._turn:
                self._failure = failure
                if lent and not self._closed:
                    self._all.add(lent)
                    self._free.append(lent)
                    pause = PAUSES[0]
                self._turn.notify_all()

    def _none_in_time(self) -> PassingError:
        why = (
            f"no connection to the server ({self._failure}); start it"
            if self._failure
            else f"no free connection: all {self.size} are in use, or the server does not answer; open the"
            " store with more"
        )
        return PassingError(
            f"{self.name}: within {self.seconds:.0f} seconds there was {why}, and repeat the call"
        )
