"""The part of a DuckDB store that removes events; see `persistence.EventStore.trim`."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from blocks import Event, TimelineId
from persistence._retention import Kept, Removed
from persistence.duckdb._retention import Retention

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class RetainingStore(ABC):
    """The methods of `EventStore` that remove events, for a store with a file and a `Retention`."""

    path: Path
    _retention: Retention
    _connection: "DuckDBPyConnection"

    @abstractmethod
    def _refuse_if_not_ours(self) -> None:
        """Raise a `ClosedError` if the store is closed or belongs to another process."""

    def kept(self, timeline_id: TimelineId) -> Kept:
        """Which part of a timeline is left."""
        self._refuse_if_not_ours()
        return self._retention.kept(timeline_id)

    def trimmed(self) -> Mapping[TimelineId, Kept]:
        """Which part is left of each timeline from which events were removed."""
        self._refuse_if_not_ours()
        return self._retention.trimmed()

    def trim(
        self,
        timeline_id: TimelineId,
        before: int,
        *,
        archive: "str | os.PathLike[str] | None" = None,
    ) -> Removed:
        """Remove or archive the oldest events."""
        self._refuse_if_not_ours()
        return self._retention.trim(timeline_id, before, archive)

    def rewrite(self, timeline_id: TimelineId, events: Mapping[int, Event]) -> Removed:
        """Replace the events of these versions."""
        self._refuse_if_not_ours()
        return self._retention.rewrite(timeline_id, events)

    def remove(self, timeline_id: TimelineId) -> Removed:
        """Remove a timeline."""
        self._refuse_if_not_ours()
        return self._retention.remove(timeline_id)

    def erase(self) -> tuple[str, ...]:
        """Replace the file by a copy without the removed content."""
        self._refuse_if_not_ours()
        self._retention.erase(self._connection, self.path)
        return ()
