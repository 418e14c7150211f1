"""The coverage invariant notices each way in which a block can be lost or doubled."""

from collections.abc import Sequence

import attrs
import msgspec
import pytest

from blocks import (
    BlockAppended,
    BlockId,
    CallId,
    Digest,
    Event,
    EventId,
    Note,
    RangeCompacted,
    RangeSummary,
    Recorded,
    StructuredSummary,
    ToolCall,
    ToolResult,
    TurnId,
    UserPrompt,
    window_of,
)
from persistence import MemoryStore
from persistence.sessions import Responded
from render import View, open_view
from tests.timeline.replay.invented import invented
from timeline import Timeline
from timeline.engine._engine import counted
from timeline.replay import places
from timeline.replay._coverage import coverage
from timeline.replay._replay import Clock


@pytest.fixture(scope="module")
def lived() -> tuple[list[Recorded], View]:
    """A timeline with a note that was compacted at least twice."""
    clock = Clock()
    timeline = Timeline.open(
        "x", store=MemoryStore(), window=3_000, counter="estimate", clock=clock, ids=counted()
    )
    noted = False
    for item in invented().items:
        clock.now = item.at
        if isinstance(item, Responded):
            timeline.render()
        timeline.append(*item.blocks)
        if not noted:
            timeline.note("The build needs Python 3.11.")
            noted = True
    events = list(timeline.events())
    assert sum(isinstance(event, RangeCompacted) for _, event in events) >= 2
    return events, timeline.view


def problems(events: Sequence[Recorded], view: View) -> str:
    return "; ".join(coverage(events, view).problems)


def replaced(events: Sequence[Recorded], version: int, event: Event) -> list[Recorded]:
    return [(v, event if v == version else e) for v, e in events]


def test_what_the_engine_did_is_without_fault(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    found = coverage(events, view)
    assert found.problems == ()
    assert found.blocks == sum(isinstance(event, BlockAppended) for _, event in events)
    assert found.carried
    assert found.folded
    assert found.visible
    assert (found.tool_calls, found.tool_results) == (20, 20)


def test_every_block_has_exactly_one_place(lived: tuple[list[Recorded], View]) -> None:
    events, _ = lived
    where = places(events)
    assert where.keys() == {v for v, event in events if isinstance(event, BlockAppended)}
    assert set(where.values()) <= {"visible", "hidden", "folded", "carried"}


def test_a_block_missing_in_the_view_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    assert "missing in the view" in problems(events, attrs.evolve(view, groups=view.groups[:-1]))


def test_a_block_twice_in_the_view_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    twice = attrs.evolve(view, groups=(*view.groups, view.groups[-1]))
    assert "stands in the view twice" in problems(events, twice)


def test_a_changed_block_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    version, event = next((v, e) for v, e in reversed(events) if isinstance(e, BlockAppended))
    other = UserPrompt(id=event.block.id, turn=event.block.turn, text="something else")
    changed = msgspec.structs.replace(event, block=other)
    assert f"version {version} is not what was appended" in problems(
        replaced(events, version, changed), view
    )


def test_blocks_between_two_ranges_are_noticed(lived: tuple[list[Recorded], View]) -> None:
    """What an engine loses that keeps a tail at the first compaction and forgets it at the second."""
    events, view = lived
    version, event = [(v, e) for v, e in events if isinstance(e, RangeCompacted)][-1]
    gap = msgspec.structs.replace(event, start=event.start + 1)
    assert "is in 0 folded ranges" in problems(replaced(events, version, gap), view)
    overlap = msgspec.structs.replace(event, start=1)
    assert "is in 2 folded ranges" in problems(replaced(events, version, overlap), view)


def test_a_note_left_behind_by_a_cut_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, _ = lived
    version, event = [(v, e) for v, e in events if isinstance(e, RangeCompacted)][-1]
    without = tuple(c for c in event.carried if not isinstance(c.block, Note))
    assert len(without) < len(event.carried)
    changed = replaced(events, version, msgspec.structs.replace(event, carried=without))
    assert "did not outlive the cut" in problems(changed, open_view(window_of(changed)))


def test_a_view_of_another_compaction_is_noticed(lived: tuple[list[Recorded], View]) -> None:
    events, view = lived
    assert "the view starts from compaction 0" in problems(
        events, attrs.evolve(view, compaction=None)
    )


def test_a_hidden_block_that_the_view_shows_is_noticed() -> None:
    timeline = Timeline.open("x", ids=counted())
    timeline.user("Hello.")
    shown = timeline.view
    timeline.hide("ar:t1.user.prompt")
    assert coverage(timeline.events(), timeline.view).problems == ()
    assert coverage(timeline.events(), timeline.view).hidden == 1
    assert "not hidden as the log says" in problems(timeline.events(), shown)
    timeline.restore("ar:t1.user.prompt")
    assert coverage(timeline.events(), timeline.view).hidden == 0


def test_undoing_a_compaction_makes_everything_visible_again() -> None:
    timeline = Timeline.open("x", ids=counted(), counter="estimate", window=3_000)
    for item in invented(turns=2).items:
        timeline.append(*item.blocks)
    timeline.compact()
    assert coverage(timeline.events(), timeline.view).folded
    timeline.expand()
    found = coverage(timeline.events(), timeline.view)
    assert (found.folded, found.problems) == (0, ())


def test_a_result_whose_call_was_folded_is_noticed() -> None:
    call = ToolCall(
        id=BlockId("a"), turn=TurnId("t1"), response="r", call_id=CallId("c"), name="ls", input={}
    )
    result = ToolResult(id=BlockId("b"), turn=TurnId("t1"), call_id=CallId("c"))
    timeline = Timeline.open("x", ids=counted())
    timeline.user("Hello.")
    timeline.append(call, result)
    events = list(timeline.events())
    alone = open_view(window_of([e for e in events if e[0] != 3]))
    fold = RangeCompacted(id=EventId("f"), at=0.0, start=1, cut=4, summary=_summary())
    view = attrs.evolve(alone, compaction=None)
    assert "lost its call to a fold" in problems([*events, (5, fold)], view)


def _summary() -> RangeSummary:
    return RangeSummary(
        id=BlockId("s"), turn=TurnId("t1"), summary=StructuredSummary(), digest=Digest()
    )
