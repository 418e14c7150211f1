"""The tables of a DuckDB file, and how a file is created, opened and recognised.

    timelines  name -> number, in order of creation
    events     one row per event: its position, its time, the event itself as JSON
    pieces     of events too large for a row, see `_large_events`
    marks      the few events that decide about windows, so that opening reads no payload
    trims      what was removed from the others, see `_retention`
    foldline   the format's number: 1; 2 after the first event in pieces; 3 after the first removal

All tables but `trims` are insert-only, until something is removed.  The log has as few columns as possible: each
column adds 5% to the time of a durable commit of one event, and ids and kinds are in the payload, where the view `log`
finds them.  It has no index: a primary key on (timeline, seq) speeds up no read (rows of one timeline lie together, so
zone maps find them), doubles the time of a commit and makes the file 1.7 times as large.  Uniqueness is
ensured by the only writer, which reads a head before it changes it (see `_heads`), and
checked by `verify`.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from blocks import DamagedStoreError, FoldlineError, MisuseError, StoreError
from persistence._file import (
    OWNER_ONLY,
    create_beside,
    kind_in,
    private_folder,
    refuse_unfolded_log,
    sync_folder,
    system_errors,
)
from persistence.duckdb import _large_events, _trims, _views
from persistence.duckdb._file_lock import locked_by

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FORMAT = 1
FORMAT_WITH_PIECES = 2
"""A program that knows only `FORMAT` would take a stand-in for an event."""
FORMAT_WITH_TRIMS = 3
"""A program that knows only the earlier formats would report removed events as lost."""

TABLES = (
    "CREATE TABLE foldline(format INTEGER NOT NULL)",
    "CREATE TABLE timelines(timeline BIGINT NOT NULL, name VARCHAR NOT NULL)",
    """CREATE TABLE events(timeline BIGINT NOT NULL, seq BIGINT NOT NULL,
                           ts DOUBLE NOT NULL, payload JSON NOT NULL)""",
    """CREATE TABLE marks(timeline BIGINT NOT NULL, seq BIGINT NOT NULL,
                          kind VARCHAR NOT NULL, ref BIGINT NOT NULL)""",
    _large_events.TABLE,
    _trims.TABLE,
)

OPTIONS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # faster for one-row commits; windows are small
    "storage_compatibility_version": "v1.5.0",  # versions 1.5 and 2.0 read each other's files
    "default_block_size": 65536,  # a short conversation fits a small file
    "temp_directory": "",  # never spill rows that are not yet in the file to disk, see `_memory_release`
    # Release the memory of large events; the defaults release only what exceeds 128 MB and 512 MB.
    "allocator_flush_threshold": "4MB",
    "allocator_bulk_deallocation_flush_threshold": "4MB",
}


ROWS_AT_ONCE = 2048
"""Rows in a row group. A checkpoint rewrites the last row group; with DuckDB's default of 122,880 rows that would
be up to 490 MB of pieces. Only an attached database can have another size."""
STORE = "foldline_store"
USE = f"USE {STORE}"


def open_database(path: Path) -> "DuckDBPyConnection":
    """Open the database at `path`; create it if it does not exist."""
    if not path.exists():
        _create(path)
    connection = connect(path)  # each user of it has its own cursor
    # Otherwise a forked child would write to the file of its parent when it exits; `Writer.close` checkpoints.
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")
    with errors(path):
        try:
            with cursor_of(connection) as cursor:
                _complete(cursor, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _complete(cursor: "DuckDBPyConnection", path: Path) -> None:
    """Add tables that a file of an earlier version lacks, and create the current views."""
    later = {"pieces": _large_events.TABLE, "trims": _trims.TABLE}
    tables = [statement for name, statement in later.items() if not has_table(cursor, name)]
    if not tables and cursor.execute(_views.CURRENT).fetchall() == [(_views.MARK,)]:
        return
    create_beside(log_path(path), path)
    for statement in ("BEGIN", *tables, *_views.statements(), "COMMIT", "CHECKPOINT"):
        cursor.execute(statement)


def has_table(cursor: "DuckDBPyConnection", name: str) -> bool:
    """Whether the table exists; a file of an earlier version may lack it."""
    query = "SELECT count(*) FROM duckdb_tables() WHERE table_name = ?"
    return cursor.execute(query, [name]).fetchall() != [(0,)]


def audit_records(cursor: "DuckDBPyConnection") -> int:
    """The number of records in the audit of artifacts."""
    if not has_table(cursor, "artifact_audit"):
        return 0
    [(found,)] = cursor.execute("SELECT count(*) FROM artifact_audit").fetchall()
    return int(found)


def _create(path: Path) -> None:
    """Create the file under another name and rename it at the end, so that an incomplete file is never opened."""
    if (wal := log_path(path)).exists():
        raise DamagedStoreError(
            f"{wal} is there without {path.name}; put that back, or move it away"
        )
    with system_errors(path), private_folder(path) as folder:
        new = folder / path.name
        with errors(path), _connected(new) as connection:
            for statement in (*TABLES, *_views.statements()):
                connection.execute(statement)
            connection.execute("INSERT INTO foldline VALUES (?)", [FORMAT])
            connection.execute("CHECKPOINT")
        new.chmod(OWNER_ONLY)
        new.replace(path)
        sync_folder(path.parent)


def log_path(path: Path) -> Path:
    """The write-ahead log of a database file."""
    return path.with_name(f"{path.name}.wal")


@contextmanager
def _connected(path: Path) -> "Generator[DuckDBPyConnection]":
    import duckdb

    connection = duckdb.connect(str(path), config=OPTIONS)
    try:
        yield connection
    finally:
        connection.close()


def check_magic(path: Path) -> None:
    """Check that a file is a DuckDB database.

    Raises:
        MisuseError: it is not one.
        StoreError: the operating system denies reading.
    """
    kind = kind_in(path)
    if kind == "sqlite":
        raise MisuseError(f"{path} is an SQLite database; write sqlite:///{path}")
    if not kind:
        with system_errors(path), path.open("rb") as file:
            what = "is no DuckDB database" if file.read(1) else "is empty, not a DuckDB database"
        raise MisuseError(f"{path} {what}; choose another file")


def connect(path: Path, access_mode: str = "READ_WRITE") -> "DuckDBPyConnection":
    """A connection to an existing store; only one process may have it open, see `_file_lock`."""
    import duckdb

    check_magic(path)
    with errors(path):
        connection = duckdb.connect(config=OPTIONS)
        try:
            connection.execute(_attach(path, access_mode))
            refuse_unfolded_log(path)
            with cursor_of(connection) as cursor:
                _check_format(cursor, path)
        except BaseException:
            connection.close()
            raise
        return connection


def reattach(connection: "DuckDBPyConnection", path: Path) -> None:
    """Attach the database anew after a fatal error; cursors of the connection stay usable."""
    connection.execute(f"DETACH DATABASE IF EXISTS {STORE}")
    connection.execute(_attach(path, "READ_WRITE"))


def cursor_of(connection: "DuckDBPyConnection") -> "DuckDBPyConnection":
    """A new cursor of a connection that uses the tables of the store."""
    cursor = connection.cursor()
    cursor.execute(USE)
    return cursor


def _attach(path: Path, access_mode: str) -> str:
    name = str(path).replace("'", "''")
    return f"ATTACH '{name}' AS {STORE} ({access_mode}, ROW_GROUP_SIZE {ROWS_AT_ONCE})"


def _check_format(cursor: "DuckDBPyConnection", path: Path) -> None:
    import duckdb

    try:
        found = cursor.execute("SELECT max(format) FROM foldline").fetchall()[0][0]
    except duckdb.CatalogException as error:
        raise MisuseError(f"{path} is a database of somebody else; choose another file") from error
    if found is None:
        raise DamagedStoreError(
            f"{path} does not say which format it has; restore it from a backup"
        )
    if found not in (FORMAT, FORMAT_WITH_PIECES, FORMAT_WITH_TRIMS):
        raise StoreError(
            f"{path} has format {found}, this version reads up to {FORMAT_WITH_TRIMS};"
            " upgrade foldline"
        )


@contextmanager
def errors(path: Path) -> Generator[None]:
    """Raise our errors instead of the database's."""
    import duckdb

    try:
        with interrupts():
            yield
    except duckdb.Error as error:
        raise translated(error, path) from error


