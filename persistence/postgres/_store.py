"""The store of many machines: a PostgreSQL database, one transaction an append."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from blocks import MisuseError
from persistence.postgres._database import PostgresDatabase
from persistence.postgres._hints import Hints
from persistence.postgres._schema import set_up
from persistence.postgres._tenants import SETTING, checked_tenant
from persistence.postgres._url import Address
from persistence.sql._patience import Patience
from persistence.sql._store import SQLStore

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

    Configure: TypeAlias = Callable[[Connection[Any]], None]

CONNECTIONS: Final = 32
WAIT_SECONDS: Final = 30.0
SETTINGS: Final = "SET max_parallel_workers_per_gather = 0; SET enable_bitmapscan = off"
"""A parallel plan costs 25 ms where half of one is right.  In a table without statistics yet a bitmap seems
cheap, and reads a whole timeline for its last row."""
DURABLE: Final = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
"""What is acknowledged is on the server's disk, also where a server or a role has it otherwise."""


class PostgresStore(SQLStore):
    """Timelines in the database at `url`, `postgresql://user:password@host/database`, which any number of
    processes on any number of machines may use.  Methods raise what `EventStore` says.

    As many threads as there are `connections` write at the same time; they are made when they are needed.
    What a lost connection or a busy server prevents is repeated for up to `wait_seconds`.

    A `tenant` has timelines and artifacts of its own, and sees no others. Without one it is what the URL
    says (`?options=-cfoldline.tenant%3Dacme`) or the role has as its setting, or else the one without a name.

    Raises:
        MisuseError: the URL is none, `foldline[postgres]` is not installed, there are tables of
            somebody else, or the tenant's name cannot be one.
        StoreError: the server is not reached, the role may not, or a later version made the tables.
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
        configure = _configures(tenant)
        address = Address.of(url)
        is_there = address.has_store()  # the pool would only say that it took too long
        database = PostgresDatabase(
            address.name, _pool(address, configure, connections, wait_seconds)
        )
        self._hints = Hints(database, partial(_waiting, address, configure))
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
    address: Address, configure: "Configure", connections: int, seconds: float
) -> "ConnectionPool[Connection[Any]]":
    from psycopg_pool import ConnectionPool

    return ConnectionPool(
        address.conninfo,
        min_size=0,
        max_size=connections,
        timeout=seconds,
        open=True,
        kwargs={"autocommit": True},
        configure=configure,
        name="foldline",
    )


def _waiting(address: Address, configure: "Configure") -> "Connection[Any]":
    connection = address.waiting()
    configure(connection)
    return connection


def _configures(tenant: str) -> "Configure":
    """What a new connection is told."""
    checked_tenant(tenant)

    def configure(connection: "Connection[Any]") -> None:
        connection.execute(SETTINGS)
        connection.execute(DURABLE)
        if tenant:
            connection.execute("SELECT set_config(%s, %s, false)", (SETTING, tenant))

    return configure
