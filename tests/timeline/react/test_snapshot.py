"""Feature 000-7: all sub-agents of one delegation get the same immutable snapshot."""

import asyncio
from typing import Any

import pytest

from blocks import VersionConflictError
from persistence import MemoryStore
from tests._practice import Practice
from timeline import AsyncTimeline, ReactAgent, Timeline
from timeline.fake_provider import Call, Reply

from .both import read_file

SYSTEM = "You read files."


def as_bytes(rendered: Any) -> tuple[str, str]:
    return str(rendered.request()), rendered.content_hash


def busy(timeline: Timeline) -> None:
    timeline.note("Do not write.")
    for part in range(40):
        timeline.user(f"Part {part}. " + "word " * 200)
        timeline.render(system=SYSTEM)


def test_a_snapshot_renders_the_same_bytes_whatever_the_parent_does() -> None:
    """Feature 000-7."""
    timeline = Timeline.open("parent", window=6_000)
    timeline.user("Find the fault.")
    timeline.render(system=SYSTEM)
    snapshot = timeline.snapshot()
    first = as_bytes(snapshot.render(system=SYSTEM))
    busy(timeline)
    assert timeline.view.compaction is not None
    assert as_bytes(snapshot.render(system=SYSTEM)) == first
    assert snapshot.version < timeline.version


def test_a_snapshot_decides_and_writes_nothing() -> None:
    timeline = Timeline.open("parent", window=6_000)
    timeline.user("Find the fault. " + "word " * 9_000)
    snapshot = timeline.snapshot()
    before = timeline.version, timeline.flush()
    rendered = snapshot.render(system=SYSTEM)
    assert rendered.decisions == ()
    assert (timeline.version, timeline.flush()) == before


def test_forks_of_one_snapshot_begin_with_the_same_bytes() -> None:
    """Feature 000-7."""
    timeline = Timeline.open("parent")
    timeline.user("Find the fault.")
    snapshot = timeline.snapshot()
    forks = [snapshot.fork("one")]
    busy(timeline)
    forks.append(snapshot.fork("two"))
    one, two = (as_bytes(fork.render(system=SYSTEM)) for fork in forks)
    assert one == two == as_bytes(snapshot.render(system=SYSTEM))
    with pytest.raises(VersionConflictError):
        snapshot.fork("one")


def test_an_async_timeline_has_the_same_snapshots() -> None:
    async def run() -> None:
        timeline = await AsyncTimeline.open("parent")
        await timeline.user("Find the fault.")
        snapshot = await timeline.snapshot()
        await timeline.note("More.")
        fork = await snapshot.fork("one")
        assert as_bytes(await fork.render()) == as_bytes(snapshot.render())

    asyncio.run(run())


def test_sub_agents_of_one_delegation_start_from_the_same_request(practice: Practice) -> None:
    """Feature 000-7: the second starts after the parent has gone on."""
    look = Reply(text="I look.", calls=[Call("read_file", {"path": "a"})])
    server = practice.serve(responder=[look, Reply(text="Done.")] * 3)
    client, store = practice.client(server), MemoryStore()
    with Timeline.open("parent", store=store) as parent:
        ReactAgent(parent, client, tools=[read_file], system=SYSTEM).run("Look.")
        snapshot = parent.snapshot()
        for name in ("one", "two"):
            child = snapshot.fork(name)
            ReactAgent(child, client, tools=[read_file], system=SYSTEM).run("Look again.")
            parent.note(f"{name} is on its way")
    first, second = server.requests[2], server.requests[4]
    assert first == second
    assert not server.refused
