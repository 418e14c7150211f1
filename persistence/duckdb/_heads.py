"""The heads of the timelines in a DuckDB file: read on first use, the most recently used ones cached.

Only the tables are authoritative, and no head is stored: the version of a timeline is its largest `seq`,
which zone maps find among a million rows in a millisecond.  Cached heads are correct because the only writer
publishes every head that it changes.  Loading and publishing exclude each other, so a head that was read
before a commit is never cached after it.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from threading import Condition, Lock
from typing import TYPE_CHECKING, Final

import attrs

from blocks import ClosedError, TimelineId
from persistence._log import Head, Mark
from persistence.duckdb._file import cursor_of
from persistence.duckdb._tables import BEGAN

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HELD_MAX: Final = 4_096
"""The largest number of heads in memory; a head has a few hundred bytes."""
_NUMBERS: Final = "SELECT name, max(timeline) FROM timelines WHERE name IN ({}) GROUP BY name"
_VERSION: Final = "SELECT {0}, coalesce(max(seq), 0) FROM events WHERE timeline = {0}"
"""For one timeline, which is faster: zone maps answer it if whole row groups belong to the timeline."""
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
    """A timeline: its number in the tables, and its head without the times."""

    name: TimelineId
    number: int = 0
    """0: the timeline has no events."""
    head: Head = attrs.field(factory=Head)


@attrs.define(eq=False)
class Heads:
    """The heads of all timelines, the most recently used of them in memory; thread-safe."""

    _cursors: "CursorPool"
    _held: OrderedDict[TimelineId, Known] = attrs.field(
        factory=OrderedDict[TimelineId, Known], init=False
    )
    _mutex: Lock = attrs.field(factory=Lock, init=False)
    """Held for each access to `_held`."""
    _moving: Lock = attrs.field(factory=Lock, init=False)
    """Held while heads are read from the file or published; a lookup that finds its head in memory does not need it."""

    def known(self, name: TimelineId) -> Known:
        """The number and the head of a timeline.

        Raises:
            duckdb.Error: the file could not be read.
        """
        with self._mutex:
            known = self._held.get(name)
            if known:
                self._held.move_to_end(name)
        return known or self.load((name,))[name]

    def load(self, names: Collection[TimelineId]) -> dict[TimelineId, Known]:
        """The numbers and heads of several timelines.

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
        """Store the new heads after a commit."""
        with self._moving:
            self._keep(known)

    def drop(self, name: TimelineId) -> None:
        """Forget a timeline whose rows were removed."""
        with self._moving, self._mutex:
            self._held.pop(name, None)

    def forget(self) -> None:
        """Forget all heads, so that they are read again: whether the last commit succeeded is unknown."""
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
    """Read timelines from the file; one that the file does not have is new."""
    numbers = dict(cursor.execute(_NUMBERS.format(_marks(names)), list(names)).fetchall())
    versions = _versions(cursor, list(numbers.values()))
    heads = {number: list[Mark]() for number in versions}
    if versions:
        statement = _MARKS.format(_marks(versions))
        for number, version, kind, ref in cursor.execute(statement, list(versions)).fetchall():
            if version <= versions[number]:  # else it was added after the previous statement
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
    """Version and times of each timeline, in the order of creation."""
    found = {
        TimelineId(name): Head(version=version, created_at=created_at, updated_at=updated_at)
        for name, version, created_at, updated_at in cursor.execute(_ALL).fetchall()
    }
    for name, began_at in cursor.execute(BEGAN).fetchall():
        found[name] = attrs.evolve(found[name], created_at=began_at)
    return found


PATIENCE_SECONDS = 5.0
"""How long `alone` waits for readers. Not longer, because the caller itself may hold a cursor."""


@attrs.define(eq=False)
class CursorPool:
    """Lends cursors of one connection; two threads on one cursor would mix up their rows."""

    _connection: "DuckDBPyConnection"
    _idle: "deque[DuckDBPyConnection]" = attrs.field(
        factory=deque["DuckDBPyConnection"], init=False
    )
    _lent: int = attrs.field(default=0, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _change: Condition = attrs.field(factory=Condition, init=False)

    @contextmanager
    def borrow(self) -> "Generator[DuckDBPyConnection]":
        with self._change:
            if self._closed:
                raise ClosedError("this store is closed; open it again")
            cursor = self._idle.pop() if self._idle else cursor_of(self._connection)
            self._lent += 1
        try:
            yield cursor
        finally:
            with self._change:
                self._lent -= 1
                self._idle.append(cursor)
                self._change.notify_all()

    def when_idle(self, action: Callable[[], None]) -> bool:
        """Run `action` if no cursor is lent, and lend none meanwhile; return whether it ran."""
        with self._change:
            if self._lent or self._closed:
                return False
            action()
            return True

    def alone(self, action: Callable[[], None]) -> bool:
        """Like `when_idle`, but wait up to `PATIENCE_SECONDS` until no cursor is lent."""
        with self._change:
            if not self._change.wait_for(lambda: self._lent == 0, PATIENCE_SECONDS):
                return False
            return self.when_idle(action)

    def abandon(self) -> None:
        """Close the idle cursors and do not wait for lent ones: the store was dropped, and its readers with it."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        """Lend no more cursors, wait until all are returned, then close them."""
        with self._change:
            self._closed = True
            self._change.wait_for(lambda: self._lent == 0)
            for cursor in self._idle:
                cursor.close()
            self._idle.clear()
