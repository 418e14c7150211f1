"""The block index of a DuckDB file: the database searches payloads as texts.

It returns every matching event, perhaps more; Python decides which ones match, so that every
store finds the same.  `persistence.search._index` says which conditions the database may check. Of a large event
the database sees only the stand-in, so its text counts as a possible match.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import TYPE_CHECKING, Final

import attrs
import msgspec

from blocks import Recorded, TimelineId, TurnId, decode_event
from persistence._store import TurnChange
from persistence.duckdb._file_lock import Marks
from persistence.duckdb._large_events import STANDS_IN, fetching, whole
from persistence.search._index import (
    CONDITIONS_MAX,
    FOLDED_TO_ASCII,
    SUMMARY,
    has_cases,
    is_number,
    needles_of,
    runs_in,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE: Final = 2_000
ROWS: Final = 32
"""Rows that are fetched at a time; few, because rows in older files may be large."""
_FOLDS: Final = (
    f"strlen(payload) <> length(payload) AND regexp_matches(payload, '[{FOLDED_TO_ASCII}]')"
)
_ODD: Final = (  # numbers that JSON writes differently here than Python does
    r"contains(payload, 'react.tool.call') AND regexp_matches(payload, '[0-9]e-?[0-9]|0\.0000')"
)
_APPENDED: Final = "contains(payload, '\"BlockAppended\"')"
_SUMMARIZED: Final = (
    "contains(payload, '\"RangeCompacted\"') OR contains(payload, '\"SummaryReplaced\"')"
)
_OTHER_LARGE: Final = f"{STANDS_IN} AND NOT {_APPENDED}"
"""Large events that are not appended blocks: their stand-ins do not have the text of the summary."""
_BLOCKS: Final = """
    SELECT seq, coalesce(found[2]::VARCHAR, '""') AS turn,
           coalesce(found[3]::VARCHAR, '') = '"react.tool.result"' AS is_result
    FROM (
        SELECT seq, json_extract(payload, ['$.event', '$.block.turn', '$.block.type']) AS found
        FROM events JOIN timelines USING (timeline) WHERE name = ? AND seq <= ? AND seq > ?
    ) WHERE found[1]::VARCHAR = '"BlockAppended"'
