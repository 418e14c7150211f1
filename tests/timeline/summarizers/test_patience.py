"""A summariser that hangs does not hang the agent: it counts as one that failed."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from blocks import SummaryPrepared, text_of
from render import Policy, Summary, extractive
from tests._builders import blocks_in, events_of
from tests._sizes import PATIENCE, until
from timeline import SummaryFailedError, SummaryRequest, Timeline

from .talk import SMALL, SYSTEM, TASK, aopened, atalk, opened, talk

QUICK = attrs.evolve(SMALL, summary_seconds=0.05)


@attrs.define
class Hanging:
    """Answers when it is released, and then as the extractive one does."""

    released: threading.Event = attrs.field(factory=threading.Event)
    asked: int = 0
    name: str = "a model"

    def __call__(self, request: SummaryRequest) -> Summary:
        self.asked += 1
        assert self.released.wait(PATIENCE)
        return extractive(request.range)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.released.set()


def compacted(timeline: Timeline, turns: int = 8) -> bool:
    """Whether the summary of a compaction is degraded."""
    talk(timeline, turns, len(blocks_in(timeline)))
    rendered = timeline.compact(system=SYSTEM)
    assert rendered.violations == ()
    assert timeline.view.compaction
    return timeline.view.compaction.event.summary.degraded


def test_what_takes_too_long_has_failed(hanging: Hanging, caplog: pytest.LogCaptureFixture) -> None:
    timeline = opened(None, summarizer=hanging, policy=QUICK)
    with caplog.at_level(logging.WARNING, "foldline"):
        assert compacted(timeline)
    assert "gave no answer in 0.05 seconds; it is left behind" in caplog.text
    assert timeline.view.state.summaries == 1, "it counts as a call"
    assert not events_of(timeline, SummaryPrepared)


def test_while_it_hangs_it_is_not_asked_again(hanging: Hanging) -> None:
    """Neither time nor threads are spent on it at every compaction; once it is back, it is asked."""
    policy = attrs.evolve(SMALL, summary_seconds=0.5)
    timeline = opened(None, summarizer=hanging, policy=policy)
    before = threading.active_count()
    assert all(compacted(timeline) for _ in range(4))
    assert hanging.asked == 1
    assert threading.active_count() <= before + 1
    hanging.released.set()
    [left] = [thread for thread in threading.enumerate() if thread.name == "foldline-summary"]
    left.join(PATIENCE)
    until(lambda: not compacted(timeline))
    assert hanging.asked > 1


def test_a_policy_may_want_to_be_told(hanging: Hanging) -> None:
    policy = attrs.evolve(QUICK, on_failure="raise")
    timeline = opened(None, summarizer=hanging, policy=policy)
    with pytest.raises(SummaryFailedError, match=r"no summary in 0\.05 seconds"):
        compacted(timeline)


def test_a_preparation_that_hangs_is_given_up_too(hanging: Hanging) -> None:
    policy = attrs.evolve(QUICK, prepare_ratio=0.1)
    with opened(None, summarizer=hanging, policy=policy) as timeline:
        talk(timeline, 3)
        timeline.render(system=SYSTEM)
        assert compacted(timeline)
        assert hanging.asked == 1


def test_what_it_raises_is_told_as_it_is() -> None:
    def broken(_: SummaryRequest) -> Summary:
        raise TimeoutError("the proxy said so")

    policy = attrs.evolve(SMALL, on_failure="raise")
    with pytest.raises(TimeoutError, match="the proxy said so"):
        compacted(opened(None, summarizer=broken, policy=policy))


def test_a_summariser_may_use_the_timeline_that_waits_for_it() -> None:
    """From the thread that it is called in, too."""
    read: list[str] = []

    def curious(request: SummaryRequest) -> Summary:
        read.append(text_of(timeline.read("ar:t1.user.prompt")))
        return extractive(request.range)

    timeline = opened(None, summarizer=curious)
    assert not compacted(timeline)
    assert read == [TASK]


def test_without_a_limit_it_is_called_where_the_timeline_is() -> None:
    """As long as it takes, in the caller's own thread: there it may even read the timeline."""
    policy = attrs.evolve(SMALL, summary_seconds=0)
    threads: list[threading.Thread] = []

    def reading(request: SummaryRequest) -> Summary:
        threads.append(threading.current_thread())
        timeline.read("ar:t1.user.prompt")
        return extractive(request.range)

    timeline = opened(None, summarizer=reading, policy=policy)
    assert not compacted(timeline)
    assert threads == [threading.current_thread()]


# Async.


async def acompacted(**options: Any) -> bool:
    timeline = await aopened(None, **{"policy": QUICK, **options})
    await atalk(timeline, 8)
    rendered = await timeline.compact(system=SYSTEM)
    assert rendered.violations == ()
    assert timeline.view.compaction
    return timeline.view.compaction.event.summary.degraded


def test_an_async_summariser_is_given_up_as_well() -> None:
    cancelled: list[bool] = []

    async def waiting(_: SummaryRequest) -> Summary:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        raise AssertionError

    assert asyncio.run(acompacted(summarizer=waiting))
    assert cancelled == [True]


def test_one_that_will_not_be_cancelled_is_left_behind() -> None:
    release = asyncio.Event()

    async def stubborn(request: SummaryRequest) -> Summary:
        while not release.is_set():
            try:
                await asyncio.wait_for(release.wait(), PATIENCE)
            except asyncio.CancelledError:
                continue
        return extractive(request.range)

    async def play() -> bool:
        try:
            return await acompacted(summarizer=stubborn)
        finally:
            release.set()

    assert asyncio.run(play())


def test_a_plain_function_does_not_hold_up_the_loop(hanging: Hanging) -> None:
    """It runs in a thread, so that others go on, and no exit waits for it."""
    policy = attrs.evolve(SMALL, summary_seconds=PATIENCE)

    async def release() -> None:
        await asyncio.to_thread(until, lambda: hanging.asked)
        hanging.released.set()

    async def play() -> bool:
        degraded, _ = await asyncio.gather(acompacted(summarizer=hanging, policy=policy), release())
        return degraded

    assert not asyncio.run(play())


def test_an_async_summariser_may_use_its_timeline_too() -> None:
    async def play() -> bool:
        async def curious(request: SummaryRequest) -> Summary:
            await timeline.read("ar:t1.user.prompt")
            return extractive(request.range)

        timeline = await aopened(None, summarizer=curious, policy=SMALL)
        await atalk(timeline, 8)
        await timeline.compact(system=SYSTEM)
        assert timeline.view.compaction
        return timeline.view.compaction.event.summary.degraded

    assert not asyncio.run(play())


def test_there_is_a_limit_by_default() -> None:
    assert 0 < Policy().summary_seconds < 3600
