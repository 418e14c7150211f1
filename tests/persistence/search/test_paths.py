"""A block is found at its path in every store alike, and in the same place as in the whole log."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from blocks import (
    AssistantCompletion,
    Block,
    BlockAppended,
    BlockId,
    CallId,
    Digest,
    Event,
    EventId,
    OpaqueBlock,
    RangeCompacted,
    RangeSummary,
    StructuredSummary,
    SummaryReplaced,
    TextPart,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnId,
    UserAttachment,
    UserPrompt,
    label_of,
    path_at,
    path_of,
    path_stem,
    turn_in,
)
from persistence import EventStore, block_at, source_at
from tests._builders import prompt, said
from tests.persistence.contract import STORES, new_store

T = TimelineId("a talk")
U = TimelineId("another")
NAMES = (
    *("t1", "t.1", "1", "2", "t1.c1", "call", "c1", "c1.2", 'say "hi"', "back\\slash", "naïve", ""),
    *("None", "line\nbreak", "語", "\0", "result.call", "conv.range.summary"),
)
"""Of turns, calls and files: what a path, JSON or SQL could trip over."""


def summary(turn: str, task: str) -> RangeSummary:
    return RangeSummary(
        id=BlockId("s"),
        turn=TurnId(turn),
        start=1,
        cut=2,
        summary=StructuredSummary(task=task),
        digest=Digest(),
    )


def made(kind: str, turn: str, name: str, n: int) -> Event:
    """An event of a kind; its number is in it, so that no two are equal."""
    at: dict[str, object] = {"id": BlockId(f"b{n}"), "turn": TurnId(turn)}
    text = f'{n}: "{name}" t1 c1 call'
    blocks: dict[str, Block] = {
        "call": ToolCall(
            id=BlockId(f"b{n}"), turn=TurnId(turn), call_id=CallId(name), name="x", input={"n": n}
        ),
        "result": ToolResult(
            id=BlockId(f"b{n}"),
            turn=TurnId(turn),
            call_id=CallId(name),
            parts=(TextPart(text=text),),
        ),
        "file": UserAttachment(
            id=BlockId(f"b{n}"), turn=TurnId(turn), name=name, part=TextPart(text=text)
        ),
        "prompt": UserPrompt(id=BlockId(f"b{n}"), turn=TurnId(turn), text=text),
        "answer": AssistantCompletion(id=BlockId(f"b{n}"), turn=TurnId(turn), text=text),
        "foreign": OpaqueBlock(name or "x", {**at, "text": text}),
        "odd": OpaqueBlock("react.tool.call", {"id": f"b{n}", "turn": n % 3}),
        "imported": summary(turn, text),
    }
    match kind:
        case "compacted":
            return RangeCompacted(
                id=EventId(f"e{n}"), at=0.0, start=1, cut=2, summary=summary(turn, text)
            )
        case "replaced":
            return SummaryReplaced(
                id=EventId(f"e{n}"),
                at=0.0,
                compaction=1,
                summary=summary(turn, text),
            )
        case _:
            return BlockAppended(id=EventId(f"e{n}"), at=0.0, block=blocks[kind])


KINDS = (
    *("call", "result", "file", "prompt", "answer", "foreign", "odd", "imported"),
    *("compacted", "replaced"),
)
EVENTS = st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES), st.sampled_from(NAMES))


def everything(log: Sequence[Event]) -> dict[str, Block]:
    """By path: what is there, worked out from the whole log."""
    own: dict[str, Block] = {}
    alike: dict[str, Block] = {}
    counts, all_counts, folds = Counter[str](), Counter[str](), Counter[str]()
    summaries: dict[int, list[str]] = {}
    for version, event in enumerate(log, 1):
        if isinstance(event, BlockAppended):
            block, stem = event.block, path_stem(event.block)
            all_counts[stem] += 1
            alike.setdefault(path_of(block, all_counts[stem]), block)
            if block.turn == turn_in(stem) and not isinstance(block, RangeSummary):
                counts[stem] += 1
                own.setdefault(path_of(block, counts[stem]), block)
            own |= dict.fromkeys((path_at(block, version), label_of(version)), block)
        elif isinstance(event, RangeCompacted):
            stem = path_stem(event.summary)
            folds[stem] += 1
            named = (path_at(event.summary, version), label_of(version))
            paths = [path_of(event.summary, folds[stem]), *named]
            summaries[version] = [path for path in paths if path not in own]
            own |= dict.fromkeys(summaries[version], event.summary)
        elif isinstance(event, SummaryReplaced):
            stem = path_stem(event.summary)
            paths = summaries.get(event.compaction, [])
            own |= {path: event.summary for path in paths if path_stem(own[path]) == stem}
    return {**alike, **own}


@pytest.fixture(scope="module", params=STORES)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EventStore]:
    with closing(new_store(request, tmp_path_factory.mktemp("paths"))) as store:
        yield store


@settings(max_examples=60, deadline=None)
@given(log=st.lists(EVENTS, min_size=1, max_size=25))
def test_every_path_of_a_log_leads_to_its_block_in_every_store(
    store: EventStore, log: list[tuple[str, str, str]]
) -> None:
    events = [made(kind, turn, name, n) for n, (kind, turn, name) in enumerate(log)]
    there = everything(events)
    asked = [*there, *(f"{path}.2" for path in there), *(f"{path}.x" for path in there)]
    timeline = TimelineId(f"log {len(store.list())}")
    store.append(timeline, events, expected_version=0)
    for path in asked:
        assert block_at(store, timeline, path) == there.get(path), path


def test_another_timelines_blocks_are_not_found(store: EventStore) -> None:
    store.append(T, [made("prompt", "t1", "", 1)], expected_version=0)
    store.append(U, [made("prompt", "t1", "", 2)], expected_version=0)
    first, second = (block_at(store, name, "ar:t1.user.prompt") for name in (T, U))
    assert first
    assert second
    assert (first.id, second.id) == ("b1", "b2")
    assert block_at(store, TimelineId("nobody"), "ar:t1.user.prompt") is None


def test_a_block_is_found_by_where_it_came_from(store: EventStore) -> None:
    talk = TimelineId("sources")
    blocks: list[Block] = [
        replace(prompt("m3 is no source here"), source="m1"),
        said("b", response="msg_ÄÖ\"'%_\\1"),
        replace(said("c"), source="M1"),
        replace(said("d"), source="m1"),
    ]
    events = [BlockAppended(id=EventId(str(n)), at=float(n), block=b) for n, b in enumerate(blocks)]
    store.append(talk, events, expected_version=0)
    found = [source_at(store, talk, name) for name in ("m1", "M1", "msg_ÄÖ\"'%_\\1", "m3", "m")]
    assert found == [4, 3, 2, 0, 0]
    assert source_at(store, TimelineId("other"), "m1") == 0
