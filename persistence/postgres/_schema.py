"""The tables in a PostgreSQL database, and how they are created.

They are in the first schema of the connection's `search_path`, which is created if it does not exist.  There is
no sequence, trigger or foreign key, and an append or a window touches only one timeline, so the table can be
distributed over many servers by `timeline`.

A table keeps a tenant with every row, and a connection sees the rows of one tenant, which it names by the setting
`foldline.tenant`; without it, the tenant is "".  The table `events` is stored as `stored_events`, and so on; all
statements use a view of the table's own name that contains only the rows of this tenant, so the statements are
the same as in SQLite.  Row-level security enforces this again for all roles that are not superusers, even if they use
the table itself.  Every key begins with the tenant, so the same timeline name means another timeline for another tenant.
"""

from collections.abc import Iterator
from typing import Final

from blocks import MisuseError
from persistence.postgres._address import HAS_STORE, TENANT
from persistence.postgres._database import PostgresDatabase
from persistence.postgres._dialect import VIEWS
from persistence.sql import _database
from persistence.sql._database import ADD_BUCKETS, NEW, TABLES, Connection, Table

TYPES: Final = {
    "name": 'text COLLATE "C"',
    "int": "bigint",
    "float": "double precision",
    "bytes": "bytea",
}
FORMAT: Final = 5


def _creating(table: Table) -> Iterator[str]:
    """The statements that create a table, its indexes, its policy and its view."""
    stored = f"stored_{table.name}"
    columns = f"{table.columns}, tenant {{name}} NOT NULL DEFAULT {TENANT}".format(**TYPES)
    yield f"CREATE TABLE {stored}({columns}, PRIMARY KEY (tenant, {table.key}))"
    for name, what in table.indexes:
        yield f"CREATE INDEX {name} ON {stored}(tenant, {what}"
    yield f"CREATE POLICY own_rows ON {stored} USING (tenant = {TENANT})"
    yield f"ALTER TABLE {stored} ENABLE ROW LEVEL SECURITY"
    yield f"ALTER TABLE {stored} FORCE ROW LEVEL SECURITY"
    query = f"SELECT {table.names} FROM {stored} WHERE tenant = {TENANT}"  # noqa: S608 -- constants
    yield f"CREATE VIEW {table.name} WITH (security_invoker = true) AS {query}"


CREATE: Final = tuple(statement for table in TABLES for statement in _creating(table))
LOCK: Final = "SELECT pg_advisory_xact_lock(7310033245122)"
"""Lets one client at a time change the tables; the number is arbitrary."""
BUCKET_COUNT: Final = "SELECT count(*) FROM census"
"""0 for a tenant that has not opened the store yet."""
HAS_EVENTS: Final = "SELECT to_regclass('events') IS NOT NULL"
SCHEMA: Final = (
    "SELECT current_schema(), btrim(split_part(current_setting('search_path'), ',', 1), ' \"')"
)


def set_up(database: PostgresDatabase, *, is_there: bool) -> None:
    """Create the tables if the database has none; `is_there` says whether it has a store.

    Raises:
        MisuseError: there are other tables of these names.
        StoreError: they have the format of another version, or the role lacks the rights.
    """
    if not is_there:
        with database.writing() as connection:
            connection.run(LOCK)
            if connection.rows(HAS_STORE) == [(False,)]:
                _make(connection, database.name)
    _database.set_up(database, FORMAT, CREATE, VIEWS, LOCK)
    if database.counts:
        with database.lent() as connection:
            is_begun = connection.rows(BUCKET_COUNT) != [(0,)]
        if not is_begun:
            with database.writing() as connection:
                connection.run(LOCK)
                if connection.rows(BUCKET_COUNT) == [(0,)]:
                    connection.run(ADD_BUCKETS)


def _make(connection: Connection, name: str) -> None:
    if connection.rows(HAS_EVENTS) == [(True,)]:
        raise MisuseError(
            f"{name} has a table named events of another application; use a separate schema for the store:"
            " …?options=-csearch_path%3Dfoldline"
        )
    [(there, schema)] = connection.rows(SCHEMA)
    if there is None:
        quoted = schema.replace('"', '""')
        connection.run(f'CREATE SCHEMA IF NOT EXISTS "{quoted}"')
    for statement in NEW:
        connection.run(statement)
