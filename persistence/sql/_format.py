"""The format of a database, and the migration from earlier formats."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from blocks import DamagedStoreError, StoreError
from persistence.sql._database import Connection, Database

NEW: Final = (
    "CREATE TABLE foldline(format INTEGER NOT NULL, views VARCHAR(16) NOT NULL)",
    "INSERT INTO foldline VALUES (0, '')",
)
"""The statements for a new database, which has format 0."""
FOUND: Final = "SELECT format, views FROM foldline"


def bring_up_to_date(
    database: Database, steps: Sequence[Sequence[str]], views: Sequence[str], lock: str = ""
) -> None:
    """Take all steps that a database lacks in one transaction, and create the current views.

    `lock` is a statement that waits until no other client does the same.

    Raises:
        DamagedStoreError: its format is missing.
        StoreError: a later version has changed it.
    """
    current = (len(steps), sha256("".join(views).encode()).hexdigest()[:16])
    with database.lent() as connection:
        if _format(connection, database.name, current[0]) == current:
            return
    with database.writing() as connection:
        if lock:
            connection.run(lock)
        # Again: another client may have been faster.
        there, mark = _format(connection, database.name, current[0])
        for statement in (each for step in steps[there:] for each in step):
            connection.run(statement)
        if mark != current[1]:
            for statement in views:
                connection.run(statement)
        connection.run("UPDATE foldline SET format = ?, views = ?", current)


def format_problems(connection: Connection) -> Sequence[str]:
    """Problems of the table `foldline` in an open database."""
    found = connection.rows(FOUND)
    return [] if len(found) == 1 else [f"table foldline has {len(found)} rows, and should have 1"]


def _format(connection: Connection, name: str, newest: int) -> tuple[int, str]:
    try:
        [(there, mark)] = connection.rows(FOUND)
    except ValueError:
        raise DamagedStoreError(
            f"{name} does not say which format it has; restore the database from a backup"
        ) from None
    if there > newest:
        raise StoreError(
            f"{name} has format {there}, this version reads up to {newest}; upgrade foldline"
        )
    return there, mark
