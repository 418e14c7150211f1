"""The store for many machines: a PostgreSQL database, one transaction per append."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from blocks import MisuseError
from persistence.postgres._database import PostgresDatabase
from persistence.postgres._hints import Hints
from persistence.postgres._schema import set_up
from persistence.postgres._settings import Settings
from persistence.postgres._url import Address
from persistence.sql._patience import Patience
from persistence.sql._store import SQLStore

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

CONNECTIONS: Final = 32
WAIT_SECONDS: Final = 30.0


class PostgresStore(SQLStore):
    """Timelines in the database at `url`, `postgresql://user:password@host/database`, which any number of
    processes on any number of machines may use.  Methods raise what `EventStore` says.

    At most `connections` threads write at the same time; connections are opened when needed.
    Operations that fail because of a lost connection or a busy server are repeated for up to `wait_seconds`.

    A `tenant` has timelines and artifacts of its own, and sees no others. The default is the tenant in the URL
    (`?options=-cfoldline.tenant%3Dacme`) or in the role's settings, or else the tenant with the empty name.

    Raises:
        MisuseError: the URL is not valid, `foldline[postgres]` is not installed, the schema has tables of
            another program, or the tenant's name is not valid.
        StoreError: the server cannot be reached, the role lacks a right, or a later version made the tables.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str = "",
        connections: int = CONNECTIONS,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        if connections < 1:
            raise MisuseError(f"connections={connections}: a store needs at least one")
        settings = Settings(tenant)
        address = Address.of(url)
        is_there = address.has_store(settings)  # the pool would only say that it took too long
        database = PostgresDatabase(
            address.name, _pool(address, settings, connections, wait_seconds), settings
        )
        self._hints = Hints(database, partial(_waiting, address, settings))
        super().__init__(database, Patience(seconds=wait_seconds), self._hints)
        try:
            self._patience.repeated(lambda: set_up(database, is_there=is_there))
        except BaseException:
            self.close()
            raise

    def hears_others(self) -> bool:
        """See `persistence.HearsOthers`."""
        return self._hints.listener.hears


def _pool(
    address: Address, settings: Settings, connections: int, seconds: float
) -> "ConnectionPool[Connection[Any]]":
    from psycopg_pool import ConnectionPool

    return ConnectionPool(
        address.conninfo,
        min_size=0,
        max_size=connections,
        timeout=seconds,
        open=True,
        kwargs={"autocommit": True},
        configure=settings.configure,
        name="foldline",
    )


def _waiting(address: Address, settings: Settings) -> "Connection[Any]":
    connection = address.waiting()
    settings.configure(connection)
    return connection
