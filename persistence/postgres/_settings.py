"""The settings of our connections, also if other clients share them.

A direct connection to the server keeps its settings as long as it lasts.  A pooler may give each transaction
another connection, and the settings of one client, its tenant included, would remain for the next client.  So
behind a pooler, every transaction begins with all our settings, which end with the transaction.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, LiteralString, cast

import attrs

from persistence.postgres._tenants import SETTING, checked_tenant

if TYPE_CHECKING:
    from psycopg import Connection

PID: Final = "SELECT pg_backend_pid()"
SET: Final = "SELECT set_config(%s, %s, false)"
FAST: Final = (("max_parallel_workers_per_gather", "0"), ("enable_bitmapscan", "off"))
"""A parallel plan takes 25 ms where a serial one takes half of one.  Without statistics a bitmap scan seems cheap, and
reads a whole timeline to find its last row."""
DURABLE: Final = """
SELECT set_config('synchronous_commit', 'on', {}) WHERE current_setting('synchronous_commit') = 'off'
"""
"""Makes acknowledged commits durable on the server's disk, even if the server or the role is set otherwise."""
OF_ROLE: Final = f"SET LOCAL {SETTING} TO DEFAULT"
OPTION: Final = re.compile(r"(?:-c\s*|--)((?:\\.|[^\s\\])+)")


def _tenant(_: object, __: object, name: str) -> None:
    checked_tenant(name)


@attrs.define(eq=False)
class Settings:
    """The settings of the connections of one store."""

    _tenant: str = attrs.field(default="", validator=_tenant)
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
        for name, value in self._given():
            connection.execute(SET, (name, value))
        connection.execute(DURABLE.format("false"))

    def begin(self, mode: str = "BEGIN") -> LiteralString:
        """The statement that begins a transaction."""
        return cast("LiteralString", mode + self._begin)

    def _given(self) -> Iterator[tuple[str, str]]:
        yield from FAST
        if self._tenant:
            yield SETTING, self._tenant

    def _local(self, connection: "Connection[Any]") -> Iterator[str]:
        from psycopg.sql import SQL, Literal

        given = {**dict(options(connection.info.options)), **dict(self._given())}
        for name, value in given.items():
            query = SQL("SELECT set_config({}, {}, true)").format(Literal(name), Literal(value))
            yield query.as_string(connection)
        if SETTING not in given:
            yield OF_ROLE
        yield DURABLE.format("true")


def is_pooled(connection: "Connection[Any]") -> bool:
    """Whether the connection goes through a pooler: its server process differs from the one that it reports."""
    [(pid,)] = connection.execute(PID).fetchall()
    return bool(pid != connection.info.backend_pid)


def options(text: str) -> Iterator[tuple[str, str]]:
    """The settings in the connection parameter `options` (`-csearch_path=foldline`), which a pooler does not apply."""
    for found in OPTION.findall(text):
        name, _, value = re.sub(r"\\(.)", r"\1", found).partition("=")
        yield name.replace("-", "_"), value
