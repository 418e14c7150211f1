"""The only writer of a DuckDB file: checks waiting appends, and commits the valid ones.

Everything here runs under the lock of `GroupCommit`, one thread at a time.  Readers see the heads, which
change only after a commit. After any failure they are read from the file
again, because a commit that failed may still have happened.  A database that DuckDB has invalidated, for
instance because the disk was full during a checkpoint, is attached again.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from threading import Condition, Lock
from time import sleep
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

import attrs

from blocks import (
    ClosedError,
    DamagedStoreError,
    FoldlineError,
    ForgottenError,
    StoreError,
    TimelineId,
)
from persistence._file import create_beside
from persistence._log import Head, Mark, StoredEvent, chain_at, chain_start, checked_marks, extended
from persistence.duckdb._file import (
    FileLock,
    cursor_of,
    errors,
    interrupts,
    log_path,
    reattach,
    translated,
)
from persistence.duckdb._tables import (
    BEGAN,
    COPY_TRIMS,
    COUNT,
    FETCHED,
    FOLD,
    LARGE,
    end_of,
    linked,
    pieces_of,
    put_ends,
    removed_events,
    rest_of,
    stale_ends,
    stand_in,
)

if TYPE_CHECKING:
    from duckdb import Appender, DuckDBPyConnection

# The heads of the timelines in a DuckDB file: read on first use, the most recently used ones cached.
#
# Only the tables are authoritative, and no head is stored: the version of a timeline is its largest `seq`,
# which zone maps find among a million rows in a millisecond.  Cached heads are correct because the only writer
# publishes every head that it changes.  Loading and publishing exclude each other, so a head that was read
# before a commit is never cached after it.


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
SELECT name, greatest(newest, version), coalesce(created_at, 0), coalesce(updated_at, 0)
FROM timelines LEFT JOIN heads USING (timeline)
LEFT JOIN (SELECT timeline, max(seq) AS newest, arg_min(ts, seq) AS created_at,
                  arg_max(ts, seq) AS updated_at
           FROM events GROUP BY timeline) USING (timeline)
WHERE greatest(newest, version) IS NOT NULL ORDER BY timeline
"""
"""Also timelines of which only the head is left."""


@attrs.frozen
class StoredTimeline:
    """A timeline: its number in the tables, and its head without the times."""

    name: TimelineId
    number: int = 0
    """0: the timeline has no events."""
    head: Head = attrs.field(factory=Head)
    chain: int | None = None
    """The chain after its newest event; None: not looked at since the file was opened."""


Timelines: TypeAlias = dict[TimelineId, StoredTimeline]


