"""Connections to a PostgreSQL server, lent by a pool.

A broken connection raises a `LostError`: the writer then checks whether its write succeeded, and repeats it if not.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, LiteralString, cast

import attrs

from blocks import ClosedError, StoreError
from persistence._log import StoredEvent
from persistence.postgres._dialect import DIALECT
from persistence.postgres._erase import erase
from persistence.postgres._errors import translated
from persistence.postgres._settings import Settings
from persistence.sql._database import Connection, LostError, PassingError, Rows, TakenError
from persistence.sql._index import Dialect
from persistence.sql._rows import checksum, columns

if TYPE_CHECKING:
    import psycopg
    from psycopg import Connection as Raw
    from psycopg_pool import ConnectionPool

NUMBER: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
INSERT: Final = f"""
INSERT INTO events
SELECT name, expected + place, id, ts, kind, ref, payload, CASE WHEN expected + place = 1 THEN {NUMBER} END,
       crc32
FROM (SELECT %s::text AS name, %s::bigint AS expected) AS here,
     {{rows}} AS given(id, ts, kind, ref, payload, crc32, place)
WHERE (SELECT coalesce(max(seq), 0) FROM events WHERE timeline = name) = expected
"""  # noqa: S608 -- constants
"""Inserts rows only if the current version is the expected one."""
MANY: Final = (
    "unnest(%b::text[], %b::float8[], %b::text[], %s::bigint[], %b::bytea[], %s::bigint[])"
    " WITH ORDINALITY"
)
ONE: Final = "(%b::text, %b::float8, %b::text, %b::bigint, %b::bytea, %b::bigint, {place})"
FEW: Final = 16
"""Up to this many events are bound value by value; for so few, a list per column takes the driver twice as long."""
HOLD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(?, 7310033245123))"
"""A lock on a timeline until the transaction ends; the second argument is an arbitrary seed."""
STOP_APPENDS: Final = "LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE"
"""Waits until running inserts are committed; later ones wait, and then see the changes of this transaction."""


def insertion(events: Sequence[StoredEvent]) -> tuple[LiteralString, list[object]]:
    """The statement that appends these events, and its parameters after timeline and version."""
    rows = [(*columns(event), event.data, checksum(event.data)) for event in events]
    if len(rows) <= FEW:
        return _of_few(len(rows)), [value for row in rows for value in row]
    return _OF_MANY, list(map(list, zip(*rows, strict=True)))


@lru_cache
def _of_few(count: int) -> LiteralString:
    rows = ", ".join(ONE.replace("{place}", str(place)) for place in range(1, count + 1))
    return cast("LiteralString", INSERT.replace("{rows}", f"(VALUES {rows})"))


_OF_MANY: Final = INSERT.replace("{rows}", MANY)


@attrs.frozen
class PostgresConnection:
    """A `Connection` to a server."""

    raw: "Raw[Any]"

    def rows(self, statement: str, given: Sequence[object] = ()) -> Rows:
        return self.raw.execute(_in_its_words(statement), given, binary=True).fetchall()

    def run(self, statement: str, given: Sequence[object] = ()) -> int:
        return self.raw.execute(_in_its_words(statement), given).rowcount


@lru_cache
def _in_its_words(statement: str) -> LiteralString:
    """A statement in the form that the driver expects."""
    return cast("LiteralString", statement.replace("%", "%%").replace("?", "%s"))


@attrs.define(eq=False)
class PostgresDatabase:
    """A `Database` on a server."""

    name: str
    _pool: "ConnectionPool[Raw[Any]]" = attrs.field(repr=False)
    _settings: Settings = attrs.field(repr=False)

    @property
    def dialect(self) -> Dialect:
        return DIALECT

    def number(self, table: str) -> str:
        del table  # the number is the time
        return NUMBER

    @contextmanager
    def lent(self, seconds: float | None = None) -> Generator[PostgresConnection]:
        """See `Database.lent`; wait `seconds` for a free connection (None: as long as the pool's default)."""
        with self._held(seconds) as raw:
            if not self._settings.is_pooled:
                yield PostgresConnection(raw)
                return
            with self._begun(raw, "BEGIN"):
                yield PostgresConnection(raw)

    @contextmanager
    def _held(self, seconds: float | None = None) -> "Generator[Raw[Any]]":
        import psycopg

        raw = self._borrowed(seconds)
        try:
            yield raw
        except psycopg.errors.UniqueViolation as error:
            raise TakenError from error
        except psycopg.Error as error:
            raise self._told(error, raw) from error
        finally:
            self._pool.putconn(raw)

    def _borrowed(self, seconds: float | None) -> "Raw[Any]":
        from psycopg_pool import PoolClosed, PoolTimeout

        try:
            return self._pool.getconn(seconds)
        except PoolClosed as error:
            raise ClosedError(f"{self.name} is closed; open the store again") from error
        except PoolTimeout as error:
            raise PassingError(
                f"{self.name}: no connection within {self._pool.timeout:.0f} seconds: the server does"
                f" not answer, its log says why, or all {self._pool.max_size} connections are in use;"
                " start it, or open the store with more connections, and repeat the call"
            ) from error

    def _told(self, error: "psycopg.Error", raw: "Raw[Any]") -> Exception:
        told = translated(error, self.name, is_lost=raw.closed)
        if isinstance(told, LostError):
            raw.close()
            self._pool.check()  # if the server failed, the other connections are broken as well
        return told

    @contextmanager
    def snapshot(self) -> Generator[PostgresConnection]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Generator[PostgresConnection]:
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _transaction(self, mode: str) -> Generator[PostgresConnection]:
        with self._held() as raw, self._begun(raw, mode):
            yield PostgresConnection(raw)

    @contextmanager
    def _begun(self, raw: "Raw[Any]", mode: str) -> Generator[None]:
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
        try:
            with self.lent() as connection:
                return self.insert(connection, timeline, expected, events)
        except TakenError:
            return False

    def insert(
        self, connection: Connection, timeline: str, expected: int, events: Sequence[StoredEvent]
    ) -> bool:
        raw = cast("PostgresConnection", connection).raw
        statement, given = insertion(events)
        return raw.execute(statement, [timeline, expected, *given]).rowcount > 0

    def hold(self, connection: Connection, timeline: str) -> None:
        connection.run(HOLD, [timeline])

    def stop_appends(self, connection: Connection) -> None:
        connection.run(STOP_APPENDS)

    def erase(self) -> tuple[str, ...]:
        with self._held() as raw:
            if self._settings.is_pooled:
                raise StoreError(
                    f"{self.name} is behind a pooler, which runs no VACUUM FULL for us: open the store at"
                    " the server itself, and repeat the call"
                )
            return erase(raw, self.name, self._pool.timeout)

    def page_problems(self, connection: Connection) -> Sequence[str]:
        del connection  # the server itself compares the checksums of pages that it reads
        return ()

    def close(self) -> None:
        self._pool.close()
