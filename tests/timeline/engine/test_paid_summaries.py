"""A summary of equal content is paid for once in a store, and only whoever could have asked for it gets it.

Row 001-11 of the features.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from blocks import Provenance, RangeCompacted, StructuredSummary, SummaryPrepared
from persistence import EventStore, MemoryStore, Requester
from render import Summary
from tests._builders import Clock, Ids, events_of, request_bytes
from tests._table import for_each
from tests.timeline.summarizers.talk import SMALL, SYSTEM, aopened, atalk, opened, talk
from timeline import SummaryRequest, Timeline

ANN = Requester("ann", tenant="acme")


@attrs.define
class Paid:
    """A summariser that asks a model, and counts how often."""

    name: str = "a-model"
    calls: int = 0

    def __call__(self, request: SummaryRequest) -> Summary:
        self.calls += 1
        spent = Provenance(
            source_hash=request.range.source_hash, model=self.name, input_tokens=900, cost_usd=0.5
        )
        written = StructuredSummary(facts=(f"Said in answer {self.calls}.",))
        return Summary(summary=written, provenance=spent)


def begun(name: str, store: EventStore, paid: Paid, **options: Any) -> Timeline:
    """A timeline with ids and times of its own, and the same talk as the others."""
    given = {"ids": Ids(name), "clock": Clock(now=float(1_000 * len(name))), **options}
    timeline = opened(None, name, store=store, summarizer=paid, **given)
    talk(timeline, 8)
    return timeline


def facts_in(timeline: Timeline) -> tuple[str, ...]:
    assert timeline.view.compaction
    return timeline.view.compaction.event.summary.summary.facts


@pytest.mark.parametrize("requester", [None, ANN])
def test_equal_content_is_paid_for_once_in_a_store(store: Any, requester: Requester | None) -> None:
    paid = Paid()
    named = {"requester": requester} if requester else {}
    for name in ("one", "other", "another"):
        with begun(name, store, paid, **named) as timeline:
            timeline.compact(system=SYSTEM)
            talk(timeline, 8, 8)
            timeline.compact(system=SYSTEM)
            assert facts_in(timeline) == ("Said in answer 1.", "Said in answer 2.")
            live = request_bytes(timeline.render(system=SYSTEM))
        with opened(None, name, store=store, summarizer=paid, **named) as again:
            assert request_bytes(again.render(system=SYSTEM)) == live
    assert paid.calls == 2


def test_what_was_reused_cost_nothing_and_counts_as_no_call() -> None:
    store, paid = MemoryStore(), Paid()
    begun("one", store, paid).compact(system=SYSTEM)
    other = begun("two", store, paid, policy=attrs.evolve(SMALL, summaries_max=0))
    other.compact(system=SYSTEM)
    [compacted] = events_of(other, RangeCompacted)
    told = compacted.provenance
    assert told.reused
    assert (told.model, told.cost_usd, told.input_tokens) == ("a-model", 0.0, 0)
    assert other.view.state.summaries == 0
    assert not compacted.summary.degraded


OTHERS: dict[str, dict[str, Any]] = {
    "tenant": {"requester": Requester("ann", tenant="other")},
    "requester": {"requester": Requester("bob", tenant="acme")},
    "nobody": {},
    "permissions": {
        "requester": Requester("ann", tenant="acme", permissions={"read", "read:restricted"})
    },
    "no right to read": {"requester": Requester("ann", tenant="acme", permissions=set())},
    "policy": {"requester": ANN, "policy": attrs.evolve(SMALL, summary_tokens=500)},
    "no artifacts": {"requester": ANN, "artifacts": None},
}


@for_each("other", OTHERS)
def test_nobody_else_gets_it(other: str) -> None:
    """Neither another tenant or requester of the same store, nor another policy."""
    store, paid = MemoryStore(), Paid()
    begun("one", store, paid, requester=ANN).compact(system=SYSTEM)
    timeline = begun("two", store, paid, **OTHERS[other])
    timeline.compact(system=SYSTEM)
    assert paid.calls == 2
    assert facts_in(timeline) == ("Said in answer 2.",)


def test_another_model_is_asked_itself() -> None:
    store = MemoryStore()
    begun("one", store, Paid()).compact(system=SYSTEM)
    another = Paid(name="another-model")
    begun("two", store, another).compact(system=SYSTEM)
    assert another.calls == 1


CHANGES: dict[str, Callable[[Timeline], object]] = {
    "a word behind the range": lambda timeline: timeline.steer("My PIN is 4711."),
    "nothing but the system prompt": lambda timeline: timeline,
}


@for_each("change", CHANGES)
def test_without_a_requester_all_that_a_model_saw_has_to_be_the_same(change: str) -> None:
    """It may have told of what comes behind the range: that is for nobody who does not have it, too."""
    store, paid = MemoryStore(), Paid()
    begun("one", store, paid).compact(system=SYSTEM)
    timeline = begun("two", store, paid)
    CHANGES[change](timeline)
    timeline.compact(system=f"{SYSTEM} You speak with Bob.")
    assert paid.calls == 2


def test_forks_of_one_requester_share_what_any_of_them_pays_for() -> None:
    store, paid = MemoryStore(), Paid()
    trunk = begun("one", store, paid, requester=ANN)
    forks = [trunk.fork(name) for name in ("left", "right")]
    for fork in forks:
        fork.steer(f"You are {fork.id}.")
        fork.compact(system=SYSTEM)
        assert facts_in(fork) == ("Said in answer 1.",)
    assert paid.calls == 1


REMOVED: dict[str, Callable[[Timeline], object]] = {
    "a block hidden": lambda timeline: timeline.hide("ar:t1.user.prompt", replacement="gone"),
    "a block forgotten": lambda timeline: timeline.forget("ar:t1.user.prompt"),
    "all of it forgotten": lambda timeline: timeline.forget(),
}


@for_each("what", REMOVED)
def test_what_is_removed_there_is_not_taken_from_there(what: str) -> None:
    store, paid = MemoryStore(), Paid()
    one = begun("one", store, paid, requester=ANN)
    one.compact(system=SYSTEM)
    REMOVED[what](one)
    begun("two", store, paid, requester=ANN).compact(system=SYSTEM)
    assert paid.calls == 2


def test_what_is_forgotten_there_leaves_no_way_to_it() -> None:
    store, paid = MemoryStore(), Paid()
    one = begun("one", store, paid, requester=ANN)
    one.compact(system=SYSTEM)
    assert one.artifacts
    [known] = one.artifacts.list(ANN)
    assert json.dumps(known.about).find("answer") < 0, "it says nothing of the summary"
    one.forget()
    assert one.artifacts.list(ANN) == []


def test_a_store_that_fails_costs_a_call_and_nothing_else() -> None:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise OSError("no such disk")

    store, paid = MemoryStore(), Paid()
    for name in ("one", "two"):
        timeline = begun(name, store, paid, artifacts=Broken())
        timeline.compact(system=SYSTEM)
        assert facts_in(timeline)
    assert paid.calls == 2


def test_what_is_prepared_ahead_is_shared_too() -> None:
    store, paid = MemoryStore(), Paid()
    early = attrs.evolve(SMALL, prepare_ratio=0.3)
    for name in ("one", "two"):
        with begun(name, store, paid, policy=early) as timeline:
            timeline.render(system=SYSTEM)
        [prepared] = events_of(opened(None, name, store=store), SummaryPrepared)
        assert prepared.provenance.reused == (name == "two")
    assert paid.calls == 1


def test_for_asyncio_the_same_holds(tmp_path: Path) -> None:
    async def play() -> int:
        paid = Paid()
        for name in ("one", "two"):
            timeline = await aopened(
                None, name, store=tmp_path / "a.duckdb", ids=Ids(name), summarizer=paid
            )
            await atalk(timeline, 8)
            await timeline.compact(system=SYSTEM)
            await timeline.close()
        return paid.calls

    assert asyncio.run(play()) == 1
