"""The address of a database, and the settings of our connections to it.

A direct connection to the server keeps its settings as long as it lasts.  A pooler may give each transaction
another connection, and the settings of one client, its tenant included, would remain for the next client.  So
behind a pooler, every transaction begins with all our settings, which end with the transaction.
"""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from logging import NullHandler, getLogger
from typing import TYPE_CHECKING, Any, Final, LiteralString, cast

import attrs

from blocks import MisuseError, StoreError, lacking
from persistence._log import is_sound

if TYPE_CHECKING:
    from psycopg import Connection

TENANT_SETTING: Final = "foldline.tenant"
TENANT: Final = f"coalesce(current_setting('{TENANT_SETTING}', true), '')"
"""SQL for the tenant of a connection."""
NAME_BYTES_MAX: Final = 200
"""Bytes of a tenant's name, so that an index key of it and a timeline's name fits into a page."""
HAS_STORE: Final = "SELECT to_regclass('foldline') IS NOT NULL"
LOOK: Final = f"""
SELECT {TENANT}, to_regclass('foldline') IS NOT NULL,
       EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')
"""  # noqa: S608 -- constants
IS_DISTRIBUTED: Final = "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('stored_events'))"
"""For a database that has Citus."""
NO_URL: Final = (  # does not quote it: it may contain a password
    "no URL of a PostgreSQL database; write postgresql://user:password@host/database, with %40 for an"
    " @ in the password, and so on"
)
DEFAULTS: Final = {
    "application_name": "foldline",
    "connect_timeout": "10",
    "keepalives_idle": "8",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "12000",
}
"""With these, a connection notices within a quarter of a minute that its server is gone without a word."""
OF_SEVERAL: Final = {"connect_timeout": "3"}
"""If the URL has several hosts, each attempt to connect may begin with one that is gone."""

SILENT: Final = NullHandler()
"""Without it, a program that has set up no logging prints the driver's warnings on its terminal."""


@attrs.frozen
class DatabaseState:
    """What a connection has found."""

    has_store: bool
    is_distributed: bool
    """Whether Citus has distributed the tables of the store."""
    tenant: str


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
        if not find_spec("psycopg"):
            raise lacking("a PostgreSQL store", "postgres")
        if not is_sound(url):
            raise MisuseError(NO_URL)
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        try:
            parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
            others = OF_SEVERAL if "," in parts.get("host", "") else {}
            conninfo = make_conninfo(**{**DEFAULTS, **others, **parts, "client_encoding": "UTF8"})
        except ProgrammingError:  # its text may quote the password
            raise MisuseError(NO_URL) from None
        if not _is_plausible(parts):
            raise MisuseError(NO_URL)
        return cls(_public_url(parts), conninfo)

    def inspect(self, settings: "ConnectionSettings") -> "DatabaseState":
        """Connect once, and look what is there.

        Raises:
            StoreError: the server cannot be reached.
        """
        import psycopg

        try:
            with self.connected(settings) as connection:
                connection.execute(settings.begin())
                [(tenant, is_there, has_citus)] = connection.execute(LOOK).fetchall()
                is_distributed = has_citus and connection.execute(IS_DISTRIBUTED).fetchall() == [
                    (True,)
                ]
                return DatabaseState(is_there, is_distributed, tenant)
        except (psycopg.Error, OSError) as error:
            reason = str(error).partition("\n")[0][:300]
            raise StoreError(
                f"{self.name} cannot be reached: {reason}; start the server, or correct the URL"
            ) from error

    def connected(self, settings: "ConnectionSettings") -> "Connection[Any]":
        """A new connection with these settings."""
        import psycopg

        getLogger("psycopg").addHandler(SILENT)
        connection = psycopg.connect(self.conninfo, autocommit=True)
        try:
            settings.configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _is_plausible(parts: dict[str, str]) -> bool:
    """False if an unescaped sign in the password was taken for the end of a part, so that a part of the password is in
    the host, port or name."""
    where = f"{parts.get('host', '')}{parts.get('dbname', '')}{parts.get('user', '')}"
    return "@" not in where and parts.get("port", "0").replace(",", "").isdecimal()


def _public_url(parts: dict[str, str]) -> str:
    user = f"{parts['user']}@" if "user" in parts else ""
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


PID: Final = "SELECT pg_backend_pid()"
SET: Final = "SELECT set_config(%s, %s, false)"
FAST: Final = (("max_parallel_workers_per_gather", "0"), ("enable_bitmapscan", "off"))
"""A parallel plan takes 25 ms where a serial one takes half of one.  Without statistics a bitmap scan seems cheap, and
reads a whole timeline to find its last row."""
DURABLE: Final = """
SELECT set_config('synchronous_commit', 'on', {}) WHERE current_setting('synchronous_commit') = 'off'
"""
"""Makes acknowledged commits durable on the server's disk, even if the server or the role is set otherwise."""
OF_ROLE: Final = f"SET LOCAL {TENANT_SETTING} TO DEFAULT"
OPTION: Final = re.compile(r"(?:-c\s*|--)((?:\\.|[^\s\\])+)")


def checked_tenant(name: str) -> str:
    """The name, if it can name a tenant.

    Raises:
        MisuseError: it cannot.
    """
    if not is_sound(name) or len(name.encode()) > NAME_BYTES_MAX:
        raise MisuseError(
            f"tenant={name!r:.60} is not a valid name of a tenant; use printable text of at most"
            f" {NAME_BYTES_MAX} bytes"
        )
    return name


@attrs.define(eq=False)
class ConnectionSettings:
    """The settings of the connections of one store."""

    _tenant: str = attrs.field(default="", converter=checked_tenant)
    _begin: str = attrs.field(default="", init=False)
    """Statements that follow BEGIN if the connection goes through a pooler; empty if it does not."""

    @property
    def is_pooled(self) -> bool:
        """Whether a connection so far went through a pooler, so that later ones may as well."""
        return bool(self._begin)

    def configure(self, connection: "Connection[Any]") -> None:
        """Apply the settings to a new connection."""
        if is_pooled(connection):
            # A prepared statement belongs to one connection of the pooler.
            connection.prepare_threshold = None
            self._begin = "; ".join(("", *self._local(connection)))
            return
        for name, value in self._variables():
            connection.execute(SET, (name, value))
        connection.execute(DURABLE.format("false"))

    def begin(self, mode: str = "BEGIN") -> LiteralString:
        """The statement that begins a transaction."""
        return cast("LiteralString", mode + self._begin)

    def _variables(self) -> Iterator[tuple[str, str]]:
        yield from FAST
        if self._tenant:
            yield TENANT_SETTING, self._tenant

    def _local(self, connection: "Connection[Any]") -> Iterator[str]:
        from psycopg.sql import SQL, Literal

        variables = {**dict(options(connection.info.options)), **dict(self._variables())}
        for name, value in variables.items():
            query = SQL("SELECT set_config({}, {}, true)").format(Literal(name), Literal(value))
            yield query.as_string(connection)
        if TENANT_SETTING not in variables:
            yield OF_ROLE
        yield DURABLE.format("true")


def is_pooled(connection: "Connection[Any]") -> bool:
    """Whether the connection goes through a pooler: its server process differs from the one that it reports."""
    [(pid,)] = connection.execute(PID).fetchall()
    return bool(pid != connection.info.backend_pid)


def options(text: str) -> Iterator[tuple[str, str]]:
    """The settings in the connection parameter `options` (`-csearch_path=foldline`), which a pooler does not apply."""
    for option in OPTION.findall(text):
        name, _, value = re.sub(r"\\(.)", r"\1", option).partition("=")
        yield name.replace("-", "_"), value
