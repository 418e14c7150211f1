"""Connections to a server, opened when they are needed and lent to one thread at a time.

While the server is away, one thread of the process tries to connect, several times a second and at random moments; the
others wait for it. So a server that is back, or a standby that took over, is found within a second, and not by all
threads of all processes at once.
"""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from queue import Empty, LifoQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import attrs

from blocks import ClosedError
from persistence.sql._database import PassingError

if TYPE_CHECKING:
    from psycopg import Connection as Raw
    from psycopg.errors import Diagnostic

PAUSES: Final = (0.05, 0.4)
"""Seconds between two attempts to connect: the first pause, and the longest. Each is varied by half."""
IDLE_SECONDS: Final = 600.0
"""A connection that was not used for so long is closed when another one is given back."""


@attrs.define(eq=False)
class Lent:
    """A connection, and the warnings that the server has sent since it was lent."""

    raw: "Raw[Any]"
    warnings: list[str] = attrs.field(factory=list[str])
    since: float = 0.0
    """When it was given back."""

    def __attrs_post_init__(self) -> None:
        self.raw.add_notice_handler(self._note)

    def _note(self, notice: "Diagnostic") -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.warnings.append((notice.message_primary or "")[:300])


class _Places(LifoQueue["Lent | None"]):
    """The places of connections: those last used come first, and empty places come last."""

    def _put(self, item: "Lent | None") -> None:
        self.queue.insert(len(self.queue) if item else 0, item)

    def idle(self, before: float) -> "Lent | None":
        """Take out the connection that was not used for longest, if it was given back before a time."""
        with self.mutex:
            for place, lent in enumerate(self.queue):
                if lent is not None:
                    if lent.since < before:
                        self.queue[place] = None
                        return lent
                    break
        return None


@attrs.define(eq=False)
class Pool:
    """At most `size` connections, made by `connect`, which gets a limit of seconds."""

    name: str
    """The name of the database, for messages."""
    _connect: Callable[[int], "Raw[Any]"]
    size: int
    seconds: float
    """How long to wait for a connection."""
    _clock: Callable[[], float] = time.monotonic
    _sleep: Callable[[float], None] = time.sleep  # a default; tests pass their own
    _random: Callable[[], float] = random.random
    _places: _Places = attrs.field(factory=_Places, init=False)
    _knocking: Lock = attrs.field(factory=Lock, init=False)
    """Held by the thread that tries to connect while the server is away."""
    _failure: str = attrs.field(default="", init=False)
    """Why the latest attempt to connect failed; empty: it did not."""
    _refreshed: float = attrs.field(default=float("-inf"), init=False)
    """Connections that were given back before are not lent again."""
    _closed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        for _ in range(self.size):
            self._places.put(None)

    def lend(self, seconds: float | None = None) -> Lent:
        """A connection, for which the caller waits at most `seconds` (None: those of the pool).

        Raises:
            ClosedError: the pool is closed.
            PassingError: there was none in time.
        """
        end = self._clock() + (self.seconds if seconds is None else seconds)
        try:
            lent = self._places.get(timeout=max(end - self._clock(), 0))
        except Empty:
            raise self._none_in_time() from None
        if lent and not lent.raw.closed and lent.since > self._refreshed:
            lent.warnings.clear()
            return lent
        try:
            _close(lent)
            return self._opened(end)
        except BaseException:
            self._places.put(None)
            raise

    def give(self, lent: Lent) -> None:
        """Take a connection back."""
        lent.since = self._clock()
        if self._closed or lent.raw.closed:
            _close(lent)
            self._places.put(None)
            return
        self._places.put(lent)
        _close(self._places.idle(lent.since - IDLE_SECONDS))

    def refresh(self) -> None:
        """Lend no connection again that is free now: the server may have failed."""
        self._refreshed = self._clock()

    def close(self) -> None:
        """Refuse new borrowers, and close connections that are not in use."""
        self._closed = True
        while lent := self._places.idle(float("inf")):
            _close(lent)

    def _opened(self, end: float) -> Lent:
        """A new connection; after an attempt has failed, one thread at a time makes the next one."""
        import psycopg

        if not self._failure and not self._closed:
            with suppress(psycopg.Error, OSError):
                return self._attempt(end)
        if not self._knocking.acquire(timeout=max(end - self._clock(), 0)):
            raise self._none_in_time()
        try:
            pause, longest = PAUSES
            while not self._closed:
                rest = pause * (0.5 + self._random()) if self._failure else 0.0
                if self._clock() + rest > end:
                    raise self._none_in_time()
                self._sleep(rest)
                pause = min(2 * pause, longest)
                with suppress(psycopg.Error, OSError):
                    return self._attempt(end)
        finally:
            self._knocking.release()
        raise self._over()

    def _attempt(self, end: float) -> Lent:
        import psycopg

        try:
            lent = Lent(self._connect(max(ceil(end - self._clock()), 1)))
        except (psycopg.Error, OSError) as error:
            self._failure = str(error).strip().partition("\n")[0][:300] or type(error).__name__
            raise
        self._failure = ""
        return lent

    def _over(self) -> ClosedError:
        return ClosedError(f"{self.name} is closed; open the store again")

    def _none_in_time(self) -> PassingError:
        why = (
            f"no connection to the server ({self._failure}); start it"
            if self._failure
            else f"no free connection: all {self.size} are in use; open the store with more"
        )
        return PassingError(
            f"{self.name}: within {self.seconds:.0f} seconds there was {why}, and repeat the call"
        )


def _close(lent: Lent | None) -> None:
    import psycopg

    if lent is None:
        return
    with suppress(psycopg.Error, OSError):
        lent.raw.close()
