"""The same range is never paid for twice: not after a failed commit, a reopen, a fork, an undo."""

from typing import Any

import attrs
import pytest

from blocks import BlocksHidden, RangeCompacted, StoreError, SummaryPrepared
from persistence import MemoryStore
from render import Json
from tests._builders import Ids, events_of, request_bytes
from tests._practice import Practice
from timeline import Timeline
from timeline.fake_provider import FakeServer, Reply, summary_reply

from .stores import Failing, Watched
from .talk import SMALL, SYSTEM, opened, summary_requests, talk


@pytest.fixture
def server(practice: Practice) -> FakeServer:
    return practice.serve()


@pytest.fixture
def client(practice: Practice, server: FakeServer) -> Any:
    return practice.client(server)


def is_model_written(timeline: Timeline) -> bool:
    compaction = timeline.view.compaction
    return bool(compaction and compaction.event.provenance and compaction.event.provenance.model)


def cut_short(step: str, client: Any, memory: MemoryStore) -> Timeline:
    """A timeline whose compaction could not be committed."""
    timeline = opened(client, store=Watched(memory, Failing(step)))
    talk(timeline, 8)
    with pytest.raises(StoreError):
        timeline.compact(system=SYSTEM)
    return timeline


def check_found_again(server: FakeServer, client: Any, memory: MemoryStore) -> None:
    """Who opens the log needs no second call."""
    again = opened(client, store=memory, ids=Ids("again"))
    again.compact(system=SYSTEM)
    assert len(server.requests) == 1
    assert is_model_written(again)


STEPS = ["before append SummaryPrepared", "after append SummaryPrepared"]
STEPS += ["before append RangeCompacted", "after append RangeCompacted"]


@pytest.mark.parametrize("step", STEPS)
def test_a_commit_that_fails_does_not_cost_a_second_call(
    step: str, server: FakeServer, client: Any
) -> None:
    memory = MemoryStore()
    timeline = opened(client, store=Watched(memory, Failing(step)))
    talk(timeline, 15)
    with pytest.raises(StoreError):
        timeline.render(system=SYSTEM)
    rendered = timeline.render(system=SYSTEM)
    assert len(server.requests) == 1
    assert len(events_of(timeline, SummaryPrepared)) == 1
    assert len(events_of(timeline, RangeCompacted)) == 1
    assert is_model_written(timeline)
    timeline.close()
    again = opened(client, store=memory)
    assert request_bytes(again.render(system=SYSTEM)) == request_bytes(rendered)


def test_what_a_failed_commit_left_goes_with_the_next_append(
    server: FakeServer, client: Any
) -> None:
    memory = MemoryStore()
    timeline = cut_short(STEPS[0], client, memory)
    timeline.user("Are you still there?")
    check_found_again(server, client, memory)


def test_after_a_reopen_the_prepared_summary_is_found(server: FakeServer, client: Any) -> None:
    """The process ended between the two commits."""
    memory = MemoryStore()
    cut_short(STEPS[2], client, memory)
    check_found_again(server, client, memory)


def test_a_fork_finds_what_its_parent_paid_for(server: FakeServer, client: Any) -> None:
    memory = MemoryStore()
    timeline = cut_short(STEPS[2], client, memory)
    forks = [timeline.fork("one"), timeline.fork("two")]
    for fork in forks:
        fork.compact(system=SYSTEM)
        assert is_model_written(fork)
    timeline.compact(system=SYSTEM)
    assert len(server.requests) == 1


def test_after_an_expand_the_same_range_costs_nothing(server: FakeServer, client: Any) -> None:
    timeline = opened(client)
    talk(timeline, 8)
    first = timeline.compact(system=SYSTEM)
    timeline.expand()
    again = timeline.compact(system=SYSTEM)
    assert again.messages == first.messages
    talk(timeline, 2, 8)
    timeline.expand()
    timeline.compact(system=SYSTEM)
    assert len(server.requests) == 1
    assert is_model_written(timeline)


def test_two_processes_at_once_lose_nothing(practice: Practice) -> None:
    """Somebody appends while the model writes: the answer is kept and used."""
    store = MemoryStore()

    def responder(request: Json) -> Reply:
        other = opened(None, store=store, ids=Ids("other"))
        other.steer("Do not forget March.")
        return summary_reply(request)

    server = practice.serve(responder=responder)
    timeline = opened(practice.client(server), store=store)
    talk(timeline, 8)
    rendered = timeline.compact(system=SYSTEM)
    assert len(server.requests) == 1
    assert is_model_written(timeline)
    assert "Do not forget March." in str(rendered.messages)


def test_a_changed_range_is_paid_for_anew(server: FakeServer, client: Any) -> None:
    """The cache is keyed by content: it never serves a summary of something else."""
    timeline = opened(client)
    talk(timeline, 8)
    timeline.compact(system=SYSTEM)
    timeline.expand()
    other = opened(client, "other", store=MemoryStore())
    talk(other, 8, 1)
    other.compact(system=SYSTEM)
    assert len(server.requests) == 2


@pytest.mark.parametrize("change", ["policy", "model"])
def test_another_policy_or_model_asks_anew(
    change: str, practice: Practice, server: FakeServer
) -> None:
    """001-11: keyed by content hash, schema, policy, model and prompt version."""
    store = MemoryStore()
    timeline = opened(practice.client(server), store=store)
    talk(timeline, 8)
    timeline.compact(system=SYSTEM)
    timeline.expand()
    timeline.close()
    changes: dict[str, Any] = {
        "policy": {"policy": attrs.evolve(SMALL, summary_tokens=500)},
        "model": {"model": "claude-opus-5"},
    }
    again = opened(practice.client(server), store=store, ids=Ids("again"), **changes[change])
    again.compact(system=SYSTEM)
    assert len(server.requests) == 2


def test_what_was_decided_before_a_model_was_asked_is_told_as_well(client: Any) -> None:
    """`decisions` has the clip of the same render, though it was committed first."""
    timeline = opened(client, policy=SMALL)
    talk(timeline, 1, lines=200)
    talk(timeline, 7, 1)
    told = [type(event) for event in timeline.compact(system=SYSTEM).decisions]
    assert told[0] is BlocksHidden
    assert told[-2:] == [SummaryPrepared, RangeCompacted]
    assert len(events_of(timeline, BlocksHidden)) == told.count(BlocksHidden)


def test_only_good_answers_are_kept(practice: Practice) -> None:
    server = practice.serve(responder=lambda _: Reply(text="no"))
    timeline = opened(practice.client(server))
    talk(timeline, 8)
    timeline.compact(system=SYSTEM)
    timeline.expand()
    timeline.compact(system=SYSTEM)
    assert not events_of(timeline, SummaryPrepared)
    assert len(summary_requests(server)) == 4