@attrs.define(eq=False)
class Heads:
    """The heads of all timelines, the most recently used of them in memory; thread-safe."""

    _cursors: "CursorPool"
    _held: OrderedDict[TimelineId, StoredTimeline] = attrs.field(
        factory=OrderedDict[TimelineId, StoredTimeline], init=False
    )
    _mutex: Lock = attrs.field(factory=Lock, init=False)
    """Held for each access to `_held`."""
    _moving: Lock = attrs.field(factory=Lock, init=False)
    """Held while heads are read from the file or published; a lookup that finds its head in memory does not need it."""

    def held(self, name: TimelineId) -> StoredTimeline | None:
        """The number and the head of a timeline, if they are in memory."""
        with self._mutex:
            timeline = self._held.get(name)
            if timeline:
                self._held.move_to_end(name)
        return timeline

    def timeline(self, name: TimelineId) -> StoredTimeline:
        """The number and the head of a timeline.

        Raises:
            duckdb.Error: the file could not be read.
        """
        return self.held(name) or self.load((name,))[name]

    def load(self, names: Collection[TimelineId]) -> Timelines:
        """The numbers and heads of several timelines.

        Raises:
            duckdb.Error: the file could not be read.
        """
        with self._moving:
            with self._mutex:
                timelines = {name: self._held[name] for name in names if name in self._held}
            if missing := [name for name in names if name not in timelines]:
                with self._cursors.borrow() as cursor:
                    read = _read(cursor, missing)
                self._keep(read)
                timelines.update(read)
        return timelines

    def publish(self, timelines: Timelines) -> None:
        """Store the new heads after a commit."""
        with self._moving:
            self._keep(timelines)

    def chained(self, name: TimelineId) -> StoredTimeline:
        """A timeline with its chain; when it is read from the file, the end of the log is checked.

        Raises:
            DamagedStoreError: the newest events are missing, or are not those that were written.
            duckdb.Error: the file could not be read.
        """
        while (timeline := self.timeline(name)).chain is None:
            with self._cursors.borrow() as cursor:
                chain = end_of(cursor, timeline.number, name, timeline.head.version)
            with self._moving, self._mutex:
                if self._held.get(name, timeline) is timeline:  # else it was read before a commit
                    self._held[name] = attrs.evolve(timeline, chain=chain)
        return timeline

    def drop(self, name: TimelineId) -> None:
        """Forget a timeline whose rows were removed."""
        with self._moving, self._mutex:
            self._held.pop(name, None)

    def forget(self) -> None:
        """Forget all heads, so that they are read again: whether the last commit succeeded is unknown."""
        with self._moving, self._mutex:
            self._held.clear()

    def _keep(self, timelines: Timelines) -> None:
        with self._mutex:
            for name, each in timelines.items():
                self._held[name] = each
                self._held.move_to_end(name)
            while len(self._held) > HELD_MAX:
                self._held.popitem(last=False)


def _read(cursor: "DuckDBPyConnection", names: Collection[TimelineId]) -> Timelines:
    """Read timelines from the file; one that the file does not have is new."""
    numbers = dict(cursor.execute(_NUMBERS.format(_marks(names)), list(names)).fetchall())
    versions = _versions(cursor, list(numbers.values()))
    marks = {number: list[Mark]() for number in versions}
    if versions:
        statement = _MARKS.format(_marks(versions))
        for number, version, kind, ref in cursor.execute(statement, list(versions)).fetchall():
            if version <= versions[number]:  # else it was added after the previous statement
                marks[number].append(Mark(version, kind, ref))
    timelines: Timelines = {}
    for name in names:
        number = numbers.get(name, 0)
        head = Head(version=versions.get(number, 0), marks=tuple(marks.get(number, ())))
        timelines[name] = StoredTimeline(name, number, head)
    return timelines


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
    heads = {
        TimelineId(name): Head(version=version, created_at=created_at, updated_at=updated_at)
        for name, version, created_at, updated_at in cursor.execute(_ALL).fetchall()
    }
    for name, began_at in cursor.execute(BEGAN).fetchall():
        heads[name] = attrs.evolve(heads[name], created_at=began_at)
    return heads


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

    def alone(self, action: Callable[[], None], *, waits: bool) -> bool:
        """Run `action` if no cursor is lent, and lend none meanwhile; return whether it ran. `waits`: wait for that, up
        to `PATIENCE_SECONDS`."""
        with self._change:
            is_idle = self._change.wait_for(lambda: not self._lent, PATIENCE_SECONDS * waits)
            if is_idle and not self._closed:
                action()
                return True
            return False

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


# The writer.


FOLD_BYTES: Final = 16_000_000
"""Bytes of events after which the write-ahead log is folded into the file."""
LAST_NUMBER = "SELECT coalesce(max(timeline), 0) FROM timelines"
"""Answered from statistics of the file, as is `COUNT`."""
ADD_NAMES = "INSERT INTO timelines SELECT unnest(?), unnest(?)"
ADD_MARKS = "INSERT INTO marks SELECT unnest(?), unnest(?), unnest(?), unnest(?)"
COPY = (
    "INSERT INTO events SELECT $1, seq, ts, payload, xor(link, $4) FROM events WHERE timeline = $2 AND seq <= $3",
    COPY_TRIMS,
)
COPY_BESIDE = (
    "INSERT INTO pieces SELECT $1, seq, number, piece FROM pieces WHERE timeline = $2 AND seq <= $3",
    "INSERT INTO marks SELECT $1, seq, kind, ref FROM marks WHERE timeline = $2 AND seq <= $3",
)
NOTE_FOLD = "UPDATE fold SET events = ?, timelines = ?, is_whole = ?"


