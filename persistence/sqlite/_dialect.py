"""What SQLite writes differently: conditions on payloads, which are stored as bytes, and the views."""

import re
import sqlite3
from typing import Any, ClassVar, Final

import msgspec

from persistence.search._index import FOLDED_STARTS
from persistence.sql._database import Dialect
from persistence.sql._views import Words, json_path, views

_TEXT: Final = "CAST(payload AS TEXT)"
NEW_TURNS: Final = "new_turns"
"""The name of the function `NewTurns` in SQL."""
_ODD: Final = ("'*[0-9]e[0-9]*'", "'*[0-9]e-[0-9]*'", "'*0.0000*'")
_FOLDED: Final = " OR ".join(f"instr(payload, x'{start}') > 0" for start in FOLDED_STARTS)
"""Whether the payload has a letter that folds to ASCII; a GLOB class is 50 times slower."""


def _pattern(run: str) -> str:
    for sign in "|%_":
        run = run.replace(sign, f"|{sign}")
    return f"%{run}%"


DIALECT: Final = Dialect(
    holds="instr(payload, ?) > 0",
    holds_any_case=(  # most payloads have only ASCII
        f"({_TEXT} LIKE ? ESCAPE '|' OR length(payload) <> length({_TEXT}) AND ({_FOLDED}))"
    ),
    pattern=_pattern,
    odd=(
        f"({_TEXT} GLOB '*react.tool.call*' AND"
        f" ({' OR '.join(f'{_TEXT} GLOB {number}' for number in _ODD)}))"
    ),
    # With several paths, `json_extract` gives a JSON list; with one path, it would give the value without its type.
    turn=f"json_extract({_TEXT}, '$.block.turn', '$.block.turn')",
    is_result=f"json_extract({_TEXT}, '$.block.type') = 'react.tool.result'",
    new_turns=f"""
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]', '$[1]'), json_extract(value, '$[2]')
FROM json_each((
    SELECT {NEW_TURNS}(seq, payload) FROM events
    WHERE timeline = ? AND seq <= ? AND timeline = ? AND kind = 'BlockAppended'
))
""",  # noqa: S608 -- constants
)


_RESULT: Final = b"react.tool.result"
_BEGINNING: Final = re.compile(
    rb'\{[^{}]*"block":\{"type":"([^"\\]*)"[^{}]*?,"turn":"([^"\\]*)"'
).match
"""Matches type and turn in a payload as this version writes it: no object other than the event and its block begins
before the turn."""


class NewTurns:
    """An aggregate SQL function of `seq` and `payload`. The result is a JSON list with an item per turn: the version of
    its first block, the turn, and whether that block is a tool result (1 or 0).  To parse each payload and sort a
    million rows by turn in the database would take three times as long."""

    def __init__(self) -> None:
        self._first: dict[bytes, tuple[int, bool]] = {}

    def step(self, seq: int, payload: bytes) -> None:
        """Handle a row; rows may come in any order."""
        match = _BEGINNING(payload)
        kind, turn = match.groups() if match else _parsed(payload)
        before = self._first.get(turn)
        if before is None or seq < before[0]:
            self._first[turn] = seq, kind == _RESULT

    def finalize(self) -> str:
        """The result for all rows."""
        turns = sorted((first, turn) for turn, first in self._first.items())
        rows = [(seq, turn.decode(errors="replace"), int(late)) for (seq, late), turn in turns]
        return msgspec.json.encode(rows).decode()


def _parsed(payload: bytes) -> tuple[bytes, bytes]:
    """Type and turn of a block in JSON of another form; empty if the payload is damaged."""
    try:
        event: Any = msgspec.json.decode(payload)
        kind, turn = event["block"].get("type"), event["block"].get("turn")
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError):
        return b"", b""
    return str(kind).encode(), b"" if turn is None else str(turn).encode()


def register(raw: sqlite3.Connection) -> None:
    """Make the function available on a connection."""
    function: Any = NewTurns  # the type stubs know only functions of one argument
    raw.create_aggregate(NEW_TURNS, 2, function)


class _Words(Words):
    """SQL expressions of SQLite. Its JSON is text and would end at a NUL, so NUL is shown as U+FFFD."""

    line: ClassVar[str] = "char(10)"
    payload: ClassVar[str] = rf"""CASE WHEN instr({_TEXT}, '\u0000') = 0 THEN {_TEXT}
            ELSE replace(replace(replace({_TEXT}, '\\', char(1)), '\u0000', '\ufffd'), char(1), '\\') END"""
    happened: ClassVar[str] = "strftime('%Y-%m-%d %H:%M:%f', ts, 'unixepoch')"

    def text(self, json: str, path: str) -> str:
        if json != "item":
            return f"json_extract({json}, '{json_path(path)}')"
        if not path:
            return "item.value"
        return f"CASE WHEN item.type = 'object' THEN {self.text('item.value', path)} END"

    inner = text

    def number(self, json: str, path: str) -> str:
        kind = f"json_type({json}, '{json_path(path)}')"
        return f"CASE WHEN {kind} IN ('integer', 'real') THEN {self.text(json, path)} END"

    def true(self, json: str, path: str) -> str:
        return f"coalesce(json_type({json}, '{json_path(path)}') = 'true', false)"

    def length(self, json: str, path: str) -> str:
        return f"json_array_length({json}, '{json_path(path)}')"

    def lines(self, json: str, path: str, each: str) -> str:
        items = f"json_each({json}, '{json_path(path)}') item"
        is_list = f"json_type({json}, '{json_path(path)}') = 'array'"
        return f"(SELECT group_concat({each}, char(10)) FROM {items} WHERE {is_list})"  # noqa: S608 -- constants

    def has(self, json: str, path: str, wanted: str) -> str:
        there = f"json_each({json}, '{json_path(path)}') item"
        return f"EXISTS (SELECT 1 FROM {there} WHERE item.value = {wanted})"  # noqa: S608 -- constants


VIEWS: Final = tuple(
    statement
    for name, query in views(_Words())
    for statement in (f"DROP VIEW IF EXISTS {name}", f"CREATE VIEW {name} AS {query}")
)
"""SQL that creates the views, and replaces those of another version."""
