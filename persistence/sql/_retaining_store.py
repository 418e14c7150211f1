"""The part of a store in a database that removes events; see `persistence.EventStore.trim`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from os import PathLike

from blocks import Event, TimelineId
from persistence._log import is_sound
from persistence._retention import Kept, Removed
from persistence.sql._database import Database
from persistence.sql._past import Past
from persistence.sql._patience import Answer, Patience
from persistence.sql._removal import Removal
from persistence.sql._trims import all_trimmed, trimmed_of


class SQLRetaining(ABC):
    """The methods of `EventStore` that remove events, for a store in a database."""

    _database: Database
    _patience: Patience

    @abstractmethod
    def _refuse_if_not_ours(self) -> None:
        """Raise a `ClosedError` if the store is closed or belongs to another process."""

    @abstractmethod
    def _settled(self, write: Callable[[], Answer]) -> Answer:
        """The result of `write`, repeated until its outcome is known."""

    @property
    def _past(self) -> Past:
        return Past(self._database)

    @property
    def _removal(self) -> Removal:
        return Removal(self._database, self._settled)

    def kept(self, timeline_id: TimelineId) -> Kept:
        """Which part of a timeline is left."""

        def found() -> Kept:
            with self._database.lent() as connection:
                return trimmed_of(connection, timeline_id).kept

        self._refuse_if_not_ours()
        return self._patience.repeated(found) if is_sound(timeline_id) else Kept()

    def trimmed(self) -> Mapping[TimelineId, Kept]:
        """Which part is left of each timeline from which events were removed."""

        def found() -> Mapping[TimelineId, Kept]:
            with self._database.lent() as connection:
                return all_trimmed(connection)

        self._refuse_if_not_ours()
        return self._patience.repeated(found)

    def trim(
        self,
        timeline_id: TimelineId,
        before: int,
        *,
        archive: "str | PathLike[str] | None" = None,
    ) -> Removed:
        """Remove or archive the oldest events."""
        return self._removal.trim(timeline_id, before, archive)

    def rewrite(self, timeline_id: TimelineId, events: Mapping[int, Event]) -> Removed:
        """Replace the events of these versions."""
        return self._removal.rewrite(timeline_id, events)

    def remove(self, timeline_id: TimelineId) -> Removed:
        """Remove a timeline."""
        return self._removal.remove(timeline_id)

    def erase(self) -> tuple[str, ...]:
        """Overwrite removed content in the files of the database."""
        self._refuse_if_not_ours()
        return self._database.erase()