@attrs.define(eq=False)
class Writer:
    """Owns the connection's writing cursor, and updates the heads."""

    _connection: "DuckDBPyConnection"
    _path: Path
    _lock: FileLock
    heads: Heads
    events_total: int = attrs.field(default=0, init=False)
    _last_number: int = attrs.field(default=0, init=False)
    """The highest number of a timeline."""
    _cursor: "DuckDBPyConnection" = attrs.field(init=False)
    _appender: "Appender" = attrs.field(init=False)
    _pieces: "Appender" = attrs.field(init=False)
    _closed: bool = attrs.field(default=False, init=False)
    is_suspect: bool = attrs.field(default=False, init=False)
    """Whether a call has failed since memory was last loaded from the file, so that memory may be wrong."""
    _ends: dict[int, tuple[int, int]] = attrs.field(factory=dict[int, tuple[int, int]], init=False)
    """Version and chain of the timelines that have grown since the last fold, by their number."""
    _is_stale: bool = attrs.field(default=False, init=False)
    """Whether others have grown as well, before memory was loaded from the file."""
    _unfolded: int = attrs.field(default=0, init=False)
    """Bytes of the events since then."""
    _is_begun: bool = attrs.field(default=False, init=False)
    """Whether the file says that it has a write-ahead log."""

    def __attrs_post_init__(self) -> None:
        self._load()

    def _load(self) -> None:
        """Load the state of the file into memory."""
        self._cursor = cursor_of(self._connection)
        [(count,)] = self._cursor.execute(COUNT).fetchall()
        self.events_total = count + removed_events(self._cursor)
        [(self._last_number,)] = self._cursor.execute(LAST_NUMBER).fetchall()
        self._appender = self._cursor.appender("events")
        self._pieces = self._cursor.appender("pieces")
        self.heads.forget()
        self._ends.clear()
        [(events, *_)] = self._cursor.execute(FOLD).fetchall()
        self._is_stale = events != self.events_total

    @interrupts()
    def commit(self, batch: "Sequence[Append]") -> None:
        """Write the appends that expect the current version, in one durable commit; store the result in each append."""
        if self.is_suspect:
            self.refresh()
        timelines = self._timelines(batch)
        if timelines is None:
            return
        accepted = [append for append in batch if self._accept(append, timelines)]
        if not accepted:
            return
        with self._settling(accepted):
            self._write(accepted, timelines)
            self._publish(accepted, timelines)
        if self._unfolded > FOLD_BYTES:
            self.fold()

    def _timelines(self, batch: "Sequence[Append]") -> Timelines | None:
        """The timelines of a batch; if they cannot be read, None, and each append has the error."""
        import duckdb

        try:
            return {} if self._refusal() else self.heads.load({a.timeline for a in batch})
        except duckdb.Error as error:
            self.is_suspect = True
            for append in batch:
                append.error = translated(error, self._path)
            return None

    @contextmanager
    def _settling(self, accepted: "Sequence[Append]") -> Generator[None]:
        """Store the result of the commit in each append of `accepted`; reload memory if the commit failed."""
        import duckdb

        self.make_log()
        try:
            with interrupts():
                yield
        except duckdb.Error as error:
            self._recover()
            self._retry_each(accepted, error)
        except BaseException:
            self.is_suspect = True  # in case the next line is interrupted, too
            self._recover()
            for append in accepted:
                append.error = StoreError(f"a commit to {self._path} was interrupted; repeat it")
            raise
        else:
            for append in accepted:
                append.committed = True

    def _accept(self, append: "Append", timelines: Timelines) -> bool:
        """Whether the append can be written; if so, `timelines` then has the head after it."""
        before = timelines.get(append.timeline) or StoredTimeline(append.timeline)
        append.current, append.error = before.head.version, self._refusal()
        if append.error or append.current != append.expected:
            return False
        chain, append.error = self._chain_of(before)
        append.links, chain = extended(chain, append.current, append.events)
        after = StoredTimeline(before.name, before.number, before.head.after(append.events), chain)
        if not append.error and before.number and before.head.marks != after.head.marks:
            append.error = _refused_marks(self._cursor, after)
        timelines[append.timeline] = before if append.error else after
        return not append.error

    def _chain_of(self, before: StoredTimeline) -> tuple[int, Exception | None]:
        """The chain that an append continues, or why there is none."""
        import duckdb

        if before.chain is not None:
            return before.chain, None
        try:
            return self.heads.chained(before.name).chain or 0, None
        except DamagedStoreError as error:
            return 0, error
        except duckdb.Error as error:
            self.is_suspect = True
            return 0, translated(error, self._path)

    def _write(self, accepted: "Sequence[Append]", timelines: Timelines) -> None:
        new = self._number_new(accepted, timelines)
        entries = [entry for a in accepted for entry in a.entries(timelines[a.timeline].number)]
        if not new and all(e.ref is None and len(e.data) <= LARGE for _, _, e, _ in entries):
            self._add_events(entries)  # one durable commit, without a transaction
            return
        self._cursor.execute("BEGIN")
        self._insert(ADD_NAMES, new)
        self._add(entries)
        self._cursor.execute("COMMIT")

    def _add(self, entries: "Sequence[Entry]") -> None:
        """Write all rows of these events, in the current transaction; pieces a few megabytes at a time."""
        marks = [(number, seq, e.kind, e.ref) for number, seq, e, _ in entries if e.ref is not None]
        self._insert(ADD_MARKS, marks)
        pieces = (
            (number, seq, place, piece)
            for number, seq, event, _ in entries
            if len(event.data) > LARGE
            for place, piece in enumerate(pieces_of(event.data))
        )
        while page := list(islice(pieces, FETCHED)):
            self._pieces.append_rows(page)
            self._pieces.flush()
        self._add_events(entries)

    def _add_events(self, entries: "Sequence[Entry]") -> None:
        rows = [(number, seq, e.at, payload_of(e.data), link) for number, seq, e, link in entries]
        # All rows in one call, because a call costs more than a row.
        self._appender.append_rows(rows)
        self._appender.flush()

    def _number_new(
        self, accepted: "Sequence[Append]", timelines: Timelines
    ) -> list[tuple[int, TimelineId]]:
        """Assign a number to each new timeline; return the numbers with the names."""
        new = dict.fromkeys(a.timeline for a in accepted if not timelines[a.timeline].number)
        rows = list(enumerate(new, self._last_number + 1))
        for number, name in rows:
            timelines[name] = attrs.evolve(timelines[name], number=number)
        return rows

    def _insert(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            self._cursor.execute(statement, [list(column) for column in zip(*rows, strict=True)])

    def _publish(self, accepted: "Sequence[Append]", timelines: Timelines) -> None:
        """Update memory and the lock file after a commit."""
        grown = {append.timeline: timelines[append.timeline] for append in accepted}
        self.heads.publish(grown)
        self._ends |= {t.number: (t.head.version, t.chain or 0) for t in grown.values()}
        self._unfolded += sum(len(e.data) for append in accepted for e in append.events)
        self._last_number = max(self._last_number, *(each.number for each in grown.values()))
        self.events_total += sum(len(append.events) for append in accepted)
        self._lock.note(events=self.events_total)

    def _refusal(self) -> Exception | None:
        """The error of every call now, or None. A new object each time, because a traceback grows with each raise."""
        if self._closed:
            return ClosedError(f"{self._path} is closed; open the store again")
        if self.is_suspect:
            return StoreError(
                f"{self._path} cannot be read since an earlier call failed; free disk space if the disk is"
                " full, and repeat the call; if that fails too, close the store and open it again"
            )
        return None

    def _recover(self) -> None:
        """Discard the failed commit, and reload memory from the file."""
        import duckdb

        with suppress(duckdb.Error):
            self._appender.clear()  # else it would write its remaining rows when it is collected
            self._pieces.clear()
        self.refresh()

    def refresh(self) -> None:
        """Reload memory from the file; if this fails, attach the file anew and try once more."""
        import duckdb

        if self._closed:
            return
        self.is_suspect = True
        with suppress(duckdb.Error):
            self._cursor.close()
        for attach in (False, True):
            with suppress(duckdb.Error, OSError), interrupts():
                if attach:
                    reattach(self._connection, self._path)
                self._load()
                self.is_suspect = False
                return

    def _retry_each(self, accepted: "Sequence[Append]", error: Exception) -> None:
        """Commit each append on its own, so that one bad append does not fail the others."""
        if len(accepted) == 1:
            accepted[0].error = translated(error, self._path)
            return
        for append in accepted:
            self.commit([append])

    def fork(self, source: TimelineId, at: int, append: "Append") -> None:
        """Copy the rows of `source` in the database and append to the copy, in one commit."""
        append.error = self._refusal()
        if append.error:
            return
        append.expected = at
        with self._settling([append]):
            parent = self.heads.timeline(source)
            number = self._last_number + 1
            head = parent.head.cut_to(at).after(append.events)
            other = chain_start(source) ^ chain_start(append.timeline)
            row, rest = linked(self._cursor, parent.number), rest_of(self._cursor, parent.number)
            chain = (chain_at(source, rest, at, row) or 0) ^ other
            append.links, chain = extended(chain, at, append.events)
            self._cursor.execute("BEGIN")
            self._insert(ADD_NAMES, [(number, append.timeline)])
            for statement in COPY:
                self._cursor.execute(statement, [number, parent.number, at, other])
            for statement in COPY_BESIDE:
                self._cursor.execute(statement, [number, parent.number, at])
            self._add([*append.entries(number)])
            self._cursor.execute("COMMIT")
            self.events_total += at
            after = StoredTimeline(append.timeline, number, head, chain)
            self._publish([append], {after.name: after})

    @contextmanager
    def changing(self) -> "Generator[DuckDBPyConnection]":
        """The writing cursor, for changes other than appends; after an error, memory is reloaded."""
        if self.is_suspect:
            self.refresh()
        if error := self._refusal():
            raise error
        self.make_log()
        try:
            with errors(self._path):
                yield self._cursor
        except BaseException:
            self._recover()
            raise

    def make_log(self) -> None:
        """Create the write-ahead log that the next change needs, with the permissions of the file, which then says that
        it has one."""
        if not self._is_begun:
            # Once: if this fails, a copy without the log is less surely noticed.
            self._is_begun = True
            self.fold()
        if not (log := log_path(self._path)).exists():
            create_beside(log, self._path)

    def fold(self) -> None:
        """Checkpoint the write-ahead log into the file, which then says that a new one follows.

        So a copy of the file without that log is noticed: only the log says that there is no more.  If this fails, the
        log stays, and the events in it are as durable.
        """
        import duckdb

        with suppress(duckdb.Error, FoldlineError), interrupts():
            self._note_fold(is_whole=False)
            try:
                self._cursor.execute("CHECKPOINT")
            finally:
                create_beside(log_path(self._path), self._path)
                self._cursor.execute("UPDATE fold SET is_whole = true")

    def _note_fold(self, *, is_whole: bool) -> None:
        """Write the heads of the timelines that have grown, and how much there is."""
        import duckdb

        grown = stale_ends(self._cursor) if self._is_stale else self._ends
        create_beside(log_path(self._path), self._path)
        try:
            self._cursor.execute("BEGIN")
            put_ends(self._cursor, grown)
            self._cursor.execute(NOTE_FOLD, [self.events_total, self._last_number, is_whole])
            self._cursor.execute("COMMIT")
        except BaseException:  # also an interrupt before the first statement, or behind the last
            with suppress(duckdb.Error):
                self._cursor.execute("ROLLBACK")
            raise
        self._ends.clear()
        self._unfolded, self._is_stale = 0, False

    def drop(self, name: TimelineId) -> None:
        """Forget a timeline whose rows were removed."""
        self._ends.pop(self.heads.timeline(name).number, None)
        self.heads.drop(name)

    def moved(self) -> None:
        """Adapt to the file's replacement by another one."""
        self._is_begun = False
        self._lock.holds()
        self._recover()

    def abandon(self) -> None:
        """Release the file without changing it."""
        import duckdb

        self._closed = True
        with suppress(duckdb.Error):
            self._cursor.close()

    def close(self) -> None:
        """Checkpoint the write-ahead log into the file, and release it."""
        import duckdb

        self._closed = True
        # If this fails, nothing is lost: the write-ahead log stays, and the next open replays it.
        with suppress(duckdb.Error, FoldlineError), interrupts():
            if self._is_begun or self._is_stale:
                self._note_fold(is_whole=True)
        with suppress(duckdb.Error), interrupts():
            self._cursor.execute("CHECKPOINT")
        log = log_path(self._path)
        with suppress(OSError):
            if not log.stat().st_size:  # nothing was written after it was made
                log.unlink()
        self.abandon()


def _refused_marks(cursor: "DuckDBPyConnection", after: StoredTimeline) -> FoldlineError | None:
    """The error of an append that changes the window so that it would begin among forgotten events; None: it is
    allowed."""
    import duckdb

    try:
        checked_marks(after.name, after.head, rest_of(cursor, after.number))
    except ForgottenError as refusal:
        return refusal
    except duckdb.Error as error:
        return StoreError(f"{str(error).partition(chr(10))[0][:300]}; repeat the call")
    return None


Entry: TypeAlias = tuple[int, int, StoredEvent, int]
"""The number of a timeline, a version, the event there, and its link."""


@attrs.define(eq=False, kw_only=True)
class Append:
    """An append that waits for its commit, and the result of the commit."""

    timeline: TimelineId
    expected: int
    events: list[StoredEvent]
    links: list[int] = attrs.field(factory=list[int])
    current: int = 0
    """The version of the timeline before the commit."""
    committed: bool = False
    error: Exception | None = None

    def entries(self, number: int) -> "Iterator[Entry]":
        """The events, each after the number of the timeline and its version, and with its link."""
        for place, (event, link) in enumerate(zip(self.events, self.links, strict=True), 1):
            yield number, self.expected + place, event, link


def payload_of(data: bytes) -> str:
    """The payload column of an event's row: its JSON, or the stand-in for a large event."""
    return stand_in(data) if len(data) > LARGE else data.decode()


# Group commit.
#
# There is no writer thread.  The first thread becomes the leader: it commits its own item and all waiting items,
# wakes their threads, and makes the first remaining thread the next leader.  A single appender
# has no hand-over cost, and 64 appenders share one fsync.
#
# Threads that append again at once return one after the other. If the first of them committed alone, the
# others would wait for an fsync without their items, and then for a second one. So the leader
# first waits for the threads of the last batch, as long as they keep arriving.

T = TypeVar("T")

BATCH_MAX = 1024
"""The largest number of items in one commit."""

MOMENT = 0.00001
"""Seconds of one short wait. The operating system adds about 60 us, enough for several threads to arrive."""
MOMENTS_MAX = 16
"""The largest number of short waits before a commit."""


def _locked() -> Lock:
    lock = Lock()
    lock.acquire()
    return lock


@attrs.define(eq=False)
class _Ticket(Generic[T]):
    item: T
    leads: bool = False
    is_seen: bool = False
    """Whether a leader has passed the item to `commit`."""
    has_left: bool = False
    """Whether the ticket has left the queue, and passed the lead on if it had it."""
    turn: Lock = attrs.field(factory=_locked)
    """A lock that is released when the item was committed, or when this ticket becomes the leader."""


@attrs.define(eq=False)
class GroupCommit(Generic[T]):
    """Runs `commit` on batches of items, one batch at a time; `commit` stores its results in the items.

    A waiting thread is the leader: it commits all waiting items, then the first thread left becomes the leader.
    """

    _commit: Callable[[Sequence[T]], None]
    _waiting: list[_Ticket[T]] = attrs.field(factory=list[_Ticket[T]], init=False)
    _busy: bool = attrs.field(default=False, init=False)
    _around: int = attrs.field(default=0, init=False)
    """The number of items in the last commit, plus those that were waiting when it ended."""
    _mutex: Lock = attrs.field(factory=Lock, init=False)
    _committing: Lock = attrs.field(factory=Lock, init=False)

    def submit(self, item: T) -> None:
        """Return once `commit` has handled `item`; items are committed in the order of their arrival."""
        ticket = _Ticket(item)
        try:
            with self._mutex:
                self._waiting.append(ticket)
                ticket.leads = not self._busy
                self._busy = True
            if not ticket.leads:
                ticket.turn.acquire()
            if ticket.leads:
                self._lead()
        finally:
            try:
                self._leave(ticket)
            finally:
                if not ticket.has_left:  # an interrupt stopped the first attempt
                    self._leave(ticket)

    def _lead(self) -> None:
        batch: list[_Ticket[T]] = []
        try:
            self._gather()
            with self._mutex:
                batch = self._waiting[:BATCH_MAX]
                del self._waiting[:BATCH_MAX]
            with self._committing:
                self._commit([ticket.item for ticket in batch])
            self._around = len(batch) + len(self._waiting)
        finally:
            try:
                _wake(batch)
            finally:
                _wake(batch)  # those that an interrupt left asleep

    def _gather(self) -> None:
        """Wait briefly for the threads of the last commit to submit again; a lone thread does not wait."""
        before = 0
        for _ in range(MOMENTS_MAX):
            if not before < len(self._waiting) < self._around:
                return
            before = len(self._waiting)
            sleep(MOMENT)

    def _leave(self, ticket: _Ticket[T]) -> None:
        """Take the ticket out of the queue; if it is the leader, make the first waiting ticket the leader.

        If an interrupt stops this method, calling it again completes it: CPython raises an interrupt only at the start
        of a function, after a call and at the end of a loop iteration, never between setting a flag and the
        release of the lock that the flag stands for.
        """
        if ticket.is_seen and not ticket.leads:
            ticket.has_left = True
            return
        with self._mutex:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if not ticket.leads:
                ticket.has_left = True
                return
            next_leader = self._waiting[0] if self._waiting else None
            self._busy = next_leader is not None
            ticket.has_left = True
            if next_leader:
                next_leader.leads = True
                next_leader.turn.release()

    @contextmanager
    def alone(self) -> Generator[None]:
        """Inside this block, nothing is committed except by the block itself."""
        with self._committing:
            yield

    @contextmanager
    def alone_at_once(self) -> Generator[bool]:
        """Like `alone`, but do not wait: yield False if a commit is running."""
        is_alone = self._committing.acquire(blocking=False)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._committing.release()


def _wake(batch: Sequence[_Ticket[T]]) -> None:
    """Release the threads whose items were committed, each once."""
    for ticket in batch:
        if not ticket.is_seen:
            ticket.is_seen = True
            ticket.turn.release()
