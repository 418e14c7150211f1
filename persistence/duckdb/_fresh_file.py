"""Rewrites a database file, so that no removed data is left in it.

The copy is complete and synced under another name before it replaces the file. If the process is
killed meanwhile, either the old or the new file is there, complete.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blocks import StoreError
from persistence._file import permissions, private_folder, sync_folder, system_errors
from persistence.duckdb._schema import ROWS_AT_ONCE, STORE, log_path, reattach

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FRESH: Final = "foldline_fresh"


def write_anew(connection: "DuckDBPyConnection", path: Path) -> None:
    """Replace the database file by a compacted copy; the caller ensures that no cursor is in use.

    Raises:
        StoreError: the write-ahead log could not be checkpointed, or the operating system denies writing.
    """
    wal = log_path(path)
    with system_errors(path), private_folder(path) as folder:
        fresh = folder / path.name
        connection.execute(f"CHECKPOINT {STORE}")
        if wal.exists() and wal.stat().st_size:  # the database would replay it into the copy
            raise StoreError(f"{wal} could not be folded into {path.name}; repeat the call")
        try:
            _copy(connection, fresh)
            fresh.chmod(permissions(path))
            connection.execute(f"DETACH {STORE}")
            fresh.replace(path)
            sync_folder(path.parent)
        finally:
            reattach(connection, path)


def _copy(connection: "DuckDBPyConnection", fresh: Path) -> None:
    name = str(fresh).replace("'", "''")
    connection.execute(f"ATTACH '{name}' AS {_FRESH} (READ_WRITE, ROW_GROUP_SIZE {ROWS_AT_ONCE})")
    try:
        connection.execute(f"COPY FROM DATABASE {STORE} TO {_FRESH}")
        connection.execute(f"CHECKPOINT {_FRESH}")
    finally:
        connection.execute(f"DETACH {_FRESH}")
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
