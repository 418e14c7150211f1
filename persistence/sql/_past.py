"""Reads events that are no longer in the rows: from archives, if they are there.

The rows are always read first.  If they begin later than expected, the rows and what was removed (`Kept`) are read
here together, in one snapshot, which contains a removal as a whole or not at all.  An archive file may be replaced
after that; then everything is read again.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import attrs

from blocks import DamagedStoreError, LogWindow, TimelineId
from persistence._retention import Kept
from persistence.sql._database import Connection, Database
from persistence.sql._rows import (
    PAGE_BYTES,
    RANGE,
    VERSION_MAX,
    Row,
    events_of,
    without_gaps,
)
from persistence.sql._trims import Trimmed, head_of, trimmed_of

STEP: Final = 64
"""Events to read at first, while their size is unknown."""

_Found = TypeVar("_Found")


@attrs.frozen
class Past:
    """Reads logs whose oldest events are not in the tables."""

    _database: Database

    def page(self, timeline: TimelineId, after: int, limit: int) -> Sequence[Row]:
        """The result of `read_bytes`.

        Raises:
            ForgottenError: the first of these events was forgotten.
            DamagedStoreError: an event is missing.
        """

        def page(connection: Connection, trimmed: Trimmed) -> Sequence[Row]:
            trimmed.kept.refuse_forgotten(timeline, after + 1)
            found, size, last = list[Row](), 0, after + limit
            while size < PAGE_BYTES and (begin := after + len(found)) < last:
                rows = rows_of(connection, timeline, trimmed.kept, begin, min(begin + STEP, last))
                if not rows:
                    break
                found += rows
                size += sum(len(payload) for _, payload in rows)
            return found

        return self._steady(timeline, page)

    def window(self, timeline: TimelineId) -> LogWindow:
        """The window, if it begins in an archive.

        Raises:
            ForgottenError: it begins among forgotten events.
            DamagedStoreError: an event is missing.
        """

        def window(connection: Connection, trimmed: Trimmed) -> LogWindow:
            head = head_of(connection, timeline, trimmed)
            after = head.window_start() - 1
            trimmed.kept.refuse_forgotten(timeline, after + 1)
            rows = rows_of(connection, timeline, trimmed.kept, after, VERSION_MAX)
            return head.window(events_of(timeline, rows))

        return self._steady(timeline, window)

    def _steady(
        self, timeline: TimelineId, read: Callable[[Connection, Trimmed], _Found]
    ) -> _Found:
        """The result of `read`, repeated if an archive was replaced meanwhile."""
        trimmed = Trimmed()
        while True:
            try:
                with self._database.snapshot() as connection:
                    trimmed = trimmed_of(connection, timeline)
                    return read(connection, trimmed)
            except DamagedStoreError:
                with self._database.lent() as connection:
                    if trimmed_of(connection, timeline) == trimmed:
                        raise


def rows_of(
    connection: Connection, timeline: TimelineId, kept: Kept, after: int, last: int
) -> Sequence[Row]:
    """Versions and payloads of the events after version `after`, up to `last`, from archives and from the table.

    Raises:
        DamagedStoreError: an event is missing.
    """
    from persistence._archive import archived_rows

    found: list[Row] = []
    for archive in kept.within(after + 1, last):
        rows = archived_rows(archive, after + 1, last)
        found += [(version, payload.encode()) for version, payload in rows]
    if last >= kept.first:
        found += connection.rows(RANGE, [timeline, max(after, kept.removed), last])
    return without_gaps(timeline, after, found)
