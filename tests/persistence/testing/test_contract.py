"""The contract of stores is public, and a store that breaks a promise does not pass it."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import attrs
import pytest

from blocks import Event, LogWindow, Recorded, TimelineId, VersionConflictError
from persistence import MemoryStore, TimelineInfo
from persistence.testing import StoreContract
from tests._table import for_each

PROMISES = {name for name in dir(StoreContract) if name.startswith("test_")}


class Deaf(MemoryStore):
    """Appends at any version."""

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        try:
            return super().append(timeline_id, events, expected_version=expected_version)
        except VersionConflictError as error:
            return super().append(timeline_id, events, expected_version=error.found)


class Forgetful(MemoryStore):
    """Takes the repetition of an append for a conflict."""

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        if events and (found := self.head(timeline_id)) > expected_version >= 0:
            raise VersionConflictError(expected=expected_version, found=found)
        return super().append(timeline_id, events, expected_version=expected_version)


class Torn(MemoryStore):
    """Appends one event at a time."""

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        for version, event in enumerate(events, expected_version):
            super().append(timeline_id, [event], expected_version=version)
        return expected_version + len(events)


class Hoarding(MemoryStore):
    """Loads every event, whatever was folded."""

    def load_window(self, timeline_id: TimelineId) -> LogWindow:
        window = super().load_window(timeline_id)
        return LogWindow(version=window.version, events=tuple(self.read(timeline_id)))


class Backward(MemoryStore):
    """Reads the newest event first."""

    def read(
        self, timeline_id: TimelineId, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Recorded]:
        return super().read(timeline_id, after=after, limit=limit)[::-1]


class Jumbled(MemoryStore):
    """Lists timelines as they come."""

    def list(self) -> Sequence[TimelineInfo]:
        return super().list()[::-1]


class Overwriting(MemoryStore):
    """Forks onto a timeline that exists."""

    def fork(self, source: TimelineId, target: TimelineId, event: Event, *, at: int) -> int:
        if source != target:
            self._logs.pop(target, None)
        return super().fork(source, target, event, at=at)


class Undead(MemoryStore):
    """Works on after it was closed."""

    def close(self) -> None:
        pass


class Blind(MemoryStore):
    """Has an index that finds nothing."""

    def block_index(self) -> Any:
        return self

    def candidates(self, *_: object) -> Sequence[object]:
        return ()

    related = turns = candidates


class Wishful(MemoryStore):
    """Claims more events than it has."""

    def list(self) -> Sequence[TimelineInfo]:
        return [attrs.evolve(info, version=info.version + 1) for info in super().list()]


class Hasty(MemoryStore):
    """Appends in two steps, between which an interrupt may come."""

    def append(
        self, timeline_id: TimelineId, events: Sequence[Event], *, expected_version: int
    ) -> int:
        version = super().append(timeline_id, events[:1], expected_version=expected_version)
        rest = events[1:]
        return super().append(timeline_id, rest, expected_version=version) if rest else version


BREAKS = {
    Deaf: "test_the_second_writer_is_told_what_was_found",
    Forgetful: "test_a_retry_of_what_is_already_there_succeeds_and_writes_nothing",
    Torn: "test_an_append_with_one_event_that_cannot_be_stored_stores_none",
    Hoarding: "test_the_window_starts_at_the_cut_of_the_latest_compaction",
    Backward: "test_what_goes_in_comes_out_in_order",
    Jumbled: "test_the_list_names_all_timelines_oldest_first",
    Overwriting: "test_a_fork_never_lands_on_an_existing_timeline",
    Undead: "test_close_may_be_repeated_and_everything_else_is_refused",
    Blind: "test_search_finds_what_a_scan_finds",
    Hasty: "test_an_interrupted_append_is_there_whole_or_not_at_all",
    Wishful: "test_a_sound_store_is_found_to_be_sound",
}


@for_each("broken", BREAKS, ids=lambda broken: broken.__name__)
def test_a_store_that_breaks_a_promise_does_not_pass(broken: type[MemoryStore]) -> None:
    """It fails the test of that promise; the others are told by `broken_promises`, see below."""
    promise = getattr(StoreContract(), BREAKS[broken])
    with closing(MemoryStore()) as sound:
        promise(sound)
    with pytest.raises(Exception), closing(broken()) as store:  # noqa: B017, PT011 -- as it fails
        promise(store)


def test_a_store_that_keeps_every_promise_passes_and_each_test_has_a_new_one() -> None:
    made: list[MemoryStore] = []

    def make() -> MemoryStore:
        made.append(MemoryStore())
        return made[-1]

    assert StoreContract.broken_promises(make) == {}
    assert len(made) == len(PROMISES)
    assert all(store._closed for store in made)


def test_what_a_promise_was_broken_by_is_told() -> None:
    told = StoreContract.broken_promises(Undead)
    assert set(told.values()) == {"AssertionError: ClosedError is not raised"}


def test_the_contract_needs_no_pytest() -> None:
    code = "import sys, persistence.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
