"""What DuckDB writes differently: conditions on payloads, which are stored as texts, and the views.

A file has no columns for ids and kinds, and a number instead of the name of a timeline.  Of a large event its row has
only the stand-in (see `_tables`), so its text counts as a possible match.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final

from blocks import Recorded, TimelineId, decode_event
from persistence.duckdb._quality_signals import QUALITY
from persistence.duckdb._tables import STANDS_IN, whole
from persistence.search._index import CONDITIONS_MAX, FOLDED_TO_ASCII
from persistence.sql._database import Dialect
from persistence.sql._index import Condition, SQLIndex
from persistence.sql._views import Words, json_path, views

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE: Final = 2_000
ROWS: Final = 32
"""Rows with payloads that are fetched at a time; a row may have 16 KB."""
EVENTS: Final = (
    "(SELECT name AS timeline, timeline AS number, seq, payload"
    " FROM events JOIN timelines USING (timeline))"
)
_PARTS: Final = "json_extract(payload, ['$.event', '$.block.turn', '$.block.type'])"
_IS_BLOCK: Final = f"""{_PARTS}[1]::VARCHAR = '"BlockAppended"'"""
_TURN: Final = f"""'[' || coalesce({_PARTS}[2]::VARCHAR, '""') || ']'"""
_IS_RESULT: Final = f"""coalesce({_PARTS}[3]::VARCHAR, '') = '"react.tool.result"'"""
_APPENDED: Final = "contains(payload, '\"BlockAppended\"')"
_FOLDS: Final = (
    f"strlen(payload) <> length(payload) AND regexp_matches(payload, '[{FOLDED_TO_ASCII}]')"
)
DIALECT: Final = Dialect(
    appended=_APPENDED,
    summarized=(
        "contains(payload, '\"RangeCompacted\"') OR contains(payload, '\"SummaryReplaced\"')"
    ),
    holds="contains(payload, ?)",
    bound=str,
    holds_any_case=f"regexp_matches(payload, ?) OR {_FOLDS}",
    pattern=lambda run: f"(?i:{re.escape(run)})",
    odd=r"contains(payload, 'react.tool.call') AND regexp_matches(payload, '[0-9]e-?[0-9]|0\.0000')",
    events=EVENTS,
    is_block=_IS_BLOCK,
    turn=_TURN,
    is_result=_IS_RESULT,
    new_turns=f"""
