"""The database that a URL names, and a form of the URL that may be shown: without the password."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import attrs

from blocks import MisuseError, StoreError
from persistence._log import is_sound
from persistence.postgres._settings import Settings

if TYPE_CHECKING:
    from psycopg import Connection

HAS_STORE: Final = "SELECT to_regclass('foldline') IS NOT NULL"
NO_URL: Final = (  # and not what it is: there may be a password in it
    "no URL of a PostgreSQL database; write postgresql://user:password@host/database, with %40 for an"
    " @ in the password, and so on"
)
DEFAULTS: Final = {"connect_timeout": "10", "application_name": "foldline"}
ALIVE: Final = {"keepalives_idle": "15", "keepalives_interval": "5", "keepalives_count": "3"}
"""A connection on which one only waits finds out within half a minute that the server cannot be reached."""


@attrs.frozen
class Address:
    """A database; `name` is for people."""

    name: str
    conninfo: str = attrs.field(repr=False)

    @classmethod
    def of(cls, url: object) -> "Address":
        """
        Raises:
            MisuseError: it is no URL, or the driver is not installed.
        """
        if not all(map(find_spec, ("psycopg", "psycopg_pool"))):
            raise MisuseError(
                "a PostgreSQL store needs its driver: pip install 'foldline[postgres]'"
            )
        if not is_sound(url):
            raise MisuseError(NO_URL)
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        try:
            parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
            conninfo = make_conninfo(**{**DEFAULTS, **parts, "client_encoding": "UTF8"})
        except ProgrammingError:  # which may quote the password
            raise MisuseError(NO_URL) from None
        if not _is_plausible(parts):
            raise MisuseError(NO_URL)
        return cls(_shown(parts), conninfo)

    def has_store(self, settings: Settings) -> bool:
        """Connect once, and look whether there is a store.

        Raises:
            StoreError: the server is not reached.
        """
        import psycopg

        try:
            with psycopg.connect(self.conninfo, autocommit=True) as connection:
                settings.configure(connection)
                connection.execute(settings.begin())
                return bool(connection.execute(HAS_STORE).fetchall()[0][0])
        except psycopg.Error as error:
            reason = str(error).partition("\n")[0][:300]
            raise StoreError(
                f"{self.name} is not reached: {reason}; start the server, or correct the URL"
            ) from error

    def waiting(self) -> "Connection[Any]":
        """A connection on which to wait for what the server says."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        parts: dict[str, Any] = {**ALIVE, **conninfo_to_dict(self.conninfo)}
        return psycopg.connect(**parts, autocommit=True)


def _is_plausible(parts: dict[str, str]) -> bool:
    """False where a password with a sign of the URL in it has become a host, a port or a name."""
    where = f"{parts.get('host', '')}{parts.get('dbname', '')}{parts.get('user', '')}"
    return "@" not in where and parts.get("port", "0").replace(",", "").isdecimal()


def _shown(parts: dict[str, str]) -> str:
    user = f"{parts['user']}@" if "user" in parts else ""
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"
