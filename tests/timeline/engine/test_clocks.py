"""A clock that goes backwards, stands still or jumps: order is that of versions, and nothing is lost."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from blocks import StoreError, TimelineId
from persistence import (
    ArtifactDescription,
    EventStore,
    Requester,
    open_store,
    verify,
)
from tests._builders import open_timeline, request_bytes, response, text, tool_use
from tests.persistence.contract import STORES, T, many, new_store
from timeline import Timeline

DAY = 86_400.0
NOW = 1.8e9
JUMPS = (0.0, -DAY, -NOW, 0.0, 400 * DAY, 1e12, 1.0, -1.0, 0.0)
READER = Requester("me")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    with closing(new_store(request, tmp_path)) as store:
        yield store


def jumping() -> Callable[[], float]:
    """Another time at each call."""
    calls = iter(range(10**9))
    return lambda: NOW + JUMPS[next(calls) // 3 % len(JUMPS)]


def opened(store: EventStore, clock: Any) -> Timeline:
    return open_timeline("talk", store=store, window=3000, clock=clock)


def test_a_timeline_whose_clock_jumps_keeps_its_order_and_renders_the_same_reopened(
    store: EventStore,
) -> None:
    timeline, other = opened(store, jumping()), opened(store, lambda: 5.0)
    said: list[str] = []
    with other.follow(timeout=0) as follower:
        seen = [*follower]
    for n in range(25):
        said.append(f"step {n} " + "word " * 60)
        timeline.user(said[-1])
        timeline.record(response(tool_use(f"c{n}", "look"), id=f"r{n}"))
        timeline.tool_result(f"c{n}", "found " * 40)
        timeline.record(response(text("done"), id=f"s{n}"))
        assert timeline.render().violations == ()
        seen += [*other.follow(after=len(seen), timeout=0)]
    log = store.read(TimelineId("talk"), limit=10_000)
    assert [version for version, _ in seen] == list(range(1, len(log) + 1))
    assert seen == log
    again = opened(store, lambda: NOW)
    timeline._operations.engine.clock = lambda: NOW
    assert request_bytes(again.render()) == request_bytes(timeline.render())
    assert [info.id for info in store.list()] == ["talk"]
    assert verify(store).ok


def test_artifacts_expire_by_the_clock_of_who_asks_and_come_back_when_it_was_wrong(
    store: EventStore,
) -> None:
    now = [NOW]
    artifacts = store.artifacts(clock=lambda: now[0])
    about = ArtifactDescription(timeline=T, expires_at=NOW + DAY)
    artifact = artifacts.put(b"abc", about)
    now[0] = NOW + 2 * DAY
    assert artifacts.list(READER) == []
    now[0] = NOW - 2 * DAY
    assert artifacts.read(artifact, READER) == b"abc"
    assert artifacts.sweep() == 0
    assert [record.action for record in artifacts.audit()] == ["put", "list", "read"]
    assert verify(store).ok


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_sweep_whose_clock_is_far_ahead_never_leaves_an_artifact_without_content(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """To it, what another process is just putting looks like what a killed put has left."""
    is_file = kind == "sqlite"
    where = f"sqlite:///{tmp_path}/a.sqlite" if is_file else request.getfixturevalue("url")
    with closing(open_store(where)) as one, closing(open_store(where)) as other:
        one.append(T, many(1), expected_version=0)
        ahead = other.artifacts(clock=lambda: NOW + 3 * DAY)

        def content() -> Iterator[bytes]:
            yield b"x" * 2**20
            yield b"y"
            ahead.sweep()

        about, mine = ArtifactDescription(timeline=T), one.artifacts(clock=lambda: NOW)
        with pytest.raises(StoreError, match="correct the clocks and repeat the put"):
            mine.put_stream(content(), about)
        assert mine.list(READER) == []
        assert mine.read(mine.put(b"x" * 2**20 + b"y", about), READER)
        assert verify(one).ok
