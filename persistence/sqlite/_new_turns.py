"""The first block of each turn of a log, found in one pass over its payloads: a function for SQLite.

Parsing each payload as JSON and sorting a million rows by turn in the database would take three times as long.
"""

import re
import sqlite3
from typing import Any, Final

import msgspec

NEW_TURNS: Final = "new_turns"
"""The name of the function in SQL."""
_RESULT: Final = b"react.tool.result"
_BEGINNING: Final = re.compile(
    rb'\{[^{}]*"block":\{"type":"([^"\\]*)"[^{}]*?,"turn":"([^"\\]*)"'
).match
"""Matches type and turn in a payload as this version writes it: no object other than the event and its block begins
before the turn."""


class NewTurns:
    """An aggregate SQL function of `seq` and `payload`. The result is a JSON list with an item per turn: the version of
    its first block, the turn, and whether that block is a tool result (1 or 0)."""

    def __init__(self) -> None:
        self._first: dict[bytes, tuple[int, bool]] = {}

    def step(self, seq: int, payload: bytes) -> None:
        """Handle a row; rows may come in any order."""
        found = _BEGINNING(payload)
        kind, turn = found.groups() if found else _parsed(payload)
        before = self._first.get(turn)
        if before is None or seq < before[0]:
            self._first[turn] = seq, kind == _RESULT

    def finalize(self) -> str:
        """The result for all rows."""
        found = sorted((first, turn) for turn, first in self._first.items())
        rows = [(seq, turn.decode(errors="replace"), int(late)) for (seq, late), turn in found]
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
