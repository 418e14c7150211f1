"""The store of many machines: a PostgreSQL database, one transaction an append."""

from typing import TYPE_CHECKING, Any, Final

from blocks import MisuseError
from persistence.postgres._database import PostgresDatabase
from persistence.postgres._schema import set_up
from persistence.postgres._url import Address
from persistence.sql._patience import Patience
from persistence.sql._store import SQLStore

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

CONNECTIONS: Final = 32
WAIT_SECONDS: Final = 30.0
SETTINGS: Final = "SET max_parallel_workers_per_gather = 0"
"""A parallel plan costs 25 ms where half of one is right."""


class PostgresStore(SQLStore):
    """Timelines in the database at `url`, `postgresql://user:password@host/database`, which any number of
    processes on any number of machines may use.  Methods raise what `EventStore` says.

    As many threads as there are `connections` write at the same time; they are made when they are needed.
    What a lost connection or a busy server prevents is repeated for up to `wait_seconds`.

    Raises:
        MisuseError: the URL is none, `foldline[postgres]` is not installed, or there are tables of
            somebody else.
        StoreError: the server is not reached, the role may not, or a later version made the tables.
    """

    def __init__(
        self, url: str, *, connections: int = CONNECTIONS, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        if connections < 1:
            raise MisuseError(f"connections={connections}: a store needs at least one")
        address = Address.of(url)
        is_there = address.has_store()  # the pool would only say that it took too long
        database = PostgresDatabase(address.name, _pool(address, connections, wait_seconds))
        super().__init__(database, Patience(seconds=wait_seconds))
        try:
            self._patience.repeated(lambda: set_up(database, is_there=is_there))
        except BaseException:
            self.close()
            raise


def _pool(address: Address, connections: int, seconds: float) -> "ConnectionPool[Connection[Any]]":
    from psycopg_pool import ConnectionPool

    return ConnectionPool(
        address.conninfo,
        min_size=0,
        max_size=connections,
        timeout=seconds,
        open=True,
        kwargs={"autocommit": True},
        configure=_configure,
        name="foldline",
    )


def _configure(connection: "Connection[Any]") -> None:
    connection.execute(SETTINGS)
