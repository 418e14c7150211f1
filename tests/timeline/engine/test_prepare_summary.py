"""A summary is prepared while the agent works, so that the compaction itself waits for no model.

Row B-8 of the features.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest

from blocks import RangeCompacted, SummaryPrepared
from persistence import MemoryStore
from render import Json
from tests._builders import Ids, events_of, request_bytes
from tests._practice import Practice
from tests._sizes import PATIENCE
from tests.timeline.summarizers.stores import Failing, Watched
from tests.timeline.summarizers.talk import MODEL, SMALL, SYSTEM, aopened, atalk, opened, talk
from timeline import Hooks, Timeline
from timeline._flow_drivers import run
from timeline.fake_provider import FakeServer, Fault, Reply, summary_reply

SOON = attrs.evolve(SMALL, prepare_ratio=0.7)
TURNS = 12
"""Past the soft threshold, and well before the trigger."""


@pytest.fixture
def server(practice: Practice) -> FakeServer:
    return practice.serve()


@attrs.define
class Gate:
    """A responder that answers when it is told to."""

    asked: threading.Event = attrs.field(factory=threading.Event)
    opened: threading.Event = attrs.field(factory=threading.Event)

    def __call__(self, request: Json) -> Reply:
        self.asked.set()
        assert self.opened.wait(PATIENCE)
        return summary_reply(request)


@contextmanager
def closing(gate: Gate) -> Iterator[None]:
    """Whatever happens, nobody is left waiting."""
    try:
        yield
    finally:
        gate.opened.set()


@contextmanager
def preparing(practice: Practice, **changes: Any) -> Iterator[tuple[Timeline, Gate, FakeServer]]:
    """A timeline whose summary is being written until the gate is opened."""
    gate = Gate()
    with closing(gate):
        server = practice.serve(responder=gate)
        timeline = opened(practice.client(server), policy=SOON, **changes)
        talk(timeline, TURNS)
        timeline.render(system=SYSTEM)
        assert gate.asked.wait(PATIENCE)
        yield timeline, gate, server


def prepared(client: Any, **changes: Any) -> Timeline:
    """A timeline for which a summary was just prepared."""
    timeline = opened(client, **{"policy": SOON, **changes})
    talk(timeline, TURNS)
    timeline.render(system=SYSTEM)
    settle(timeline)
    return timeline


def settle(timeline: Timeline) -> None:
    """Wait for what is on its way."""
    run(timeline._operations.preparation.finish())


def until_compacted(timeline: Timeline, first: int = TURNS) -> None:
    for number in range(first, first + 20):
        talk(timeline, 1, number)
        rendered = timeline.render(system=SYSTEM)
        assert rendered.violations == ()
        if any(isinstance(event, RangeCompacted) for event in rendered.decisions):
            settle(timeline)
            return
    pytest.fail("no compaction")


def written_by(timeline: Any) -> str:
    event = timeline.view.compaction.event
    return event.provenance.model if event.provenance and not event.summary.degraded else ""


def test_below_the_soft_threshold_nobody_is_asked(practice: Practice, server: FakeServer) -> None:
    timeline = opened(practice.client(server), policy=SOON)
    talk(timeline, 3)
    timeline.render(system=SYSTEM)
    settle(timeline)
    assert not server.requests


def test_it_is_prepared_once_and_used_at_the_trigger(
    practice: Practice, server: FakeServer
) -> None:
    timeline = prepared(practice.client(server))
    assert len(server.requests) == 1
    timeline.render(system=SYSTEM)
    settle(timeline)
    assert len(server.requests) == 1, "once"
    until_compacted(timeline)
    assert len(server.requests) == 1, "without another call"
    assert written_by(timeline) == MODEL
    [fact] = events_of(timeline, SummaryPrepared)
    [event] = events_of(timeline, RangeCompacted)
    assert event.cut == fact.cut
    assert event.provenance == fact.provenance
    assert timeline.view.state.summaries == 1


def test_the_agent_goes_on_appending_meanwhile(practice: Practice) -> None:
    store = MemoryStore()
    with preparing(practice, store=store) as (timeline, gate, server):
        before = timeline.version
        talk(timeline, 1, TURNS)
        timeline.note("Written meanwhile.")
        rendered = timeline.render(system=SYSTEM)
        assert timeline.version > before
        assert "Written meanwhile." in str(rendered.messages)
        gate.opened.set()
        until_compacted(timeline, TURNS + 1)
        assert len(server.requests) == 1
        assert written_by(timeline) == MODEL
        live = request_bytes(timeline.render(system=SYSTEM))
        timeline.close()
        again = opened(None, store=store, policy=SOON)
        assert request_bytes(again.render(system=SYSTEM)) == live


def test_a_compaction_that_is_due_waits_rather_than_pay_twice(practice: Practice) -> None:
    with preparing(practice) as (timeline, gate, server):
        talk(timeline, 4, TURNS)
        threading.Timer(0.2, gate.opened.set).start()
        timeline.render(system=SYSTEM)
        assert written_by(timeline) == MODEL
        assert len(server.requests) == 1


def test_a_hide_inside_the_range_makes_it_stale(practice: Practice, server: FakeServer) -> None:
    """What somebody hid on purpose does not come back through an older summary."""
    timeline = prepared(practice.client(server))
    timeline.hide("tc:t2.toolu_1.result", replacement="[a secret was here]")
    until_compacted(timeline)
    assert len(server.requests) == 2
    [fact, _] = events_of(timeline, SummaryPrepared)
    assert timeline.view.compaction
    assert timeline.view.compaction.event.provenance != fact.provenance


def test_hidden_and_shown_again_it_is_the_same_range(
    practice: Practice, server: FakeServer
) -> None:
    timeline = prepared(practice.client(server))
    timeline.hide("tc:t2.toolu_1.result")
    timeline.restore("tc:t2.toolu_1.result")
    until_compacted(timeline)
    assert len(server.requests) == 1


def test_a_hide_behind_the_cut_changes_nothing(practice: Practice, server: FakeServer) -> None:
    timeline = prepared(practice.client(server))
    talk(timeline, 1, TURNS)
    timeline.hide(f"tc:t{TURNS + 1}.toolu_{TURNS}.result")
    until_compacted(timeline, TURNS + 1)
    assert len(server.requests) == 1


def test_it_survives_a_restart(practice: Practice, server: FakeServer) -> None:
    store = MemoryStore()
    prepared(practice.client(server), store=store).close()
    again = opened(practice.client(server), store=store, policy=SOON, ids=Ids("again"))
    until_compacted(again)
    assert len(server.requests) == 1
    assert written_by(again) == MODEL


def test_close_waits_for_what_is_on_its_way(practice: Practice) -> None:
    store = MemoryStore()
    with preparing(practice, store=store) as (timeline, gate, _):
        threading.Timer(0.2, gate.opened.set).start()
        timeline.close()
        assert events_of(opened(None, store=store), SummaryPrepared)


@pytest.mark.parametrize("failure", ["model", "store"])
def test_a_preparation_that_fails_harms_nobody(
    failure: str, practice: Practice, server: FakeServer
) -> None:
    store = Watched(MemoryStore(), Failing("before append SummaryPrepared"))
    changes: dict[str, Any] = {"store": store} if failure == "store" else {}
    if failure == "model":
        server.fault(Fault.server_error(), Fault.refusal())
    timeline = prepared(practice.client(server), **changes)
    assert len(server.requests) == (2 if failure == "model" else 1)
    timeline.render(system=SYSTEM)
    settle(timeline)
    until_compacted(timeline)
    assert written_by(timeline) == MODEL
    assert len(server.requests) == (3 if failure == "model" else 1), "no second call in vain"


def test_a_spent_cap_prepares_nothing(practice: Practice, server: FakeServer) -> None:
    policy = attrs.evolve(SOON, summaries_max=0)
    prepared(practice.client(server), policy=policy)
    assert not server.requests


def test_many_threads_prepare_one(practice: Practice, server: FakeServer) -> None:
    """000-6: safe under threads."""
    timeline = opened(practice.client(server), policy=SOON)
    talk(timeline, TURNS)
    barrier = threading.Barrier(8)

    def render() -> None:
        barrier.wait()
        timeline.render(system=SYSTEM)

    threads = [threading.Thread(target=render) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settle(timeline)
    assert len(server.requests) == 1


def test_hooks_hear_of_a_prepared_compaction_as_of_any_other(
    practice: Practice, server: FakeServer
) -> None:
    heard: list[str] = []
    hooks = Hooks(
        on_before_compaction=[lambda told: heard.append(f"before {told.before_tokens > 0}")],
        on_after_compaction=[lambda told: heard.append(f"after {told.compacted_tokens > 0}")],
    )
    until_compacted(prepared(practice.client(server), hooks=hooks))
    assert heard == ["before True", "after True"]


# For asyncio.


def test_async_prepared_meanwhile_and_used(practice: Practice) -> None:
    gate = Gate()

    async def play(server: FakeServer) -> None:
        async with practice.aclient(server) as client:
            timeline = await aopened(client, policy=SOON)
            await atalk(timeline, TURNS)
            await timeline.render(system=SYSTEM)
            assert await asyncio.to_thread(gate.asked.wait, PATIENCE)
            await atalk(timeline, 1, TURNS)
            gate.opened.set()
            await atalk(timeline, 3, TURNS + 1)
            await timeline.render(system=SYSTEM)
            assert written_by(timeline) == MODEL
            assert len(server.requests) == 1
            await timeline.close()

    with closing(gate):
        asyncio.run(play(practice.serve(responder=gate)))


def test_async_close_waits(practice: Practice, server: FakeServer) -> None:
    async def play() -> None:
        async with practice.aclient(server) as client:
            store = MemoryStore()
            server.fault(Fault.slow(0.2))
            timeline = await aopened(client, policy=SOON, store=store)
            await atalk(timeline, TURNS)
            await timeline.render(system=SYSTEM)
            await timeline.close()
            again = await aopened(client, store=store)
            assert any(isinstance(e, SummaryPrepared) for _, e in await again.events())

    asyncio.run(play())


def test_async_whoever_waits_may_be_cancelled_and_the_summary_still_arrives(
    practice: Practice,
) -> None:
    gate = Gate()

    async def play(server: FakeServer) -> None:
        async with practice.aclient(server) as client:
            timeline = await aopened(client, policy=SOON)
            await atalk(timeline, TURNS)
            await timeline.render(system=SYSTEM)
            assert await asyncio.to_thread(gate.asked.wait, PATIENCE)
            await atalk(timeline, 4, TURNS)
            due = asyncio.create_task(timeline.render(system=SYSTEM))
            await asyncio.sleep(0.05)  # wherever it waits then
            due.cancel()
            with pytest.raises(asyncio.CancelledError):
                await due
            gate.opened.set()
            await timeline.render(system=SYSTEM)
            assert written_by(timeline) == MODEL
            assert len(server.requests) == 1
            await timeline.close()

    with closing(gate):
        asyncio.run(play(practice.serve(responder=gate)))


def test_async_a_preparation_that_fails_harms_nobody(
    practice: Practice, server: FakeServer
) -> None:
    async def play() -> None:
        async with practice.aclient(server) as client:
            server.fault(Fault.server_error(), Fault.cut())
            timeline = await aopened(client, policy=SOON)
            await atalk(timeline, TURNS)
            await timeline.render(system=SYSTEM)
            await timeline.compact(system=SYSTEM)
            assert written_by(timeline) == MODEL
            assert len(server.requests) == 3
            await timeline.close()

    asyncio.run(play())