SELECT min(seq) AS first, turn, arg_min(is_result, seq) FROM (
    SELECT seq, {_TURN} AS turn, {_IS_RESULT} AS is_result
    FROM {EVENTS} WHERE timeline = ? AND seq <= ? AND timeline = ? AND {_IS_BLOCK}
) GROUP BY turn ORDER BY first
""",  # noqa: S608 -- constants
)
_OTHER_LARGE: Final = f"{STANDS_IN} AND NOT {_APPENDED}"
"""Large events that are not appended blocks: their stand-ins do not have the text of the summary."""


class DuckDBIndex(SQLIndex):
    """A `SQLIndex` whose queries scan the table once and are read while they run, with cursors from `inspect`."""

    def __init__(
        self, inspect: "Callable[[], AbstractContextManager[tuple[DuckDBPyConnection, object]]]"
    ) -> None:
        self._inspect = inspect
        super().__init__(self._scan, DIALECT)

    def _scan(self, query: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        with self._inspect() as (cursor, _):
            cursor.execute(query, values)
            while rows := cursor.fetchmany(PAGE):
                yield from rows

    def _any_case(self, run: str) -> Condition:
        condition, values = super()._any_case(run)
        return f"({condition} OR {STANDS_IN})", values

    def _alike(self, alike: Sequence[Sequence[str]]) -> list[Condition]:
        """It begins with one search for one needle of each stem, which rules out nearly all payloads."""
        first = "|".join(sorted({re.escape(_rarest(needles)) for needles in alike}))
        condition, values = "regexp_matches(payload, ?)", list[object]([first])
        if len(alike) <= CONDITIONS_MAX:
            each, needles = self._any_of(alike)
            condition, values = f"{condition} AND {each}", [first, *needles]
        return [(f"({condition} OR {_OTHER_LARGE})", values)]

    def _events(
        self, timeline: TimelineId | None, after: int, conditions: Sequence[Condition]
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        if timeline:
            place: Condition = ("timeline = ? AND seq > ?", [timeline, after])
            conditions = [place, *conditions]
        statement = f"SELECT timeline, number, seq, payload FROM {EVENTS} WHERE " + " AND ".join(  # noqa: S608
            f"({condition})" for condition, _ in conditions
        )
        if timeline:
            statement += " ORDER BY seq"
        parameters = [value for _, values in conditions for value in values]
        with self._inspect() as (cursor, _), self._inspect() as (second, _):
            cursor.execute(statement, parameters)
            while rows := cursor.fetchmany(ROWS):
                for (name, number), some in groupby(rows, key=lambda row: row[:2]):
                    events = whole((row[2:] for row in some), second, number)
                    for version, payload in events:
                        yield TimelineId(name), (version, decode_event(payload))


def _rarest(needles: Collection[str]) -> str:
    """The needle that the fewest payloads contain: that of the turn, if there is one, else the longest."""
    return max(needles, key=lambda needle: (needle.startswith('"'), len(needle)))


WHOLE: Final = f"""
       CASE WHEN {STANDS_IN.replace("payload", "e.payload")}
            THEN CAST((SELECT string_agg(piece, '' ORDER BY number) FROM pieces p
                       WHERE p.timeline = e.timeline AND p.seq = e.seq) AS JSON)
            ELSE e.payload
       END"""  # noqa: S608 -- constants
"""The payload of a row, put together from pieces if it is large; computed only if a query selects it."""


class _Words(Words):
    line: ClassVar[str] = "chr(10)"
    events: ClassVar[str] = f"""(
    SELECT t.name AS timeline, e.seq, e.ts, e.payload AS row,
           json_extract_string(e.payload, '$.event') AS kind,
           json_extract_string(e.payload, '$.id') AS id, {WHOLE} AS payload
    FROM events e JOIN timelines t USING (timeline))"""  # noqa: S608 -- constants
    payload: ClassVar[str] = "payload"
    narrow: ClassVar[str] = "json_extract(row, '$.block')"
    happened: ClassVar[str] = "make_timestamp(TRY_CAST(ts * 1000000 AS BIGINT))"

    def text(self, json: str, path: str) -> str:
        return f"json_extract_string({json}, '{json_path(path)}')"

    def inner(self, json: str, path: str) -> str:
        return f"json_extract({json}, '{json_path(path)}')"

    def number(self, json: str, path: str) -> str:
        return f"TRY_CAST({self.inner(json, path)} AS BIGINT)"

    def cost(self, json: str, path: str) -> str:
        return f"TRY_CAST({self.inner(json, path)} AS DOUBLE)"

    def true(self, json: str, path: str) -> str:
        return f"coalesce({self.text(json, path)} = 'true', false)"

    def whole(self, number: str) -> str:
        return f"({number})::BIGINT"

    def length(self, json: str, path: str) -> str:
        return f"json_array_length({json}, '{json_path(path)}')"

    def lines(self, json: str, path: str, each: str) -> str:
        return f"nullif(array_to_string({self._list(json, path, each)}, chr(10)), '')"

    def facts(self, lists: Sequence[tuple[str, str, str]]) -> str:
        parts = (
            f"CASE WHEN {condition or 'true'} THEN {self._list('written', path, each)} ELSE [] END"
            for path, each, condition in lists
        )
        return f"list_concat({', '.join(parts)})"

    def _list(self, json: str, path: str, each: str) -> str:
        return f"[{each} FOR item IN json_extract({json}, '{json_path(path)}[*]')]"

    def has(self, json: str, path: str, wanted: str) -> str:
        return f"list_contains(json_extract_string({json}, '{json_path(path)}[*]'), {wanted})"


QUERIES: Final = (*views(_Words()), ("quality", QUALITY))
MARK: Final = sha256("".join(query for _, query in QUERIES).encode()).hexdigest()[:16]
"""A hash that differs if another version created the views of a file."""
CURRENT: Final = "SELECT comment FROM duckdb_views() WHERE view_name = 'quality' AND NOT internal"
VIEWS: Final = (
    *(f"CREATE OR REPLACE VIEW {name} AS {query}" for name, query in QUERIES),
    f"COMMENT ON VIEW quality IS '{MARK}'",
)
"""SQL that creates the views, and replaces those of another version."""
