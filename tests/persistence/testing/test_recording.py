"""A recorded history tells a log from what is none; stores that lie are found out."""

import re
from collections.abc import Callable, Sequence

import pytest

from blocks import Event, StoreError, TimelineId, VersionConflictError
from persistence import MemoryStore
from persistence._log import Attempts
from persistence.testing import RecordingStore
from tests.persistence.contract import T, many, prompt


class Losing(MemoryStore):
    """Acknowledges what it does not keep."""

    def append(self, timeline_id: TimelineId, events: Sequence[Event], **more: int) -> int:
        if events[0].id == "lost":
            return more["expected_version"] + 1
        return super().append(timeline_id, events, expected_version=more["expected_version"])


class Stale(MemoryStore):
    """Remembers the first version that it was asked for."""

    seen: int | None = None

    def head(self, timeline_id: TimelineId) -> int:
        if self.seen is None:
            self.seen = super().head(timeline_id)
        return self.seen


class Sly(MemoryStore):
    """Says that it refuses, and writes."""

    def append(self, timeline_id: TimelineId, events: Sequence[Event], **more: int) -> int:
        found = super().append(timeline_id, events, expected_version=more["expected_version"])
        if events[0].id == "sly":
            raise VersionConflictError(expected=0, found=found)
        return found


class Doubling(MemoryStore):
    """Writes what is repeated once more."""

    def append(self, timeline_id: TimelineId, events: Sequence[Event], **more: int) -> int:
        version = max(more["expected_version"], super().head(timeline_id))
        self._attempts = Attempts()
        return super().append(timeline_id, events, expected_version=version)


def lose(store: RecordingStore) -> None:
    store.append(T, [prompt("lost")], expected_version=0)
    store.append(T, [prompt("kept")], expected_version=0)


def look_back(store: RecordingStore) -> None:
    store.head(T)
    store.append(T, many(2), expected_version=0)
    store.head(T)


def be_refused(store: RecordingStore) -> None:
    with pytest.raises(VersionConflictError):
        store.append(T, [prompt("sly")], expected_version=0)


def repeat(store: RecordingStore) -> None:
    store.append(T, [prompt("a")], expected_version=0)
    store.append(T, [prompt("a")], expected_version=0)


@pytest.mark.parametrize(
    ("store", "use", "told"),
    [
        (Losing(), lose, r"\('lost',\) was acknowledged at 1, where the log has \('kept',\)"),
        (Stale(), look_back, "saw version 0 after another had seen 2"),
        (Sly(), be_refused, "sly is in the log at 1, and its append was refused"),
        (Doubling(), repeat, "in the log more than once"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_store_that_lies_is_found_out(
    store: MemoryStore, use: Callable[[RecordingStore], None], told: str
) -> None:
    recording = RecordingStore(store)
    use(recording)
    assert [what for what in recording.problems() if re.search(told, what)]


class Unsure(MemoryStore):
    """Appends, and says that it does not know."""

    is_unsure: bool = False

    def append(self, timeline_id: TimelineId, events: Sequence[Event], **more: int) -> int:
        found = super().append(timeline_id, events, expected_version=more["expected_version"])
        if self.is_unsure:
            self.is_unsure = False
            raise StoreError("the connection was lost")
        return found


def test_an_append_that_nobody_knows_of_may_have_happened_and_may_be_repeated() -> None:
    store = Unsure()
    recording = RecordingStore(store)
    store.is_unsure = True
    with pytest.raises(StoreError):
        recording.append(T, [prompt("a")], expected_version=0)
    recording.append(T, [prompt("b")], expected_version=1)
    assert recording.append(T, [prompt("a")], expected_version=0) == 1
    assert recording.problems() == []


class Slow(MemoryStore):
    """While it looks up a version, something happens."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def head(self, timeline_id: TimelineId) -> int:
        version = super().head(timeline_id)
        self.meanwhile()
        return version


def test_calls_that_overlap_may_have_happened_in_either_order() -> None:
    """Who began before an append ended may have seen the log without it, and say so later."""
    store = Slow()
    recording = RecordingStore(store)
    store.meanwhile = lambda: recording.append(T, many(1), expected_version=0)
    assert recording.head(T) == 0
    store.meanwhile = lambda: None
    assert recording.head(T) == 1
    assert recording.problems() == []