"""
_NEW_TURNS: Final = f"""
SELECT min(seq) AS first, turn, arg_min(is_result, seq) FROM ({_BLOCKS}) GROUP BY turn ORDER BY first
"""  # noqa: S608 -- constants
_TURNS: Final = f"""
WITH blocks AS ({_BLOCKS}), neighbours AS (
    SELECT *, lag(turn) OVER (ORDER BY seq) AS turn_before,
           lag(CASE WHEN NOT is_result THEN turn END IGNORE NULLS) OVER (ORDER BY seq) AS begun
    FROM blocks
)
SELECT seq, turn, is_result FROM neighbours
WHERE turn IS DISTINCT FROM turn_before OR (NOT is_result AND turn IS DISTINCT FROM begun)
ORDER BY seq
"""  # noqa: S608 -- constants
_LAST: Final = 2**63 - 1


@attrs.frozen
class DuckDBIndex:
    """A `BlockIndex` that queries the database, with cursors from `inspect`."""

    _inspect: "Callable[[], AbstractContextManager[tuple[DuckDBPyConnection, Marks]]]"

    def candidates(
        self, words: Collection[str], kinds: Collection[str], timeline: TimelineId | None
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        conditions, given = _conditions(words, kinds)
        if timeline:
            conditions.append("name = ?")
            given.append(timeline)
        return self._events(" AND ".join([_APPENDED, *conditions]), given)

    def related(
        self,
        timeline: TimelineId,
        stems: Collection[str],
        *,
        after: int = 0,
        last: int | None = None,
    ) -> Iterator[Recorded]:
        likely, needles = _alike(dict.fromkeys(map(needles_of, stems)))
        kinds = _APPENDED
        if any(stem.startswith(SUMMARY) for stem in stems):
            kinds, likely = f"({_APPENDED} OR {_SUMMARIZED})", f"({likely}) OR ({_OTHER_LARGE})"
        condition = f"name = ? AND seq > ? AND seq <= ? AND ({likely}) AND {kinds} ORDER BY seq"
        given = [timeline, after, _LAST if last is None else last, *needles]
        return (recorded for _, recorded in self._events(condition, given))

    def new_turns(self, timeline: TimelineId, last: int) -> Iterator[TurnChange]:
        return self._turns(_NEW_TURNS, timeline, last, 0)

    def turns(self, timeline: TimelineId, last: int, *, after: int = 0) -> Iterator[TurnChange]:
        return self._turns(_TURNS, timeline, last, after)

    def _turns(
        self, query: str, timeline: TimelineId, last: int, after: int
    ) -> Iterator[TurnChange]:
        with self._inspect() as (cursor, _):
            cursor.execute(query, [timeline, last, after])
            while rows := cursor.fetchmany(PAGE):
                for seq, turn, is_result in rows:
                    yield TurnChange(seq, TurnId(str(msgspec.json.decode(turn))), is_result)

    def _events(
        self, condition: str, given: Sequence[object]
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        """The events that meet `condition`, which is SQL of this module; `given` are its parameters, so that no input
        becomes part of the SQL."""
        statement = (
            "SELECT name, timeline, seq, payload FROM events JOIN timelines USING (timeline)"  # noqa: S608
            f" WHERE {condition}"
        )
        with self._inspect() as (cursor, _), self._inspect() as (second, _):
            cursor.execute(statement, given)
            while rows := cursor.fetchmany(ROWS):
                for (name, number), some in groupby(rows, key=_timeline):
                    found = whole((row[2:] for row in some), fetching(second, number))
                    for version, payload in found:
                        yield TimelineId(name), (version, decode_event(payload))


def _timeline(row: tuple[str, int, int, str]) -> tuple[str, int]:
    return row[:2]


def _conditions(words: Collection[str], kinds: Collection[str]) -> tuple[list[str], list[object]]:
    """SQL conditions that every matching payload meets, and their parameters."""
    conditions: list[str] = []
    given: list[object] = []
    runs = {run for word in words for run in runs_in(word)}
    for run in sorted(runs, key=lambda run: (-len(run), run))[:CONDITIONS_MAX]:
        condition, value = _holds(run)
        conditions.append(f"({condition} OR {STANDS_IN})")
        given.append(value)
    pieces = [tuple(runs_in(kind)) for kind in sorted(kinds)]
    if all(pieces) and 0 < len(pieces) <= CONDITIONS_MAX:
        each = (" AND ".join(["contains(payload, ?)"] * len(runs)) for runs in pieces)
        conditions.append(f"({' OR '.join(each)})")
        given += [run for runs in pieces for run in runs]
    return conditions, given


def _holds(run: str) -> tuple[str, str]:
    """A condition that a payload contains a run in any case (it may also accept others), and its parameter."""
    if has_cases(run):
        condition, value = f"regexp_matches(payload, ?) OR {_FOLDS}", f"(?i:{re.escape(run)})"
    else:
        condition, value = "contains(payload, ?)", run
    return f"{condition} OR {_ODD}" if is_number(run) else condition, value


def _alike(stems: Collection[tuple[str, ...]]) -> tuple[str, list[str]]:
    """A condition that a payload contains all needles of one stem (it may also accept others), and its parameters.

    It begins with one search for one needle of each stem, which rules out nearly all payloads.
    """
    if not stems or not all(stems):
        return "true", []
    first = "|".join(sorted({re.escape(_telling(needles)) for needles in stems}))
    if len(stems) > CONDITIONS_MAX:
        return "regexp_matches(payload, ?)", [first]
    each = (" AND ".join(["contains(payload, ?)"] * len(needles)) for needles in stems)
    condition = f"regexp_matches(payload, ?) AND (({') OR ('.join(each)}))"
    return condition, [first, *(needle for needles in stems for needle in needles)]


def _telling(needles: Collection[str]) -> str:
    """The needle that the fewest payloads contain: that of the turn, if there is one, else the longest."""
    return max(needles, key=lambda needle: (needle.startswith('"'), len(needle)))
