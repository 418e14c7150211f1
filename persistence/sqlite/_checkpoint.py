"""When the write-ahead log of an SQLite file is folded into the file, so that a copy without the log is noticed.

Table `fold` says whether it is all there is.  Before the log is folded, it is set to "no", and afterwards to "yes"; that
"yes" is the first entry of the next log.  So the file alone says "no" as long as there is a log with more, and "yes" after
SQLite has folded all of it, which it does when the last connection closes.  A backup by SQLite itself (`VACUUM INTO`,
`.backup`) reads the log, and says "yes".

SQLite would fold the log by itself when it has 1,000 pages; `connected` forbids it, and lets SQLite cut the log off when it
begins it anew, so that the log's size says how much is in it.

No file of a database is opened here: closing it would release all locks that this process has on it, also those of SQLite
(https://sqlite.org/howtocorrupt.html, 2.2).
"""

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

LOG_BYTES: Final = 4_000_000
"""Bytes of the log at which it is folded: about 1,000 pages."""
WRITES: Final = 32
"""How often a process looks, in writes."""
HEADER_BYTES: Final = 32
"""A log that is not longer has no pages."""
CREATE: Final = (
    "CREATE TABLE fold(is_whole INTEGER NOT NULL)",
    "INSERT INTO fold VALUES (1)",
)
_IS_WHOLE: Final = "SELECT is_whole FROM fold"
_SET: Final = "UPDATE fold SET is_whole = ?"


@attrs.define(eq=False)
class Folding:
    """Folds the log of one file, for one process."""

    _path: Path
    _due: int = 0
    """Bytes of the log at which it is folded; 0: the next write begins with it."""
    _writes: int = 0
    _is_half: bool = False
    """Whether the last time ended between "no" and "yes"."""

    def before(self, raw: sqlite3.Connection) -> None:
        """Call this before each transaction that writes."""
        if not self._due:
            self.fold(raw)

    def after(self, raw: sqlite3.Connection) -> None:
        """Call this after each transaction that has written."""
        self._writes += 1
        if not self._writes % WRITES and _log_bytes(self._path) >= self._due:
            self.fold(raw)

    def fold(self, raw: sqlite3.Connection) -> None:
        """Fold the log now. If this fails, the log stays, and the events in it are as durable."""
        with suppress(sqlite3.Error):
            raw.execute(_SET, [0])
            self._is_half = True
            try:
                raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                self.heal(raw)
        self._due = _log_bytes(self._path) + LOG_BYTES

    def heal(self, raw: sqlite3.Connection) -> None:
        """Complete what was interrupted, in this process."""
        if self._is_half:
            raw.execute(_SET, [1])
            self._is_half = False


def has_log(path: Path) -> bool:
    """Whether there is a write-ahead log with pages beside the file."""
    return _log_bytes(path) > HEADER_BYTES


def lacks_log(path: Path, raw: sqlite3.Connection, *, had_log: bool) -> bool:
    """Whether a file was copied without its log; `had_log`: whether there was one before this connection."""
    try:
        is_whole = raw.execute(_IS_WHOLE).fetchall() == [(1,)]
    except sqlite3.OperationalError:  # the file has no tables yet, or another format
        return False
    if is_whole:
        return False
    if not had_log and not has_log(path):  # else another process has just begun
        return True
    with suppress(sqlite3.Error):  # a process was killed in between
        raw.execute(_SET, [1])
    return False


def accept(raw: sqlite3.Connection) -> None:
    """Take a file for whole although its log is missing."""
    raw.execute(_SET, [1])


def _log_bytes(path: Path) -> int:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except FileNotFoundError:
        return 0
