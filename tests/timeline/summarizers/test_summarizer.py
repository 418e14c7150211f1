"""When the model fails: one more try, then the extractive summary; the agent's loop sees nothing.

Rows 002-8, 000-4, 000-5, 004-6 and 004-8 of the features."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from blocks import (
    CompactionSkipped,
    RangeCompacted,
    SummaryPrepared,
    SummaryReplaced,
    SummaryRequested,
    text_of,
)
from persistence import MemoryStore
from render import Policy, Rendered, Summary, extractive
from tests._builders import Clock, Ids, blocks_in, events_of, request_bytes, text_in
from tests._practice import Practice
from tests._sizes import PATIENCE, until
from tests._table import for_each
from timeline import SummaryFailedError, SummaryRequest, Timeline
from timeline.fake_provider import Call, FakeServer, Fault, Reply

from .talk import SMALL, SYSTEM, TASK, aopened, atalk, opened, talk

HUGE = {"facts": [f"fact number {n} of very many" for n in range(4000)]}
FAULTS: dict[str, Callable[[], Fault]] = {
    "error": Fault.server_error,
    "rate limit": Fault.rate_limit,
    "overloaded": Fault.overloaded,
    "cut connection": Fault.cut,
    "malformed body": Fault.garbled,
    "refusal": Fault.refusal,
    "empty": Fault.empty,
    "cut off": Fault.max_tokens,
    "blank": lambda: Fault(reply=Reply(text=" \n")),
    "no JSON": lambda: Fault(reply=Reply(text="I would rather not.")),
    "half a JSON": lambda: Fault(reply=Reply(text='{"task": "Reconcile", "facts": ["one')),
    "wrong types": lambda: Fault(reply=Reply(text='{"facts": 1, "add": "task", "close": 3}')),
    "nothing in it": lambda: Fault(reply=Reply(text="{}")),
    "larger than its source": lambda: Fault(reply=Reply(text=str(HUGE).replace("'", '"'))),
    "a tool call": lambda: Fault(reply=Reply(calls=[Call("read", {"path": "x"})])),
}
BODIES: dict[str, Any] = {
    "nothing": None,
    "a text": "Bad Gateway",
    "a list": [],
    "an empty object": {},
    "no content": {"content": None},
    "content of another type": {"content": "text", "stop_reason": "end_turn"},
    "content that is no object": {"content": [None, 3]},
    "text that is none": {"content": [{"type": "text", "text": None}]},
    "usage that is none": {"content": [], "usage": "none"},
    "stop reason that is none": {"content": [], "stop_reason": ["end_turn"]},
    "lone surrogates": {"content": [{"type": "text", "text": '{"task": "\ud800"}'}]},
}


@pytest.fixture
def server(practice: Practice) -> FakeServer:
    return practice.serve()


def compacted(timeline: Timeline) -> Rendered:
    """A request that a compaction made, whatever the summariser did; valid, with the task in it."""
    rendered = timeline.compact(system=SYSTEM)
    assert rendered.violations == ()
    assert TASK in text_in(rendered)
    assert timeline.view.compaction
    return rendered


def degraded(timeline: Timeline) -> bool:
    compaction = timeline.view.compaction
    assert compaction
    return compaction.event.summary.degraded


@for_each("name", FAULTS)
def test_one_failure_is_mended_by_one_more_try(
    name: str, practice: Practice, server: FakeServer
) -> None:
    timeline = opened(practice.client(server))
    talk(timeline, 8)
    before = len(server.requests)
    server.fault(FAULTS[name]())
    compacted(timeline)
    assert not degraded(timeline)
    assert len(server.requests) == before + 2


@for_each("name", FAULTS)
def test_two_failures_leave_the_extractive_summary(
    name: str, practice: Practice, server: FakeServer
) -> None:
    timeline = opened(practice.client(server))
    talk(timeline, 8)
    before = len(server.requests)
    server.fault(FAULTS[name](), FAULTS[name]())
    compacted(timeline)
    assert degraded(timeline)
    assert len(server.requests) == before + 2, "bounded"
    assert not server.refused
    assert not events_of(timeline, SummaryPrepared), "what failed is not kept"


def test_async_the_same_holds(practice: Practice, server: FakeServer) -> None:
    async def fail(name: str) -> None:
        async with practice.aclient(server) as client:
            timeline = await aopened(client)
            await atalk(timeline, 8)
            before = len(server.requests)
            server.fault(FAULTS[name](), FAULTS[name]())
            rendered = await timeline.compact(system=SYSTEM)
            assert rendered.violations == ()
            assert timeline.view.compaction
            assert timeline.view.compaction.event.summary.degraded
            assert len(server.requests) == before + 2

    for name in FAULTS:
        asyncio.run(fail(name))


@for_each("name", BODIES)
def test_whatever_a_client_returns_it_is_tried_once_more_and_then_given_up(name: str) -> None:
    asked: list[dict[str, Any]] = []

    def create(**request: Any) -> Any:
        asked.append(request)
        return BODIES[name]

    timeline = opened(SimpleNamespace(messages=SimpleNamespace(create=create)))
    talk(timeline, 8)
    compacted(timeline)
    assert degraded(timeline)
    assert len(asked) == 2


def test_a_slow_model_is_given_up_at_the_clients_timeout(
    practice: Practice, server: FakeServer
) -> None:
    timeline = opened(practice.client(server, timeout=0.3))
    talk(timeline, 8)
    server.fault(Fault.slow(20), Fault.slow(20))
    compacted(timeline)
    assert degraded(timeline)
    assert len(server.requests) <= 2, "what is given up early may never have arrived"


def test_nobody_listening_is_a_failure_like_any_other(practice: Practice) -> None:
    server = practice.serve()
    client = practice.client(server)
    server.stop()
    timeline = opened(client)
    talk(timeline, 8)
    compacted(timeline)
    assert degraded(timeline)


# Cancelled.


def test_cancelled_during_the_call_nothing_is_half_done(
    practice: Practice, server: FakeServer
) -> None:
    async def play() -> None:
        async with practice.aclient(server) as client:
            store = MemoryStore()
            timeline = await aopened(client, store=store)
            await atalk(timeline, 8)
            version = timeline.version
            server.fault(Fault.slow(20))
            task = asyncio.create_task(timeline.compact(system=SYSTEM))
            await asyncio.to_thread(until, lambda: server.requests)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert timeline.view.compaction is None
            done = [type(event) for _, event in await timeline.events(after=version)]
            assert done == [SummaryRequested], "it was called, whatever comes of it"
            await atalk(timeline, 1, 8)
            rendered = await timeline.compact(system=SYSTEM)
            assert rendered.violations == ()
            assert timeline.view.compaction
            assert not timeline.view.compaction.event.summary.degraded
            await timeline.close()
            again = await aopened(client, store=store)
            assert request_bytes(await again.render(system=SYSTEM)) == request_bytes(rendered)

    asyncio.run(play())


# Upgrading.


def fail_once(server: FakeServer) -> None:
    server.fault(Fault.server_error(), Fault.server_error())


def test_a_degraded_summary_is_replaced_later_and_live_equals_reopened(
    practice: Practice, server: FakeServer
) -> None:
    store, clock = MemoryStore(), Clock()
    timeline = opened(practice.client(server), store=store, clock=clock)
    talk(timeline, 8)
    fail_once(server)
    compacted(timeline)
    assert degraded(timeline)
    talk(timeline, 1, 8)
    assert timeline.upgrade_summary(system=SYSTEM)
    assert not degraded(timeline)
    [replaced] = events_of(timeline, SummaryReplaced)
    assert replaced.provenance.model == timeline.view.compaction.event.provenance.model  # type: ignore[union-attr]
    live = request_bytes(timeline.render(system=SYSTEM))
    timeline.close()
    again = opened(practice.client(server), store=store, clock=clock)
    assert request_bytes(again.render(system=SYSTEM)) == live
    assert not again.upgrade_summary(system=SYSTEM), "there is nothing left to mend"


def test_an_upgrade_that_fails_changes_nothing(practice: Practice, server: FakeServer) -> None:
    timeline = opened(practice.client(server))
    talk(timeline, 8)
    fail_once(server)
    rendered = compacted(timeline)
    fail_once(server)
    assert not timeline.upgrade_summary(system=SYSTEM)
    assert request_bytes(timeline.render(system=SYSTEM)) == request_bytes(rendered)


def test_an_upgrade_counts_as_a_call_and_is_never_paid_for_twice(
    practice: Practice, server: FakeServer
) -> None:
    timeline = opened(practice.client(server))
    talk(timeline, 8)
    fail_once(server)
    compacted(timeline)
    assert timeline.upgrade_summary(system=SYSTEM)
    assert timeline.view.state.summaries == 3, "two tries in vain, and this one"
    paid = len(server.requests)
    timeline.expand()
    compacted(timeline)
    assert len(server.requests) == paid
    assert not degraded(timeline)


# The cap, and the policies.


def test_model_calls_are_capped_and_compaction_goes_on_without(
    practice: Practice, server: FakeServer
) -> None:
    """000-5: a cap on summary calls per session; it survives a restart."""
    store = MemoryStore()
    policy = attrs.evolve(SMALL, summaries_max=2)
    for round_ in range(4):
        ids = Ids(f"{round_}.")  # as in another process: an id is given once
        timeline = opened(practice.client(server), store=store, policy=policy, ids=ids)
        talk(timeline, 8, 8 * round_)
        compacted(timeline)
        assert degraded(timeline) == (round_ >= 2)
        timeline.close()
    assert len(server.requests) == 2
    assert len(events_of(opened(None, store=store), RangeCompacted)) == 4


def test_failed_calls_count_against_the_cap(practice: Practice, server: FakeServer) -> None:
    """A model that is asked in vain at every compaction would have no cap at all."""
    policy = attrs.evolve(SMALL, summaries_max=3)
    timeline = opened(practice.client(server), policy=policy)
    for round_ in range(6):
        talk(timeline, 8, 8 * round_)
        fail_once(server)
        compacted(timeline)
    assert len(server.requests) <= 2 * 3


def test_truncate_says_how_much_was_dropped_and_about_what(
    practice: Practice, server: FakeServer
) -> None:
    """000-4, 004-6: truncation with a placeholder when the model fails."""
    timeline = opened(practice.client(server), policy=attrs.evolve(SMALL, on_failure="truncate"))
    talk(timeline, 8)
    fail_once(server)
    shown = text_in(compacted(timeline))
    assert degraded(timeline)
    assert timeline.view.compaction
    folded = timeline.view.compaction.event.summary.digest.blocks
    assert f"[{folded} earlier blocks were left out without a summary" in shown
    assert "Reconcile the ledger" in shown


def test_truncate_does_not_lose_what_earlier_summaries_hold(practice: Practice) -> None:
    server = practice.serve(responder=lambda _: Reply(text='{"constraints": ["No db-2, ever."]}'))
    policy = attrs.evolve(SMALL, on_failure="truncate")
    timeline = opened(practice.client(server), policy=policy)
    talk(timeline, 8)
    compacted(timeline)
    talk(timeline, 8, 8)
    fail_once(server)
    assert "No db-2, ever." in text_in(compacted(timeline))
    assert degraded(timeline)


def test_raise_is_the_only_policy_that_raises(practice: Practice, server: FakeServer) -> None:
    timeline = opened(practice.client(server), policy=attrs.evolve(SMALL, on_failure="raise"))
    talk(timeline, 8)
    version = timeline.version
    fail_once(server)
    with pytest.raises(SummaryFailedError):
        timeline.compact(system=SYSTEM)
    assert timeline.view.compaction is None
    done = [event for _, event in timeline.events(after=version)]
    assert sum(event.calls for event in done if isinstance(event, SummaryRequested)) == len(
        server.requests
    )
    assert {type(event) for event in done} == {SummaryRequested}
    compacted(timeline)
    assert not degraded(timeline)


def test_after_failures_in_a_row_it_is_not_tried_at_every_step(
    practice: Practice, server: FakeServer
) -> None:
    """A model that is down is not asked at every step, nor is the timeline compacted at every step."""
    timeline = opened(practice.client(server))
    for number in range(40):
        talk(timeline, 1, number)
        server.fault(*[Fault.server_error()] * 2)
        rendered = timeline.render(system=SYSTEM)
        assert rendered.fits
    compactions = len(events_of(timeline, RangeCompacted))
    assert 2 <= compactions <= 6
    assert len(server.requests) <= 2 * compactions
    assert not events_of(timeline, CompactionSkipped)


# A summariser that hangs does not hang the agent: it counts as one that failed.


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


def talked(timeline: Timeline, turns: int = 8) -> bool:
    """Whether the summary of a compaction is degraded."""
    talk(timeline, turns, len(blocks_in(timeline)))
    rendered = timeline.compact(system=SYSTEM)
    assert rendered.violations == ()
    assert timeline.view.compaction
    return timeline.view.compaction.event.summary.degraded


def test_what_takes_too_long_has_failed(hanging: Hanging, caplog: pytest.LogCaptureFixture) -> None:
    timeline = opened(None, summarizer=hanging, policy=QUICK)
    with caplog.at_level(logging.WARNING, "foldline"):
        assert talked(timeline)
    assert "gave no answer in 0.05 seconds; it is left behind" in caplog.text
    assert timeline.view.state.summaries == 1, "it counts as a call"
    assert not events_of(timeline, SummaryPrepared)


def test_while_it_hangs_it_is_not_asked_again(hanging: Hanging) -> None:
    """Neither time nor threads are spent on it at every compaction; once it is back, it is asked."""
    policy = attrs.evolve(SMALL, summary_seconds=0.5)
    timeline = opened(None, summarizer=hanging, policy=policy)
    before = threading.active_count()
    assert all(talked(timeline) for _ in range(4))
    assert hanging.asked == 1
    assert threading.active_count() <= before + 1
    hanging.released.set()
    [left] = [thread for thread in threading.enumerate() if thread.name == "foldline-summary"]
    left.join(PATIENCE)
    until(lambda: not talked(timeline))
    assert hanging.asked > 1


def test_a_policy_may_want_to_be_told(hanging: Hanging) -> None:
    policy = attrs.evolve(QUICK, on_failure="raise")
    timeline = opened(None, summarizer=hanging, policy=policy)
    with pytest.raises(SummaryFailedError, match=r"no summary in 0\.05 seconds"):
        talked(timeline)


def test_a_preparation_that_hangs_is_given_up_too(hanging: Hanging) -> None:
    policy = attrs.evolve(QUICK, prepare_ratio=0.1)
    with opened(None, summarizer=hanging, policy=policy) as timeline:
        talk(timeline, 3)
        timeline.render(system=SYSTEM)
        assert talked(timeline)
        assert hanging.asked == 1


def test_what_it_raises_is_told_as_it_is() -> None:
    def broken(_: SummaryRequest) -> Summary:
        raise TimeoutError("the proxy said so")

    policy = attrs.evolve(SMALL, on_failure="raise")
    with pytest.raises(TimeoutError, match="the proxy said so"):
        talked(opened(None, summarizer=broken, policy=policy))


def test_a_summariser_may_use_the_timeline_that_waits_for_it() -> None:
    """From the thread that it is called in, too."""
    read: list[str] = []

    def curious(request: SummaryRequest) -> Summary:
        read.append(text_of(timeline.read("ar:t1.user.prompt")))
        return extractive(request.range)

    timeline = opened(None, summarizer=curious)
    assert not talked(timeline)
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
    assert not talked(timeline)
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
