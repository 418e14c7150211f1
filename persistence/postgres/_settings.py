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
"""A parallel plan costs 25 ms where half of one is right.  In a table without statistics yet a bitmap seems
cheap, and reads a whole timeline for its last row."""
DURABLE: Final = """
SELECT set_config('synchronous_commit', 'on', {}) WHERE current_setting('synchronous_commit') = 'off'
"""
"""What is acknowledged is on the server's disk, also where a server or a role has it otherwise."""
OF_ROLE: Final = f"SET LOCAL {SETTING} TO DEFAULT"
OPTION: Final = re.compile(r"(?:-c\s*|--)((?:\\.|[^\s\\])+)")


def _tenant(_: object, __: object, name: str) -> None:
    checked_tenant(name)


@attrs.define(eq=False)
class Settings:
    """Of the connections of one store."""

    _tenant: str = attrs.field(default="", validator=_tenant)
    _begin: str = attrs.field(default="", init=False)
    """What follows BEGIN behind a pooler."""

    @property
    def is_pooled(self) -> bool:
        """Whether a connection was one of a pooler's, so that those to come may be."""
        return bool(self._begin)

    def configure(self, connection: "Connection[Any]") -> None:
        """Tell a new connection what it needs to know."""
        if is_pooled(connection):
            connection.prepare_threshold = None  # what is prepared stays with the pooler's own
            self._begin = "; ".join(("", *self._local(connection)))
            return
        for name, value in self._given():
            connection.execute(SET, (name, value))
        connection.execute(DURABLE.format("false"))

    def begin(self, mode: str = "BEGIN") -> LiteralString:
        """The beginning of a transaction."""
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
    """Whether the server's process is not the one that the connection names."""
    [(pid,)] = connection.execute(PID).fetchall()
    return bool(pid != connection.info.backend_pid)


def options(text: str) -> Iterator[tuple[str, str]]:
    """The settings in a connection's parameter `options`: `-csearch_path=foldline`; a pooler does not apply them."""
    for found in OPTION.findall(text):
        name, _, value = re.sub(r"\\(.)", r"\1", found).partition("=")
        yield name.replace("-", "_"), value
