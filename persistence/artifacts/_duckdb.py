"""Artifacts in the file of a `DuckDBStore`, in three tables beside the log.

A piece is split into many small rows, its *parts*, because DuckDB loads 2,048 rows into memory at once.
Rows are inserted and never updated.  Only a sweep deletes rows, and checkpoints the write-ahead log right after.
There is no index, for the reasons given in `persistence.duckdb._tables`.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import attrs
import msgspec

from persistence.artifacts._store import AuditRecord, Entry, decoded, decoded_records, encoded
from persistence.artifacts._verify import ArtifactTables

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
DROP_PIECES = "DELETE FROM artifact_pieces WHERE slot = ?"
DROP_ENTRY = "DELETE FROM artifacts WHERE slot = ?"
ENTRIES = "SELECT entry FROM artifacts"
ENTRIES_OF = "SELECT entry FROM artifacts WHERE artifact = ?"
PIECE = "SELECT piece FROM artifact_pieces WHERE slot = ? AND number = ? ORDER BY part"
RECORDS = "SELECT record FROM artifact_audit ORDER BY rowid"
RECORD_COUNT = "SELECT count(*) FROM artifact_audit"
ROWS = "SELECT artifact, slot, entry FROM artifacts ORDER BY ALL"
PIECE_COUNTS = "SELECT slot, count(DISTINCT number) FROM artifact_pieces GROUP BY slot"


@attrs.define(eq=False)
class DuckDBReader:
    """Reads the artifacts with cursors that are lent."""

    _reading: Lend

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        query, values = (ENTRIES, []) if artifact is None else (ENTRIES_OF, [artifact])
        with self._reading() as cursor:
            rows = cursor.execute(query, values).fetchall()
        return [decoded(data, "table artifacts") for (data,) in rows]

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        for number in range(first, last + 1):
            with self._reading() as cursor:
                rows = cursor.execute(PIECE, [slot, number]).fetchall()
            if rows:
                yield b"".join(part for (part,) in rows)


@attrs.define(eq=False)
class DuckDBBackend(DuckDBReader):
    """A `Backend` in the file of a DuckDB store, one per store. The store lends its cursors; while it lends one for
    writing, it appends nothing."""

    _writing: Lend
    _noted: Callable[[int], None]
    """Receives the number of durable audit records."""
    lock: Lock = attrs.field(factory=Lock, init=False, repr=False)
    _records: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
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
            with self._writing() as cursor:
                cursor.execute(ADD_PIECE, [slot, number, parts, list(range(len(parts)))])

    def enter(self, entry: Entry, record: AuditRecord) -> None:
        row = [entry.metadata.id, entry.slot, encoded(entry).decode()]
        with self._recording(record) as cursor:
            cursor.execute(ADD_ENTRY, row)

    def remove(self, entry: Entry, record: AuditRecord) -> None:
        with self._recording(record) as cursor:
            cursor.execute(DROP_PIECES, [entry.slot])
            cursor.execute(DROP_ENTRY, [entry.slot])

    def discard(self, slot: str) -> None:
        with self._writing() as cursor:
            cursor.execute(DROP_PIECES, [slot])

    def tidy(self, now: float) -> None:  # noqa: ARG002 -- no other process can be writing a piece
        with self._writing() as cursor:
            cursor.execute("CHECKPOINT")

    def record(self, record: AuditRecord) -> None:
        with self._recording(record):
            pass

    @contextmanager
    def _recording(self, record: AuditRecord) -> "Generator[DuckDBPyConnection]":
        """The changes made with the cursor and the audit record: both are committed, or neither."""
        with self._writing() as cursor:
            with _transaction(cursor):
                cursor.execute(ADD_RECORD, [msgspec.json.encode(record).decode()])
                yield cursor
            self._records += 1
            self._noted(self._records)

    def records(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        with self._reading() as cursor:
            rows = cursor.execute(RECORDS).fetchall()
        return decoded_records((data for (data,) in rows), "table artifact_audit", artifact)

    def close(self) -> None:
        pass  # the store closes the file


def tables_of(cursor: "DuckDBPyConnection") -> ArtifactTables:
    """All rows, read in the current transaction of the cursor."""
    if cursor.execute(IS_THERE).fetchall() == [(0,)]:
        return ArtifactTables()
    return ArtifactTables(
        rows=cursor.execute(ROWS).fetchall(),
        pieces=dict(cursor.execute(PIECE_COUNTS).fetchall()),
        records=[data for (data,) in cursor.execute(RECORDS).fetchall()],
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
