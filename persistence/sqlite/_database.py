"""Connections to an SQLite file, one per thread at a time, and the translation of its errors.

The file is in WAL mode, so readers and the writer do not wait for each other; with `synchronous` FULL,
a commit is on disk when it returns.  Writers wait for each other: in this process for a lock, and for other
processes at most `wait_seconds`.
"""

import os
import sqlite3
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Final

import attrs

from blocks import (
    ClosedError,
    DamagedStoreError,
    FoldlineError,
    MisuseError,
    StoreError,
    StoreLockedError,
)
from persistence._file import create_beside, kind_at, sync_folder, system_errors
from persistence._log import StoredEvent, chain_start, extended, xor
from persistence._store import PROBLEMS_MAX
from persistence.sql._database import (
    ADD_BUCKETS,
    NEW,
    TABLES,
    Connection,
    Database,
    Rows,
    TakenError,
    count,
    set_up,
)
from persistence.sql._retention import ADD_HEAD
from persistence.sql._rows import columns
from persistence.sqlite import _checkpoint
from persistence.sqlite._checkpoint import Folding
from persistence.sqlite._dialect import DIALECT, VIEWS, register

IDLE_MAX: Final = 8
"""The largest number of idle connections that are kept."""
NO_TABLE: Final = ("no such table", "no such column", "table ")
"""Beginnings of error messages that say that a table or column is missing, differs or exists already."""
NUMBER: Final = "(SELECT coalesce(max(made), 0) + 1 FROM {table} WHERE made IS NOT NULL)"
MOVE_HEAD: Final = f"""
UPDATE heads SET version = ?, chain = {xor("chain", "?")} WHERE timeline = ? AND version = ?
"""  # noqa: S608 -- constants
INSERT: Final = f"""
INSERT INTO events(timeline, seq, id, ts, kind, ref, payload, made, link)
VALUES (?, ?, ?, ?, ?, ?, ?, CASE WHEN ? THEN {NUMBER.format(table="events")} END,
        (SELECT {xor("chain", "?")} FROM heads WHERE timeline = ?))
"""  # noqa: S608 -- constants
"""Inserts a row behind the head, whose link is given relative to its new chain."""


@attrs.frozen
class SQLiteConnection:
    """A `Connection` to an SQLite file."""

    raw: sqlite3.Connection

    def rows(self, statement: str, values: Sequence[object] = ()) -> Rows:
        return self.raw.execute(statement, values).fetchall()

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        return self.raw.execute(statement, values).rowcount

    def folder(self) -> Path:
        [(_, _, file), *_] = self.rows("PRAGMA database_list")
        return Path(str(file)).parent


