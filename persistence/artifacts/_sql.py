"""Artifacts in the database of a multi-process store, in three tables beside the log.

A write is repeated if the connection breaks.  Every write adds a row with a random key, so a key
that exists already means that the first attempt succeeded.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from secrets import token_hex
from threading import Lock
from typing import Final

import attrs
import msgspec

from blocks import StoreError
from persistence.artifacts._crypt import pieces_of
from persistence.artifacts._files import LEFTOVER_SECONDS
from persistence.artifacts._store import AuditRecord, Entry, Statement, TableBackend, encoded
from persistence.sql._database import Connection, Database, Patience, TakenError

ADD_PIECE: Final = "INSERT INTO artifact_pieces VALUES (?, ?, ?, ?)"
ADD_ENTRY: Final = "INSERT INTO artifacts VALUES (?, ?, ?)"
ADD_RECORD: Final = "INSERT INTO artifact_audit VALUES (?, {number}, ?)"
DROP_LEFT_BEHIND: Final = """
DELETE FROM artifact_pieces WHERE at < ? AND slot NOT IN (SELECT slot FROM artifacts)
"""
PIECE: Final = "SELECT piece FROM artifact_pieces WHERE slot = ? AND number = ?"
PIECES_OF: Final = "SELECT count(*) FROM artifact_pieces WHERE slot = ?"


@attrs.define(eq=False)
class SQLBackend(TableBackend):
    """The `TableBackend` of a multi-process store."""

    RECORDS = "SELECT record FROM artifact_audit ORDER BY made"
    _database: Database
    _patience: Patience
    _refuse_if_not_ours: Callable[[], None]
    _clock: Callable[[], float]
    lock: Lock = attrs.field(kw_only=True, repr=False)
    """One per store, even if its artifacts are opened several times."""

    def fill(self, slot: str, pieces: Iterable[bytes]) -> None:
        """Commit each piece on its own, so that a slow producer does not block appends."""
        for number, piece in enumerate(pieces):
            row = (slot, number, self._clock(), piece)
            self._write([(ADD_PIECE, row)])

    def enter(self, entry: Entry, record: AuditRecord) -> None:
        row = (entry.slot, entry.metadata.id, encoded(entry))
        self._write([(ADD_ENTRY, row), self._audit(record)], lambda here: _check_whole(here, entry))

    def pieces(self, slot: str, first: int, last: int) -> Iterator[bytes]:
        for number in range(first, last + 1):
            yield from self._column(PIECE, [slot, number])

    def tidy(self, now: float) -> None:
        self._write([(DROP_LEFT_BEHIND, (now - LEFTOVER_SECONDS,))])

    def _audit(self, record: AuditRecord) -> Statement:
        statement = ADD_RECORD.replace("{number}", self._database.number("artifact_audit"))
        return statement, (token_hex(8), msgspec.json.encode(record))

    def _write(
        self,
        statements: Sequence[Statement],
        check: Callable[[Connection], None] = lambda _: None,
    ) -> None:
        """Run all statements in one transaction; roll it back if `check` raises at its end."""

        def once() -> None:
            with self._database.writing() as connection:
                for statement, values in statements:
                    connection.run(statement, values)
                check(connection)

        self._refuse_if_not_ours()
        try:
            self._patience.repeated(once)
        except TakenError:
            return  # an earlier attempt succeeded before the connection broke

    def _column(self, query: str, values: Sequence[object]) -> list[bytes]:
        def once() -> list[bytes]:
            with self._database.lent() as connection:
                rows = connection.rows(query, values)  # in a damaged one, it may be text
                return [d.encode() if isinstance(d, str) else bytes(d) for (d,) in rows]

        self._refuse_if_not_ours()
        return self._patience.repeated(once)


def _check_whole(connection: Connection, entry: Entry) -> None:
    """Check that all pieces of a slot exist.

    Raises:
        StoreError: a sweep removed them, because it took them for the rest of an interrupted put.
    """
    [(there,)] = connection.rows(PIECES_OF, [entry.slot])
    if there != pieces_of(entry.metadata):
        raise StoreError(
            "a sweep removed the pieces that this put had written: the put took longer than a day, or one"
            " of the two clocks is wrong; correct the clocks and repeat the put"
        )
