"""Who watches a timeline in a store on a server, and how a test waits for that."""

from collections.abc import Callable
from threading import Event

import attrs

from blocks import TimelineId
from persistence import PostgresStore
from tests._sizes import PATIENCE, until
from tests.persistence.contract import T

LONG = PATIENCE
"""Seconds after which a test that waits in vain fails."""


@attrs.define
class Woken:
    """Who watches a timeline."""

    store: PostgresStore
    name: TimelineId = T
    count: int = 0
    event: Event = attrs.field(factory=Event)
    end: Callable[[], None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.end = self.store.watch(self.name, self.wake)

    def wake(self) -> None:
        self.count += 1
        self.event.set()

    def settle(self) -> "Woken":
        """Until the store hears what others append."""
        until(self.store.hears_others)
        self.event.clear()
        return self

    def waits(self, seconds: float = LONG) -> bool:
        found = self.event.wait(seconds)
        self.event.clear()
        return found
