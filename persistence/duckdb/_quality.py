"""The rows of the view `quality` for events that are not in a DuckDB file."""

from collections.abc import Iterable
from typing import TypeAlias

from blocks import Recorded
from persistence._log import store_event
from persistence.duckdb._schema import OPTIONS, TABLES, interrupts
from persistence.duckdb._views import ALL

QualityRow: TypeAlias = tuple[str, int, str, str]
"""Signal, version, turn, detail."""
ROWS = "SELECT signal, version, turn, detail FROM quality ORDER BY version, signal, detail"


def quality_rows(events: Iterable[Recorded]) -> list[QualityRow]:
    """The rows of the view `quality` for one log, by version; `events` are the whole log or its beginning.

    Raises:
        CodecError: an event has a value that cannot be encoded.
    """
    import duckdb

    stored = ((version, store_event(event)) for version, event in events)
    rows = [(1, version, event.at, event.data.decode()) for version, event in stored]
    with interrupts(), duckdb.connect(config=OPTIONS) as connection:
        for statement in (*TABLES, *ALL):
            connection.execute(statement)
        connection.execute("INSERT INTO timelines VALUES (1, '')")
        appender = connection.appender("events")
        appender.append_rows(rows)
        appender.flush()
        return connection.execute(ROWS).fetchall()
