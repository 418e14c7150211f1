"""The tables of an SQLite file, and how a file is created and recognised.

    events     one row per event: its position, columns that are often queried, the event itself as JSON
    trims      which timelines lack older events, and where those events are
    artifacts, artifact_pieces, artifact_audit      see `persistence.artifacts`
    foldline   the format's number, and which views there are

`made` orders timelines whose first events have the same time.  `crc32` is the checksum of an event; rows of
earlier formats have none.
"""

import os
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import Final

from blocks import MisuseError
from persistence._file import create_beside, kind_at, sync_folder, system_errors
from persistence.sql._format import NEW, bring_up_to_date
from persistence.sqlite import _views
from persistence.sqlite._database import SQLiteDatabase, connected, errors

FIRST: Final = (
    """CREATE TABLE events(timeline TEXT NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL,
                           ts REAL NOT NULL, kind TEXT NOT NULL, ref INTEGER, payload BLOB NOT NULL,
                           made INTEGER, PRIMARY KEY (timeline, seq))""",
    "CREATE INDEX events_marks ON events(timeline, seq, kind, ref) WHERE ref IS NOT NULL",
    "CREATE INDEX events_first ON events(made, timeline) WHERE made IS NOT NULL",
    "CREATE TABLE artifacts(slot TEXT PRIMARY KEY, artifact TEXT NOT NULL, entry BLOB NOT NULL)",
    "CREATE INDEX artifacts_by_id ON artifacts(artifact)",
    """CREATE TABLE artifact_pieces(slot TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL,
                                    piece BLOB NOT NULL, PRIMARY KEY (slot, number))""",
    """CREATE TABLE artifact_audit(id TEXT PRIMARY KEY, made INTEGER NOT NULL,
                                   record BLOB NOT NULL)""",
    "CREATE INDEX artifact_audit_made ON artifact_audit(made)",
)
TRIMS: Final = (
    """CREATE TABLE trims(timeline TEXT PRIMARY KEY, first INTEGER NOT NULL, began_at REAL NOT NULL,
                          manifest BLOB NOT NULL)""",
)
SUMS: Final = ("ALTER TABLE events ADD COLUMN crc32 INTEGER",)
STEPS: Final = (FIRST, TRIMS, SUMS)
"""The statements that lead from each format to the next; the format of a file is the number of steps taken."""
OURS: Final = "SELECT count(*) FROM sqlite_master WHERE name = 'foldline'"


def open_database(path: Path, wait_seconds: float) -> SQLiteDatabase:
    """Open the database at `path`, create it if it does not exist, and bring it to the newest format.

    Raises:
        MisuseError: the file is not a store.
        StoreError: a later version has changed it, or the operating system denies access.
    """
    if not path.exists():
        _create(path)
    elif kind_at(path) == "duckdb":
        raise MisuseError(f"{path} is a DuckDB database; write duckdb:///{path}")
    elif not path.stat().st_size:
        raise MisuseError(f"{path} is empty, not an SQLite database; choose another file")
    database = SQLiteDatabase(path, wait_seconds)
    try:
        _refuse_a_foreign_one(database)
        bring_up_to_date(database, STEPS, _views.ALL)
    except BaseException:
        database.close()
        raise
    return database


def _refuse_a_foreign_one(database: SQLiteDatabase) -> None:
    with database.lent() as connection:
        if connection.rows(OURS) == [(0,)]:
            raise MisuseError(
                f"{database.name} is a database of somebody else; choose another file"
            )


def _create(path: Path) -> None:
    """Create the file under another name, then link it to `path`, so that an incomplete file is never opened."""
    new = path.with_name(f"{path.name}.{token_hex(4)}.new")
    try:
        create_beside(new, path)  # what the database creates beside it gets its permissions
        with errors(new), closing(connected(new, 0)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            for statement in ("BEGIN", *NEW, "COMMIT"):
                connection.execute(statement)
        with system_errors(path):
            try:
                os.link(new, path)
            except FileExistsError:
                return  # another process was faster
            sync_folder(path.parent)
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            new.with_name(new.name + ending).unlink(missing_ok=True)