@attrs.define(eq=False)
class SQLiteDatabase(Database):
    """A `Database` in an SQLite file."""

    dialect = DIALECT
    path: Path
    _wait_seconds: float
    _idle: deque[sqlite3.Connection] = attrs.field(factory=deque[sqlite3.Connection], init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _change: Lock = attrs.field(factory=Lock, init=False)
    _writer: Lock = attrs.field(factory=Lock, init=False)
    _folding: Folding = attrs.field(init=False)
    name: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.name, self._folding = str(self.path), Folding(self.path)

    def number(self, table: str) -> str:
        return NUMBER.format(table=table)

    @contextmanager
    def lent(self) -> Generator[SQLiteConnection]:
        with errors(self.path):
            raw = self._borrowed()
            try:
                yield SQLiteConnection(raw)
            finally:
                self._give_back(raw)

    @contextmanager
    def snapshot(self) -> Generator[SQLiteConnection]:
        with self.lent() as connection, _transaction(connection.raw, "BEGIN"):
            yield connection

    @contextmanager
    def writing(self) -> Generator[SQLiteConnection]:
        with self._writer, self.lent() as connection:
            self._folding.before(connection.raw)
            with _transaction(connection.raw, "BEGIN IMMEDIATE"):
                yield connection
            self._folding.after(connection.raw)

    def insert(
        self, connection: Connection, timeline: str, expected: int, events: Sequence[StoredEvent]
    ) -> bool:
        links, chain = extended(0, expected, events)
        last = expected + len(events)
        if not expected:
            connection.run(ADD_HEAD, [timeline, last, chain ^ chain_start(timeline)])
            count(self, connection, timeline, 1)
        elif not connection.run(MOVE_HEAD, [last, chain, chain, timeline, expected]):
            return False
        for seq, (event, link) in enumerate(zip(events, links, strict=True), expected + 1):
            relative = link ^ chain
            row = (timeline, seq, *columns(event), event.data, seq == 1, relative, relative)
            connection.run(INSERT, (*row, timeline))
        return True

    def hold(self, connection: Connection, timeline: str) -> None:
        """Do nothing: SQLite has one writer at a time."""

    def erase(self) -> tuple[str, ...]:
        with self._writer, self.lent() as connection:
            connection.run("VACUUM")
            [(is_busy, *_)] = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
            self._folding.fold(connection.raw)
        if is_busy:
            raise StoreLockedError(
                f"{self.path} is being read; repeat the call when all reads have ended"
            )
        return ()

    def _borrowed(self) -> sqlite3.Connection:
        with self._change:
            if self._closed:
                raise ClosedError(f"{self.path} is closed; open the store again")
            if self._idle:
                return self._idle.pop()
        return connected(self.path, self._wait_seconds)

    def _give_back(self, raw: sqlite3.Connection) -> None:
        if raw.in_transaction:  # an error or an interrupt came first
            raw.execute("ROLLBACK")
        with self._change:
            if not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(raw)
                return
        raw.close()

    def page_problems(self, connection: Connection) -> Sequence[str]:
        rows = connection.rows(f"PRAGMA integrity_check({PROBLEMS_MAX})")
        problems = [f"{self.path}: {what}" for (what,) in rows if what != "ok"]
        if connection.rows("SELECT is_whole FROM fold") not in ([(0,)], [(1,)]):
            problems.append("table fold should have one row, with 0 or 1")
        return problems

    def close(self) -> None:
        with self._change:
            self._closed = True
        while self._idle:
            with closing(self._idle.pop()) as raw, suppress(sqlite3.Error):
                self._folding.heal(raw)


def connected(path: Path, wait_seconds: float) -> sqlite3.Connection:
    """A connection for one thread at a time; commits are synced to disk, and deleted content is overwritten."""
    raw = sqlite3.connect(path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("PRAGMA secure_delete = ON")
    raw.execute("PRAGMA wal_autocheckpoint = 0")  # see `Folding`, also for the next line
    raw.execute("PRAGMA journal_size_limit = 0").fetchall()
    register(raw)
    return raw


@contextmanager
def _transaction(raw: sqlite3.Connection, begin: str) -> Generator[None]:
    """A transaction on a lent connection, whose return ends it if this does not."""
    raw.execute(begin)
    yield
    raw.execute("COMMIT")


@contextmanager
def errors(path: Path) -> Generator[None]:
    """Raise our errors instead of the database's."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise TakenError from error
    except sqlite3.Error as error:
        raise translated(error, path) from error
    except UnicodeDecodeError as error:  # its text quotes the bytes
        raise DamagedStoreError(f"{path} is damaged; restore it from a backup") from error


def translated(error: sqlite3.Error, path: Path) -> FoldlineError:
    """Our error for one of the database's."""
    text = str(error).partition("\n")[0][:300]
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_NOTADB:
            return MisuseError(f"{path} is not an SQLite database; choose another file")
        case sqlite3.SQLITE_CORRUPT:
            return DamagedStoreError(
                f"{path} is damaged ({text}); restore it from a backup, together with"
                f" {path.name}-wal if the backup has it"
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreLockedError(
                f"{path}: another process was writing during the whole wait ({text}); repeat the call,"
                " or open the store with more wait_seconds"
            )
        case sqlite3.SQLITE_FULL:
            return StoreError(f"{path}: the disk is full; free disk space and repeat the call")
        case sqlite3.SQLITE_IOERR:
            return StoreError(
                f"{path}: {text}: the disk is full or failing; free disk space and repeat the call"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StoreError(
                f"{path}: {text}; let this user read and write the file and its folder, or choose"
                " another file"
            )
        case sqlite3.SQLITE_ERROR if text.startswith(NO_TABLE):
            return DamagedStoreError(
                f"{path} lacks tables or columns of a store ({text}); restore it from a backup"
            )
        case _ if "malformed JSON" in text or "decode to UTF-8" in text:
            return DamagedStoreError(
                f"{path}: {text}; `foldline verify` lists all damage, restore it from a backup"
            )
        case _:
            return StoreError(f"{path}: {text}; repeat the call")


TYPES: Final = {"name": "TEXT", "int": "INTEGER", "float": "REAL", "bytes": "BLOB"}
FORMAT: Final = 4
CREATE: Final = (
    *(
        statement
        for table in TABLES
        for statement in (
            f"CREATE TABLE {table.name}({table.columns.format(**TYPES)}, PRIMARY KEY ({table.key}))",
            *(f"CREATE INDEX {name} ON {table.name}({what}" for name, what in table.indexes),
        )
    ),
    ADD_BUCKETS,
    *_checkpoint.CREATE,
)
OURS: Final = "SELECT count(*) FROM sqlite_master WHERE name = 'foldline'"


def open_database(path: Path, wait_seconds: float) -> SQLiteDatabase:
    """Open the database at `path`; create it if it does not exist.

    Raises:
        DamagedStoreError: its write-ahead log is missing.
        MisuseError: the file is not a store.
        StoreError: it has the format of another version, or the operating system denies access.
    """
    if not path.exists():
        _create(path)
    elif kind_at(path) == "duckdb":
        raise MisuseError(f"{path} is a DuckDB database; write duckdb:///{path}")
    elif not path.stat().st_size:
        raise MisuseError(f"{path} is empty, not an SQLite database; choose another file")
    had_log = _checkpoint.has_log(path)
    database = SQLiteDatabase(path, wait_seconds)
    try:
        _refuse_what_is_no_whole_store(database, had_log=had_log)
        set_up(database, FORMAT, CREATE, VIEWS)
    except BaseException:
        database.close()
        raise
    return database


def _refuse_what_is_no_whole_store(database: SQLiteDatabase, *, had_log: bool) -> None:
    with database.lent() as connection:
        if connection.rows(OURS) == [(0,)]:
            raise MisuseError(
                f"{database.name} is a database of another application; choose another file"
            )
        if _checkpoint.lacks_log(database.path, connection.raw, had_log=had_log):
            name = database.path.name
            raise DamagedStoreError(
                f"{database.name} was copied or moved without {name}-wal, which was beside it: put that beside"
                " it, restore a backup, or let `foldline repair` save what is there into a new store"
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
