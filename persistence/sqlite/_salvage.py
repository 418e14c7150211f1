"""Copies the readable rows of a damaged SQLite file into a new one, row by row, around unreadable pages.

For an event that is found only in an index, the copy has a row without content, so that its loss can be reported.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from struct import Struct, iter_unpack
from typing import Any, Final

from blocks import DamagedStoreError, TimelineId
from persistence.artifacts._verify import examined
from persistence.sql._retention import DROP_TRIM, trimmed_of
from persistence.sqlite._checkpoint import accept, has_log, lacks_log
from persistence.sqlite._database import SQLiteConnection, connected, errors, open_database

TABLES: Final = {
    "events": ("text", "integer", "text", "real", "text"),
    "heads": (),  # none: such a row looks like those of other tables
    "census": (),
    "trims": (),
    "artifacts": ("text", "text", "blob"),
    "artifact_pieces": ("text", "integer", "real", "blob"),
    "artifact_audit": ("text", "integer", "blob"),
}
"""Tables, with the types of their first columns, which tell their rows from those of other tables."""
BEYOND: Final = 10_000
"""Row ids to try after the last readable row, if the end of the table is unknown."""
TRIED_MAX: Final = 10_000_000
"""The largest number of row ids to try one by one between two readable rows."""
LEAF: Final = b"\x0d"
"""The first byte of a page that has rows of a table."""
INDEX_ROWS: Final = """
SELECT timeline, seq FROM events INDEXED BY sqlite_autoindex_events_1
ORDER BY timeline {order}, seq {order}
"""
ADD_LOST: Final = """
INSERT OR IGNORE INTO events(timeline, seq, id, ts, kind, payload, link) VALUES (?, ?, '', 0, '', x'', 0)
"""
TIMES: Final = """
UPDATE events SET ts = coalesce(
    (SELECT ts FROM events n WHERE n.timeline = events.timeline AND n.seq > events.seq
                               AND n.payload <> x'' ORDER BY seq LIMIT 1), 0) WHERE payload = x''
