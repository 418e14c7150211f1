"""Events that are too large for one row: their JSON is split into many small rows of the table `pieces`.

DuckDB loads 2,048 rows of a column into memory at once, at every checkpoint and for every read, so no
row may be large.  In the log, such an event has a *stand-in*: the number of its pieces, and the fields
that say what it is and where its block belongs.  Every event begins with `{"event":`, every stand-in
with `{"pieces":`, so the two cannot be confused.
"""

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from blocks import CodecError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Row: TypeAlias = tuple[int, str]
"""A version, and the payload of its row."""
Fetch: TypeAlias = Callable[[Sequence[int]], Sequence[tuple[int, int, str]]]
"""Reads the pieces of events, given their versions: (version, number of the piece, text)."""

TABLE: Final = """
CREATE TABLE IF NOT EXISTS pieces(timeline BIGINT NOT NULL, seq BIGINT NOT NULL,
                                  number BIGINT NOT NULL, piece VARCHAR NOT NULL)
"""
LARGE: Final = 16_000
"""Bytes of JSON above which an event is stored in pieces: 2,048 rows of this size are 32 MB."""
PIECE: Final = 1_500
"""Bytes of each piece except the last, plus or minus a character."""
FETCHED: Final = 2_048
"""After events with this many pieces together, the pieces are fetched before further rows are read."""
STANDS_IN: Final = """starts_with(payload, '{"pieces":')"""
"""`is_stand_in`, as an SQL condition."""
_BEGIN: Final = '{"pieces":'
_KEPT: Final = ("event", "id", "at", "type", "turn", "call_id", "name")
"""Fields of an event and its block that a stand-in keeps: logical paths and narrow columns of views need them."""


class _StandIn(msgspec.Struct):
    pieces: int


def is_large(data: bytes) -> bool:
    """Whether an event with this JSON is stored in pieces."""
    return len(data) > LARGE


def is_stand_in(payload: str) -> bool:
    """Whether this payload is a stand-in, so that its event is stored in pieces."""
    return payload.startswith(_BEGIN)


def stand_in(data: bytes) -> str:
    """The payload that replaces the JSON of a large event in its row."""
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    small: dict[str, object] = {"pieces": -(-len(data) // PIECE), **_kept(fields)}
    block = fields.get("block")
    if block is not None and bytes(memoryview(block)[:1]) == b"{":
        small["block"] = _kept(msgspec.json.decode(block, type=dict[str, msgspec.Raw]))
    return msgspec.json.encode(small).decode()


def _kept(fields: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    return {name: fields[name] for name in _KEPT if name in fields}


def pieces_of(data: bytes) -> Iterator[str]:
    """The JSON in pieces; no character is split."""
    decoder = getincrementaldecoder("utf-8")()
    for start in range(0, len(data), PIECE):
        yield decoder.decode(data[start : start + PIECE])


def whole(rows: Iterable[Row], fetch: Fetch) -> Iterator[Row]:
    """The rows, with the JSON of the event instead of a stand-in; few of them are in memory at a time.

    Raises:
        CodecError: a piece is missing.
    """
    waiting: list[Row] = []
    pieces = 0
    for row in rows:
        waiting.append(row)
        pieces += _count(row[1])
        if pieces >= FETCHED:
            yield from _joined(waiting, fetch)
            waiting, pieces = [], 0
    yield from _joined(waiting, fetch)


def fetching(cursor: "DuckDBPyConnection", number: int) -> Fetch:
    """A function that reads the pieces of events of timeline `number`."""

    def fetch(versions: Sequence[int]) -> Sequence[tuple[int, int, str]]:
        marks = ", ".join(["?"] * len(versions))
        statement = f"SELECT seq, number, piece FROM pieces WHERE timeline = ? AND seq IN ({marks})"  # noqa: S608 -- (?)
        return cursor.execute(statement, [number, *versions]).fetchall()

    return fetch


def _joined(rows: Sequence[Row], fetch: Fetch) -> Iterator[Row]:
    large = [version for version, payload in rows if is_stand_in(payload)]
    found: dict[int, dict[int, str]] = {version: {} for version in large}
    for version, number, piece in fetch(large) if large else ():
        found[version][number] = piece
    for version, payload in rows:
        pieces = found.pop(version, None)
        yield version, payload if pieces is None else _text(version, payload, pieces)


def _text(version: int, payload: str, pieces: Mapping[int, str]) -> str:
    count = _count(payload)
    if sorted(pieces) != list(range(count)):
        raise CodecError(f"event {version} has {len(pieces)} of its {count} pieces")
    return "".join(pieces[number] for number in range(count))


def _count(payload: str) -> int:
    """The number of pieces of an event; 0 if it is stored in one row."""
    if not is_stand_in(payload):
        return 0
    try:
        return msgspec.json.decode(payload, type=_StandIn).pieces
    except msgspec.DecodeError as error:
        raise CodecError(f"not a stand-in: {error}") from error
