"""Makes a copy of a damaged DuckDB file that can be opened, without the unreadable part of its write-ahead log."""

import os
import re
import shutil
from pathlib import Path
from typing import Final

from blocks import DamagedStoreError
from persistence._file import system_errors
from persistence.duckdb._file_lock import FileLock, Marks, lost
from persistence.duckdb._store import DuckDBStore

_POSITION: Final = re.compile(r"byte position (\d+)")


def readable_copy(path: Path, folder: Path) -> tuple[Path, str]:
    """Copy a store into `folder`; return the path of the copy, and a sentence about what was left out (empty: nothing).

    Raises:
        StoreLockedError: another process has the file open.
        DamagedStoreError: the file itself cannot be opened.
    """
    lock = FileLock.acquire(path)
    try:
        with system_errors(path):
            copy, wal = (_copied(path.with_name(path.name + end), folder) for end in ("", ".wal"))
        acknowledged = lock.acknowledged()
    finally:
        lock.abandon()
    cut = _cut(copy, wal)
    missing = lost(_held(copy), acknowledged)
    return copy, "; ".join(filter(None, (cut, missing and f"the copy holds {missing}")))


def _copied(path: Path, folder: Path) -> Path:
    copy = folder / path.name
    if path.exists():
        shutil.copyfile(path, copy)
    return copy


def _cut(copy: Path, wal: Path) -> str:
    """Truncate the write-ahead log of the copy if the copy cannot be opened otherwise; return what was cut off."""
    try:
        DuckDBStore(copy).close()
    except DamagedStoreError as damage:
        size = wal.stat().st_size if wal.exists() else 0
        found = _POSITION.search(str(damage))
        keep = int(found[1]) if found else 0
        if f"{wal.name} is damaged" not in str(damage) or keep >= size:
            raise
    else:
        return ""
    if keep:
        os.truncate(wal, keep)
    else:
        wal.unlink()
    DuckDBStore(copy).close()
    return f"{size - keep} of {size} bytes of {wal.name} cannot be read"


def _held(copy: Path) -> Marks:
    with DuckDBStore(copy) as store, store.inspect() as (_, marks):
        return marks
