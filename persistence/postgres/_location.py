"""The location of a PostgreSQL store: `postgresql://user:password@host/database`."""

from contextlib import closing
from typing import TYPE_CHECKING

import attrs

from blocks import MisuseError
from persistence._store import StoreReport
from persistence.postgres._settings import Settings
from persistence.postgres._store import PostgresStore
from persistence.postgres._url import Address

if TYPE_CHECKING:
    from pathlib import Path

    from persistence.artifacts import KeyRing


@attrs.frozen
class PostgresLocation:
    """A database on a server."""

    _address: Address

    def exists(self) -> bool:
        return self._address.has_store(Settings())

    def open(self) -> PostgresStore:
        return PostgresStore(self._address.conninfo)

    def verify(self, *, keys: "KeyRing | None" = None) -> StoreReport:
        if not self.exists():
            raise MisuseError(f"no store at {self} to verify")
        with closing(self.open()) as store:
            return store.verify(keys=keys)

    def readable_copy(self, folder: "Path") -> "tuple[PostgresLocation, str]":
        del folder
        return self, ""

    def is_writable(self) -> bool:
        return True

    def moment(self, folder: "Path") -> "PostgresLocation":
        del folder
        return self

    def remove(self) -> None:
        """Do nothing: other clients may use the tables by now, and empty tables do no harm."""

    def __str__(self) -> str:
        return self._address.name


def locate(where: object) -> PostgresLocation:
    """The location of a `postgresql://` or `postgres://` URL.

    Raises:
        MisuseError: it is not such a URL, or the driver is not installed.
    """
    return PostgresLocation(Address.of(where))
