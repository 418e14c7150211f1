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
NO_URL: Final = (  # does not quote it: it may contain a password
    "no URL of a PostgreSQL database; write postgresql://user:password@host/database, with %40 for an"
    " @ in the password, and so on"
)
DEFAULTS: Final = {"connect_timeout": "10", "application_name": "foldline"}
ALIVE: Final = {"keepalives_idle": "15", "keepalives_interval": "5", "keepalives_count": "3"}
"""Options that make a connection on which we only wait notice within half a minute that the server is unreachable."""


@attrs.frozen
class Address:
    """The address of a database; `name` is for messages and has no password."""

    name: str
    conninfo: str = attrs.field(repr=False)

    @classmethod
    def of(cls, url: object) -> "Address":
        """The address in a URL.

        Raises:
            MisuseError: it is not a URL of a database, or the driver is not installed.
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
        except ProgrammingError:  # its text may quote the password
            raise MisuseError(NO_URL) from None
        if not _is_plausible(parts):
            raise MisuseError(NO_URL)
        return cls(_shown(parts), conninfo)

    def has_store(self, settings: Settings) -> bool:
        """Connect once, and return whether the database has a store.

        Raises:
            StoreError: the server cannot be reached.
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
        """A new connection for waiting for notifications."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        parts: dict[str, Any] = {**ALIVE, **conninfo_to_dict(self.conninfo)}
        return psycopg.connect(**parts, autocommit=True)


def _is_plausible(parts: dict[str, str]) -> bool:
    """False if an unescaped sign in the password was taken for the end of a part, so that a part of the password is in
    the host, port or name."""
    where = f"{parts.get('host', '')}{parts.get('dbname', '')}{parts.get('user', '')}"
    return "@" not in where and parts.get("port", "0").replace(",", "").isdecimal()


def _shown(parts: dict[str, str]) -> str:
    user = f"{parts['user']}@" if "user" in parts else ""
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"
