"""Group commit: items of threads that wait at the same time are committed together.

There is no writer thread.  The first thread becomes the leader: it commits its own item and all waiting items,
wakes their threads, and makes the first remaining thread the next leader.  A single appender
has no hand-over cost, and 64 appenders share one fsync.

Threads that append again at once return one after the other. If the first of them committed alone, the
others would wait for an fsync without their items, and then for a second one. So the leader
first waits for the threads of the last batch, as long as they keep arriving.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from threading import Lock
from time import sleep
from typing import Generic, TypeVar

import attrs

T = TypeVar("T")

BATCH_MAX = 1024
"""Largest number of items in one commit."""

MOMENT = 0.00001
"""Seconds of one pause, to which the operating system adds some 60 us; several threads can return during it."""
MOMENTS_MAX = 16
"""Largest number of such pauses before one commit."""


def _locked() -> Lock:
    lock = Lock()
    lock.acquire()
    return lock


@attrs.define(eq=False)
class _Ticket(Generic[T]):
    item: T
    leads: bool = False
    is_seen: bool = False
    """Whether another thread has committed the item."""
    has_left: bool = False
    """Whether the lead, if it was this ticket's, was passed on."""
    turn: Lock = attrs.field(factory=_locked)
    """Released when the item was committed, or when it is this ticket's turn to lead."""


@attrs.define(eq=False)
class GroupCommit(Generic[T]):
    """Runs `commit` on batches, one batch at a time; `commit` reports results in the items."""

    _commit: Callable[[Sequence[T]], None]
    _waiting: list[_Ticket[T]] = attrs.field(factory=list[_Ticket[T]], init=False)
    _busy: bool = attrs.field(default=False, init=False)
    _around: int = attrs.field(default=0, init=False)
    """Number of items that were in the last commit or waited for its end."""
    _mutex: Lock = attrs.field(factory=Lock, init=False)
    _committing: Lock = attrs.field(factory=Lock, init=False)

    def submit(self, item: T) -> None:
        """Submit an item, and return once `commit` has handled it; items are handled in the order of their arrival."""
        ticket = _Ticket(item)
        try:
            with self._mutex:
                self._waiting.append(ticket)
                ticket.leads = not self._busy
                self._busy = True
            if not ticket.leads:
                ticket.turn.acquire()
            if ticket.leads:
                self._lead()
        finally:
            try:
                self._leave(ticket)
            finally:
                if not ticket.has_left:  # an interrupt struck on the way out
                    self._leave(ticket)

    def _lead(self) -> None:
        batch: list[_Ticket[T]] = []
        try:
            self._gather()
            with self._mutex:
                batch = self._waiting[:BATCH_MAX]
                del self._waiting[:BATCH_MAX]
            with self._committing:
                self._commit([ticket.item for ticket in batch])
            self._around = len(batch) + len(self._waiting)
        finally:
            try:
                _wake(batch)
            finally:
                _wake(batch)  # those that an interrupt left out

    def _gather(self) -> None:
        """Wait for the threads of the last batch to return; a single thread does not wait."""
        seen = 0
        for _ in range(MOMENTS_MAX):
            if not seen < len(self._waiting) < self._around:
                return
            seen = len(self._waiting)
            sleep(MOMENT)

    def _leave(self, ticket: _Ticket[T]) -> None:
        """Pass the lead on. Also the way out of an interrupt, wherever it struck: begun once more, it goes on.

        CPython raises an interrupt at the beginning of a function, behind a call and at the end of a turn of a
        loop; nothing of that lies between a flag and the release that it tells of.
        """
        if ticket.is_seen and not ticket.leads:
            ticket.has_left = True
            return
        with self._mutex:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if not ticket.leads:
                ticket.has_left = True
                return
            next_leader = self._waiting[0] if self._waiting else None
            self._busy = next_leader is not None
            ticket.has_left = True
            if next_leader:
                next_leader.leads = True
                next_leader.turn.release()

    @contextmanager
    def alone(self) -> Generator[None]:
        """Inside this block, only the block itself commits."""
        with self._committing:
            yield

    @contextmanager
    def alone_at_once(self) -> Generator[bool]:
        """The same without waiting; gives False if a commit is running."""
        is_alone = self._committing.acquire(blocking=False)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._committing.release()


def _wake(batch: Sequence[_Ticket[T]]) -> None:
    """Wake the threads whose items were committed, each once."""
    for ticket in batch:
        if not ticket.is_seen:
            ticket.is_seen = True
            ticket.turn.release()
