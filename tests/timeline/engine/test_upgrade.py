"""Any summary can be written anew from what it stands for, by whatever summariser.

Rows B-6 and B-9 of the features.
"""

import asyncio
from typing import Any

from blocks import (
    RangeCompacted,
    RangeSummary,
    StructuredSummary,
    SummaryReplaced,
    SummaryRequested,
)
from persistence import MemoryStore
from render import Policy, Summary
from tests._builders import (
    Clock,
    events_of,
    open_timeline,
    request_bytes,
    response,
    text_in,
    tool_use,
)
from tests._practice import Practice
from tests._table import for_each
from tests.timeline.summarizers.talk import MODEL, SYSTEM, TASK, aopened, atalk, opened, talk
from timeline import ExtractiveSummarizer, ModelSummarizer, SummaryRequest, Timeline
from timeline.fake_provider import Reply


def summary_of(timeline: Timeline) -> RangeSummary:
    assert timeline.view.compaction
    return timeline.view.compaction.event.summary


def by_hand(request: SummaryRequest) -> Summary:
    """A summariser of somebody's own."""
    return Summary(summary=StructuredSummary(state=f"{len(request.range.folded)} blocks, by hand."))


def test_an_extractive_summary_becomes_a_models(practice: Practice) -> None:
    """B-6, B-9: also one that is not degraded; its provenance says by whom, from what."""
    server = practice.serve(responder=lambda _: Reply(text='{"facts": ["Account 3 is in CHF."]}'))
    store, clock = MemoryStore(), Clock()
    timeline = opened(None, store=store, clock=clock, summarizer=ExtractiveSummarizer())
    talk(timeline, 8)
    timeline.compact(system=SYSTEM)
    before = summary_of(timeline)
    assert not before.degraded
    talk(timeline, 1, 8)
    model = ModelSummarizer(client=practice.client(server))
    assert timeline.upgrade_summary(summarizer=model, system=SYSTEM)
    after = summary_of(timeline)
    assert after.summary.facts == ("Account 3 is in CHF.",)
    assert (after.start, after.cut, after.turn_range) == (
        before.start,
        before.cut,
        before.turn_range,
    )
    [replaced] = events_of(timeline, SummaryReplaced)
    [compacted] = events_of(timeline, RangeCompacted)
    assert replaced.provenance.model == MODEL
    assert replaced.provenance.output_tokens > 0
    assert replaced.provenance.source_hash == compacted.provenance.source_hash
    live = request_bytes(timeline.render(system=SYSTEM))
    timeline.close()
    again = opened(None, store=store, clock=clock)
    assert request_bytes(again.render(system=SYSTEM)) == live


def test_a_models_summary_becomes_an_extractive_one(practice: Practice) -> None:
    server = practice.serve(responder=lambda _: Reply(text='{"facts": ["A lie."]}'))
    timeline = opened(practice.client(server))
    talk(timeline, 8)
    timeline.compact(system=SYSTEM)
    assert "A lie." in text_in(timeline.render(system=SYSTEM))
    asked = len(server.requests)
    assert timeline.upgrade_summary(summarizer=ExtractiveSummarizer(), system=SYSTEM)
    shown = text_in(timeline.render(system=SYSTEM))
    assert "A lie." not in shown
    assert TASK in shown
    assert len(server.requests) == asked
    [replaced] = events_of(timeline, SummaryReplaced)
    assert replaced.provenance.model == ""
    assert len(replaced.provenance.source_hash) == 64
    assert timeline.upgrade_summary(system=SYSTEM), "and back: that is paid for"
    assert len(server.requests) == asked


@for_each("summarizer", [ExtractiveSummarizer(), by_hand])
def test_what_says_the_same_again_is_no_event(summarizer: Any) -> None:
    timeline = opened(None, summarizer=summarizer)
    assert not timeline.upgrade_summary(system=SYSTEM), "there is none yet"
    talk(timeline, 8)
    timeline.compact(system=SYSTEM)
    version = timeline.version
    assert not timeline.upgrade_summary(system=SYSTEM)
    done = [event for _, event in timeline.events(after=version)]
    assert all(isinstance(event, SummaryRequested) for event in done), "but its call counts"


def test_it_stands_for_what_the_summary_before_it_held(practice: Practice) -> None:
    """The second summary is rebuilt upon the first, not upon itself."""
    answers = iter(['{"facts": ["One."]}', '{"facts": ["Two."]}'])
    server = practice.serve(responder=lambda _: Reply(text=next(answers)))
    timeline = opened(practice.client(server))
    for round_ in range(2):
        talk(timeline, 8, 8 * round_)
        timeline.compact(system=SYSTEM)
    assert summary_of(timeline).summary.facts == ("One.", "Two.")
    assert timeline.upgrade_summary(summarizer=by_hand, system=SYSTEM)
    summary = summary_of(timeline).summary
    assert summary.facts == ("One.",)
    assert summary.state.endswith("by hand.")


def test_in_a_window_with_little_room_it_takes_no_more_than_before() -> None:
    """Its index is as small as that of the compaction had to be."""
    policy = Policy(keep_ratio=0.3, target_ratio=0.5, trigger_ratio=0.6, page_tokens=40_000)
    timeline = open_timeline(window=3000, policy=policy)
    timeline.user("What do the books say?")
    for number in range(60):
        call = tool_use(f"c{number}", "read", path=f"books/page_{number}.csv")
        timeline.record(response(call, id=f"m{number}"))
        timeline.tool_result(f"c{number}", f"account_{number} of ledger_{number}.csv\n" * 12)
        timeline.render()
    before = timeline.render()
    assert timeline.view.compaction
    assert timeline.upgrade_summary(summarizer=by_hand)
    after = timeline.render()
    assert after.fits
    assert after.tokens <= before.tokens + 300


def test_async_the_same_holds() -> None:
    async def play() -> None:
        timeline = await aopened(None, summarizer=ExtractiveSummarizer())
        await atalk(timeline, 8)
        await timeline.compact(system=SYSTEM)
        assert await timeline.upgrade_summary(summarizer=by_hand, system=SYSTEM)
        assert timeline.view.compaction
        assert timeline.view.compaction.event.summary.summary.state.endswith("by hand.")

    asyncio.run(play())
