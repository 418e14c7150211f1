"""A log that went back (a restored backup, a standby without the newest commits) is noticed, and never continued silently.

Here the log is removed and a part of it is written again, which every store can do.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from blocks import Event, LogRewoundError, TimelineId
from persistence import EventStore, MemoryStore
from persistence.testing import RecordingStore
from tests._builders import open_timeline, response, text
from tests._table import for_each
from tests.persistence.contract import STORES, new_store, prompt
from timeline import AsyncTimeline, Timeline

NAME = TimelineId("talk")
Change = Callable[[EventStore, Sequence[Event]], object]


@pytest.fixture(params=[*STORES, "own"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    """Each store, and one from outside that has only what the base class gives it."""
    found = Plain(MemoryStore()) if request.param == "own" else new_store(request, tmp_path)
    yield found
    found.close()


class Plain(RecordingStore):
    def tip(self, timeline_id: TimelineId) -> tuple[int, str]:
        return EventStore.tip(self, timeline_id)


def rewritten(store: EventStore, events: Sequence[Event]) -> None:
    """The log is now this."""
    store.remove(NAME)
    if events:
        store.append(NAME, events, expected_version=0)


def others(count: int) -> list[Event]:
    return [prompt(f"other {n}") for n in range(count)]


WAYS: dict[str, Change] = {
    "it lacks the newest event": lambda s, log: rewritten(s, log[:-1]),
    "it lacks several": lambda s, log: rewritten(s, log[:2]),
    "it is gone": lambda s, _: rewritten(s, []),
    "it grew to the same length": lambda s, log: rewritten(s, [*log[:-2], *others(2)]),
    "it grew past what was seen": lambda s, log: rewritten(s, [*log[:-1], *others(3)]),
    "it grew far past it": lambda s, log: rewritten(s, [*log[:-1], *others(600)]),
}
USES: dict[str, Callable[[Timeline], object]] = {
    "render": lambda t: t.render(),
    "append": lambda t: t.steer("and"),
    "record": lambda t: t.record(response(text("late"), id="m9")),
    "read": lambda t: t.read("ar:t1.user.prompt"),
    "events": lambda t: t.events(),
    "compact": lambda t: t.compact(),
    "fork": lambda t: t.fork("next"),
}


def begun(store: EventStore) -> Timeline:
    if store.head(NAME):
        store.remove(NAME)
    timeline = open_timeline(store=store)
    for n in range(3):
        timeline.user(f"question {n}")
        timeline.record(response(text(f"answer {n}"), id=f"m{n}"))
    return timeline


def log_of(store: EventStore) -> list[Event]:
    return [event for _, event in store.read(NAME)]


@for_each("way", WAYS)
def test_no_operation_goes_on(store: EventStore, way: str) -> None:
    timeline = begun(store)
    seen = timeline.version
    WAYS[way](store, log_of(store))
    there = log_of(store)
    for use in USES.values():
        with pytest.raises(LogRewoundError, match=f"up to version {seen}.*open the timeline again"):
            use(timeline)
    with pytest.raises(LogRewoundError) as caught:
        timeline.render()
    assert (caught.value.seen, caught.value.found) == (seen, store.head(NAME))
    assert log_of(store) == there, "nothing was appended"
    timeline.close()


def test_the_timeline_that_is_opened_again_goes_on_from_what_is_there(store: EventStore) -> None:
    timeline = begun(store)
    rewritten(store, log_of(store)[:-1])
    with pytest.raises(LogRewoundError):
        timeline.render()
    lost = timeline.view.entries[-1].source
    again = open_timeline(store=store)
    assert lost not in [entry.source for entry in again.view.entries]
    again.record(response(text("answer 2, anew"), id="m2"))
    assert again.version == store.head(NAME)


def test_the_same_log_that_is_put_back_is_no_loss(store: EventStore) -> None:
    timeline = begun(store)
    rewritten(store, log_of(store))
    timeline.user("and on")
    assert store.head(NAME) == timeline.version


@for_each("way", WAYS)
def test_an_async_timeline_notices_it_too(way: str) -> None:
    async def run() -> None:
        store = MemoryStore()
        async with await AsyncTimeline.open("talk", store=store, counter="estimate") as timeline:
            for n in range(3):
                await timeline.user(f"question {n}")
            WAYS[way](store, log_of(store))
            with pytest.raises(LogRewoundError):
                await timeline.render()
            with pytest.raises(LogRewoundError):
                await timeline.user("more")

    asyncio.run(run())


@for_each("way", WAYS)
def test_who_follows_is_told(store: EventStore, way: str) -> None:
    timeline = begun(store)
    with timeline.follow(timeout=0) as events:
        log = [next(events)[1] for _ in range(timeline.version)]
        WAYS[way](store, log)
        with pytest.raises(LogRewoundError):
            next(events)
        with pytest.raises(LogRewoundError):
            next(events)


def test_who_goes_on_following_after_a_version_that_is_gone_is_told(store: EventStore) -> None:
    timeline = begun(store)
    log, seen = log_of(store), timeline.version
    rewritten(store, log[:-2])
    again = open_timeline(store=store).follow(after=seen, timeout=0)
    with again, pytest.raises(LogRewoundError):
        next(again)


def test_a_follower_passes_an_event_that_fills_a_page(store: EventStore) -> None:
    """The events after it are read together with it, and it may leave no room for them."""
    timeline = open_timeline(store=store)
    with timeline.follow(timeout=0) as events:
        for content in ("go", "x" * 5_000_000, "and on"):
            timeline.steer(content)
            assert next(events)[0] == timeline.version


def test_what_another_writer_forgot_did_not_go_back(store: EventStore) -> None:
    if not store.can_remove or isinstance(store, Plain):
        pytest.skip("it forgets nothing")
    timeline = begun(store)
    with timeline.follow(timeout=0) as events:
        for _ in range(timeline.version):
            next(events)
        other = open_timeline(store=store)
        other.user("more " * 200)
        other.compact()
        with suppress(LogRewoundError):
            other.retain("forget")
        assert next(events)[0] == timeline.version + 1 or store.kept(NAME).forgotten
    timeline.user("and on")
    assert timeline.version == store.head(NAME)
