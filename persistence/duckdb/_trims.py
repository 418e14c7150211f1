"""The table `trims`: which events are no longer in the other tables, and where they are instead.

See `_retention`, which writes it.  A file from which nothing was ever removed may have no such table.
"""

from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from blocks import FoldlineError, ForgottenError, StoreError
from persistence._retention import ArchivedRange, Kept, checked_marks

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from persistence.duckdb._heads import Known

TrimRow: TypeAlias = tuple[int, int, int, float, str, str]

TABLE: Final = """
CREATE TABLE IF NOT EXISTS trims(timeline BIGINT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
                                 began_at DOUBLE NOT NULL, file VARCHAR NOT NULL, sha256 VARCHAR NOT NULL)
"""
BEGAN: Final = """
SELECT name, max(began_at) FROM trims JOIN timelines USING (timeline) GROUP BY ALL
"""
COPY_TRIMS: Final = """
INSERT INTO trims SELECT $1, first, least(last, $3), began_at, file, sha256 FROM trims
WHERE timeline = $2 AND first <= $3
"""
_ROWS: Final = "SELECT timeline, first, last, began_at, file, sha256 FROM trims"
_OF: Final = f"{_ROWS} WHERE timeline = ? ORDER BY first"
_ALL: Final = f"{_ROWS} ORDER BY timeline, first"
_REMOVED: Final = "SELECT coalesce(sum(last - first + 1), 0)::BIGINT FROM trims"


def kept_of(cursor: "DuckDBPyConnection", number: int) -> Kept:
    """Which part of timeline `number` is left."""
    return _kept(cursor.execute(_OF, [number]).fetchall())


def all_kept(cursor: "DuckDBPyConnection") -> dict[int, Kept]:
    """Which part is left of each timeline from which events were removed, by number."""
    rows: dict[int, list[TrimRow]] = {}
    for row in cursor.execute(_ALL).fetchall():
        rows.setdefault(row[0], []).append(row)
    return {number: _kept(found) for number, found in rows.items() if number}


def refused_marks(
    cursor: "DuckDBPyConnection", before: "Known", after: "Known"
) -> FoldlineError | None:
    """The error of an append that changes the head from `before` to `after`, if the window would then begin among
    forgotten events; None: the append is allowed."""
    import duckdb

    if before.head.marks == after.head.marks or not before.number:
        return None
    try:
        checked_marks(after.name, after.head, kept_of(cursor, after.number))
    except ForgottenError as refusal:
        return refusal
    except duckdb.Error as error:
        return StoreError(f"{str(error).partition(chr(10))[0][:300]}; repeat the call")
    return None


def removed_events(cursor: "DuckDBPyConnection") -> int:
    """The number of acknowledged events that were removed from the table of events, including those of removed
    timelines."""
    [(found,)] = cursor.execute(_REMOVED).fetchall()
    return int(found)


def _kept(rows: list[TrimRow]) -> Kept:
    kept = Kept()
    for _, first, last, began_at, file, sha256 in rows:
        if file:
            archive = ArchivedRange(first=first, last=last, file=file, sha256=sha256)
            kept = kept.archiving(archive, began_at)
        else:
            kept = attrs.evolve(kept, forgotten=last, began_at=began_at)
    return kept
