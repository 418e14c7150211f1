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
"""The largest number of items in one commit."""

MOMENT = 0.00001
"""Seconds of one short wait. The operating system adds about 60 us, enough for several threads to arrive."""
MOMENTS_MAX = 16
"""The largest number of short waits before a commit."""


def _locked() -> Lock:
    lock = Lock()
    lock.acquire()
    return lock


@attrs.define(eq=False)
class _Ticket(Generic[T]):
    item: T
    leads: bool = False
    is_seen: bool = False
    """Whether a leader has passed the item to `commit`."""
    has_left: bool = False
    """Whether the ticket has left the queue, and passed the lead on if it had it."""
    turn: Lock = attrs.field(factory=_locked)
    """A lock that is released when the item was committed, or when this ticket becomes the leader."""


@attrs.define(eq=False)
class GroupCommit(Generic[T]):
    """Runs `commit` on batches of items, one batch at a time; `commit` stores its results in the items.

    A waiting thread is the leader: it commits all waiting items, then the first thread left becomes the leader.
    """

    _commit: Callable[[Sequence[T]], None]
    _waiting: list[_Ticket[T]] = attrs.field(factory=list[_Ticket[T]], init=False)
    _busy: bool = attrs.field(default=False, init=False)
    _around: int = attrs.field(default=0, init=False)
    """The number of items in the last commit, plus those that were waiting when it ended."""
    _mutex: Lock = attrs.field(factory=Lock, init=False)
    _committing: Lock = attrs.field(factory=Lock, init=False)

    def submit(self, item: T) -> None:
        """Return once `commit` has handled `item`; items are committed in the order of their arrival."""
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
                if not ticket.has_left:  # an interrupt stopped the first attempt
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
                _wake(batch)  # those that an interrupt left asleep

    def _gather(self) -> None:
        """Wait briefly for the threads of the last commit to submit again; a lone thread does not wait."""
        seen = 0
        for _ in range(MOMENTS_MAX):
            if not seen < len(self._waiting) < self._around:
                return
            seen = len(self._waiting)
            sleep(MOMENT)

    def _leave(self, ticket: _Ticket[T]) -> None:
        """Take the ticket out of the queue; if it is the leader, make the first waiting ticket the leader.

        If an interrupt stops this method, calling it again completes it: CPython raises an interrupt only at the start
        of a function, after a call and at the end of a loop iteration, never between setting a flag and the
        release of the lock that the flag stands for.
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
        """Inside this block, nothing is committed except by the block itself."""
        with self._committing:
            yield

    @contextmanager
    def alone_at_once(self) -> Generator[bool]:
        """Like `alone`, but do not wait: yield False if a commit is running."""
        is_alone = self._committing.acquire(blocking=False)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._committing.release()


def _wake(batch: Sequence[_Ticket[T]]) -> None:
    """Release the threads whose items were committed, each once."""
    for ticket in batch:
        if not ticket.is_seen:
            ticket.is_seen = True
            ticket.turn.release()
