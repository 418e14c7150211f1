"""Artifacts in the file of a `DuckDBStore`, in three tables beside the log.

A piece is split into many small rows, its *parts*, because DuckDB loads 2,048 rows into memory at once.
Rows are inserted and never updated.  Only a sweep deletes rows, and checkpoints the write-ahead log right after.
There is no index, for the reasons given in `persistence.duckdb._tables`.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import msgspec

from persistence._store import StoreProblem
from persistence.artifacts._store import (
    DROP_PIECES,
    AuditRecord,
    Entry,
    Statement,
    TableBackend,
    encoded,
)
from persistence.artifacts._verify import examined

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Lend: TypeAlias = "Callable[[], AbstractContextManager[DuckDBPyConnection]]"

IS_THERE = """
SELECT count(*) FROM duckdb_tables()
WHERE table_name IN ('artifacts', 'artifact_pieces', 'artifact_audit')
"""
TABLES = (
    "CREATE TABLE artifacts(artifact VARCHAR NOT NULL, slot VARCHAR NOT NULL, entry JSON NOT NULL)",
    """CREATE TABLE artifact_pieces(slot VARCHAR NOT NULL, number BIGINT NOT NULL, piece BLOB NOT NULL,
                                    part BIGINT DEFAULT 0)""",
    "CREATE TABLE artifact_audit(record JSON NOT NULL)",
)
PART_BYTES = 1_500
LEFT_BEHIND = """
SELECT DISTINCT slot FROM artifact_pieces WHERE slot NOT IN (SELECT slot FROM artifacts)
"""
ADD_PIECE = "INSERT INTO artifact_pieces SELECT ?, ?, unnest(?), unnest(?)"
ADD_ENTRY = "INSERT INTO artifacts VALUES (?, ?, ?)"
ADD_RECORD = "INSERT INTO artifact_audit VALUES (?)"
PIECE = "SELECT piece FROM artifact_pieces WHERE slot = ? AND number = ? ORDER BY part"
RECORD_COUNT = "SELECT count(*) FROM artifact_audit"
ROWS = "SELECT artifact, slot, entry FROM artifacts ORDER BY ALL"
PIECE_COUNTS = "SELECT slot, count(DISTINCT number) FROM artifact_pieces GROUP BY slot"


@attrs.define(eq=False)
class DuckDBBackend(TableBackend):
    """The `TableBackend` of a DuckDB store, one per store. The store lends its cursors; while it lends one for writing, it
    appends nothing."""

    RECORDS = "SELECT record FROM artifact_audit ORDER BY rowid"
    _reading: Lend
    _writing: Lend
    _noted: Callable[[int], None]
    """Receives the number of durable audit records."""
    _records: int = attrs.field(default=0, init=False)

    def prepare(self) -> None:
        """Create the tables if the file has none, and remove content that interrupted puts left."""
        with self._writing() as cursor:
            [(there,)] = cursor.execute(IS_THERE).fetchall()
            missing = () if there else TABLES
            with _transaction(cursor):
                for statement in missing:
                    cursor.execute(statement)
                left = cursor.execute(LEFT_BEHIND).fetchall()
                for slot in left:
                    cursor.execute(DROP_PIECES, slot)
            if left or missing:
                cursor.execute("CHECKPOINT")
            [(self._records,)] = cursor.execute(RECORD_COUNT).fetchall()

    def fill(self, slot: str, pieces: Iterable[bytes]) -> None:
        """Commit each piece on its own, so that a slow producer does not block appends."""
        for number, piece in enumerate(pieces):
            parts = [piece[at : at + PART_BYTES] for at in range(0, len(piece), PART_BYTES)]
            self._write([(ADD_PIECE, [slot, number, parts, list(range(len(parts)))])])

    def enter(self, entry: Entry, record: AuditRecord) -> None:
        row = [entry.metadata.id, entry.slot, encoded(entry).decode()]
        self._write([self._audit(record), (ADD_ENTRY, row)])

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        for number in range(first, last + 1):
            if parts := self._column(PIECE, [slot, number]):
                yield b"".join(parts)

    def tidy(self, now: float) -> None:  # noqa: ARG002 -- no other process can be writing a piece
        with self._writing() as cursor:
            cursor.execute("CHECKPOINT")

    def _audit(self, record: AuditRecord) -> Statement:
        return ADD_RECORD, [msgspec.json.encode(record).decode()]

    def _column(self, query: str, values: Sequence[object]) -> list[Any]:
        with self._reading() as cursor:
            return [value for (value,) in cursor.execute(query, values).fetchall()]

    def _write(self, statements: Sequence[Statement]) -> None:
        with self._writing() as cursor:
            with _transaction(cursor):
                for statement, values in statements:
                    cursor.execute(statement, values)
            if records := sum(statement == ADD_RECORD for statement, _ in statements):
                self._records += records
                self._noted(self._records)


def examined_in(cursor: "DuckDBPyConnection") -> tuple[Sequence[Entry], Sequence[StoreProblem]]:
    """What `examined` finds in all rows, read in the current transaction of the cursor."""
    if cursor.execute(IS_THERE).fetchall() == [(0,)]:
        return (), ()
    return examined(
        cursor.execute(ROWS).fetchall(),
        dict(cursor.execute(PIECE_COUNTS).fetchall()),
        [data for (data,) in cursor.execute(DuckDBBackend.RECORDS).fetchall()],
    )


@contextmanager
def _transaction(cursor: "DuckDBPyConnection") -> Generator[None]:
    cursor.execute("BEGIN")
    try:
        yield
    except BaseException:
        cursor.execute("ROLLBACK")
        raise
    cursor.execute("COMMIT")
