"""Fills a store with logs by the database's own bulk load: a million events in half a minute.

The store is closed meanwhile. Rows of a timeline are adjacent, unlike in `benchmarks.scale_files`.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any, Final

import duckdb

from benchmarks.scale_files import material
from persistence import DuckDBStore, PostgresStore, SQLiteStore, open_store
from persistence.postgres._database import PostgresConnection
from persistence.sqlite._database import SQLiteConnection

PAGE: Final = 50_000
STARTED: Final = 1_700_000_000
COLUMNS: Final = "timeline, seq, id, ts, kind, ref, payload, made"
NAMES: Final = "INSERT INTO timelines SELECT unnest(?), unnest(?)"
EVENTS: Final = "INSERT INTO events SELECT unnest(?), unnest(?), unnest(?), unnest(?)"
Row = tuple[str, int, str, float, str, None, bytes, int | None]


def fill(url: str, name: str, first: int, timelines: int, each: int) -> None:
    """Add `timelines` logs of `each` events, named by `name` and numbers from `first` on.

    Raises:
        TypeError: the store has no bulk load.
    """
    rows = _rows(name, first, timelines, each)
    with closing(open_store(url)) as store:
        match store:
            case PostgresStore():
                with store._database.lent() as connection:  # noqa: SLF001
                    assert isinstance(connection, PostgresConnection)
                    _copy(connection.raw, rows)
            case SQLiteStore():
                with store._database.writing() as connection:  # noqa: SLF001
                    assert isinstance(connection, SQLiteConnection)
                    statement = f"INSERT INTO events({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 -- constants
                    connection.raw.executemany(statement, rows)
            case DuckDBStore():
                path = str(store.path)
                store.close()
                _insert(path, rows)
            case _:
                raise TypeError(f"{type(store).__name__} cannot be filled")


def _rows(name: str, first: int, timelines: int, each: int) -> Iterator[Row]:
    texts = [text.encode() for text in material()]
    for number in range(first, first + timelines):
        for seq in range(1, each + 1):
            at = STARTED + number + seq
            payload = texts[(number * 7 + seq) % len(texts)].replace(b"@SEQ@", b"%d" % seq)
            payload = payload.replace(b"@CYCLE@", b"%d" % (seq // len(texts)))
            payload = payload.replace(b"@AT@", b"%d.0" % at)
            made = at if seq == 1 else None
            yield f"{name}{number}", seq, f"event.{seq}", at, "BlockAppended", None, payload, made


def _copy(connection: Any, rows: Iterable[Row]) -> None:
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY stored_events({COLUMNS}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        # A server does this by itself after a minute.
        cursor.execute("VACUUM ANALYZE stored_events")


def _insert(path: str, rows: Iterator[Row]) -> None:
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(f"ATTACH '{path}' AS store (ROW_GROUP_SIZE 2048)")
        database.execute("USE store")
        [(number,)] = database.execute("SELECT count(*) FROM timelines").fetchall()
        while page := list(islice(rows, PAGE)):
            new: tuple[list[int], list[str]] = ([], [])
            columns: tuple[list[Any], ...] = ([], [], [], [])
            for name, seq, _, at, _, _, payload, _ in page:
                if seq == 1:
                    number += 1
                    new[0].append(number)
                    new[1].append(name)
                for column, value in zip(columns, (number, seq, at, payload.decode()), strict=True):
                    column.append(value)
            database.execute(NAMES, new)
            database.execute(EVENTS, columns)
        database.execute("CHECKPOINT")
