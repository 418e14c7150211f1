"""Cursors for reading: one per thread at a time, kept for the next."""

from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Condition
from typing import TYPE_CHECKING

import attrs

from blocks import ClosedError
from persistence.duckdb._schema import cursor_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PATIENCE_SECONDS = 5.0
"""How long `alone` waits for readers. Not longer, because the caller itself may hold a cursor."""


@attrs.define(eq=False)
class CursorPool:
    """Lends cursors of one connection; two threads on one cursor would mix up their rows."""

    _connection: "DuckDBPyConnection"
    _idle: "deque[DuckDBPyConnection]" = attrs.field(
        factory=deque["DuckDBPyConnection"], init=False
    )
    _lent: int = attrs.field(default=0, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _change: Condition = attrs.field(factory=Condition, init=False)

    @contextmanager
    def borrow(self) -> "Generator[DuckDBPyConnection]":
        with self._change:
            if self._closed:
                raise ClosedError("this store is closed; open it again")
            cursor = self._idle.pop() if self._idle else cursor_of(self._connection)
            self._lent += 1
        try:
            yield cursor
        finally:
            with self._change:
                self._lent -= 1
                self._idle.append(cursor)
                self._change.notify_all()

    def when_idle(self, action: Callable[[], None]) -> bool:
        """Run `action` if no cursor is lent, and lend none meanwhile; return whether it ran."""
        with self._change:
            if self._lent or self._closed:
                return False
            action()
            return True

    def alone(self, action: Callable[[], None]) -> bool:
        """Like `when_idle`, but wait up to `PATIENCE_SECONDS` until no cursor is lent."""
        with self._change:
            if not self._change.wait_for(lambda: self._lent == 0, PATIENCE_SECONDS):
                return False
            return self.when_idle(action)

    def abandon(self) -> None:
        """Close the idle cursors and do not wait for lent ones: the store was dropped, and its readers with it."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        """Lend no more cursors, wait until all are returned, then close them."""
        with self._change:
            self._closed = True
            self._change.wait_for(lambda: self._lent == 0)
            for cursor in self._idle:
                cursor.close()
            self._idle.clear()
