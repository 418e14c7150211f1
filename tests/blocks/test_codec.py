"""Events and blocks as bytes: nothing is lost, and what JSON cannot hold is replaced visibly."""

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    ArtifactId,
    AssistantCompletion,
    AssistantThinking,
    Bill,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    BlocksRestored,
    CacheEntry,
    Calibration,
    CallId,
    Carried,
    CodecError,
    CompactionSkipped,
    Digest,
    DocumentPart,
    DroppedSpan,
    Envelope,
    Event,
    EventId,
    FoldState,
    Hidden,
    ImagePart,
    Note,
    OpaqueBlock,
    OpaqueEvent,
    Plan,
    Provenance,
    ProviderPart,
    RangeCompacted,
    RangeExpanded,
    RangeSummary,
    Region,
    RequestRendered,
    StructuredSummary,
    SummaryPrepared,
    SummaryReplaced,
    SummaryRequested,
    SystemMessage,
    TextPart,
    TimelineForked,
    TimelineId,
    TokensCounted,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UsageRecorded,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    canonical_block,
    clean_json,
    decode_event,
    encode_block,
    encode_event,
    kind_of,
    tag_of,
)
from blocks._codec import decode_block, is_known
from tests._table import for_each

B, T, E = BlockId("b1"), TurnId("t1"), EventId("e1")
PARTS = (
    TextPart(text="a\0b"),
    ImagePart(data="aGk=", url=""),
    DocumentPart(url="https://example.org/a.pdf", name="a.pdf"),
    ProviderPart(value={"type": "search_result", "n": 10**30}),
)
SUMMARY = RangeSummary(
    id=B,
    turn=T,
    covered_turn_ids=(T,),
    split_turn_id=T,
    start=1,
    cut=9,
    summary=StructuredSummary(task="do it", facts=("one",)),
    digest=Digest(regions=(Region(file="a.py", seen=3, text="a"),)),
    degraded=True,
)

EVERY_BLOCK: dict[str, Block] = {
    "turn.header": TurnHeader(id=B, turn=T, started_at=1.5),
    "user.prompt": UserPrompt(id=B, turn=T, text="héllo", parts=PARTS),
    "user.followup": UserFollowup(id=B, turn=T, text=""),
    "user.steer": UserSteer(id=B, turn=T, text="wait"),
    "user.attachment": UserAttachment(id=B, turn=T, name="a.txt", part=PARTS[0], mime="text/x"),
    "assistant.thinking": AssistantThinking(
        id=B, turn=T, provider={"type": "thinking", "signature": None}
    ),
    "assistant.completion": AssistantCompletion(id=B, turn=T, text="hi", response="r1"),
    "react.tool.call": ToolCall(
        id=B, turn=T, call_id=CallId("c"), name="f", input={"a": [1, None, {"b": -0.5}]}
    ),
    "react.tool.result": ToolResult(
        id=B,
        turn=T,
        call_id=CallId("c"),
        parts=PARTS,
        is_error=True,
        envelope=Envelope(outcome="partial", key_fields={"exit": 1}, durability="ephemeral"),
    ),
    "react.note": Note(id=B, turn=T, text="remember"),
    "react.plan": Plan(id=B, turn=T, text="1. do"),
    "system.message": SystemMessage(id=B, turn=T, text="notice"),
    "conv.range.summary": SUMMARY,
}
"""The tags on disk and in SQL. A released tag never changes: this table only ever grows."""

