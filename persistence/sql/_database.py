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
    """There is a row of this key; nothing was written."""


class PassingError(StoreError):
    """Nothing was written, and the same may succeed in a moment."""


class LostError(PassingError):
    """The connection broke: what was under way was written, or not."""


class Connection(Protocol):
    """One connection, for the time that it is lent."""

    def rows(self, statement: str, given: Sequence[object] = ()) -> Rows:
        """All rows of the answer."""
        ...

    def run(self, statement: str, given: Sequence[object] = ()) -> int:
        """How many rows were changed."""
        ...


class Database(Protocol):
    """A database with our tables in it.

    Raises, from each of these and from what is done inside:
        PassingError: nothing was written, and the same may succeed in a moment.
        LostError: the connection broke.
        DamagedStoreError: the database says that it is.
        StoreError: anything else that it says.
    """

    @property
    def name(self) -> str:
        """For people, without a password."""
        ...

    @property
    def dialect(self) -> Dialect:
        """How it is asked about payloads."""
        ...

    def number(self, table: str) -> str:
        """SQL for the column `made` of a new row: it orders rows by when they were made."""
        ...

    def lent(self) -> AbstractContextManager[Connection]:
        """A connection on which each statement is a transaction of its own."""
        ...

    def snapshot(self) -> AbstractContextManager[Connection]:
        """One that sees the same throughout, and does not write."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction: at its end everything is durable, or nothing was done."""
        ...

    def append(self, timeline: str, expected: int, events: Sequence[StoredEvent]) -> bool:
        """Write the events behind version `expected` if that is the current one, else nothing."""
        ...

    def insert(
        self, connection: Connection, timeline: str, expected: int, events: Sequence[StoredEvent]
    ) -> bool:
        """The same as a part of a transaction.

        Raises:
            TakenError: somebody else has just done so.
        """
        ...

    def hold(self, connection: Connection, timeline: str) -> None:
        """Wait until no other transaction holds this timeline, and hold it until the end of this one."""
        ...

    def stop_appends(self, connection: Connection) -> None:
        """Wait until no append is under way, and let none begin until the end of the transaction."""
        ...

    def erase(self) -> tuple[str, ...]:
        """Overwrite what was deleted; where it may still be all the same.

        Raises:
            StoreError: that cannot be done now, or cannot be said.
        """
        ...

    def page_problems(self, connection: Connection) -> Sequence[str]:
        """What the database itself finds wrong with its files, where it can be asked."""
        ...

    def close(self) -> None:
        """Accept no new users, and close everything that is not in use."""
        ...
