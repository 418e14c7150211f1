"""The block index of a database: it searches the bytes of payloads, and returns possible matches.

The caller decides which ones match, so that every store finds the same; `persistence.search._likely` says
what every possible match contains.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import attrs
import msgspec

from blocks import CodecError, Recorded, TimelineId, TurnId, decode_event
from persistence._store import TurnChange
from persistence.search._likely import (
    CONDITIONS_MAX,
    SUMMARY,
    has_cases,
    is_number,
    needles_of,
    runs_in,
)
from persistence.sql._rows import VERSION_MAX, damaged

ROWS: Final = 64
"""Number of events loaded at once while their sizes are unknown."""
BYTES: Final = 1_000_000
"""Of payloads in memory at once, about."""
OF_ALL: Final = """
SELECT timeline, seq, payload FROM events
WHERE (timeline, seq) > (?, ?) AND {condition} ORDER BY timeline, seq LIMIT ?
"""
OF_ONE: Final = """
SELECT timeline, seq, payload FROM events
WHERE timeline = ? AND seq > ? AND {condition} ORDER BY seq LIMIT ?
"""
"""A page begins in the index where the last one ended, which no database finds out from the other form."""
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
    """How a database is asked about a payload; conditions in SQL."""

    holds: str
    """It holds some bytes, which are bound."""
    holds_any_case: str
    """It holds a text in any case of A to Z, or a letter of `FOLDED_TO_ASCII`; a pattern is bound, as often as
    there is a `?`, see `pattern`."""
    pattern: Callable[[str], str]
    odd: str
    """It is a tool call and has a number that Python may write otherwise."""
    turn: str
    """The turn of a block: a JSON list that begins with it, never NULL."""
    is_result: str
    """Whether a block is a tool result."""
    new_turns: str
    """A query for the first block of each turn: `seq`; the turn, as `turn`; 1 for a tool result, else 0.  Bound
    are a timeline, a version, which is the last, and the timeline again."""


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
        """What every payload that can match fulfils."""
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
        """The condition that a payload holds a run in any case, or what might be one; its parameter."""
        dialect = self._dialect
        value: object
        if has_cases(run):
            condition, value = dialect.holds_any_case, dialect.pattern(run)
        else:
            condition, value = dialect.holds, run.encode()
        return f"{condition} OR {dialect.odd}" if is_number(run) else condition, value

    def _any_of(self, alternatives: Collection[Sequence[str]]) -> str:
        """That a payload holds all texts of one of these."""
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
        """The conditions are ours; what somebody has typed is bound."""
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
