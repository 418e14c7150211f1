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
"""Seconds to wait for a reader of a page; a reader that holds a cursor longer may itself be waiting."""


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
        """Run it if no thread reads; return whether it ran."""
        with self._change:
            if self._lent or self._closed:
                return False
            action()
            return True

    def alone(self, action: Callable[[], None]) -> bool:
        """The same, but wait a moment for readers."""
        with self._change:
            if not self._change.wait_for(lambda: self._lent == 0, PATIENCE_SECONDS):
                return False
            return self.when_idle(action)

    def abandon(self) -> None:
        """Close the cursors that no thread uses; threads with the others are ending, too, and are not waited for."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        """Let no new reader in, wait for the others, then close the cursors."""
        with self._change:
            self._closed = True
            self._change.wait_for(lambda: self._lent == 0)
            for cursor in self._idle:
                cursor.close()
            self._idle.clear()
