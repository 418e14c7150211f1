"""The first block of each turn of a log, found in one pass over its payloads: a function for SQLite.

Parsing each payload as JSON and sorting a million rows by turn in the database would take three times as long.
"""

import re
import sqlite3
from typing import Any, Final

import msgspec

NEW_TURNS: Final = "new_turns"
"""Its name in SQL."""
_RESULT: Final = b"react.tool.result"
_BEGINNING: Final = re.compile(
    rb'\{[^{}]*"block":\{"type":"([^"\\]*)"[^{}]*?,"turn":"([^"\\]*)"'
).match
"""Of a payload as we write it: no object begins before the turn, but the event and its block."""


class NewTurns:
    """An aggregate function of `seq` and `payload`: a JSON list of lists, of the version of the first block of
    a turn, the turn, and 1 where the block is a tool result, else 0."""

    def __init__(self) -> None:
        self._first: dict[bytes, tuple[int, bool]] = {}

    def step(self, seq: int, payload: bytes) -> None:
        """The next row; rows come in any order."""
        found = _BEGINNING(payload)
        kind, turn = found.groups() if found else _parsed(payload)
        before = self._first.get(turn)
        if before is None or seq < before[0]:
            self._first[turn] = seq, kind == _RESULT

    def finalize(self) -> str:
        """All that were met."""
        found = sorted((first, turn) for turn, first in self._first.items())
        rows = [(seq, turn.decode(errors="replace"), int(late)) for (seq, late), turn in found]
        return msgspec.json.encode(rows).decode()


def _parsed(payload: bytes) -> tuple[bytes, bytes]:
    """Kind and turn of a block that is written in another way, or is damaged."""
    try:
        event: Any = msgspec.json.decode(payload)
        kind, turn = event["block"].get("type"), event["block"].get("turn")
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError):
        return b"", b""
    return str(kind).encode(), b"" if turn is None else str(turn).encode()


def register(raw: sqlite3.Connection) -> None:
    """Let the statements of a connection use it."""
    function: Any = NewTurns  # the types know functions of one number only
    raw.create_aggregate(NEW_TURNS, 2, function)