EVERY_EVENT: dict[str, Event] = {
    "BlockAppended": BlockAppended(id=E, at=1.0, block=EVERY_BLOCK["react.tool.result"]),
    "BlocksHidden": BlocksHidden(
        id=E,
        at=1.0,
        hidden=(
            Hidden(
                block=B,
                replacement="r",
                artifact=ArtifactId("a"),
                dropped=DroppedSpan(first=1, last=2),
            ),
        ),
        reason="requested",
    ),
    "BlocksRestored": BlocksRestored(id=E, at=1.0, blocks=(B,)),
    "RangeCompacted": RangeCompacted(
        id=E,
        at=1.0,
        start=1,
        cut=9,
        summary=SUMMARY,
        carried=(Carried(version=3, block=EVERY_BLOCK["react.note"], ordinal=2, clipped="c"),),
        state=FoldState(turns=3, turn=T, calibrations={"m": Calibration(ratio=1.25)}),
        provenance=Provenance(source_hash="ff", cost_usd=0.25),
    ),
    "RangeExpanded": RangeExpanded(id=E, at=1.0, compaction=4),
    "SummaryReplaced": SummaryReplaced(id=E, at=1.0, compaction=4, summary=SUMMARY),
    "SummaryRequested": SummaryRequested(id=EventId("e"), at=1.5, calls=2),
    "SummaryPrepared": SummaryPrepared(
        id=E,
        at=1.0,
        key="k",
        cut=9,
        summary=StructuredSummary(state="s"),
        provenance=Provenance(source_hash="ff"),
    ),
    "CompactionSkipped": CompactionSkipped(id=E, at=1.0, reason="no_gain", tokens=5, detail="d"),
    "RequestRendered": RequestRendered(
        id=E,
        at=1.0,
        content_hash="ff",
        tokens=9,
        cache_points=(1, 2),
        prefix_hash="aa",
        ttl=3600.0,
        rehydrated=(ArtifactId("art-0"),),
    ),
    "UsageRecorded": UsageRecorded(
        id=E,
        at=1.0,
        model="m",
        uncached=1,
        cache_read=2,
        estimated=3,
        bill=Bill(
            paid=0.25,
            full=0.5,
            full_tokens=9,
            cache="salt.hash",
            entries=(CacheEntry(prefix=-(2**63), tokens=7, seconds=300),),
            sent_entries=(),
        ),
    ),
    "TokensCounted": TokensCounted(id=E, at=1.0, model="m", input=5, estimated=3),
    "TimelineForked": TimelineForked(id=E, at=1.0, parent=TimelineId("p"), version=7),
}


def through_bytes(block: Block) -> Block:
    return decode_block(encode_block(block))


@for_each("tag", EVERY_BLOCK)
def test_every_kind_of_block_survives_and_keeps_its_name(tag: str) -> None:
    block = EVERY_BLOCK[tag]
    assert tag_of(block) == tag
    assert json.loads(encode_block(block))["type"] == tag
    assert through_bytes(block) == block
    assert type(through_bytes(block)) is type(block)


@for_each("kind", EVERY_EVENT)
def test_every_kind_of_event_survives_and_keeps_its_name(kind: str) -> None:
    event = EVERY_EVENT[kind]
    assert kind_of(event) == kind
    assert json.loads(encode_event(event))["event"] == kind
    assert decode_event(encode_event(event)) == event


def test_the_tables_name_every_kind_there_is() -> None:
    """A new kind joins the tables; a renamed one is noticed."""
    from blocks._block import KnownBlock
    from blocks._events import KnownEvent

    assert [tag_of(block) for block in EVERY_BLOCK.values()] == list(EVERY_BLOCK)
    assert {type(block) for block in EVERY_BLOCK.values()} == set(get_args(KnownBlock))
    assert {type(event) for event in EVERY_EVENT.values()} == set(get_args(KnownEvent))


def test_the_fields_on_the_wire_are_the_ones_that_were_released() -> None:
    """Renaming a field orphans stored data as surely as renaming a tag."""
    fields = {tag: tuple(json.loads(encode_block(b))) for tag, b in EVERY_BLOCK.items()}
    assert fields["react.tool.call"] == ("type", "id", "turn", "call_id", "name", "input")
    assert fields["react.tool.result"][3:] == ("call_id", "parts", "is_error", "envelope")
    assert fields["assistant.completion"] == ("type", "id", "turn", "response", "text")
    assert fields["user.attachment"] == ("type", "id", "turn", "name", "part", "mime")
    assert fields["conv.range.summary"][3:] == (
        "covered_turn_ids", "split_turn_id", "start", "cut", "summary", "digest", "degraded",
    )  # fmt: skip


