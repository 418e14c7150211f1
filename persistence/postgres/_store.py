"""The store for many machines: a PostgreSQL database, one transaction per append; `postgresql://user@host/database`."""

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from blocks import MisuseError, TimelineId
from persistence._log import StoredEvent
from persistence._store import StoreLocation, StoreReport
from persistence.postgres._address import Address, ConnectionSettings
from persistence.postgres._citus import CitusDatabase
from persistence.postgres._database import PostgresDatabase
from persistence.postgres._notify import Hints
from persistence.postgres._pool import Pool
from persistence.postgres._schema import set_up
from persistence.sql._database import Patience
from persistence.sql._store import SQLStore

if TYPE_CHECKING:
    from persistence.artifacts import KeyRing

CONNECTIONS: Final = 32
WAIT_SECONDS: Final = 30.0


class PostgresStore(SQLStore):
    """Timelines in the database at `url`, `postgresql://user:password@host/database`, which any number of processes on
    any number of machines may use.  Its methods raise the errors of `EventStore`.

    At most `connections` are open at a time, so that as many threads can write at once; they are opened when needed.
    What fails because of a lost connection or a busy server is repeated for up to `wait_seconds`.

    A `tenant` has its own timelines and artifacts, and sees no others. If it is empty, the tenant is the one in the
    URL (`?options=-cfoldline.tenant%3Dacme`), or in the settings of the role, or else the tenant without a name.

    Raises:
        MisuseError: the URL is not valid, `foldline[postgres]` is not installed, there are other tables of these
            names, or the tenant's name is not valid.
        StoreError: the server cannot be reached, the role lacks the rights, or a later version changed the tables.
    """

    is_remote = True

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
        settings = ConnectionSettings(tenant)
        address = Address.of(url)
        state = address.inspect(settings)  # the pool would wait for a server that is not there
        connect = partial(address.connected, settings)
        pool = Pool(address.name, connect, connections, wait_seconds)
        database = PostgresDatabase(address.name, pool, settings)
        if state.is_distributed:
            database = CitusDatabase(address.name, pool, settings, state.tenant)
        self._postgres = database
        self._hints = Hints(database, connect)
        super().__init__(database, Patience(seconds=wait_seconds), self._hints)
        try:
            self._patience.repeated(lambda: set_up(database, is_there=state.has_store))
        except BaseException:
            self.close()
            raise

    def _is_there(self, timeline: TimelineId, after: int, stored: Sequence[StoredEvent]) -> bool:
        if not super()._is_there(timeline, after, stored):
            return False
        self._settled(lambda _: self._postgres.confirm())
        return True

    def hears_others(self) -> bool:
        return self._hints.listener.hears


@attrs.frozen
class PostgresLocation(StoreLocation):
    """A database on a server."""

    _address: Address

    def exists(self) -> bool:
        return self._address.inspect(ConnectionSettings()).has_store

    def open(self) -> PostgresStore:
        return PostgresStore(self._address.conninfo)

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        if not self.exists():
            raise MisuseError(f"there is no store at {self} to verify")
        with closing(self.open()) as store:
            return store.verify(keys=keys)

    def __str__(self) -> str:
        return self._address.name


def locate(where: object) -> PostgresLocation:
    """The location of a `postgresql://` or `postgres://` URL.

    Raises:
        MisuseError: it is not such a URL, or the driver is not installed.
    """
    return PostgresLocation(Address.of(where))
