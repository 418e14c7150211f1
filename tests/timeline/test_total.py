"""Invariant 12 against logs that nobody wrote: any blocks, any events, any order, any version."""

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    AssistantThinking,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    CallId,
    Carried,
    CompactionSkipped,
    Digest,
    Event,
    EventId,
    FoldState,
    Hidden,
    MisuseError,
    Note,
    OpaqueBlock,
    OpaqueEvent,
    Provenance,
    RangeCompacted,
    RangeExpanded,
    RangeSummary,
    RequestRendered,
    StructuredSummary,
    SummaryPrepared,
    SummaryReplaced,
    TimelineForked,
    TimelineId,
    TokensCounted,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UsageRecorded,
    UserPrompt,
    canonical_block,
)
from persistence import MemoryStore
from render import validate_request
from tests._builders import Clock, open_timeline
from tests.blocks.test_codec import EVERY_BLOCK, PARTS
from tests.strategies import settings

TALK = TimelineId("talk")
ids = st.sampled_from(("b1", "b2", "b3", "")).map(BlockId)
turn_ids = st.sampled_from(("t1", "t2", "t.3", "")).map(TurnId)
call_ids = st.sampled_from(("c1", "c2", "c1_3", "")).map(CallId)
texts = st.sampled_from(("", " ", "a", "\0", "\ud800", "word " * 300)) | st.text(max_size=30)
versions = st.integers(-2, 40)
times = st.floats(-1e9, 1e12)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
objects = st.dictionaries(st.text(max_size=8), anything, max_size=4)


def summaries() -> st.SearchStrategy[RangeSummary]:
    return st.builds(
        RangeSummary,
        id=ids,
        turn=turn_ids,
        split_turn_id=st.none() | turn_ids,
        summary=st.builds(StructuredSummary, task=texts, facts=st.tuples(texts)),
        digest=st.builds(Digest, blocks=versions),
    )


def blocks() -> st.SearchStrategy[Block]:
    parts = st.lists(st.sampled_from(PARTS), max_size=3).map(tuple)
    thinking = st.sampled_from(({}, {"type": "thinking", "thinking": "x", "signature": "s"}))
    place: dict[str, Any] = {"id": ids, "turn": turn_ids}
    return st.one_of(
        st.sampled_from(sorted(EVERY_BLOCK.items())).map(lambda item: item[1]),
        st.builds(TurnHeader, **place),
        st.builds(UserPrompt, **place, text=texts, parts=parts),
        st.builds(Note, **place, text=texts),
        st.builds(AssistantThinking, **place, provider=thinking | objects, response=texts),
        st.builds(ToolCall, **place, call_id=call_ids, name=texts, input=objects, response=texts),
        st.builds(ToolResult, **place, call_id=call_ids, parts=parts, is_error=st.booleans()),
        st.builds(OpaqueBlock, texts, st.fixed_dictionaries(place) | objects),
        summaries(),
    ).map(canonical_block)


def events() -> st.SearchStrategy[Event]:
    hidden = st.lists(st.builds(Hidden, block=ids, replacement=texts), max_size=3).map(tuple)
    carried = st.lists(
        st.builds(Carried, version=versions, block=blocks(), clipped=texts), max_size=2
    )
    return st.one_of(
        st.builds(BlockAppended, id=st.just(EventId("e")), at=times, block=blocks()),
        st.builds(BlockAppended, id=st.just(EventId("e")), at=times, block=blocks()),
        st.builds(BlocksHidden, id=st.just(EventId("e")), at=times, hidden=hidden, reason=st.just("requested")),
        st.builds(BlocksRestored, id=st.just(EventId("e")), at=times, blocks=st.tuples(ids)),
        st.builds(
            RangeCompacted,
            id=st.just(EventId("e")),
            at=times,
            start=versions,
            cut=versions,
            summary=summaries(),
            carried=carried.map(tuple),
            state=st.builds(FoldState, turns=versions, rounds=versions, failures=versions),
        ),
        st.builds(RangeExpanded, id=st.just(EventId("e")), at=times, compaction=versions),
        st.builds(SummaryReplaced, id=st.just(EventId("e")), at=times, compaction=versions, summary=summaries()),
        st.builds(
            SummaryPrepared,
            id=st.just(EventId("e")),
            at=times,
            key=texts,
            cut=versions,
            summary=st.builds(StructuredSummary, state=texts),
            provenance=st.just(Provenance(source_hash="")),
        ),
        st.builds(CompactionSkipped, id=st.just(EventId("e")), at=times, reason=st.just("failed")),
        st.builds(
            RequestRendered,
            id=st.just(EventId("e")),
            at=times,
            content_hash=st.just(""),
            tokens=versions,
            cache_points=st.tuples(versions),
            shown=versions,
        ),
        st.builds(UsageRecorded, id=st.just(EventId("e")), at=times, uncached=versions, estimated=versions),
        st.builds(TokensCounted, id=st.just(EventId("e")), at=times, input=versions, estimated=versions),
        st.builds(TimelineForked, id=st.just(EventId("e")), at=times, parent=st.just(TALK), version=versions),
        st.builds(OpaqueEvent, texts, objects),
    )  # fmt: skip


@given(st.lists(events(), max_size=25), settings())
def test_12_total_over_any_events(log: list[Event], options: dict[str, Any]) -> None:
    """No log makes render raise, and what it renders is valid."""
    store = MemoryStore()
    if log:  # in one append: one event after another, the same one again would be a repetition
        store.append(TALK, log, expected_version=0)
    timeline = open_timeline("talk", store=store, clock=Clock(), **options)
    for _ in range(2):
        rendered = timeline.render()
        assert rendered.violations == ()
        assert validate_request(rendered.anthropic(max_tokens=1000), options["model"]) == ()
    timeline.user("go on")
    assert "go on" in str(timeline.compact().messages)


@given(st.lists(events(), max_size=25), settings())
def test_4_determinism_over_any_events(log: list[Event], options: dict[str, Any]) -> None:
    """A timeline that saw the events come in one by one shows what a reopened one shows."""
    store = MemoryStore()
    live = open_timeline("talk", store=store, clock=Clock(), **options)
    for block in (e.block for e in log if isinstance(e, BlockAppended)):
        with suppress(MisuseError):  # without an id
            live.append(block)
    live.flush()
    again = open_timeline("talk", store=store, clock=Clock(), **options)
    assert again.render().content_hash == live.render().content_hash
