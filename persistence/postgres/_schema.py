"""The tables in a PostgreSQL database, and how they are created.

    stored_events   one row per event: its position, columns that are often queried, the event itself as JSON
    stored_trims    which timelines lack older events, and where those events are
    stored_artifacts, stored_artifact_pieces, stored_artifact_audit      see `persistence.artifacts`
    events, artifacts, ...   the rows of the connection's tenant, see `_tenants`
    foldline        the format's number, and which views there are

They are in the first schema of the connection's `search_path`, which is created if it does not exist.  There is
no sequence, trigger or foreign key, and an append or a window touches only one timeline, so the table can be
distributed over many servers by `timeline`.  `made` orders timelines whose first events have the same time.
`crc32` is the checksum of an event; rows of earlier formats have none.
"""

from typing import Final

from blocks import MisuseError
from persistence.postgres import _tenants, _views
from persistence.postgres._database import PostgresDatabase
from persistence.postgres._url import HAS_STORE
from persistence.sql._database import Connection
from persistence.sql._format import NEW, bring_up_to_date

FIRST: Final = (
    """CREATE TABLE events(timeline text COLLATE "C" NOT NULL, seq bigint NOT NULL,
                           id text COLLATE "C" NOT NULL, ts double precision NOT NULL,
                           kind text COLLATE "C" NOT NULL, ref bigint, payload bytea NOT NULL,
                           made bigint, PRIMARY KEY (timeline, seq))""",
    "CREATE INDEX events_marks ON events(timeline, seq, kind, ref) WHERE ref IS NOT NULL",
    "CREATE INDEX events_first ON events(made, timeline) WHERE made IS NOT NULL",
    "CREATE TABLE artifacts(slot text PRIMARY KEY, artifact text NOT NULL, entry bytea NOT NULL)",
    "CREATE INDEX artifacts_by_id ON artifacts(artifact)",
    """CREATE TABLE artifact_pieces(slot text NOT NULL, number bigint NOT NULL,
                                    at double precision NOT NULL, piece bytea NOT NULL,
                                    PRIMARY KEY (slot, number))""",
    """CREATE TABLE artifact_audit(id text PRIMARY KEY, made bigint NOT NULL,
                                   record bytea NOT NULL)""",
    "CREATE INDEX artifact_audit_made ON artifact_audit(made)",
)
TRIMS: Final = (
    """CREATE TABLE trims(timeline text COLLATE "C" PRIMARY KEY, first bigint NOT NULL,
                          began_at double precision NOT NULL, manifest bytea NOT NULL)""",
)
STEPS: Final = (FIRST, TRIMS, _tenants.STEP, _tenants.SUMS)
"""The statements that lead from each format to the next; the format of a database is the number of steps taken."""
LOCK: Final = "SELECT pg_advisory_xact_lock(7310033245122)"
"""Lets one client at a time change the tables; the number is arbitrary."""
TAKEN: Final = "SELECT to_regclass('events') IS NOT NULL"
SCHEMA: Final = (
    "SELECT current_schema(), btrim(split_part(current_setting('search_path'), ',', 1), ' \"')"
)


def set_up(database: PostgresDatabase, *, is_there: bool) -> None:
    """Create the tables, or bring them up to date; `is_there` says whether the database has a store.

    Raises:
        MisuseError: there are other tables of these names.
        StoreError: a later version has changed them, or the role lacks the rights.
    """
    if not is_there:
        with database.writing() as connection:
            connection.run(LOCK)
            if connection.rows(HAS_STORE) == [(False,)]:
                _make(connection, database.name)
    bring_up_to_date(database, STEPS, _views.ALL, LOCK)


def _make(connection: Connection, name: str) -> None:
    if connection.rows(TAKEN) == [(True,)]:
        raise MisuseError(
            f"{name} has a table events of somebody else; put the store into a schema of its own:"
            " …?options=-csearch_path%3Dfoldline"
        )
    [(there, wanted)] = connection.rows(SCHEMA)
    if there is None:
        quoted = wanted.replace('"', '""')
        connection.run(f'CREATE SCHEMA IF NOT EXISTS "{quoted}"')
    for statement in NEW:
        connection.run(statement)
