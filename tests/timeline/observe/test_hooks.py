"""Hooks: they are told, they may veto, and they can break nothing."""

import logging
from typing import Any

import attrs
import pytest

from blocks import CompactionSkipped, RangeCompacted
from tests._builders import STEADY, events_of, open_timeline
from tests._table import for_each
from tests.timeline.test_timeline import busy
from timeline import Compacted, Compacting, Hooks, Timeline


@attrs.define
class Told:
    """A hook that notes what it was told, and answers what it was given."""

    answer: Any = None
    found: list[Any] = attrs.field(factory=list[Any])

    def __call__(self, argument: Any) -> Any:
        self.found.append(argument)
        return self.answer


def full(hooks: Hooks, window: int = 3600, rounds: int = 20) -> Timeline:
    """A timeline over its trigger and under its limit."""
    return busy(open_timeline(window=window, hooks=hooks, policy=STEADY), rounds)


def limits() -> tuple[int, int]:
    tokens = busy(open_timeline(), 20).render().tokens
    return int(tokens * 1.05), tokens - 10


def test_both_hooks_are_told_the_numbers() -> None:
    before, after = Told(), Told()
    timeline = full(Hooks(on_before_compaction=[before], on_after_compaction=[after]), limits()[0])
    timeline.render()
    [compacting], [compacted] = before.found, after.found
    assert isinstance(compacting, Compacting)
    assert isinstance(compacted, Compacted)
    assert compacting.trigger == compacted.trigger == "proactive"
    assert compacting.before_tokens == compacted.before_tokens
    [event] = events_of(timeline, RangeCompacted)
    assert compacted.after_tokens == event.tokens_after
    assert compacted.compacted_tokens == compacted.before_tokens - compacted.after_tokens
    [proposal] = compacting.draft.proposals
    assert proposal.action == "summarize"
    assert proposal.cut == event.cut


def test_the_second_hook_is_told_after_the_commit() -> None:
    seen: list[int] = []
    timeline: list[Timeline] = []
    hooks = Hooks(
        on_after_compaction=[lambda _: seen.append(len(events_of(timeline[0], RangeCompacted)))]
    )
    timeline.append(full(hooks, limits()[0]))
    timeline[0].render()
    assert seen == [1]


def test_without_a_compaction_nobody_is_told() -> None:
    told = Told()
    timeline = full(Hooks(on_before_compaction=[told], on_after_compaction=[told]), 100_000)
    timeline.render()
    assert told.found == []


def test_a_veto_skips_the_compaction_and_is_recorded() -> None:
    after = Told()
    hooks = Hooks(on_before_compaction=[Told(answer=False)], on_after_compaction=[after])
    timeline = full(hooks, limits()[0])
    rendered = timeline.render()
    assert rendered.fits
    assert [e.reason for e in events_of(timeline, CompactionSkipped)] == ["vetoed"]
    assert after.found == []


def test_a_veto_holds_where_the_prompt_would_not_fit_and_the_request_says_so() -> None:
    timeline = full(Hooks(on_before_compaction=[Told(answer=False)]), limits()[1])
    rendered = timeline.render()
    assert events_of(timeline, RangeCompacted) == []
    assert rendered.cannot_fit is not None
    assert (rendered.cannot_fit.reason, rendered.fits) == ("over_limit", False)
    assert "a hook vetoed" in rendered.cannot_fit.advice


@for_each("answer", [None, True, 0, "no"])
def test_only_false_is_a_veto(answer: Any) -> None:
    timeline = full(Hooks(on_before_compaction=[Told(answer=answer)]), limits()[0])
    timeline.render()
    assert len(events_of(timeline, RangeCompacted)) == 1


def test_a_hook_that_raises_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError

    told = Told()
    hooks = Hooks(on_before_compaction=[broken, told], on_after_compaction=[broken, told])
    timeline = full(hooks, limits()[0])
    plain = full(Hooks(), limits()[0])
    with caplog.at_level(logging.ERROR, logger="foldline"):
        rendered = timeline.render()
    assert rendered.content_hash == plain.render().content_hash
    assert len(told.found) == 2
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


def test_an_async_hook_in_a_sync_timeline_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def hook(_: object) -> bool:
        raise AssertionError

    timeline = full(Hooks(on_before_compaction=[hook]), limits()[0])
    with caplog.at_level(logging.ERROR, logger="foldline"):
        timeline.render()
    assert "AsyncTimeline" in caplog.text
    assert len(events_of(timeline, RangeCompacted)) == 1
