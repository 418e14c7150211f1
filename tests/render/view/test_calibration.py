"""Counts are corrected by what the provider reports, and a restart forgets nothing of it.

Row B-7 of the features.
"""

from typing import Any

import attrs
import pytest

from blocks import RangeCompacted, UsageRecorded
from persistence import DuckDBStore, EventStore, MemoryStore
from render import Policy, Rendered
from tests._builders import Clock, Ids, events_of, open_timeline, request_bytes, response, text
from tests._table import for_each
from timeline import Timeline

HIDDEN = 1200
"""Tokens that the provider adds to every request."""
RATIO = 1.3
"""Its tokens for each of ours."""
SLACK = attrs.evolve(Policy(), prepare_ratio=1.0)


def opened(store: EventStore | None = None, name: str = "", **changes: Any) -> Timeline:
    given = {"counter": "model", "policy": SLACK, "ids": Ids(name), **changes}
    return open_timeline(store=store, **given)


def real(rendered: Rendered) -> int:
    """What the provider counts."""
    return int(HIDDEN + RATIO * rendered.account.estimated)


def step(timeline: Timeline, number: int, words: int = 300) -> float:
    """One question and its answer; how far the estimate was off."""
    timeline.user(f"Question {number}: " + f"what is in ledger {number}? " * (words // 6))
    rendered = timeline.render()
    counted = real(rendered)
    answer = response(text(f"Answer {number}."), id=f"m{number}", usage={"input_tokens": counted})
    timeline.record(answer)
    return abs(rendered.tokens - counted) / counted


def test_the_next_call_is_known_well_from_the_second_on() -> None:
    timeline = opened()
    errors = [step(timeline, number) for number in range(30)]
    assert errors[0] > 0.2
    assert max(errors[2:]) < 0.1
    assert max(errors[15:]) < 0.02


@pytest.mark.parametrize("kind", ["memory", "duckdb"])
def test_after_a_restart_the_first_estimate_is_as_good(kind: str, tmp_path: Any) -> None:
    store: EventStore = MemoryStore() if kind == "memory" else DuckDBStore(tmp_path / "c.duckdb")
    for run in range(4):
        timeline = opened(store, f"run{run}.")
        errors = [step(timeline, 10 * run + number) for number in range(5)]
        assert run == 0 or max(errors) < 0.1
        timeline.close()
    account = opened(store, "last.").render().account
    assert account.samples == 20
    assert account.ratio == pytest.approx(RATIO, rel=0.1)
    store.close()


def test_a_compaction_forgets_nothing_of_it_live_or_reopened() -> None:
    store, clock = MemoryStore(), Clock()
    timeline = opened(store, clock=clock, window=20_000)
    errors = [step(timeline, number, words=900) for number in range(40)]
    assert len(events_of(timeline, RangeCompacted)) >= 2
    assert max(errors[3:]) < 0.15, "across compactions, too"
    live = timeline.render()
    timeline.close()
    again = opened(store, "again.", clock=clock, window=20_000).render()
    assert again.account == live.account
    assert request_bytes(again) == request_bytes(live)
    assert again.account.samples == 40


def test_a_fork_and_the_past_have_the_calibration_of_their_version() -> None:
    timeline = opened()
    for number in range(5):
        step(timeline, number)
    fork = timeline.fork("fork")
    assert fork.render().account.ratio == timeline.render().account.ratio
    past = timeline.render_at(2).account
    assert (past.samples, past.ratio, past.prefix) == (0, 1.0, 0.0)


def test_each_model_has_its_own() -> None:
    store = MemoryStore()
    timeline = opened(store, model="claude-sonnet-5-5")
    for number in range(5):
        step(timeline, number)
    timeline.close()
    other = opened(store, "other.", model="claude-haiku-5-5")
    assert other.render().account.samples == 0
    other.close()
    assert opened(store, "back.", model="claude-sonnet-5-5").render().account.samples == 5


@for_each(
    "usage",
    [
        {"uncached": 0, "estimated": 500},
        {"uncached": 500, "estimated": 0},
        {"uncached": -3, "estimated": 500},
    ],
)
def test_what_tells_nothing_changes_nothing(usage: dict[str, int]) -> None:
    timeline = opened()
    step(timeline, 0)
    before = timeline.render().account
    timeline.learn(UsageRecorded(id="", at=0.0, model="loose", **usage))  # type: ignore[arg-type]
    after = timeline.render().account
    assert (after.ratio, after.prefix, after.samples) == (before.ratio, before.prefix, 1)


def test_one_absurd_report_does_not_decide_for_ever() -> None:
    """A proxy that reports nonsense once: the next estimates recover."""
    timeline = opened()
    for number in range(10):
        step(timeline, number)
    timeline.learn(UsageRecorded(id="", at=0.0, model="loose", uncached=900_000, estimated=4000))  # type: ignore[arg-type]
    step(timeline, 10)
    errors = [step(timeline, number) for number in range(11, 20)]
    assert max(errors) < 0.15
