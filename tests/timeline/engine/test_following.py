"""Following a timeline: what is there, then what comes; no event is missed, doubled or out of order."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import ClosedError, MisuseError, Recorded, StoreError, TimelineId
from persistence import EventStore, MemoryStore
from persistence.testing import RecordingStore
from tests._builders import open_timeline
from tests._sizes import PATIENCE
from tests._table import for_each
from tests.persistence.contract import STORES, many, new_store
from timeline import AsyncTimeline, Timeline
from timeline._flow_drivers import Doze, RunBlocking
from timeline.engine._following import Following

LONG = PATIENCE
NEVER = 100 * LONG
"""Between two looks of who has to be woken."""
QUICK = (0.001, 0.01)


class Silent(RecordingStore):
    """A store that tells nobody anything, as when another process appends to it."""

    def watch(self, timeline_id: TimelineId, wake: Callable[[], None]) -> Callable[[], None]:
        return EventStore.watch(self, timeline_id, wake)


@pytest.fixture(params=[*STORES, "silent"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    is_silent = request.param == "silent"
    found = Silent(MemoryStore()) if is_silent else new_store(request, tmp_path)
    yield found
    found.close()


def versions(events: Sequence[Recorded]) -> list[int]:
    return [version for version, _ in events]


# ---------------------------------------------------------------- what is given


def test_what_is_there_comes_first_and_then_what_comes(store: EventStore) -> None:
    timeline, other = (open_timeline(store=store) for _ in range(2))
    timeline.user("go")
    with timeline.follow(interval=QUICK) as events:
        assert versions([next(events), next(events)]) == [1, 2]
        later = threading.Timer(0.05, lambda: other.steer("and on"))
        later.start()
        version, event = next(events)
        assert (version, event) == other.events(after=2)[0]
        assert events.version == 3
        later.join()
    assert list(events) == [], "it is closed at the end of the block"


def test_it_goes_on_after_the_version_that_is_given() -> None:
    timeline = open_timeline()
    for n in range(5):
        timeline.steer(f"step {n}")
    assert versions(list(timeline.follow(after=3, timeout=0))) == [4, 5]
    assert list(timeline.follow(after=5, timeout=0)) == []


def test_a_timeline_that_has_not_begun_is_waited_for(store: EventStore) -> None:
    reader, writer = (open_timeline(store=store) for _ in range(2))
    with reader.follow(interval=QUICK) as events, ThreadPoolExecutor(1) as pool:
        first = pool.submit(next, events)
        writer.user("go")
        assert first.result(LONG)[0] == 1


def test_nothing_is_missed_and_nothing_doubled_while_many_append(store: EventStore) -> None:
    def write(worker: int) -> None:
        timeline = open_timeline(store=store)
        for n in range(15):
            timeline.user(f"{worker}.{n}")

    def read() -> list[Recorded]:
        found: list[Recorded] = []
        with open_timeline(store=store).follow(interval=QUICK) as events:
            for recorded in events:
                found.append(recorded)
                if len(found) == 4 * 15 * 2:
                    return found
        raise AssertionError("it ended")

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        list(pool.map(write, range(4)))
        seen = [reader.result(LONG) for reader in readers]
    log = store.read(TimelineId("talk"))
    assert seen == [log, log]


def test_async_followers_see_the_same_and_hold_no_thread() -> None:
    """More of them than the loop has threads: they would stop the appends that they wait for."""

    async def everything() -> list[list[int]]:
        store = MemoryStore()
        timeline = await AsyncTimeline.open("talk", store=store)

        async def read() -> list[int]:
            found: list[int] = []
            async with timeline.follow(interval=(LONG, LONG)) as events:
                async for version, _ in events:
                    found.append(version)
                    if version == 20:
                        break
            return found

        readers = [asyncio.create_task(read()) for _ in range(64)]
        for n in range(20):
            await timeline.steer(f"step {n}")
        return await asyncio.wait_for(asyncio.gather(*readers), LONG)

    assert asyncio.run(everything()) == [list(range(1, 21))] * 64


@given(pages=st.lists(st.integers(1, 700), max_size=4), after=st.integers(0, 900))
def test_pages_make_no_difference(pages: list[int], after: int) -> None:
    store, name = MemoryStore(), TimelineId("talk")
    timeline, head = open_timeline(store=store), 0
    for size in pages:
        head = store.append(name, many(size, first=head + 1), expected_version=head)
    after = min(after, head)
    assert list(timeline.follow(after=after, timeout=0)) == timeline.events(after=after)


# ---------------------------------------------------------------- how it ends


@pytest.mark.parametrize("ending", ["follower", "timeline"])
def test_closing_ends_who_waits(store: EventStore, ending: str) -> None:
    timeline = open_timeline(store=store)
    timeline.user("go")
    events = timeline.follow(interval=(NEVER, NEVER))
    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(list, events)
        threading.Timer(0.05, events.close if ending == "follower" else timeline.close).start()
        assert versions(seen.result(LONG)) == [1, 2]
    events.close()


def test_a_timeline_that_owns_its_store_ends_it_cleanly(tmp_path: Path) -> None:
    timeline = Timeline.open("talk", store=tmp_path / "talks.duckdb", counter="estimate")
    timeline.user("go")
    events = timeline.follow(interval=QUICK)
    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(list, events)
        timeline.close()
        assert versions(seen.result(LONG)) in ([], [1, 2])


def test_a_store_that_is_closed_by_somebody_else_is_an_error(store: EventStore) -> None:
    events = open_timeline(store=store).follow(interval=QUICK)
    threading.Timer(0.05, store.close).start()
    with pytest.raises(ClosedError):
        next(events)


def test_a_timeout_ends_it_and_what_came_starts_it_anew() -> None:
    store = MemoryStore()
    waits: list[float] = []
    following = Following(
        engine=open_timeline(store=store)._operations.engine,
        version=0,
        timeout=1.0,
        interval=(0.1, 0.4),
    )

    def append() -> None:
        if len(waits) == 2:
            store.append(TimelineId("talk"), [*many(1)], expected_version=0)

    assert stepped(following, waits, append) == (1, many(1)[0])
    assert waits == [0.1, 0.2], "longer each time"
    assert stepped(following, waits, append) is None
    assert waits[2:] == [0.1, 0.2, 0.4, pytest.approx(0.3)], "up to the longest, 1.0 in all"


def stepped(
    following: Following, waits: list[float], meanwhile: Callable[[], None]
) -> Recorded | None:
    """Drive it by hand, with a clock of our own: each wait takes as long as it may."""
    flow, answer = following.next(), None
    while True:
        try:
            effect = flow.send(answer)
        except StopIteration as stop:
            found: Recorded | None = stop.value
            return found
        if isinstance(effect, RunBlocking):
            answer = effect.do()
        else:
            assert isinstance(effect, Doze)
            waits.append(effect.wait.args[0])  # type: ignore[attr-defined]
            answer = waits[-1]
            meanwhile()


def test_a_store_that_hears_of_everything_is_asked_as_a_precaution_while_it_does() -> None:
    class Hearing(MemoryStore):
        hears = True

        def hears_others(self) -> bool:
            return self.hears

    store, waits = Hearing(), list[float]()
    engine = open_timeline(store=store)._operations.engine
    following = Following(engine=engine, version=0, timeout=22.0, interval=(0.1, 0.4))

    def lose() -> None:
        store.hears = len(waits) < 6

    assert stepped(following, waits, lose) is None
    assert waits[:6] == [0.4, 0.8, 1.6, 3.2, 4.0, 4.0], "ten times as rarely"
    assert set(waits[6:-1]) == {0.4}, "until it hears no more"


def test_a_task_that_is_cancelled_leaves_a_follower_that_goes_on() -> None:
    async def all_of_it() -> list[int]:
        timeline = await AsyncTimeline.open("talk", store=MemoryStore())
        events = timeline.follow(interval=(LONG, LONG))
        waiting = asyncio.create_task(anext(events))
        await asyncio.sleep(0.01)  # wherever it waits then
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await timeline.user("go")
        found = [(await anext(events))[0], (await anext(events))[0]]
        await timeline.close()
        return found + [version async for version, _ in events]

    assert asyncio.run(all_of_it()) == [1, 2]


def test_after_an_error_it_goes_on_where_it_was() -> None:
    class Shaky(MemoryStore):
        is_away = False

        def read(self, *args: Any, **more: Any) -> Sequence[Recorded]:
            if self.is_away:
                self.is_away = False
                raise StoreError("no answer")
            return super().read(*args, **more)

    store = Shaky()
    timeline = open_timeline(store=store)
    timeline.user("go")
    events = timeline.follow()
    assert next(events)[0] == 1
    timeline.steer("on")
    assert next(events)[0] == 2
    store.is_away = True
    with pytest.raises(StoreError):
        next(events)
    assert next(events)[0] == 3


def test_who_is_dropped_is_not_woken_any_more() -> None:
    store = MemoryStore()
    timeline = open_timeline(store=store)
    for _ in range(3):
        timeline.follow()
    with timeline.follow():
        pass
    assert not store._watchers._wakes


@for_each(
    "wrong",
    [
        {"after": -1},
        {"after": 1.5},
        {"timeout": -1},
        {"timeout": "long"},
        {"timeout": True},
        {"interval": 1.0},
        {"interval": (0, 1)},
        {"interval": (1, float("inf"))},
    ],
    ids=str,
)
def test_what_nobody_can_mean_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(MisuseError, match=rf"follow\(\): {next(iter(wrong))}"):
        open_timeline().follow(**wrong)


def test_a_closed_timeline_cannot_be_followed() -> None:
    timeline = open_timeline()
    timeline.close()
    with pytest.raises(ClosedError):
        timeline.follow()
