"""The protocol of a database, as the common code uses it; its tables; and how long a failed operation is repeated.

Statements are such that every dialect understands them, with `?` for bound values.  A `Database` itself does what the
dialects write differently.  Errors of a driver are translated into ours.
"""

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

import attrs

from blocks import DamagedStoreError, StoreError
from persistence._log import StoredEvent, chain_start, xor

Rows: TypeAlias = list[tuple[Any, ...]]
Answer = TypeVar("Answer")

FIRST_PAUSE: Final = 0.002
LONGEST_PAUSE: Final = 0.5
"""Seconds between two attempts."""


@attrs.frozen(kw_only=True)
class Dialect:
    """SQL of a database for questions about a payload."""

    appended: str = "kind = 'BlockAppended'"
    """Condition: the event appends a block; it may accept others, whose payloads look as if they did."""
    summarized: str = "kind IN ('RangeCompacted', 'SummaryReplaced')"
    """Condition: the event has a summary; it may accept others."""
    holds: str
    """Condition: the payload contains the bound text."""
    bound: Callable[[str], object] = str.encode
    """The value to bind for a text."""
    holds_any_case: str
    """Condition: the payload contains a text in any case of A to Z, or a letter of `FOLDED_TO_ASCII`. For each `?`
    in it, the result of `pattern` is bound."""
    pattern: Callable[[str], str]
    odd: str
    """Condition: the payload is a tool call with a number that Python may write differently."""
    events: str = "events"
    """A relation with the columns `timeline`, `seq` and `payload` of all events."""
    is_block: str = "kind = 'BlockAppended'"
    """Condition: the event appends a block."""
    turn: str
    """Expression: a JSON list whose first item is the turn of the block; never NULL."""
    is_result: str
    """Expression: whether the block is a tool result."""
    new_turns: str
    """A query for the first block of each turn: `seq`, the turn as in `turn`, and 1 for a tool result, else 0.  Its
    parameters are a timeline, the last version, and the timeline again."""


class TakenError(Exception):
    """A row with this key exists already; nothing was written."""


class PassingError(StoreError):
    """Nothing was written, and the same may succeed later."""


class LostError(PassingError):
    """The connection broke; it is unknown whether the current write succeeded."""


class Connection(Protocol):
    """A borrowed connection."""

    def rows(self, statement: str, values: Sequence[object] = ()) -> Rows:
        """All rows of the result; each `?` is one of `values`."""
        ...

    def run(self, statement: str, values: Sequence[object] = ()) -> int:
        """Run a statement; return the number of changed rows."""
        ...

    def folder(self) -> Path | None:
        """The folder of the database; None: it is on a server."""
        ...


class Database(ABC):
    """A database with the tables of a store.

    Raises, from every method and inside every context:
        PassingError: nothing was written, and the same may succeed later.
        LostError: the connection broke.
        DamagedStoreError: the database reports damage.
        StoreError: the database reports another error.
    """

    name: str
    """Its name for messages, without a password."""
    dialect: ClassVar[Dialect]
    """SQL for conditions on payloads."""
    counts: ClassVar[bool] = True
    """Whether the transaction that makes or removes a timeline keeps the table `census` up to date."""

    @abstractmethod
    def number(self, table: str) -> str:
        """SQL for the column `made` of a new row in `table`; its values order rows by their creation."""

    @abstractmethod
    def lent(self) -> AbstractContextManager[Connection]:
        """A connection on which each statement is a transaction."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Connection]:
        """A read-only connection that sees one consistent state."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction: at its end all changes are durable, or none was made."""

    def append(self, timeline: str, expected: int, events: Sequence[StoredEvent]) -> bool:
        """Append the events if `expected` is the current version; return whether they were written."""
        try:
            with self.writing() as connection:
                return self.insert(connection, timeline, expected, events)
        except TakenError:
            return False

    @abstractmethod
    def insert(
        self, connection: Connection, timeline: str, expected: int, events: Sequence[StoredEvent]
    ) -> bool:
        """`append` within a transaction.

        Raises:
            TakenError: another process has just written this version.
        """

    @abstractmethod
    def hold(self, connection: Connection, timeline: str) -> None:
        """Wait until no other transaction holds this timeline, and hold it until the end of this one."""

    @abstractmethod
    def erase(self) -> tuple[str, ...]:
        """Overwrite deleted content; return places where copies of it may remain.

        Raises:
            StoreError: this is not possible now, or its success cannot be confirmed.
        """

    def page_problems(self, connection: Connection) -> Sequence[str]:
        """Damage that the database itself finds in its files, one sentence each; empty if it has no such check."""
        del connection
        return ()

    @abstractmethod
    def close(self) -> None:
        """Refuse new borrowers, and close connections that are not in use."""


@attrs.frozen(kw_only=True)
class Patience:
    """Repeats an action with growing pauses, which are randomized so that competing clients do not stay in step."""

    seconds: float = 30.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep  # a default; tests pass their own
    random: Callable[[], float] = random.random

    def repeated(self, action: Callable[[], Answer]) -> Answer:
        """Call `action` until it succeeds; return its result.

        Raises:
            StoreError: `action` still raises a `PassingError`, its cause, after `seconds`.
        """
        pause, end = FIRST_PAUSE, self.clock() + self.seconds
        while True:
            try:
                return action()
            except PassingError as error:
                if self.clock() + pause > end:
                    raise StoreError(str(error)) from error
            self.sleep(pause * (0.5 + self.random()))
            pause = min(2 * pause, LONGEST_PAUSE)


