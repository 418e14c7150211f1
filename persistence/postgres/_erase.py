"""Rewrites the tables of a PostgreSQL database without their deleted rows.

`DELETE` leaves rows in the files, and so does a plain `VACUUM`; `VACUUM FULL` writes new files.  It keeps
deleted rows that an older transaction may still see, and skips tables of another owner with a warning.
So its report is read, not only whether it failed.
"""

import re
from typing import TYPE_CHECKING, Any, Final, LiteralString, cast

from blocks import StoreError

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.errors import Diagnostic

TABLES: Final = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'foldline'::regclass)
  AND relname IN ('stored_events', 'stored_trims', 'stored_artifacts', 'stored_artifact_pieces',
                  'stored_artifact_audit')
"""
REMAINS: Final = (
    "the write-ahead log of the server, until its segments are used again, and copies of it",
)


def erase(raw: "Connection[Any]", name: str, seconds: float) -> tuple[str, ...]:
    """Rewrite the tables; return places where the content of deleted rows may remain.

    `name` names the database in errors; `seconds` is how long to wait for the lock on a table.

    Raises:
        StoreError: a table could not be rewritten, or still has deleted rows.
    """
    left: list[int] = []

    def note(notice: "Diagnostic") -> None:
        if counts := re.findall(r"\d+", notice.message_detail or ""):
            left.append(int(counts[0]))

    raw.add_notice_handler(note)
    try:
        raw.execute("SELECT set_config('lock_timeout', %s, false)", [f"{seconds:.0f}s"])
        for (table,) in raw.execute(TABLES).fetchall():
            left.clear()
            raw.execute(cast("LiteralString", f"VACUUM (FULL, VERBOSE) {table}"))
            _check(left, table, name)
    finally:
        raw.remove_notice_handler(note)
        if not raw.closed:
            raw.execute("RESET lock_timeout")
    return REMAINS


def _check(left: list[int], table: str, name: str) -> None:
    """`left` is the number of deleted rows that remain in the table; empty if VACUUM was not permitted."""
    if not left:
        raise StoreError(
            f"{name}: this role may not write table {table} anew; let its owner run VACUUM FULL {table}"
        )
    if any(left):
        raise StoreError(
            f"{name}: a transaction that is older than the removal may still see {left[0]} rows of"
            f" {table}; end it and repeat the call"
        )
