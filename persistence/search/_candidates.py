"""Where a search looks: at every block of any store, or at those that DuckDB finds likely.

Both give every block that can match, perhaps more; what matches is decided in Python, so that both
find the same.  What may be asked of the database follows from how an event is stored:

* A run of characters that JSON does not escape, and that no case folding touches but that of A to Z,
  stands in the payload as it stands in the text.
* Of a large event the database looks at the stand-in only, so its text may hold anything.
* Except that a few letters outside ASCII fold to some inside (ß to ss), and that
  JSON and Python write some numbers differently: payloads with those are looked at in any case.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, Protocol

import attrs
import msgspec

from blocks import Block, BlockAppended, Event, TimelineId, TurnId, decode_event, path_stem
from persistence._store import EventStore
from persistence.duckdb._large_events import STANDS_IN, fetching, whole
from persistence.duckdb._store import DuckDBStore
from persistence.search._query import Query

PAGE: Final = 2_000
ROWS: Final = 100
"""Rows that are taken from the database at once: they may be large."""
CONDITIONS_MAX: Final = 32
"""More would cost the database more than they spare Python."""
FOLDED_TO_ASCII: Final = (
    "\u00df\u0130\u0149\u017f\u01f0\u1e96\u1e97\u1e98\u1e99\u1e9a\u1e9e\u212a"
    "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"
)
"""All letters outside ASCII whose case folding has one of ASCII in it."""
_UNSAFE: Final = frozenset('"\\')
_NUMBER: Final = re.compile(r"[0-9.e+-]+")
_FOLDS: Final = (
    f"strlen(payload) <> length(payload) AND regexp_matches(payload, '[{FOLDED_TO_ASCII}]')"
)
_ODD: Final = (  # numbers as JSON writes them here, and Python does not
    r"contains(payload, 'react.tool.call') AND regexp_matches(payload, '[0-9]e-?[0-9]|0\.0000')"
)
_TURNS: Final = """
WITH blocks AS (
    SELECT seq, coalesce(json_extract(payload, '$.block.turn')::VARCHAR, '""') AS turn,
           coalesce(json_extract_string(payload, '$.block.type'), '') = 'react.tool.result' AS is_result
    FROM events JOIN timelines USING (timeline)
    WHERE name = ? AND seq <= ? AND json_extract_string(payload, '$.event') = 'BlockAppended'
), neighbours AS (
    SELECT *, lag(turn) OVER (ORDER BY seq) AS turn_before,
           lag(is_result) OVER (ORDER BY seq) AS result_before
    FROM blocks
)
SELECT seq, turn, is_result FROM neighbours
WHERE turn IS DISTINCT FROM turn_before OR (result_before AND NOT is_result)
ORDER BY seq
"""
_NAME: Final = re.compile(r"(?!None|True|False)(?=[\d-]*+[^\W\d])[\w-]++")


@attrs.frozen
class Candidate:
    """A block that may match, and where it is."""

    timeline: TimelineId
    version: int
    at: float
    block: Block


@attrs.frozen
class Turned:
    """A block that is of another turn than the one before it."""

    version: int
    turn: TurnId
    is_result: bool


class Source(Protocol):
    """Where candidates come from."""

    def candidates(self, query: Query, timeline: TimelineId | None) -> Iterator[Candidate]:
        """Every block that can match."""
        ...

    def namesakes(self, timeline: TimelineId, blocks: Sequence[Candidate]) -> Iterator[Candidate]:
        """Every block up to the last of `blocks` that can have the path stem of one, in order."""
        ...

    def turns(self, timeline: TimelineId, last: int) -> Iterator[Turned]:
        """Where turns change, up to a version, as far as `namesakes` does not tell."""
        ...


@attrs.frozen
class Scan:
    """Any store, read from end to end."""

    store: EventStore

    def candidates(self, query: Query, timeline: TimelineId | None) -> Iterator[Candidate]:
        del query
        for name in [timeline] if timeline else [info.id for info in self.store.list()]:
            yield from self._blocks(name)

    def namesakes(self, timeline: TimelineId, blocks: Sequence[Candidate]) -> Iterator[Candidate]:
        last = blocks[-1].version
        for candidate in self._blocks(timeline):
            if candidate.version > last:
                return
            yield candidate

    def turns(self, timeline: TimelineId, last: int) -> Iterator[Turned]:
        del timeline, last  # `namesakes` are all the blocks that there are
        yield from ()

    def _blocks(self, timeline: TimelineId) -> Iterator[Candidate]:
        after = 0
        while page := self.store.read(timeline, after=after, limit=PAGE):
            after = page[-1][0]
            for version, event in page:
                yield from _candidate(timeline, version, event)


@attrs.frozen
class Sifted:
    """A DuckDB file, sifted by the database."""

    store: DuckDBStore

    def candidates(self, query: Query, timeline: TimelineId | None) -> Iterator[Candidate]:
        conditions, given = _conditions(query)
        if timeline:
            conditions.append("name = ?")
            given.append(timeline)
        yield from self._rows(" AND ".join(conditions), given)

    def namesakes(self, timeline: TimelineId, blocks: Sequence[Candidate]) -> Iterator[Candidate]:
        alike = dict.fromkeys(_alike(candidate.block) for candidate in blocks)
        if len(alike) > CONDITIONS_MAX:
            alike = {("BlockAppended",): None}
        conditions = [" AND ".join(["contains(payload, ?)"] * len(needles)) for needles in alike]
        given = [timeline, blocks[-1].version, *(needle for needles in alike for needle in needles)]
        known = f"name = ? AND seq <= ? AND ({' OR '.join(conditions)})"
        yield from sorted(self._rows(known, given), key=_version)

    def turns(self, timeline: TimelineId, last: int) -> Iterator[Turned]:
        with self.store.inspect() as (cursor, _):
            cursor.execute(_TURNS, [timeline, last])
            while rows := cursor.fetchmany(PAGE):
                for seq, turn, is_result in rows:
                    yield Turned(seq, TurnId(str(msgspec.json.decode(turn))), is_result)

    def _rows(self, condition: str, given: Sequence[object]) -> Iterator[Candidate]:
        """The conditions are ours; what somebody has typed is bound."""
        statement = (
            "SELECT name, timeline, seq, payload FROM events JOIN timelines USING (timeline)"  # noqa: S608
            f" WHERE contains(payload, '\"BlockAppended\"') AND {condition}"
        )
        with self.store.inspect() as (cursor, _), self.store.inspect() as (second, _):
            cursor.execute(statement, given)
            while rows := cursor.fetchmany(ROWS):
                for (name, number), some in groupby(rows, key=_timeline):
                    found = whole((row[2:] for row in some), fetching(second, number))
                    for version, payload in found:
                        yield from _candidate(TimelineId(name), version, decode_event(payload))


def source_of(store: EventStore) -> Source:
    """The best way to look into a store."""
    return Sifted(store) if isinstance(store, DuckDBStore) else Scan(store)


def _candidate(timeline: TimelineId, version: int, event: Event) -> Iterator[Candidate]:
    if isinstance(event, BlockAppended):
        yield Candidate(timeline, version, event.at, event.block)


def _timeline(row: tuple[str, int, int, str]) -> tuple[str, int]:
    return row[:2]


def _version(candidate: Candidate) -> int:
    return candidate.version


def _conditions(query: Query) -> tuple[list[str], list[object]]:
    """What every payload that can match fulfils, in SQL."""
    conditions: list[str] = ["true"]
    given: list[object] = []
    runs = {run for needle in query.wanted for word in needle.words for run in _runs(word)}
    for run in sorted(runs, key=lambda run: (-len(run), run))[:CONDITIONS_MAX]:
        condition, value = _holds(run)
        conditions.append(f"({condition} OR {STANDS_IN})")
        given.append(value)
    kinds = [tuple(_runs(kind)) for kind in sorted(query.types)]
    if all(kinds) and 0 < len(kinds) <= CONDITIONS_MAX:
        each = (" AND ".join(["contains(payload, ?)"] * len(runs)) for runs in kinds)
        conditions.append(f"({' OR '.join(each)})")
        given += [run for runs in kinds for run in runs]
    return conditions, given


def _holds(run: str) -> tuple[str, str]:
    """The condition that a payload holds a run in any case, or what might be one; its parameter."""
    has_letters = any(letter.isascii() and letter.isalpha() for letter in run)
    if has_letters:
        condition, value = f"regexp_matches(payload, ?) OR {_FOLDS}", f"(?i:{re.escape(run)})"
    else:
        condition, value = "contains(payload, ?)", run
    return f"{condition} OR {_ODD}" if _NUMBER.fullmatch(run) else condition, value


def _runs(text: str) -> Iterator[str]:
    """The longest pieces that stand in a payload as they stand in a text."""
    start = 0
    for index, letter in enumerate((*text, '"')):
        if not _is_plain(letter):
            if index > start:
                yield text[start:index]
            start = index + 1


def _is_plain(letter: str) -> bool:
    if letter.isascii():
        return letter.isprintable() and letter not in _UNSAFE
    return unicodedata.category(letter) == "Lo"  # letters without case: 語, א, ก


def _alike(block: Block) -> tuple[str, ...]:
    """What the payload of every block with this one's path stem contains.

    The pieces between the dots, wherever kind, turn and call id begin; none that could be the text
    of a value that is no string.
    """
    pieces = path_stem(block).partition(":")[2].split(".")
    return tuple(dict.fromkeys(piece for piece in pieces if is_needle(piece))) or ("BlockAppended",)


def is_needle(piece: str) -> bool:
    """Whether a piece of a path stem stands in the payload as it stands in the path."""
    return bool(_NAME.fullmatch(piece)) and not _NUMBER.fullmatch(piece)
