"""The tables of a DuckDB file, and what their rows hold.

    timelines  name -> number, in order of creation
    events     one row per event: its position, its time, the event itself as JSON
    pieces     of events that are too large for a row
    marks      the few events that decide about windows, so that opening reads no payload
    trims      which events are no longer in the other tables, and where they are instead
    heads      the version of each timeline when the write-ahead log was last folded into the file, and the chain then,
               see `persistence._log`
    fold       one row: how many events and timelines there were then, and whether this row is all there is
    foldline   the format's number

All tables but `trims`, `heads` and `fold` are insert-only, until something is removed.  The log has as few columns as possible: each
column adds 5% to the time of a durable commit of one event, and ids and kinds are in the payload, where the view `log`
finds them.  It has no index: a primary key on (timeline, seq) speeds up no read (rows of one timeline lie together, so
zone maps find them), doubles the time of a commit and makes the file 1.7 times as large.  Uniqueness is
ensured by the only writer, which reads a head before it changes it (see `Heads`), and checked by `verify`.

Of a large event, the log has a *stand-in*: the number of its pieces, and the fields that say what it is and where its
block belongs.  Every event begins with `{"event":`, every stand-in with `{"pieces":`, so the two cannot be confused.

In `trims`, a row says:

    first 1, no file        forgotten: events 1 to `last`
    first, last, file       archived: in this file, whose hash is `sha256`
    timeline 0              events of timelines that were removed, so that the number of acknowledged
                            events still adds up
"""

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import msgspec

from blocks import CodecError
from persistence._file import moved_with
from persistence._log import ArchivedRange, LinkedRow, Rest, chain_start, content_hash, damaged

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NEW_FOLD: Final = ("DELETE FROM fold", "INSERT INTO fold VALUES (0, 0, true)")
TABLES: Final = (
    "CREATE TABLE foldline(format INTEGER NOT NULL)",
    "CREATE TABLE timelines(timeline BIGINT NOT NULL, name VARCHAR NOT NULL)",
    """CREATE TABLE events(timeline BIGINT NOT NULL, seq BIGINT NOT NULL,
                           ts DOUBLE NOT NULL, payload JSON NOT NULL, link BIGINT NOT NULL)""",
    """CREATE TABLE pieces(timeline BIGINT NOT NULL, seq BIGINT NOT NULL,
                           number BIGINT NOT NULL, piece VARCHAR NOT NULL)""",
    """CREATE TABLE marks(timeline BIGINT NOT NULL, seq BIGINT NOT NULL,
                          kind VARCHAR NOT NULL, ref BIGINT NOT NULL)""",
    """CREATE TABLE trims(timeline BIGINT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
                          began_at DOUBLE NOT NULL, file VARCHAR NOT NULL, sha256 VARCHAR NOT NULL,
                          anchor BIGINT NOT NULL)""",
    "CREATE TABLE heads(timeline BIGINT NOT NULL, version BIGINT NOT NULL, chain BIGINT NOT NULL)",
    "CREATE TABLE fold(events BIGINT NOT NULL, timelines BIGINT NOT NULL, is_whole BOOLEAN NOT NULL)",
    *NEW_FOLD,
)
FORMAT: Final = 4

# Large events.

Row: TypeAlias = tuple[int, str]
"""A version, and the payload of its row."""

LARGE: Final = 16_000
"""Bytes of JSON above which an event is stored in pieces: DuckDB loads 2,048 rows of a column into memory at once, at
every checkpoint and for every read, and as many rows of this size are 32 MB."""
PIECE: Final = 1_500
"""Bytes of each piece except the last, plus or minus a character."""
FETCHED: Final = 2_048
"""After events with this many pieces together, the pieces are fetched before further rows are read."""
STANDS_IN: Final = """starts_with(payload, '{"pieces":')"""
"""`is_stand_in`, as an SQL condition."""
_BRIEF: Final = ("event", "id", "at", "type", "turn", "call_id", "name")
"""Fields of an event and its block that a stand-in keeps: logical paths and narrow columns of views need them."""


class _StandIn(msgspec.Struct):
    pieces: int


def is_stand_in(payload: str) -> bool:
    """Whether this payload is a stand-in, so that its event is stored in pieces."""
    return payload.startswith('{"pieces":')


