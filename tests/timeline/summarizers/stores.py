"""Stores that fail when told to."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from blocks import Event, LogWindow, Recorded, StoreError, TimelineId
from persistence import EventStore, TimelineInfo


@attrs.define
class Watched(EventStore):
    """A store that calls `on_step` with a name before and after every operation."""

    inner: EventStore
    on_step: Callable[[str], None]

    def _watched(self, name: str, do: Callable[[], Any]) -> Any:
        self.on_step(f"before {name}")
        result = do()
        self.on_step(f"after {name}")
        return result

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        kinds = "+".join(type(event).__name__ for event in events)
        version: int = self._watched(
            f"append {kinds}",
            lambda: self.inner.append(timeline_id, events, expected_version=expected_version),
        )
        return version

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        return self.inner.load_window(timeline_id)

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        return self.inner.read(timeline_id, after=after, limit=limit)

    def head(self, timeline_id: TimelineId) -> int:
        return self.inner.head(timeline_id)

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        return self.inner.fork(source, target, event, at=at)

    def list(self) -> Sequence[TimelineInfo]:
        return self.inner.list()

    def close(self) -> None:
        self.inner.close()


@attrs.define
class Failing:
    """Raises once, at the first operation whose name contains `name`."""

    name: str
    left: int = 1

    def __call__(self, operation: str) -> None:
        if self.left and self.name in operation:
            self.left -= 1
            raise StoreError(f"failed {operation}")


@attrs.define
class Dying:
    """Ends the process at the n-th operation, as a kill would: nothing is cleaned up."""

    step: int
    seen: int = 0

    def __call__(self, _: str) -> None:
        self.seen += 1
        if self.seen == self.step:
            os._exit(9)
