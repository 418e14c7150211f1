"""Artifacts in the file of a `DuckDBStore`, in three tables beside the log.

A piece is split into many small rows, its *parts*, because DuckDB loads 2,048 rows into memory at once.
Rows are inserted and never updated.  Only a sweep deletes rows, and checkpoints the write-ahead log right after.
There is no index, for the reasons given in `persistence.duckdb._tables`.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import attrs
import msgspec

from persistence.artifacts._store import AuditRecord, Entry, decoded, decoded_records, encoded
from persistence.artifacts._verify import ArtifactTables
from persistence.duckdb._file import errors

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
HAS_PARTS = """
SELECT count(*) FROM duckdb_columns() WHERE table_name = 'artifact_pieces' AND column_name = 'part'
"""
ADD_PARTS = "ALTER TABLE artifact_pieces ADD COLUMN part BIGINT DEFAULT 0"
"""Adds the column to a file of an earlier version, where a piece is one row."""
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
WHOLE_PIECE = "SELECT piece FROM artifact_pieces WHERE slot = ? AND number = ?"
RECORDS = "SELECT record FROM artifact_audit ORDER BY rowid"
RECORD_COUNT = "SELECT count(*) FROM artifact_audit"
ROWS = "SELECT artifact, slot, entry FROM artifacts ORDER BY ALL"
PIECE_COUNTS = "SELECT slot, count(DISTINCT number) FROM artifact_pieces GROUP BY slot"


@attrs.define(eq=False)
class DuckDBBackend:
    """A `Backend` in the file of a DuckDB store, one per store. The store lends its cursors; while it lends one for
    writing, it appends nothing."""

    _reading: Lend
    _writing: Lend
    _noted: Callable[[int], None]
    """Receives the number of durable audit records."""
    lock: Lock = attrs.field(factory=Lock, init=False, repr=False)
    _records: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        """Create the tables if the file has none, and remove content that interrupted puts left."""
        with self._writing() as cursor:
            [(there,)] = cursor.execute(IS_THERE).fetchall()
            [(has_parts,)] = cursor.execute(HAS_PARTS).fetchall()
            missing = TABLES if not there else () if has_parts else (ADD_PARTS,)
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

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        with self._reading() as cursor:
            return _entries(cursor, artifact)

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        for number in range(first, last + 1):
            with self._reading() as cursor:
                found = cursor.execute(PIECE, [slot, number]).fetchall()
            if found:
                yield _joined(found)

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
                cursor.execute(ADD_RECORD, [_json(record)])
                yield cursor
            self._records += 1
            self._noted(self._records)

    def records(self, artifact: str | None = None) -> Sequence[AuditRecord]:
        with self._reading() as cursor:
            rows = cursor.execute(RECORDS).fetchall()
        return decoded_records((data for (data,) in rows), "table artifact_audit", artifact)

    def close(self) -> None:
        pass  # the store closes the file


@attrs.define
class DuckDBReader:
    """Reads the same tables with one cursor; they may be missing."""

    _cursor: "DuckDBPyConnection"
    _path: Path
    is_there: bool = attrs.field(init=False)
    _piece: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.is_there = self._cursor.execute(IS_THERE).fetchall() != [(0,)]
        has_parts = self._cursor.execute(HAS_PARTS).fetchall() != [(0,)]
        self._piece = PIECE if has_parts else WHOLE_PIECE

    def entries(self, artifact: str | None = None) -> Sequence[Entry]:
        with errors(self._path):
            return _entries(self._cursor, artifact) if self.is_there else ()

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        for number in range(first, last + 1):
            with errors(self._path):
                found = self._cursor.execute(self._piece, [slot, number]).fetchall()
            if found:
                yield _joined(found)

    def tables(self) -> ArtifactTables:
        """All rows, read in the current transaction of the cursor."""
        if not self.is_there:
            return ArtifactTables()
        with errors(self._path):
            return ArtifactTables(
                rows=self._cursor.execute(ROWS).fetchall(),
                pieces=dict(self._cursor.execute(PIECE_COUNTS).fetchall()),
                records=[data for (data,) in self._cursor.execute(RECORDS).fetchall()],
            )


def _entries(cursor: "DuckDBPyConnection", artifact: str | None) -> list[Entry]:
    query, given = (ENTRIES, []) if artifact is None else (ENTRIES_OF, [artifact])
    found = cursor.execute(query, given).fetchall()
    return [decoded(data, "table artifacts") for (data,) in found]


def _joined(parts: list[tuple[bytes]]) -> bytes:
    return b"".join(part for (part,) in parts)


@contextmanager
def _transaction(cursor: "DuckDBPyConnection") -> Generator[None]:
    cursor.execute("BEGIN")
    try:
        yield
    except BaseException:
        cursor.execute("ROLLBACK")
        raise
    cursor.execute("COMMIT")


def _json(record: AuditRecord) -> str:
    return msgspec.json.encode(record).decode()
