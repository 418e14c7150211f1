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
"""Bytes read or written after which the database's cache is emptied."""
LOW: Final = "SET GLOBAL memory_limit = '8MB'"
AGAIN: Final = "RESET GLOBAL memory_limit"
LARGE: Final = 256_000
"""Bytes of an append after which the size of the write-ahead log is checked."""
LOG_BYTES_MAX: Final = 8_000_000
"""Bytes of a write-ahead log that is checkpointed at once. DuckDB does so at twice this size, during a commit for
which all other appends wait."""
UNSAID = 4_000_000
"""Bytes to count for a read or a write of unknown size."""


@attrs.define(eq=False)
class Cache:
    """Counts the bytes read and written, and empties the database's cache. Without a lock: rough counts suffice."""

    _connection: "DuckDBPyConnection"
    _group: "GroupCommit[Append]"
    _cursors: CursorPool
    _path: Path
    _passed: int = attrs.field(default=0, init=False)

    def passed(self, size: int = UNSAID) -> None:
        """Count `size` bytes read or written; the caller must not hold a cursor or be committing."""
        self._passed += size
        if self._passed < ENOUGH:
            return
        with self._group.alone_at_once() as is_alone:
            if is_alone and self._cursors.when_idle(self._drop):
                self._passed = 0

    def written(self, size: int) -> None:
        """Count an append of `size` bytes. If a large one leaves a long write-ahead log, checkpoint it now, so that
        later small appends do not have to wait for that."""
        if size >= LARGE and self._log_bytes() >= LOG_BYTES_MAX:
            with self._group.alone_at_once() as is_alone:
                if is_alone:
                    self._fold_log()
        self.passed(size)

    def _log_bytes(self) -> int:
        try:
            return self._path.with_name(f"{self._path.name}.wal").stat().st_size
        except OSError:  # there is no log
            return 0

    @interrupts()
    def _fold_log(self) -> None:
        import duckdb

        # If this fails, the log stays, and the events in it are as durable.
        with suppress(duckdb.Error), cursor_of(self._connection) as cursor:
            cursor.execute("CHECKPOINT")

    @interrupts()
    def _drop(self) -> None:
        import duckdb

        try:
            with suppress(duckdb.OutOfMemoryException):  # DuckDB has released what it could
                self._connection.execute(LOW)
        finally:
            self._connection.execute(AGAIN)
