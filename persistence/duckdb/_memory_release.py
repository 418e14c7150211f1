"""Releases the memory in which DuckDB caches what it has read and written, and checkpoints a long write-ahead log
after an append that is slow anyway.

DuckDB would cache blocks of the file until they fill most of the machine's memory.  A permanent `memory_limit` is no
solution: if a checkpoint does not get enough memory, the database is unusable until it is
opened again.  So the limit is lowered only for a moment in which nothing is read or written.
"""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from persistence.duckdb._cursors import CursorPool
from persistence.duckdb._group_commit import GroupCommit
from persistence.duckdb._schema import cursor_of, interrupts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from persistence.duckdb._append import Append

ENOUGH: Final = 4_000_000
"""Bytes read or written after which it is worth the while."""
LOW: Final = "SET GLOBAL memory_limit = '8MB'"
AGAIN: Final = "RESET GLOBAL memory_limit"
LARGE: Final = 256_000
"""Bytes of an append behind which the write-ahead log is looked at."""
LOG_BYTES_MAX: Final = 8_000_000
"""Half the size at which DuckDB checkpoints the write-ahead log by itself, during a commit for which all others wait."""
UNSAID = 4_000_000
"""Assumed size of a read or write of unknown size."""


@attrs.define(eq=False)
class Cache:
    """Counts what passes through the database; rough counts will do, so without a lock."""

    _connection: "DuckDBPyConnection"
    _group: "GroupCommit[Append]"
    _cursors: CursorPool
    _path: Path
    _passed: int = attrs.field(default=0, init=False)

    def passed(self, size: int = UNSAID) -> None:
        """So much was read or written; the caller holds no cursor and does not write."""
        self._passed += size
        if self._passed < ENOUGH:
            return
        with self._group.alone_at_once() as is_alone:
            if is_alone and self._cursors.when_idle(self._drop):
                self._passed = 0

    def written(self, size: int) -> None:
        """The same for an append: after a large append, the long write-ahead log is not left to threads with small
        appends."""
        if size >= LARGE and self._log_bytes() >= LOG_BYTES_MAX:
            with self._group.alone_at_once() as is_alone:
                if is_alone:
                    self._fold_log()
        self.passed(size)

    def _log_bytes(self) -> int:
        try:
            return self._path.with_name(f"{self._path.name}.wal").stat().st_size
        except OSError:  # there is none
            return 0

    @interrupts()
    def _fold_log(self) -> None:
        import duckdb

        # Where it fails the log stays, and is as durable there.
        with suppress(duckdb.Error), cursor_of(self._connection) as cursor:
            cursor.execute("CHECKPOINT")

    @interrupts()
    def _drop(self) -> None:
        import duckdb

        try:
            with suppress(duckdb.OutOfMemoryException):  # it gave back what it could
                self._connection.execute(LOW)
        finally:
            self._connection.execute(AGAIN)
