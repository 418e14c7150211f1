"""The block index of a database: it searches the bytes of payloads, and returns possible matches.

The caller decides which ones match, so that every store finds the same; `persistence.search._index` says
what every possible match contains.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import attrs
import msgspec

from blocks import CodecError, Recorded, TimelineId, TurnId, decode_event
from persistence._store import TurnChange
from persistence.search._index import (
    CONDITIONS_MAX,
    SUMMARY,
    has_cases,
    is_number,
    needles_of,
    runs_in,
)
from persistence.sql._rows import VERSION_MAX, damaged

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
    FROM events WHERE timeline = ? AND seq > ? AND seq <= ? AND kind = 'BlockAppended'
), neighbours AS (
    SELECT seq, turn, is_result, lag(turn) OVER (ORDER BY seq) AS turn_before,
           lag(is_result) OVER (ORDER BY seq) AS result_before
    FROM blocks
)
SELECT seq, turn, is_result FROM neighbours
WHERE turn_before IS NULL OR turn <> turn_before OR result_before > is_result
ORDER BY seq
"""


@attrs.frozen(kw_only=True)
class Dialect:
    """SQL of a database for questions about a payload."""

    holds: str
    """Condition: the payload contains the bound bytes."""
    holds_any_case: str
    """Condition: the payload contains a text in any case of A to Z, or a letter of `FOLDED_TO_ASCII`. For each `?`
    in it, the result of `pattern` is bound."""
    pattern: Callable[[str], str]
    odd: str
    """Condition: the payload is a tool call with a number that Python may write differently."""
    turn: str
    """Expression: a JSON list whose first item is the turn of the block; never NULL."""
    is_result: str
    """Expression: whether the block is a tool result."""
    new_turns: str
    """A query for the first block of each turn: `seq`, the turn as in `turn`, and 1 for a tool result, else 0.  Its
    parameters are a timeline, the last version, and the timeline again."""


Ask = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]


@attrs.frozen
class SQLIndex:
    """A `BlockIndex` over the table of events."""

    _ask: Ask
    _dialect: Dialect

    def candidates(
        self, words: Collection[str], kinds: Collection[str], timeline: TimelineId | None
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        conditions, given = self._conditions(words, kinds)
        conditions.append("kind = 'BlockAppended'")
        statement = OF_ONE if timeline else OF_ALL
        return self._events(statement, " AND ".join(conditions), given, (timeline or "", 0))

    def _conditions(
        self, words: Collection[str], kinds: Collection[str]
    ) -> tuple[list[str], list[object]]:
        """Conditions that every matching payload meets, and their parameters."""
        conditions: list[str] = []
        given: list[object] = []
        runs = {run for word in words for run in runs_in(word)}
        for run in sorted(runs, key=lambda run: (-len(run), run))[:CONDITIONS_MAX]:
            condition, value = self._any_case(run)
            conditions.append(f"({condition})")
            given += [value] * condition.count("?")
        pieces = [tuple(runs_in(kind)) for kind in sorted(kinds)]
        if all(pieces) and 0 < len(pieces) <= CONDITIONS_MAX:
            conditions.append(self._any_of(pieces))
            given += [run.encode() for runs in pieces for run in runs]
        return conditions, given

    def _any_case(self, run: str) -> tuple[str, object]:
        """A condition that a payload contains a run in any case (it may also accept others), and its parameter."""
        dialect = self._dialect
        value: object
        if has_cases(run):
            condition, value = dialect.holds_any_case, dialect.pattern(run)
        else:
            condition, value = dialect.holds, run.encode()
        return f"{condition} OR {dialect.odd}" if is_number(run) else condition, value

    def _any_of(self, alternatives: Collection[Sequence[str]]) -> str:
        """A condition that a payload contains all texts of one of the alternatives."""
        each = (
            " AND ".join([self._dialect.holds] * len(texts) or ["1 = 1"]) for texts in alternatives
        )
        return f"(({') OR ('.join(each)}))"

    def related(
        self,
        timeline: TimelineId,
        stems: Collection[str],
        *,
        after: int = 0,
        last: int | None = None,
    ) -> Iterator[Recorded]:
        kinds = "kind = 'BlockAppended'"
        if any(stem.startswith(SUMMARY) for stem in stems):
            kinds = "kind IN ('BlockAppended', 'RangeCompacted', 'SummaryReplaced')"
        condition = f"seq <= ? AND {kinds}"
        given: list[object] = [VERSION_MAX if last is None else last]
        alike = [*dict.fromkeys(map(needles_of, stems))]
        if 0 < len(alike) <= CONDITIONS_MAX:
            condition = f"{condition} AND {self._any_of(alike)}"
            given += [needle.encode() for needles in alike for needle in needles]
        found = self._events(OF_ONE, condition, given, (timeline, after))
        return (recorded for _, recorded in found)

    def new_turns(self, timeline: TimelineId, last: int) -> Iterator[TurnChange]:
        return self._turns(self._dialect.new_turns, [timeline, last, timeline])

    def turns(self, timeline: TimelineId, last: int, *, after: int = 0) -> Iterator[TurnChange]:
        query = TURNS.replace("{turn}", self._dialect.turn)
        query = query.replace("{is_result}", self._dialect.is_result)
        return self._turns(query, [timeline, after, last])

    def _turns(self, query: str, given: Sequence[object]) -> Iterator[TurnChange]:
        for seq, turn, is_result in self._ask(query, given):
            name, *_ = msgspec.json.decode(turn)
            yield TurnChange(seq, TurnId("" if name is None else str(name)), bool(is_result))

    def _events(
        self, statement: str, condition: str, given: Sequence[object], place: tuple[str, int]
    ) -> Iterator[tuple[TimelineId, Recorded]]:
        """The events that meet `condition`, which is SQL of this module, after `place`; `given` are its parameters."""
        statement, limit = statement.replace("{condition}", condition), ROWS
        while rows := self._ask(statement, [*place, *given, limit]):
            for name, version, payload in rows:
                place = name, version
                try:
                    yield TimelineId(name), (version, decode_event(payload))
                except CodecError as error:
                    raise damaged(name, f"event {version} is {error}") from error
            if len(rows) < limit:
                return
            size = sum(len(payload) for _, _, payload in rows)
            limit = max(1, min(4 * limit, BYTES * limit // size))