@contextmanager
def interrupts() -> Generator[None]:
    """Raise `KeyboardInterrupt` for an interrupt (Ctrl-C) during a query, which DuckDB reports as a `RuntimeError`."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise


def translated(error: Exception, path: Path) -> FoldlineError:
    """Our error for one of the database's. Only the first line is quoted: the rest may contain stored content."""
    text = str(error).partition("\n")[0][:300]
    if "Could not set lock" in text:
        holder = text.partition("held in ")[2].partition(". See also")[0]
        return locked_by(path, holder or "another process")
    if "Could not write file" in text:
        return StoreError(
            f"{path} could not be written ({text}); make room and repeat the call: nothing that was"
            " acknowledged is lost"
        )
    if "replaying WAL" in text or ("WAL" in text and "Corrupt" in text):
        return DamagedStoreError(f"{path}.wal is damaged ({text}); {_rescue(path, text)}")
    if any(
        sign in text for sign in ("Corrupt", "not a valid DuckDB", "enough bytes", "deserialize")
    ):
        return DamagedStoreError(
            f"{path} is damaged ({text}); restore it from a backup, together with"
            f" {path.name}.wal and {path.name}.lock if they are in it"
        )
    if text.startswith(("Catalog Error", "Binder Error")):
        return DamagedStoreError(
            f"{path} has not the tables that it should have ({text}); restore it from a backup"
        )
    return StoreError(f"{path}: {text}; repeat the call")


def _rescue(path: Path, text: str) -> str:
    """What to do to save the events before the damage, without changing the damaged files."""
    if "byte position" in text:
        return (
            "`foldline repair` saves what comes before the damage into a new store; by hand: copy"
            f" {path.name} and {path.name}.wal into another folder, truncate the .wal there at the byte"
            " position named, and open that copy"
        )
    return (
        f"put it back from a backup, or let `foldline repair` save {path.name} without it into a new"
        " store: that has all but the newest events"
    )