def stand_in(data: bytes) -> str:
    """The payload that replaces the JSON of a large event in its row."""
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    small: dict[str, object] = {"pieces": -(-len(data) // PIECE), **_brief(fields)}
    block = fields.get("block")
    if block is not None and bytes(memoryview(block)[:1]) == b"{":
        small["block"] = _brief(msgspec.json.decode(block, type=dict[str, msgspec.Raw]))
    return msgspec.json.encode(small).decode()


def _brief(fields: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    return {name: fields[name] for name in _BRIEF if name in fields}


def pieces_of(data: bytes) -> Iterator[str]:
    """The JSON in pieces; no character is split."""
    decoder = getincrementaldecoder("utf-8")()
    for begin in range(0, len(data), PIECE):
        yield decoder.decode(data[begin : begin + PIECE])


def whole(rows: Iterable[Row], cursor: "DuckDBPyConnection", timeline: int) -> Iterator[Row]:
    """The rows of a timeline, given its number, with the JSON of the event instead of a stand-in; few of them are in memory
    at a time.

    Raises:
        CodecError: a piece is missing.
    """
    waiting: list[Row] = []
    pieces = 0
    for row in rows:
        waiting.append(row)
        pieces += _count(row[1])
        if pieces >= FETCHED:
            yield from _joined(waiting, cursor, timeline)
            waiting, pieces = [], 0
    yield from _joined(waiting, cursor, timeline)


def _joined(rows: Sequence[Row], cursor: "DuckDBPyConnection", timeline: int) -> Iterator[Row]:
    large = [version for version, payload in rows if is_stand_in(payload)]
    parts: dict[int, dict[int, str]] = {version: {} for version in large}
    if large:
        marks = ", ".join(["?"] * len(large))
        statement = f"SELECT seq, number, piece FROM pieces WHERE timeline = ? AND seq IN ({marks})"  # noqa: S608 -- (?)
        for version, number, piece in cursor.execute(statement, [timeline, *large]).fetchall():
            parts[version][number] = piece
    for version, payload in rows:
        pieces = parts.pop(version, None)
        yield version, payload if pieces is None else _text(version, payload, pieces)


def _text(version: int, payload: str, pieces: Mapping[int, str]) -> str:
    count = _count(payload)
    if sorted(pieces) != list(range(count)):
        raise CodecError(f"event {version} has only {len(pieces)} of its {count} pieces")
    return "".join(pieces[number] for number in range(count))


def _count(payload: str) -> int:
    """The number of pieces of an event; 0 if it is stored in one row."""
    if not is_stand_in(payload):
        return 0
    try:
        return msgspec.json.decode(payload, type=_StandIn).pieces
    except msgspec.DecodeError as error:
        raise CodecError(f"invalid reference to a large event: {error}") from error


# What was removed.

_TrimRow: TypeAlias = tuple[int, int, int, float, str, str, int]
BEGAN: Final = """
SELECT name, max(began_at) FROM trims JOIN timelines USING (timeline) GROUP BY ALL
"""
COPY_TRIMS: Final = """
INSERT INTO trims SELECT $1, first, least(last, $3), began_at, file, sha256, xor(anchor, $4) FROM trims
WHERE timeline = $2 AND first <= $3
"""
ADD_TRIM: Final = "INSERT INTO trims VALUES (?, ?, ?, ?, ?, ?, ?)"
_ROWS: Final = "SELECT timeline, first, last, began_at, file, sha256, anchor FROM trims"
_OF: Final = f"{_ROWS} WHERE timeline = ? ORDER BY first"
_ALL: Final = f"{_ROWS} ORDER BY timeline, first"
TRIMMED_NAMES: Final = "SELECT timeline, name FROM timelines SEMI JOIN trims USING (timeline)"
_REMOVED: Final = "SELECT coalesce(sum(last - first + 1), 0)::BIGINT FROM trims"


_FILE: Final = "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"


def rest_of(cursor: "DuckDBPyConnection", number: int) -> Rest:
    """Which part of timeline `number` is left."""
    return _read(cursor, cursor.execute(_OF, [number]).fetchall())


def all_rests(cursor: "DuckDBPyConnection") -> dict[int, Rest]:
    """Which part is left of each timeline from which events were removed, by number."""
    rows: dict[int, list[_TrimRow]] = {}
    for row in cursor.execute(_ALL).fetchall():
        rows.setdefault(row[0], []).append(row)
    return {number: _read(cursor, some) for number, some in rows.items() if number}


def removed_events(cursor: "DuckDBPyConnection") -> int:
    """The number of acknowledged events that were removed from the table of events, including those of removed
    timelines."""
    [(count,)] = cursor.execute(_REMOVED).fetchall()
    return int(count)


def _read(cursor: "DuckDBPyConnection", rows: Iterable[_TrimRow]) -> Rest:
    rest = Rest()
    for _, first, last, began_at, file, sha256, anchor in rows:
        if file:
            archive = ArchivedRange(first=first, last=last, file=file, sha256=sha256)
            rest = rest.archiving(archive, began_at)
        else:
            rest = attrs.evolve(rest, forgotten=last, began_at=began_at, anchor=anchor)

    def folder() -> Path:
        [(file,)] = cursor.execute(_FILE).fetchall()
        return Path(file).parent

    return attrs.evolve(rest, archives=moved_with(rest.archives, folder))


def put_rest(cursor: "DuckDBPyConnection", number: int, rest: Rest) -> None:
    """Store which part of a timeline is left."""
    cursor.execute("DELETE FROM trims WHERE timeline = ?", [number])
    if rest.forgotten:
        cursor.execute(ADD_TRIM, [number, 1, rest.forgotten, rest.began_at, "", "", rest.anchor])
    for archive in rest.archives:
        row = [archive.first, archive.last, rest.began_at, archive.file, archive.sha256, 0]
        cursor.execute(ADD_TRIM, [number, *row])


# The chain: the end of each timeline as the tables have it, and as it was when the log was last folded.

_LINKED: Final = "SELECT seq, payload, link FROM events WHERE timeline = ? AND seq = ?"
_HEAD: Final = "SELECT version, chain FROM heads WHERE timeline = ?"
_STALE: Final = """
SELECT timeline, name, newest FROM timelines
JOIN (SELECT timeline, max(seq) AS newest FROM events GROUP BY timeline) USING (timeline)
ANTI JOIN heads ON heads.timeline = timelines.timeline AND heads.version = newest
"""
COUNT: Final = "SELECT count(*) FROM events"
"""Answered from statistics of the file, without reading rows."""
FOLD: Final = "SELECT events, timelines, is_whole FROM fold"


def linked(cursor: "DuckDBPyConnection", number: int) -> Callable[[int], Sequence[LinkedRow]]:
    """A function that reads the row of a version: its version, the JSON of the event, and its link."""

    def row(version: int) -> Sequence[LinkedRow]:
        rows = cursor.execute(_LINKED, [number, version]).fetchall()
        events = whole([(seq, payload) for seq, payload, _ in rows], cursor, number)
        return [
            (seq, payload.encode(), link)
            for (seq, payload), (*_, link) in zip(events, rows, strict=True)
        ]

    return row


def end_of(cursor: "DuckDBPyConnection", number: int, name: str, version: int) -> int:
    """The chain after the newest event of a timeline.

    Raises:
        DamagedStoreError: the event cannot be read, or the log does not end as it did when the write-ahead log was last
            folded.
    """
    try:
        rows = linked(cursor, number)(version)
    except CodecError as error:
        raise damaged(name, str(error)) from error
    chain = rows[0][2] ^ content_hash(rows[0][1]) if rows else chain_start(name)
    for then, its_chain in cursor.execute(_HEAD, [number]).fetchall():
        if version < then:
            raise damaged(name, f"events {version + 1} to {then}, which were written, are missing")
        if version == then and chain != its_chain:
            raise damaged(name, f"event {version} is not the one that was written")
    return chain


def stale_ends(cursor: "DuckDBPyConnection") -> dict[int, tuple[int, int]]:
    """Version and chain of the timelines whose row in `heads` is older than their newest event, by their number."""
    return {
        number: (version, end_of(cursor, number, name, version))
        for number, name, version in cursor.execute(_STALE).fetchall()
    }


def put_ends(cursor: "DuckDBPyConnection", ends: Mapping[int, tuple[int, int]]) -> None:
    """Store version and chain of timelines, by their number."""
    rows = [[*ends], *zip(*ends.values(), strict=True)]
    if ends:
        cursor.execute("DELETE FROM heads WHERE list_contains(?, timeline)", rows[:1])
        cursor.execute(
            "INSERT INTO heads SELECT unnest(?), unnest(?), unnest(?)", [*map(list, rows)]
        )
