"""The heads of the timelines in a DuckDB file: read on first use, the most recently used ones cached.

Only the tables are authoritative, and no head is stored: the version of a timeline is its largest `seq`,
which zone maps find among a million rows in a millisecond.  Cached heads are correct because the only writer
publishes every head that it changes.  Loading and publishing exclude each other, so a head that was read
before a commit is never cached after it.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final

import attrs

from blocks import TimelineId
from persistence._log import Head, Mark
from persistence.duckdb._cursors import CursorPool
from persistence.duckdb._trims import BEGAN

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HELD_MAX: Final = 4_096
"""Timelines whose heads are kept; a head is some hundred bytes."""
_NUMBERS: Final = "SELECT name, max(timeline) FROM timelines WHERE name IN ({}) GROUP BY name"
_VERSION: Final = "SELECT {0}, coalesce(max(seq), 0) FROM events WHERE timeline = {0}"
"""Of one timeline: where whole row groups are its own, zone maps alone tell."""
_VERSIONS: Final = """
SELECT timeline, max(seq) FROM events WHERE timeline IN ({}) GROUP BY timeline
"""
_MARKS: Final = """
SELECT timeline, seq, kind, ref FROM marks WHERE timeline IN ({}) ORDER BY seq
"""
_ALL: Final = """
SELECT name, version, created_at, updated_at
FROM (SELECT timeline, max(seq) AS version, arg_min(ts, seq) AS created_at,
             arg_max(ts, seq) AS updated_at
      FROM events GROUP BY timeline)
JOIN timelines USING (timeline) ORDER BY timeline
"""


@attrs.frozen
class Known:
    """A timeline: its number in the tables, and its head, in which the times are left out."""

    name: TimelineId
    number: int = 0
    """The version; 0: the timeline is empty."""
    head: Head = attrs.field(factory=Head)


@attrs.define(eq=False)
class Heads:
    """Of all timelines, some of them in memory; safe under threads."""

    _cursors: CursorPool
    _held: OrderedDict[TimelineId, Known] = attrs.field(
        factory=OrderedDict[TimelineId, Known], init=False
    )
    _mutex: Lock = attrs.field(factory=Lock, init=False)
    """Held while `_held` is looked at."""
    _moving: Lock = attrs.field(factory=Lock, init=False)
    """Held while heads are read or published; a thread whose head is cached does not wait for it."""

    def known(self, name: TimelineId) -> Known:
        """
        Raises:
            duckdb.Error: the file could not be read.
        """
        with self._mutex:
            known = self._held.get(name)
            if known:
                self._held.move_to_end(name)
        return known or self.load((name,))[name]

    def load(self, names: Collection[TimelineId]) -> dict[TimelineId, Known]:
        """Several at once.

        Raises:
            duckdb.Error: the file could not be read.
        """
        with self._moving:
            with self._mutex:
                found = {name: self._held[name] for name in names if name in self._held}
            if missing := [name for name in names if name not in found]:
                with self._cursors.borrow() as cursor:
                    read = _read(cursor, missing)
                self._keep(read)
                found.update(read)
        return found

    def publish(self, known: Mapping[TimelineId, Known]) -> None:
        """The heads after a commit."""
        with self._moving:
            self._keep(known)

    def drop(self, name: TimelineId) -> None:
        """Forget a timeline whose rows were removed."""
        with self._moving, self._mutex:
            self._held.pop(name, None)

    def forget(self) -> None:
        """Read them from the file again, because it is unknown whether the last commit happened."""
        with self._moving, self._mutex:
            self._held.clear()

    def _keep(self, known: Mapping[TimelineId, Known]) -> None:
        with self._mutex:
            for name, each in known.items():
                self._held[name] = each
                self._held.move_to_end(name)
            while len(self._held) > HELD_MAX:
                self._held.popitem(last=False)


def _read(cursor: "DuckDBPyConnection", names: Collection[TimelineId]) -> dict[TimelineId, Known]:
    """The heads of timelines in the file; a timeline that it does not have is new."""
    numbers = dict(cursor.execute(_NUMBERS.format(_marks(names)), list(names)).fetchall())
    versions = _versions(cursor, list(numbers.values()))
    heads = {number: list[Mark]() for number in versions}
    if versions:
        statement = _MARKS.format(_marks(versions))
        for number, version, kind, ref in cursor.execute(statement, list(versions)).fetchall():
            if version <= versions[number]:  # or it came after the statement before
                heads[number].append(Mark(version, kind, ref))
    return {name: _known(name, numbers.get(name, 0), versions, heads) for name in names}


def _known(
    name: TimelineId, number: int, versions: Mapping[int, int], marks: Mapping[int, list[Mark]]
) -> Known:
    if number not in versions:
        return Known(name, number)
    head = Head(version=versions[number], marks=tuple(marks[number]))
    return Known(name, number, head)


def _versions(cursor: "DuckDBPyConnection", numbers: list[int]) -> dict[int, int]:
    if len(numbers) == 1:
        return dict(cursor.execute(_VERSION.format("$1"), numbers).fetchall())
    if not numbers:
        return {}
    return dict(cursor.execute(_VERSIONS.format(_marks(numbers)), numbers).fetchall())


def _marks(values: Collection[object]) -> str:
    return ", ".join(["?"] * len(values))


def all_heads(cursor: "DuckDBPyConnection") -> dict[TimelineId, Head]:
    """Version and times of every timeline, in order of creation."""
    found = {
        TimelineId(name): Head(version=version, created_at=created_at, updated_at=updated_at)
        for name, version, created_at, updated_at in cursor.execute(_ALL).fetchall()
    }
    for name, began_at in cursor.execute(BEGAN).fetchall():
        found[name] = attrs.evolve(found[name], created_at=began_at)
    return found
