"""When the model fails: one more try, then the extractive summary; the agent's loop sees nothing.

Rows 002-8, 000-4, 000-5, 004-6 and 004-8 of the features.
"""

import asyncio
from collections.abc import Callable
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
)
from persistence import MemoryStore
from render import Rendered
from tests._builders import Clock, Ids, events_of, request_bytes, text_in
from tests._practice import Practice
from tests._sizes import until
from tests._table import for_each
from timeline import SummaryFailedError, Timeline
from timeline.fake_provider import Call, FakeServer, Fault, Reply

from .talk import SMALL, SYSTEM, TASK, aopened, atalk, opened, talk

HUGE = {"facts": [f"fact number {n} of very many" for n in range(4000)]}
FAULTS: dict[str, Callable[[], Fault]] = {
    "error": Fault.server_error,
    "rate limit": Fault.rate_limit,
    "overloaded": Fault.overloaded,
    "prompt too long": Fault.overflow,
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


@pytest.mark.parametrize("name", FAULTS)
def test_one_failure_is_mended_by_one_more_try(
    name: str, practice: Practice, server: FakeServer
) -> None:
    timeline = opened(practice.client(server))
    talk(timeline, 8)
    server.fault(FAULTS[name]())
    compacted(timeline)
    assert not degraded(timeline)
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", FAULTS)
def test_two_failures_leave_the_extractive_summary(
    name: str, practice: Practice, server: FakeServer
) -> None:
    timeline = opened(practice.client(server))
    talk(timeline, 8)
    server.fault(FAULTS[name](), FAULTS[name]())
    compacted(timeline)
    assert degraded(timeline)
    assert len(server.requests) == 2, "bounded"
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