"""
FIRSTS: Final = """
UPDATE events SET made = rowid
WHERE made IS NULL AND (timeline, seq) IN (SELECT timeline, min(seq) FROM events GROUP BY timeline)
"""


def salvaged(path: Path, folder: Path) -> tuple[Path, str]:
    """Copy a damaged file into `folder`; return the path of the copy, and a sentence about what is lost (or "").

    An undamaged file is not copied: its own path is returned.

    Raises:
        MisuseError: it is no SQLite database.
        DamagedStoreError: the list of its tables cannot be read.
    """
    new = folder / f"salvaged {path.name}"
    had_log = has_log(path)
    with errors(path), closing(connected(path, 0)) as old:
        old.text_factory = partial(str, encoding="utf-8", errors="replace")
        if _is_sound(old):
            if not lacks_log(path, old, had_log=had_log):
                return path, ""
            accept(old)
            return path, f"{path.name}-wal is missing: what was only there is lost"
        there = {name for (name,) in old.execute("SELECT name FROM sqlite_master")}
        open_database(new, 0).close()
        with closing(connected(new, 0)) as copy:
            copy.execute("BEGIN")
            tables = [name for name in TABLES if name in there]
            holed = [name for name in tables if _copy_table(old, copy, name)]
            for name in holed:
                _copy_leaves(old, copy, name, path)
            if _note_lost(old, copy) and "events" in holed:
                holed.remove("events")  # each lost event is reported itself
            _drop_broken(copy)
            copy.execute("COMMIT")
    what = f"pages of {path.name} cannot be read; what they have of the tables {', '.join(holed)} is lost"
    return new, what if holed else ""


def _is_sound(old: sqlite3.Connection) -> bool:
    try:
        return [*old.execute("PRAGMA integrity_check(1)")] == [("ok",)]
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            raise
        return False


def _copy_table(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> bool:
    """Copy all readable rows of a table; return whether there are unreadable ones."""
    columns, put = _columns(old, new, table)
    is_holed = False
    for row in _rows(old, table, columns):
        if row is None:
            is_holed = True
        else:
            new.execute(put, row)
    return is_holed


def _columns(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> tuple[str, str]:
    """The columns that a table has in both files, and a statement that inserts a row of them unless it exists."""
    theirs = {row[1] for row in old.execute(f"PRAGMA table_info({table})")}
    ours = [row[1] for row in new.execute(f"PRAGMA table_info({table})") if row[1] in theirs]
    columns, marks = ", ".join(ours), ", ".join("?" * len(ours))
    return columns, f"INSERT OR IGNORE INTO {table}({columns}) VALUES ({marks})"  # noqa: S608 -- names of ours


def _copy_leaves(old: sqlite3.Connection, new: sqlite3.Connection, table: str, path: Path) -> None:
    """Copy the rows of pages to which no readable page refers, by reading each page as if it were the whole table."""
    columns, put = _columns(old, new, table)
    types = zip(columns.split(", "), TABLES[table], strict=False)
    alike = " AND ".join(f"typeof({column}) = '{type_}'" for column, type_ in types) or "false"
    for statement in ("PRAGMA synchronous = OFF", "PRAGMA wal_checkpoint(TRUNCATE)"):
        old.execute(statement)
    [(size,)] = old.execute("PRAGMA page_size")
    with path.open("rb") as file:
        for page in range(2, path.stat().st_size // size + 1):
            file.seek((page - 1) * size)
            if file.read(1) != LEAF:
                continue
            old.execute("PRAGMA writable_schema = ON")
            old.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", [page, table])
            old.execute("PRAGMA writable_schema = RESET")
            rows = _scanned(old, f"SELECT {columns} FROM {table} NOT INDEXED WHERE {alike}")  # noqa: S608 -- names of ours
            new.executemany(put, filter(None, rows))


def _rows(old: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...] | None]:
    """The readable rows of a table. If a row is unreadable, yield None once, then the rows from the end backwards
    down to the next unreadable one, then the rows between by their ids."""
    ask, last = f"SELECT rowid, {columns} FROM {table} NOT INDEXED", 0  # noqa: S608 -- names of ours
    for row in _scanned(old, f"{ask} ORDER BY rowid"):
        if row is None:
            break
        last = row[0]
        yield row[1:]
    else:
        return
    yield None
    end = last + BEYOND
    for row in _scanned(old, f"{ask} ORDER BY rowid DESC"):
        if row is None or row[0] <= last:
            break
        end = row[0]
        yield row[1:]
    for rowid in range(last + 1, min(end, last + TRIED_MAX)):
        for row in _scanned(old, f"{ask} WHERE rowid = ?", rowid):
            if row is not None:
                yield row[1:]


def _scanned(
    old: sqlite3.Connection, statement: str, *values: int
) -> Iterator[tuple[Any, ...] | None]:
    """The rows up to the first unreadable one; for that one, yield None and stop."""
    try:
        yield from old.execute(statement, values)
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        yield None


def _note_lost(old: sqlite3.Connection, new: sqlite3.Connection) -> bool:
    """Insert an empty event for each event that only the index still has, and mark the first event of each timeline;
    return whether the whole index could be read."""
    are_all = False
    for order in ("", "DESC"):
        rows = [*_scanned(old, INDEX_ROWS.format(order=order))]
        are_all = are_all or None not in rows
        new.executemany(ADD_LOST, filter(None, rows))
    new.execute(TIMES)
    new.execute(FIRSTS)
    return are_all


def _drop_broken(new: sqlite3.Connection) -> None:
    """Remove damaged rows of `trims` and `artifacts`, because they prevent reading other rows."""
    for (timeline,) in new.execute("SELECT timeline FROM trims").fetchall():
        try:
            trimmed_of(SQLiteConnection(new), TimelineId(timeline))
        except DamagedStoreError:
            new.execute(DROP_TRIM, [timeline])
    rows = new.execute("SELECT artifact, slot, entry FROM artifacts").fetchall()
    whole = {entry.slot for entry in examined(rows, {}, ())[0]}
    broken = [(slot,) for _, slot, _ in rows if slot not in whole]
    new.executemany("DELETE FROM artifacts WHERE slot = ?", broken)


# Checks whether the write-ahead log of an SQLite file has commits that can no longer be read.
#
# SQLite silently reads a log only up to its first damaged frame, because this may be the end of an unfinished commit.
# But every commit is synced before the next one begins, so if there is a commit after the damage, acknowledged commits
# were lost.
#
#     header   magic, format, page size, number, two salts, checksum
#     frame    page, 0 or at the end of a commit the size of the file, the salts, checksum of all so far; the page

HEADER: Final = Struct(">8I")
FRAME: Final = Struct(">6I")
MAGIC: Final = {0x377F0682: "<II", 0x377F0683: ">II"}
"""Magic numbers of a log, each with the byte order in which its checksums read words."""
_MASK: Final = 0xFFFFFFFF


def lost_commits(database: Path) -> str:
    """A sentence about unreadable commits in the write-ahead log; empty if there are none."""
    wal = database.with_name(f"{database.name}-wal")
    loss = _loss(wal)
    return loss if loss and loss == _loss(wal) else ""  # else the log changed meanwhile


def _loss(wal: Path) -> str:
    try:
        data = wal.read_bytes()
    except FileNotFoundError:
        return ""
    if len(data) <= HEADER.size:
        return ""
    magic, _, page, _, *salts, first, second = HEADER.unpack_from(data)
    sums = _sums((0, 0), data[: HEADER.size - 8], MAGIC.get(magic, "<II"))
    if magic not in MAGIC or sums != (first, second):
        return f"the beginning of {wal.name} is damaged: what was not in the file yet is lost"
    end = _readable(data, page, sums, MAGIC[magic])
    step = FRAME.size + page
    for at in range(end, len(data) - step + 1, step):
        _, commit, *rest = FRAME.unpack_from(data, at)
        if commit and rest[:2] == salts:
            return (
                f"{wal.name} is damaged at byte {end} of {len(data)}: commits behind that are lost"
            )
    return ""


def _readable(data: bytes, page: int, sums: tuple[int, int], words: str) -> int:
    """The position of the first frame that SQLite would not accept."""
    salts, at = data[16:24], HEADER.size
    while at + FRAME.size + page <= len(data):
        head, body = data[at : at + FRAME.size], data[at + FRAME.size : at + FRAME.size + page]
        sums = _sums(sums, head[:8] + body, words)
        if head[8:16] != salts or FRAME.unpack(head)[4:] != sums:
            break
        at += FRAME.size + page
    return at


def _sums(sums: tuple[int, int], data: bytes, words: str) -> tuple[int, int]:
    one, two = sums
    for left, right in iter_unpack(words, data):
        one = (one + left + two) & _MASK
        two = (two + right + one) & _MASK
    return one, two
