"""Gives back the memory in which DuckDB keeps what it has read and written.

It would keep blocks of the file until they fill most of the machine.  A lasting `memory_limit` is no way
out: a checkpoint that does not get what it needs leaves a database that nobody can use until it is
opened again.  So the limit is low for a moment only, in which nobody reads and nobody writes.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs

from persistence.duckdb._cursors import CursorPool
from persistence.duckdb._group_commit import GroupCommit
from persistence.duckdb._schema import interrupts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from persistence.duckdb._append import Append

ENOUGH: Final = 4_000_000
"""Bytes read or written after which it is worth the while."""
LOW: Final = "SET GLOBAL memory_limit = '8MB'"
AGAIN: Final = "RESET GLOBAL memory_limit"
UNSAID = 4_000_000
"""What somebody has read or written who does not say how much."""


@attrs.define(eq=False)
class Cache:
    """Counts what passes through the database; rough counts will do, so without a lock."""

    _connection: "DuckDBPyConnection"
    _group: "GroupCommit[Append]"
    _cursors: CursorPool
    _passed: int = attrs.field(default=0, init=False)

    def passed(self, size: int = UNSAID) -> None:
        """So much was read or written; the caller holds no cursor and does not write."""
        self._passed += size
        if self._passed < ENOUGH:
            return
        with self._group.alone_at_once() as is_alone:
            if is_alone and self._cursors.when_idle(self._drop):
                self._passed = 0

    @interrupts()
    def _drop(self) -> None:
        import duckdb

        try:
            with suppress(duckdb.OutOfMemoryException):  # it gave back what it could
                self._connection.execute(LOW)
        finally:
            self._connection.execute(AGAIN)
