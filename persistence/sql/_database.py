"""The protocol of a database, as the common code uses it.

Statements are such that every dialect understands them, with `?` for bound values.  A `Database` itself does what the
dialects write differently.  Errors of a driver are translated into ours.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from blocks import StoreError
from persistence._log import StoredEvent
from persistence.sql._index import Dialect

Rows: TypeAlias = list[tuple[Any, ...]]


class TakenError(Exception):
    """A row with this key exists already; nothing was written."""


class PassingError(StoreError):
    """Nothing was written, and the same may succeed later."""


class LostError(PassingError):
    """The connection broke; it is unknown whether the current write succeeded."""


class Connection(Protocol):
    """A borrowed connection."""

    def rows(self, statement: str, given: Sequence[object] = ()) -> Rows:
        """All rows of the result; each `?` is a value of `given`."""
        ...

    def run(self, statement: str, given: Sequence[object] = ()) -> int:
        """Run a statement; return the number of changed rows."""
        ...


class Database(Protocol):
    """A database with the tables of a store.

    Raises, from every method and inside every context:
        PassingError: nothing was written, and the same may succeed later.
        LostError: the connection broke.
        DamagedStoreError: the database reports damage.
        StoreError: the database reports another error.
    """

    @property
    def name(self) -> str:
        """Its name for messages, without a password."""
        ...

    @property
    def dialect(self) -> Dialect:
        """SQL for conditions on payloads."""
        ...

    def number(self, table: str) -> str:
        """SQL for the column `made` of a new row in `table`; its values order rows by their creation."""
        ...

    def lent(self) -> AbstractContextManager[Connection]:
        """A connection on which each statement is a transaction."""
        ...

    def snapshot(self) -> AbstractContextManager[Connection]:
        """A read-only connection that sees one consistent state."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction: at its end all changes are durable, or none was made."""
        ...

    def append(self, timeline: str, expected: int, events: Sequence[StoredEvent]) -> bool:
        """Append the events if `expected` is the current version; return whether they were written."""
        ...

    def insert(
        self, connection: Connection, timeline: str, expected: int, events: Sequence[StoredEvent]
    ) -> bool:
        """`append` within a transaction.

        Raises:
            TakenError: another process has just written this version.
        """
        ...

    def hold(self, connection: Connection, timeline: str) -> None:
        """Wait until no other transaction holds this timeline, and hold it until the end of this one."""
        ...

    def stop_appends(self, connection: Connection) -> None:
        """Wait until running appends are done, and block others until the end of the transaction."""
        ...

    def erase(self) -> tuple[str, ...]:
        """Overwrite deleted content; return places where copies of it may remain.

        Raises:
            StoreError: this is not possible now, or its success cannot be confirmed.
        """
        ...

    def page_problems(self, connection: Connection) -> Sequence[str]:
        """Damage that the database itself finds in its files, one sentence each; empty if it has no such check."""
        ...

    def close(self) -> None:
        """Refuse new borrowers, and close connections that are not in use."""
        ...
