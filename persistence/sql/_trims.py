"""The table `trims`: timelines whose oldest events were removed, and where those events are instead.

There is one row per timeline, written in the transaction that removes the events.  Its manifest, which is
JSON, names the forgotten versions, the archive files, and the marks of compactions in the archives.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import attrs
import msgspec

from blocks import TimelineId
from persistence._log import Head, Mark
from persistence._retention import ArchivedRange, Kept
from persistence._store import StoreProblem
from persistence.sql._database import Connection
from persistence.sql._rows import damaged

FOUND: Final = "SELECT timeline, began_at, manifest FROM trims WHERE timeline = ?"
ALL: Final = "SELECT timeline, began_at, manifest FROM trims ORDER BY timeline"
FIRSTS: Final = "SELECT timeline, first, began_at, manifest FROM trims ORDER BY timeline"
DROP: Final = "DELETE FROM trims WHERE timeline = ?"
ADD: Final = "INSERT INTO trims(timeline, first, began_at, manifest) VALUES (?, ?, ?, ?)"
END: Final = "SELECT max(seq) FROM events WHERE timeline = ?"
MARKS: Final = """
SELECT seq, kind, ref FROM events WHERE timeline = ? AND ref IS NOT NULL ORDER BY seq
"""
BEGAN: Final = "SELECT ts FROM events WHERE timeline = ? AND seq = ?"


@attrs.frozen(kw_only=True)
class Trimmed:
    """Which part of a log is left, and the marks of its archived events."""

    kept: Kept = attrs.field(factory=Kept)
    marks: tuple[Mark, ...] = ()

    def cut_to(self, version: int) -> "Trimmed":
        """What is left of a fork at this version."""
        marks = tuple(mark for mark in self.marks if mark.version <= version)
        return Trimmed(kept=self.kept.cut_to(version), marks=marks)


class _Archive(msgspec.Struct, frozen=True, kw_only=True):
    first: int
    last: int
    file: str
    sha256: str


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    kind: str
    ref: int


class _Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    forgotten: int = 0
    archives: tuple[_Archive, ...] = ()
    marks: tuple[_Mark, ...] = ()


def trimmed_of(connection: Connection, timeline: TimelineId) -> Trimmed:
    """Which part of a timeline is left; the default if nothing was removed."""
    rows = connection.rows(FOUND, [timeline])
    return _read(*rows[0]) if rows else Trimmed()


def all_trimmed(connection: Connection) -> dict[TimelineId, Kept]:
    """Which part is left of each timeline from which events were removed."""
    return {TimelineId(row[0]): _read(*row).kept for row in connection.rows(ALL)}


def trim_problems(connection: Connection) -> Iterator[StoreProblem]:
    """Problems: rows whose columns contradict their manifest."""
    for timeline, first, began_at, manifest in connection.rows(FIRSTS):
        due = _read(timeline, began_at, manifest).kept.first
        if first != due:
            what = (
                f"table trims says that it begins at version {first}, and its manifest says {due}"
            )
            yield StoreProblem(timeline=timeline, what=what)


def put_trimmed(connection: Connection, timeline: TimelineId, trimmed: Trimmed) -> None:
    """Store which part of a timeline is left."""
    connection.run(DROP, [timeline])
    kept = trimmed.kept
    if kept == Kept():
        return
    manifest = _Manifest(
        forgotten=kept.forgotten,
        archives=tuple(_Archive(**attrs.asdict(each)) for each in kept.archives),
        marks=tuple(
            _Mark(version=mark.version, kind=mark.kind, ref=mark.ref) for mark in trimmed.marks
        ),
    )
    given = [timeline, kept.first, kept.began_at, msgspec.json.encode(manifest)]
    connection.run(ADD, given)


def head_of(connection: Connection, timeline: TimelineId, trimmed: Trimmed) -> Head:
    """The head of a timeline, with all marks but without the time of its last event."""
    [(version,)] = connection.rows(END, [timeline])
    if not version:
        return Head()
    marks = (*trimmed.marks, *marks_of(connection.rows(MARKS, [timeline])))
    began_at = trimmed.kept.began_at
    if not trimmed.kept.removed:
        began_at = next((at for (at,) in connection.rows(BEGAN, [timeline, 1])), 0.0)
    return Head(version=version, created_at=began_at, marks=marks)


def marks_of(rows: Iterable[tuple[int, str, int]]) -> tuple[Mark, ...]:
    """The marks in rows of version, kind and reference."""
    return tuple(Mark(*row) for row in rows)


def _read(timeline: str, began_at: float, manifest: bytes) -> Trimmed:
    try:
        found = msgspec.json.decode(manifest, type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(timeline, f"its row of trims is none ({error})") from error
    archives = tuple(
        ArchivedRange(first=each.first, last=each.last, file=each.file, sha256=each.sha256)
        for each in found.archives
    )
    marks = tuple(Mark(each.version, each.kind, each.ref) for each in found.marks)
    kept = Kept(forgotten=found.forgotten, archives=archives, began_at=began_at)
    return Trimmed(kept=kept, marks=marks)
