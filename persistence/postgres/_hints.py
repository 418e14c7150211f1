"""Sends and receives notifications of appends, so that watchers hear of all processes; see `_listen` and `_notify`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from blocks import TimelineId
from persistence._store import Wake, Watchers
from persistence.postgres._database import PostgresDatabase
from persistence.postgres._listen import Listener
from persistence.postgres._notify import Notifier

if TYPE_CHECKING:
    from psycopg import Connection


class Hints(Watchers):
    """The watchers of one store, with its listener and its notifier."""

    def __init__(
        self, database: PostgresDatabase, connect: "Callable[[], Connection[Any]]"
    ) -> None:
        super().__init__()
        self.listener = Listener(connect, self)
        self._notifier = Notifier(database, lambda: self.listener.pid)

    def add(self, timeline_id: TimelineId, wake: Wake) -> Callable[[], None]:
        end = super().add(timeline_id, wake)

        def ended() -> None:
            end()
            self.listener.changed()

        self.listener.start()
        return ended

    def grown(self, timeline_id: TimelineId) -> None:
        super().grown(timeline_id)
        self._notifier.appended(timeline_id)

    def closed(self) -> None:
        super().closed()
        self._notifier.close()
        self.listener.close()
