"""A store whose tables Citus has distributed over many servers, the workers, behind a coordinator.

A worker does not see the settings of a connection to the coordinator, and Citus changes no rows through views. So here all
statements name the tables, and the tenant is a value in each of them. Events are distributed by timeline, so everything of
a timeline, for all tenants that have one of this name, is on one worker; artifacts are distributed by their slot.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, LiteralString, cast

import attrs

from persistence._log import StoredEvent, chain_start, extended
from persistence.postgres._address import TENANT
from persistence.postgres._database import (
    NUMBER,
    PostgresConnection,
    PostgresDatabase,
)
from persistence.sql._database import TABLES, Connection, Database, Rows, TakenError
from persistence.sql._retention import ADD_HEAD
from persistence.sql._rows import columns

if TYPE_CHECKING:
    import psycopg
    from psycopg import Connection as Raw

COLUMNS: Final = {table.name: table.names for table in TABLES}
KEYS: Final = {
    "events": "timeline",
    "heads": "timeline",
    "trims": "timeline",
    "artifacts": "slot",
    "artifact_pieces": "slot",
    "artifact_audit": "id",
}
"""The column by which each table is distributed; tables of the same column lie together. The census is not distributed, and
not kept, because an append that makes a timeline would then be on two servers."""
OURS: Final = "tenant = %(tenant)s"
_TABLE: Final = "|".join(COLUMNS)
_READ: Final = re.compile(rf"\b(FROM|JOIN) ({_TABLE})\b(?: ([a-z]\w*))?")
_INSERT: Final = re.compile(rf"INSERT INTO ({_TABLE})(?:\([^)]*\))?")
_CHANGE: Final = re.compile(rf"\s*(DELETE FROM|UPDATE) ({_TABLE})\b")
MOVE_HEAD: Final = """
UPDATE heads SET version = version + ?, chain = chain # ? WHERE timeline = ? AND version = ? RETURNING chain
"""
PRIMARY_KEY: Final = re.compile(r"\bstored_\w+_pkey_\d+\b")
"""What an error names if a worker refuses to copy a row whose key is taken, in any language."""
ROWS_MAX: Final = 1_000
"""Rows in one statement, whose values are bound one by one."""
REMAINS: Final = ("files of the workers, as long as a transaction there can see removed rows",)


@lru_cache
def in_words_of_tables(statement: str) -> LiteralString:
    """A statement of the common code with tables for views, with the parameters `p0`, `p1` and so on, and `tenant`."""
    first, *parts = statement.replace("%", "%%").split("?")
    text = first + "".join(f"%(p{n})s{part}" for n, part in enumerate(parts))
    start = ""
    if changed := _CHANGE.match(text):
        start, text = f"{changed[1]} stored_{changed[2]}", text[changed.end() :]
        before, _, condition = (
            text.rpartition("WHERE") if changed[1] == "UPDATE" else text.partition("WHERE")
        )
        text = f"{before}WHERE {OURS} AND {condition}"
    elif inserted := _INSERT.search(text):
        name, rest = inserted[1], text[inserted.end() :]
        start = f"INSERT INTO stored_{name}({COLUMNS[name]}, tenant)"
        text = _with_tenant(rest)
    return cast("LiteralString", start + _READ.sub(_own_rows, text))


def _with_tenant(rows: str) -> str:
    """The `VALUES` or `SELECT` of an insertion, with the tenant as its last column."""
    if "VALUES" in rows:
        return f"{rows.rstrip().removesuffix(')')}, %(tenant)s)"
    return rows.replace("\nFROM", ", %(tenant)s\nFROM", 1)


def _own_rows(match: "re.Match[str]") -> str:
    """The rows of the tenant, for the name of a table and perhaps its alias."""
    word, table, alias = match.groups()
    return f"{word} (SELECT {COLUMNS[table]} FROM stored_{table} WHERE {OURS}) AS {alias or table}"  # noqa: S608 -- constants


@attrs.frozen
class CitusConnection(PostgresConnection):
    """A `Connection` to the coordinator."""

    tenant: str

    def rows(self, statement: str, values: Sequence[object] = ()) -> Rows:
        words = in_words_of_tables(statement)
        return self.raw.execute(words, self._parameters(values), binary=True).fetchall()

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        return self.raw.execute(in_words_of_tables(statement), self._parameters(values)).rowcount

    def _parameters(self, values: Sequence[object]) -> dict[str, object]:
        return {"tenant": self.tenant, **{f"p{n}": value for n, value in enumerate(values)}}


@attrs.define(eq=False)
class CitusDatabase(PostgresDatabase):
    """A `Database` distributed by Citus."""

    counts = False
    _tenant: str

    def _connected(self, raw: "Raw[Any]") -> PostgresConnection:
        return CitusConnection(raw, self._tenant)

    def _translated(self, error: "psycopg.Error", raw: "Raw[Any]") -> Exception:
        """Read an internal error by what it means: mostly that of a worker whose own code did not come through."""
        if error.sqlstate == "XX000":
            if PRIMARY_KEY.search(str(error)):
                return TakenError()
            raw.close()  # so it counts as lost: the commit may have failed on a worker, or the worker be gone
        return super()._translated(error, raw)

    def append(self, timeline: str, expected: int, events: Sequence[StoredEvent]) -> bool:
        return Database.append(self, timeline, expected, events)

    def insert(
        self, connection: Connection, timeline: str, expected: int, events: Sequence[StoredEvent]
    ) -> bool:
        """Move the head, which excludes all others until the commit, and then insert the rows.

        In one statement, Citus would copy the rows, and a copy does not tell a lost race from damage.

        Raises:
            TakenError: the head has another version.
        """
        raw = cast("PostgresConnection", connection).raw
        links, chain = extended(0, expected, events)
        before = chain_start(timeline)
        if not expected:
            connection.run(ADD_HEAD, [timeline, len(events), chain ^ before])
        elif heads := connection.rows(MOVE_HEAD, [len(events), chain, timeline, expected]):
            before = heads[0][0] ^ chain
        else:
            raise TakenError
        rows = [
            (timeline, seq, *columns(event), event.data, before ^ link, self._tenant)
            for seq, (event, link) in enumerate(zip(events, links, strict=True), expected + 1)
        ]
        for begin in range(0, len(rows), ROWS_MAX):
            some = rows[begin : begin + ROWS_MAX]
            values = [value for row in some for value in row]
            raw.execute(_insertion(len(some), is_first=expected + begin == 0), values)
        return True

    def erase(self) -> tuple[str, ...]:
        return (*super().erase(), *REMAINS)


@lru_cache
def _insertion(count: int, *, is_first: bool) -> LiteralString:
    """The statement that inserts so many rows, each with its values; the first row may be that of a timeline."""
    rows = ["(%s, %s, %b, %b, %b, %s, %b, NULL, %s, %s)"] * count
    if is_first:
        rows[0] = rows[0].replace("NULL", NUMBER)
    names = "timeline, seq, id, ts, kind, ref, payload, made, link, tenant"
    return cast("LiteralString", f"INSERT INTO stored_events({names}) VALUES {', '.join(rows)}")  # noqa: S608 -- constants


def distribution() -> Iterator[str]:
    """The statements that distribute the tables, and put their views and policies in terms that hold on workers.

    A view asks a table that only the coordinator has for the tenant, so that the coordinator answers. A policy of all
    cannot know the tenant on a worker; those of logins that are bound to a tenant have it in them. No policy is forced on
    the owner of the tables, because a shard that moves is written by a role of the owner, and replication to a table
    whose policies hold for its role fails again and again.
    """
    yield "SELECT citus_add_local_table_to_metadata('foldline');"
    for name, column in KEYS.items():
        first = next(other for other, its in KEYS.items() if its == column)
        beside = "none" if first == name else f"stored_{first}"
        yield f"SELECT create_distributed_table('stored_{name}', '{column}', colocate_with => '{beside}');"
        yield f"ALTER TABLE stored_{name} NO FORCE ROW LEVEL SECURITY;"
        yield f"ALTER POLICY own_rows ON stored_{name} USING (true);"
        tenant = f"(SELECT {TENANT} FROM foldline)"  # noqa: S608 -- constants
        query = f"SELECT {COLUMNS[name]} FROM stored_{name} WHERE tenant = {tenant}"  # noqa: S608 -- constants
        yield f"CREATE OR REPLACE VIEW {name} WITH (security_invoker = true) AS {query};"
