"""Connections to a PostgreSQL server, lent by a pool.

A broken connection raises a `LostError`: the writer then checks whether its write succeeded, and repeats it if not.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, LiteralString, cast

import attrs

from blocks import CodecError, DamagedStoreError, FoldlineError, StoreError
from persistence._log import StoredEvent, chain_start, extended
from persistence.postgres._address import ConnectionSettings
from persistence.postgres._dialect import DIALECT
from persistence.postgres._pool import Lent, Pool
from persistence.sql._database import (
    BUCKETS,
    Connection,
    Database,
    LostError,
    PassingError,
    Rows,
    TakenError,
)
from persistence.sql._rows import columns

if TYPE_CHECKING:
    import psycopg
    from psycopg import Connection as Raw
    from psycopg.errors import Diagnostic

NUMBER: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
FIRST_HEAD: Final = """
WITH head AS (INSERT INTO heads VALUES (%b, %s, %s) RETURNING timeline, 0::bigint AS before, chain),
     counted AS (UPDATE census SET timelines = timelines + 1, names = names # %s WHERE bucket = %s)
"""
"""Makes a head; a timeline of this name is a violation of its key."""
NEXT_HEAD: Final = """
WITH head AS (UPDATE heads SET version = version + %s, chain = chain # %s WHERE timeline = %b AND version = %s
              RETURNING timeline, version - %s AS before, chain)
"""
"""Moves the head only if its version is the expected one; until the commit, others wait for its row."""
INSERT: Final = f"""
INSERT INTO events
SELECT timeline, before + place, id, ts, kind, ref, payload, CASE WHEN before + place = 1 THEN {NUMBER} END,
       chain # link
FROM head, {{rows}} AS given(id, ts, kind, ref, payload, link, place)
"""  # noqa: S608 -- constants
"""Inserts rows behind the head, whose links are given relative to its new chain."""
MANY: Final = (
    "unnest(%b::text[], %b::float8[], %b::text[], %s::bigint[], %b::bytea[], %s::bigint[])"
    " WITH ORDINALITY"
)
ONE: Final = "(%b::text, %b::float8, %b::text, %b::bigint, %b::bytea, %b::bigint, {place})"
FEW: Final = 16
"""Up to this many events are bound value by value; for so few, a list per column takes the driver twice as long."""
HOLD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(?, 7310033245123))"
"""A lock on a timeline until the transaction ends; the second argument is an arbitrary seed."""
MESSAGE: Final = "SELECT pg_logical_emit_message(true, 'foldline', '')"
"""Writes to the write-ahead log and to no table."""


def insertion(
    timeline: str, expected: int, events: Sequence[StoredEvent]
) -> tuple[LiteralString, list[object]]:
    """The statement that appends these events behind the expected version, and its parameters."""
    links, chain = extended(0, expected, events)
    rows = [
        (*columns(event), event.data, chain ^ link)
        for event, link in zip(events, links, strict=True)
    ]
    if expected:
        head = [len(rows), chain, timeline, expected, len(rows)]
    else:
        name = chain_start(timeline)
        head = [timeline, len(rows), chain ^ name, name, name % BUCKETS]
    cells: list[object] = [value for row in rows for value in row]
    if len(rows) > FEW:
        cells = [list(column) for column in zip(*rows, strict=True)]
    return _insertion(len(rows) if len(rows) <= FEW else 0, is_first=not expected), [*head, *cells]


@lru_cache
def _insertion(count: int, *, is_first: bool) -> LiteralString:
    """The statement for so many events; 0: for any number."""
    rows = ", ".join(ONE.replace("{place}", str(place)) for place in range(1, count + 1))
    statement = INSERT.replace("{rows}", f"(VALUES {rows})" if count else MANY)
    return cast("LiteralString", (FIRST_HEAD if is_first else NEXT_HEAD) + statement)


@attrs.frozen
class PostgresConnection:
    """A `Connection` to a server."""

    raw: "Raw[Any]"

    def rows(self, statement: str, values: Sequence[object] = ()) -> Rows:
        return self.raw.execute(_in_its_words(statement), values, binary=True).fetchall()

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        return self.raw.execute(_in_its_words(statement), values).rowcount

    def folder(self) -> None:
        """It is on a server."""


@lru_cache
def _in_its_words(statement: str) -> LiteralString:
    """A statement in the form that the driver expects."""
    return cast("LiteralString", statement.replace("%", "%%").replace("?", "%s"))


@attrs.define(eq=False)
class PostgresDatabase(Database):
    """A `Database` on a server."""

    dialect = DIALECT
    name: str
    _pool: Pool = attrs.field(repr=False)
    _settings: ConnectionSettings = attrs.field(repr=False)

    def number(self, table: str) -> str:
        del table  # the number is the time
        return NUMBER

    @contextmanager
    def lent(self, seconds: float | None = None) -> Generator[PostgresConnection]:
        """See `Database.lent`; wait `seconds` for a free connection (None: as long as the pool's default)."""
        with self._held(seconds) as lent:
            if not self._settings.is_pooled:
                yield self._connected(lent.raw)
                return
            with self._transaction(lent.raw, "BEGIN"):
                yield self._connected(lent.raw)

    def _connected(self, raw: "Raw[Any]") -> PostgresConnection:
        return PostgresConnection(raw)

    @contextmanager
    def _held(self, seconds: float | None = None) -> "Generator[Lent]":
        import psycopg

        lent = self._pool.lend(seconds)
        try:
            yield lent
        except psycopg.errors.UniqueViolation as error:
            raise TakenError from error
        except psycopg.Error as error:
            raise self._translated(error, lent.raw) from error
        except OSError as error:
            lent.raw.close()
            raise LostError(f"{self.name}: {error}") from error
        finally:
            self._pool.give(lent)

    def _translated(self, error: "psycopg.Error", raw: "Raw[Any]") -> Exception:
        ours = translated(error, self.name, is_lost=raw.closed)
        if isinstance(ours, LostError) or error.sqlstate == READ_ONLY:
            raw.close()
            self._pool.refresh()  # if the server failed, the other connections are broken as well
        return ours

    @contextmanager
    def snapshot(self) -> Generator[PostgresConnection]:
        with (
            self._held() as lent,
            self._transaction(lent.raw, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
        ):
            yield self._connected(lent.raw)

    @contextmanager
    def writing(self) -> Generator[PostgresConnection]:
        with self._held() as lent:
            with self._transaction(lent.raw, "BEGIN"):
                yield self._connected(lent.raw)
                lent.warnings.clear()
            self._check_committed(lent)

    def _check_committed(self, lent: Lent) -> None:
        """Check that the server said nothing of a commit. It warns of one that may be lost: a synchronous standby was not
        waited for, or a worker of Citus did not answer.

        Raises:
            LostError: it did.
        """
        if lent.warnings:
            raise LostError(f"{self.name}: {lent.warnings[0]}")

    @contextmanager
    def _transaction(self, raw: "Raw[Any]", mode: str) -> Generator[None]:
        import psycopg

        raw.execute(self._settings.begin(mode))
        try:
            yield
            raw.execute("COMMIT")
        except BaseException:
            with suppress(psycopg.Error):
                raw.rollback()
            raise

    def append(self, timeline: str, expected: int, events: Sequence[StoredEvent]) -> bool:
        if self._settings.is_pooled:
            return super().append(timeline, expected, events)
        try:
            with self._held() as lent:  # one statement, which is a transaction
                is_done = self.insert(self._connected(lent.raw), timeline, expected, events)
                self._check_committed(lent)
                return is_done
        except TakenError:
            return False

    def confirm(self) -> None:
        """Wait until everything that this server has committed so far is as durable as a commit is when it is
        acknowledged; synchronous standbys may be without it."""
        with self.writing() as connection:
            connection.run(MESSAGE)

    def insert(
        self, connection: Connection, timeline: str, expected: int, events: Sequence[StoredEvent]
    ) -> bool:
        raw = cast("PostgresConnection", connection).raw
        return raw.execute(*insertion(timeline, expected, events)).rowcount > 0

    def hold(self, connection: Connection, timeline: str) -> None:
        connection.run(HOLD, [timeline])

    def erase(self) -> tuple[str, ...]:
        with self._held() as lent:
            if self._settings.is_pooled:
                raise StoreError(
                    f"{self.name} is behind a connection pooler, which cannot run VACUUM FULL: open the store at"
                    " the server itself, and repeat the call"
                )
            return erase(lent.raw, self.name, self._pool.seconds)

    def close(self) -> None:
        self._pool.close()


LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05")
"""Error codes, or their beginnings, that mean that the connection is lost."""
NO_TABLE: Final = ("42P01", "42P07", "42703")
"""Error codes: a table or a column is missing, or exists already."""
AGAIN: Final = ("40001", "40P01", "55P03")
"""Error codes: a serialization failure, a deadlock, a lock that was not granted in time."""
READ_ONLY: Final = "25006"
"""The error code of a write at a standby. During a failover, another connection may find the new primary."""


def translated(error: "psycopg.Error", name: str, *, is_lost: bool) -> FoldlineError:
    """Our error for one of the driver's; `name` names the database, without a password."""
    # Of the message only the first line: the following ones may quote stored content.
    line = (str(error).strip() or type(error).__name__).partition("\n")[0][:300]
    code, text = error.sqlstate or "", f"{name}: {line}"
    if is_lost or code.startswith(LOST):
        return LostError(text)
    if code in AGAIN:
        return PassingError(text)
    if code == READ_ONLY:
        return PassingError(
            f"{text}: this server is a standby, or may not write; write all hosts into the URL with"
            " target_session_attrs=read-write, and repeat the call"
        )
    match code[:2]:
        case "XX" | "22":
            return DamagedStoreError(
                f"{text}; `foldline verify` lists all damage, restore the database from a backup"
            )
        case "53":
            return StoreError(f"{text}; free disk space on the server and repeat the call")
        case "54":
            return CodecError(f"{text}; it is larger than the database accepts")
        case "42" if code == "42501":
            return StoreError(
                f"{text}; let an administrator open the store once, which creates its tables, or allow"
                " this role to: GRANT USAGE, CREATE ON SCHEMA … TO …; to use the tables, the role needs what"
                " `python -m persistence.postgres` prints, and the tenant that the role is bound to"
            )
        case _ if code in NO_TABLE:
            return DamagedStoreError(
                f"tables or columns of the store are missing: {text}; restore the database from a"
                " backup"
            )
        case _:
            return StoreError(f"{text}; repeat the call")


# `DELETE` leaves rows in the files, and so does a plain `VACUUM`; `VACUUM FULL` writes new files.  It keeps
# deleted rows that an older transaction may still see, and skips tables of another owner with a warning.
# So its report is read, not only whether it failed.

TABLES: Final = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'foldline'::regclass)
  AND relname IN ('stored_events', 'stored_heads', 'stored_census', 'stored_trims', 'stored_artifacts',
                  'stored_artifact_pieces', 'stored_artifact_audit')
"""
REMAINS: Final = (
    "the write-ahead log of the server, until its segments are used again, and copies of it",
)


def erase(raw: "Raw[Any]", name: str, seconds: float) -> tuple[str, ...]:
    """Rewrite the tables; return places where the content of deleted rows may remain.

    `name` names the database in errors; `seconds` is how long to wait for the lock on a table.

    Raises:
        StoreError: a table could not be rewritten, or still has deleted rows.
    """
    left: list[int] = []

    def note(notice: "Diagnostic") -> None:
        if counts := re.findall(r"\d+", notice.message_detail or ""):
            left.append(int(counts[0]))

    raw.add_notice_handler(note)
    try:
        raw.execute("SELECT set_config('lock_timeout', %s, false)", [f"{seconds:.0f}s"])
        for (table,) in raw.execute(TABLES).fetchall():
            left.clear()
            raw.execute(cast("LiteralString", f"VACUUM (FULL, VERBOSE) {table}"))
            _check(left, table, name)
    finally:
        raw.remove_notice_handler(note)
        if not raw.closed:
            raw.execute("RESET lock_timeout")
    return REMAINS


def _check(left: list[int], table: str, name: str) -> None:
    """`left` is the number of deleted rows that remain in the table; empty if VACUUM was not permitted."""
    if not left:
        raise StoreError(
            f"{name}: this role may not rewrite table {table}; let its owner run VACUUM FULL {table}"
        )
    if any(left):
        raise StoreError(
            f"{name}: a transaction that began before the removal can still see {left[0]} removed rows of"
            f" {table}; end it and repeat the call"
        )
