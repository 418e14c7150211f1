"""The block index of a database: it searches payloads as they are stored, and returns possible matches.

The caller decides which ones match, so that every store finds the same; `persistence.search._index` says
what every possible match contains.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs
import msgspec

from blocks import CodecError, Recorded, TimelineId, TurnId, decode_event
from persistence._log import damaged
from persistence._store import TurnChange
from persistence.search._index import (
    CONDITIONS_MAX,
    SUMMARY,
    has_cases,
    is_number,
    needles_of,
    runs_in,
)
from persistence.sql._database import Dialect
from persistence.sql._rows import VERSION_MAX

ROWS: Final = 64
"""Events to read at first, while their size is unknown."""
BYTES: Final = 1_000_000
"""Approximate bytes of payloads in memory at a time."""
OF_ALL: Final = """
SELECT timeline, seq, payload FROM events
WHERE (timeline, seq) > (?, ?) AND {condition} ORDER BY timeline, seq LIMIT ?
"""
OF_ONE: Final = """
SELECT timeline, seq, payload FROM events
WHERE timeline = ? AND seq > ? AND {condition} ORDER BY seq LIMIT ?
"""
"""A separate query for one timeline: databases do not use the index to continue a page in the other form."""
TURNS: Final = """
WITH blocks AS (
    SELECT seq, {turn} AS turn, CASE WHEN {is_result} THEN 1 ELSE 0 END AS is_result
    FROM {events} events WHERE timeline = ? AND seq > ? AND seq <= ? AND {is_block}
), neighbours AS (
    SELECT seq, turn, is_result, lag(turn) OVER (ORDER BY seq) AS turn_before,
           lag(is_result) OVER (ORDER BY seq) AS result_before
    FROM blocks
)
SELECT seq, turn, is_result FROM neighbours
WHERE turn_before IS NULL OR turn <> turn_before OR result_before > is_result
ORDER BY seq
"""
Condition: TypeAlias = tuple[str, list[object]]
"""An SQL condition that is written here, and the values of its parameters: no input becomes part of the SQL."""


@attrs.define(eq=False)
class SQLIndex:
    """A `BlockIndex` over the table of events."""

    _ask: Callable[[str, Sequence[object]], Iterable[tuple[Any, ...]]]
    _dialect: Dialect

    def candidates(
        self, words: Collection[str], kinds: Collection[str], timeline: TimelineId | None
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        conditions: list[Condition] = [(self._dialect.appended, [])]
        runs = {run for word in words for run in runs_in(word)}
        longest = sorted(runs, key=lambda run: (-len(run), run))[:CONDITIONS_MAX]
        conditions += map(self._any_case, longest)
        pieces = [tuple(runs_in(kind)) for kind in sorted(kinds)]
        if all(pieces) and 0 < len(pieces) <= CONDITIONS_MAX:
            conditions.append(self._any_of(pieces))
        return self._events(timeline, 0, conditions)

    def related(
        self,
        timeline: TimelineId,
        stems: Collection[str],
        *,
        after: int = 0,
        last: int | None = None,
    ) -> Iterator[Recorded]:
        kinds = self._dialect.appended
        if any(stem.startswith(SUMMARY) for stem in stems):
            kinds = f"({kinds} OR {self._dialect.summarized})"
        conditions: list[Condition] = [("seq <= ?", [VERSION_MAX if last is None else last])]
        alike = [*dict.fromkeys(map(needles_of, stems))]
        if alike and all(alike):
            conditions += self._alike(alike)
        events = self._events(timeline, after, [*conditions, (kinds, [])])
        return (recorded for _, recorded in events)

    def _any_case(self, run: str) -> Condition:
        """A condition that a payload contains a run in any case (it may also accept others)."""
        dialect = self._dialect
        value: object
        if has_cases(run):
            condition, value = dialect.holds_any_case, dialect.pattern(run)
        else:
            condition, value = dialect.holds, dialect.bound(run)
        values = [value] * condition.count("?")
        return f"({condition} OR {dialect.odd})" if is_number(run) else f"({condition})", values

    def _any_of(self, alternatives: Collection[Sequence[str]]) -> Condition:
        """A condition that a payload contains all texts of one of the alternatives."""
        each = (" AND ".join([self._dialect.holds] * len(texts)) for texts in alternatives)
        values = [self._dialect.bound(text) for texts in alternatives for text in texts]
        return f"(({') OR ('.join(each)}))", values

    def _alike(self, alike: Sequence[Sequence[str]]) -> list[Condition]:
        """Conditions that a payload contains all needles of one of the stems (they may also accept others)."""
        return [self._any_of(alike)] if len(alike) <= CONDITIONS_MAX else []

    def new_turns(self, timeline: TimelineId, last: int) -> Iterator[TurnChange]:
        return self._turns(self._dialect.new_turns, [timeline, last, timeline])

    def turns(self, timeline: TimelineId, last: int, *, after: int = 0) -> Iterator[TurnChange]:
        dialect, query = self._dialect, TURNS
        for name in ("events", "is_block", "turn", "is_result"):
            query = query.replace(f"{{{name}}}", getattr(dialect, name))
        return self._turns(query, [timeline, after, last])

    def _turns(self, query: str, values: Sequence[object]) -> Iterator[TurnChange]:
        for seq, turn, is_result in self._ask(query, values):
            name, *_ = msgspec.json.decode(turn)
            yield TurnChange(seq, TurnId("" if name is None else str(name)), bool(is_result))

    def _events(
        self, timeline: TimelineId | None, after: int, conditions: Sequence[Condition]
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        """The events that meet all conditions, of all timelines or of one, from there on after version `after`."""
        condition = " AND ".join(each for each, _ in conditions)
        parameters = [value for _, values in conditions for value in values]
        statement = (OF_ONE if timeline else OF_ALL).replace("{condition}", condition)
        place, limit = (timeline or "", after), ROWS
        while rows := [*self._ask(statement, [*place, *parameters, limit])]:
            for name, version, payload in rows:
                place = name, version
                try:
                    yield TimelineId(name), (version, decode_event(payload))
                except CodecError as error:
                    raise damaged(name, f"event {version} cannot be decoded: {error}") from error
            if len(rows) < limit:
                return
            size = sum(len(payload) for _, _, payload in rows)
            limit = max(1, min(4 * limit, BYTES * limit // size))