# What nobody knows.

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
json_objects = st.dictionaries(st.text(), json_values, max_size=5)


def utf8(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(st.text(min_size=1), json_objects)
def test_a_block_of_an_unknown_kind_comes_back_equal(tag: str, fields: dict[str, Any]) -> None:
    if not utf8([tag, fields]) or tag in EVERY_BLOCK:
        return
    fields.pop("type", None)
    block = OpaqueBlock(tag, fields)
    assert through_bytes(block) == block
    assert not is_known(block)


@given(st.text(min_size=1), json_objects)
def test_an_event_of_an_unknown_kind_comes_back_equal(kind: str, fields: dict[str, Any]) -> None:
    if not utf8([kind, fields]) or kind in EVERY_EVENT:
        return
    fields.pop("event", None)
    event = OpaqueEvent(kind, fields)
    assert decode_event(encode_event(event)) == event


def test_a_field_of_an_unknown_kind_that_is_null_is_none() -> None:
    """As in the columns of a store, which have no text `None`."""
    block = OpaqueBlock("their.kind", {"id": None, "turn": None, "author": None, "text": None})
    assert (block.id, block.turn, block.author, block.text) == ("", "", "", "")


def test_an_unknown_block_survives_inside_known_events() -> None:
    """Both ways in which an event holds a block."""
    block = OpaqueBlock("their.kind", {"id": "x", "turn": "t1", "deep": {"a": [None, 1.5]}})
    carried = (Carried(version=2, block=block, ordinal=3),)
    events = [
        BlockAppended(id=E, at=1.0, block=block),
        msgspec.structs.replace(EVERY_EVENT["RangeCompacted"], carried=carried),  # type: ignore[type-var]
    ]
    for event in events:
        assert decode_event(encode_event(event)) == event


@for_each(
    "data",
    [
        {"event": "BlockAppended", "id": "e", "at": 1.0, "block": {"type": "user.prompt"}},
        {"event": "BlockAppended", "id": "e", "at": 1.0, "block": 5},
        {"event": "BlockAppended", "id": "e", "at": "soon", "block": {"type": "x"}},
        {"event": "RangeCompacted", "id": "e", "at": 1.0, "carried": 7},
        {"event": "RangeCompacted", "id": "e", "at": 1.0, "carried": [{"version": "x"}]},
        {"event": "RangeCompacted", "id": "e", "at": 1.0, "carried": [{"block": []}]},
        {"event": "BlocksHidden", "id": "e", "at": 1.0, "hidden": "all", "reason": "x"},
        {"event": 5, "id": []},
        {"id": "no kind at all"},
    ],
)
def test_one_bad_event_bricks_nothing(data: dict[str, Any]) -> None:
    """A known kind in a shape that nobody knows is kept as it is."""
    event = decode_event(json.dumps(data))
    assert decode_event(encode_event(event)) == event
    assert isinstance(event, OpaqueEvent | BlockAppended)
    assert isinstance(event.id, str)
    assert isinstance(event.at, float)


@for_each(
    "data",
    [
        b"",
        b"[]",
        b"5",
        b"{",
        b'"x"',
        b"null",
        b"\xff",
        b'{"a":\xff}',
        b'{"event":"\xff"}',
        b'{"type":"\xff"}',
    ],
)
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode_event(data)
    with pytest.raises(CodecError):
        decode_block(data)


def test_what_is_no_data_is_refused() -> None:
    with pytest.raises(CodecError):
        encode_block(ToolCall(id=B, turn=T, call_id=CallId("c"), name="f", input={"f": print}))


# Older shapes.


def renamed(old: str, new: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def upcast(fields: dict[str, Any]) -> dict[str, Any]:
        return {new if key == old else key: value for key, value in fields.items()}

    return upcast


def test_older_shapes_are_brought_up_to_date_step_by_step() -> None:
    upcasters: Mapping[str, Sequence[Any]] = {
        "user.prompt": (renamed("words", "content"), renamed("content", "text")),
        "BlocksRestored": (renamed("ids", "blocks"),),
    }
    old = {"type": "user.prompt", "id": "b1", "turn": "t1", "words": "hi"}
    wanted = UserPrompt(id=B, turn=T, text="hi")
    assert decode_block(json.dumps(old), upcasters) == wanted
    appended = {"event": "BlockAppended", "id": "e1", "at": 1.0, "block": old}
    assert decode_event(json.dumps(appended), upcasters) == BlockAppended(
        id=E, at=1.0, block=wanted
    )
    restored = {"event": "BlocksRestored", "id": "e1", "at": 1.0, "ids": ["b1"]}
    assert decode_event(json.dumps(restored), upcasters) == EVERY_EVENT["BlocksRestored"]


@for_each("value", [None, math.nan, 1.0])
@for_each("text", ["[null,", '{"a":null}', '\\":null,"', "null"])
def test_a_text_that_speaks_of_null_is_kept_and_hides_no_loss(text: str, value: Any) -> None:
    call = ToolCall(id=B, turn=T, call_id=CallId("c"), name="f", input={"t": text, "v": value})
    kept = json.loads(encode_block(call))["input"]
    assert kept == {"t": text, "v": "NaN" if value != value else value}  # noqa: PLR0124 -- NaN


def test_without_its_upcaster_an_older_shape_is_kept_as_it_is() -> None:
    old = {"type": "user.prompt", "id": "b1", "turn": "t1", "words": "hi"}
    block = decode_block(json.dumps(old))
    assert isinstance(block, OpaqueBlock)
    assert json.loads(encode_block(block)) == old


# What JSON cannot hold.


@for_each(
    ("value", "kept"),
    [
        (math.nan, "NaN"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        ("\ud800", "\\ud800"),
        ("a\0b", "a\0b"),
        (10**400, 10**400),
        (-(2**63) - 1, -(2**63) - 1),
        (1e308, 1e308),
        ((1, 2), [1, 2]),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        ({True: 1}, {"True": 1}),
        (b"hi", "aGk="),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (None, None),
    ],
)
def test_what_json_cannot_hold_is_replaced_visibly(value: Any, kept: Any) -> None:
    call = ToolCall(id=B, turn=T, call_id=CallId("c"), name="f", input={"v": value})
    canonical = canonical_block(call)
    assert isinstance(canonical, ToolCall)
    assert canonical.input == {"v": kept}
    assert through_bytes(canonical) == canonical


def test_what_another_writer_let_through_is_read_and_spelled_out() -> None:
    block = decode_block(b'{"type":"user.prompt","id":"b1","turn":"t1","text":"x\\udc80y"}')
    assert block == UserPrompt(id=B, turn=T, text="x\\udc80y")


def test_a_surrogate_in_any_text_does_no_harm() -> None:
    block = canonical_block(UserPrompt(id=B, turn=T, text="x\udc80y"))
    assert isinstance(block, UserPrompt)
    assert block.text == "x\\udc80y"


def test_a_block_that_its_type_forbids_is_kept_as_what_it_is() -> None:
    """Type checkers catch it; a caller without one must not brick the log."""
    wrong: Any = UserPrompt(id=B, turn=T, text=5)  # type: ignore[arg-type]
    block = canonical_block(wrong)
    assert isinstance(block, OpaqueBlock)
    assert block.tag == "user.prompt"


def test_too_deep_a_nesting_is_refused_where_it_comes_in() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(CodecError):
        canonical_block(ToolCall(id=B, turn=T, call_id=CallId("c"), name="f", input=deep))


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.booleans() | st.none(), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(anything)
def test_canonical_blocks_are_read_back_as_they_are(value: Any) -> None:
    call = ToolCall(id=B, turn=T, call_id=CallId("c"), name="f", input={"v": value})
    once = canonical_block(call)
    assert canonical_block(once) is once
    assert through_bytes(once) == once


@given(anything)
def test_clean_json_is_json(value: Any) -> None:
    cleaned = clean_json(value)
    assert json.loads(json.dumps(cleaned, allow_nan=False)) == cleaned
    assert clean_json(cleaned) == cleaned