@attrs.frozen
class Table:
    """A table of a store; in its columns, `{name}`, `{int}`, `{float}` and `{bytes}` are the types of the dialect."""

    name: str
    columns: str
    key: str
    indexes: tuple[tuple[str, str], ...] = ()
    """The name of each index, and what follows the opening parenthesis."""

    @property
    def names(self) -> str:
        """The names of its columns."""
        return ", ".join(column.split()[0] for column in self.columns.split(", "))


TABLES: Final = (
    Table(
        "events",
        "timeline {name} NOT NULL, seq {int} NOT NULL, id {name} NOT NULL, ts {float} NOT NULL,"
        " kind {name} NOT NULL, ref {int}, payload {bytes} NOT NULL, made {int}, link {int} NOT NULL",
        "timeline, seq",
        (
            ("events_marks", "timeline, seq, kind, ref) WHERE ref IS NOT NULL"),
            ("events_first", "made, timeline) WHERE made IS NOT NULL"),
        ),
    ),
    Table(
        "heads",
        "timeline {name} NOT NULL, version {int} NOT NULL, chain {int} NOT NULL",
        "timeline",
    ),
    Table(
        "census", "bucket {int} NOT NULL, timelines {int} NOT NULL, names {int} NOT NULL", "bucket"
    ),
    Table(
        "trims",
        "timeline {name} NOT NULL, first {int} NOT NULL, began_at {float} NOT NULL,"
        " manifest {bytes} NOT NULL",
        "timeline",
    ),
    Table(
        "artifacts",
        "slot {name} NOT NULL, artifact {name} NOT NULL, entry {bytes} NOT NULL",
        "slot",
        (("artifacts_by_id", "artifact)"),),
    ),
    Table(
        "artifact_pieces",
        "slot {name} NOT NULL, number {int} NOT NULL, at {float} NOT NULL, piece {bytes} NOT NULL",
        "slot, number",
    ),
    Table(
        "artifact_audit",
        "id {name} NOT NULL, made {int} NOT NULL, record {bytes} NOT NULL",
        "id",
        (("artifact_audit_made", "made)"),),
    ),
)
"""The tables of SQLite and PostgreSQL.

    events     one row per event: its position, columns that are often queried, the event itself as JSON, its link
    heads      one row per timeline: its version, and the chain after its newest event, see `persistence._log`
    census     how many timelines there are, and the XOR of the `start` of each, in several rows, so that clients that
               create timelines rarely wait for each other
    trims      which timelines lack older events, and where those events are
    artifacts, artifact_pieces, artifact_audit      see `persistence.artifacts`

`made` orders timelines whose first events have the same time; only first events have it.
"""
BUCKETS: Final = 16
_NOTHING: Final = ", ".join(f"({bucket}, 0, 0)" for bucket in range(BUCKETS))
ADD_BUCKETS: Final = f"INSERT INTO census(bucket, timelines, names) VALUES {_NOTHING}"  # noqa: S608 -- constants
COUNT: Final = f"""
UPDATE census SET timelines = timelines + ?, names = {xor("names", "CAST(? AS bigint)")} WHERE bucket = ?
"""  # noqa: S608 -- constants
"""Counts a timeline, or one less."""
NEW: Final = (
    "CREATE TABLE foldline(format INTEGER NOT NULL, views VARCHAR(16) NOT NULL)",
    "INSERT INTO foldline VALUES (0, '')",
)
"""The statements for a new database; format 0 means that it has no other tables yet."""
FORMAT: Final = "SELECT format, views FROM foldline"


def set_up(
    database: Database, format_: int, tables: Sequence[str], views: Sequence[str], lock: str = ""
) -> None:
    """Create the tables of a new database and the views of this version, in one transaction.

    `lock` is a statement that waits until no other client does the same.

    Raises:
        DamagedStoreError: the number of its format is missing.
        StoreError: it has another format.
    """
    current = (format_, sha256("".join(views).encode()).hexdigest()[:16])
    with database.lent() as connection:
        if _format_of(connection, database.name, format_) == current:
            return
    with database.writing() as connection:
        if lock:
            connection.run(lock)
        # Again: another client may have been faster.
        is_made, mark = _format_of(connection, database.name, format_)
        for statement in () if is_made else tables:
            connection.run(statement)
        for statement in () if mark == current[1] else views:
            connection.run(statement)
        connection.run("UPDATE foldline SET format = ?, views = ?", current)


def count(database: Database, connection: Connection, timeline: str, change: int) -> None:
    """Note in the census that a timeline was made (`change` 1) or removed (-1)."""
    if database.counts:
        name = chain_start(timeline)
        connection.run(COUNT, [change, name, name, name % BUCKETS])


def format_problems(connection: Connection) -> Sequence[str]:
    """Problems of the table `foldline` in an open database."""
    rows = connection.rows(FORMAT)
    return [] if len(rows) == 1 else [f"table foldline has {len(rows)} rows, and should have 1"]


def _format_of(connection: Connection, name: str, ours: int) -> tuple[int, str]:
    try:
        [(format_, mark)] = connection.rows(FORMAT)
    except ValueError:
        raise DamagedStoreError(
            f"{name} has no format number; restore the database from a backup"
        ) from None
    if format_ not in (0, ours):
        raise StoreError(
            f"{name} has format {format_}, this version reads {ours}; open it with the version of"
            " foldline that wrote it"
        )
    return format_, mark
