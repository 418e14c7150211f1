"""Our own export: what was written comes back, block by block."""

from pathlib import Path
from typing import Any

import pytest

from blocks import (
    AssistantCompletion,
    Block,
    BlockAppended,
    BlockId,
    BlocksHidden,
    CallId,
    Event,
    EventId,
    Hidden,
    Note,
    OpaqueBlock,
    RequestRendered,
    SessionFormatError,
    TextPart,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UsageRecorded,
    UserPrompt,
)
from persistence.sessions import Arrived, Responded, Session, export_lines, read_session

T1 = TurnId("t1")


def said(block: str, response: str = "m1") -> AssistantCompletion:
    return AssistantCompletion(id=BlockId(block), turn=T1, response=response, text=block)


def log(*facts: Block | dict[str, Any]) -> list[Event]:
    """Events one second apart; a dict is a rendered request."""
    events: list[Event] = []
    for second, fact in enumerate(facts, 1):
        event_id = EventId(f"e{second}")
        if isinstance(fact, dict):
            events.append(RequestRendered(id=event_id, at=second, content_hash="x", tokens=1))
        else:
            events.append(BlockAppended(id=event_id, at=second, block=fact))
    return events


def read(path: Path, events: list[Event]) -> Session:
    lines = export_lines(TimelineId("talk"), enumerate(events, 1))
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    return read_session(path)


HEADER = TurnHeader(id=BlockId("h"), turn=T1, started_at=1.0)
PROMPT = UserPrompt(id=BlockId("p"), turn=T1, text="go \u2028 on")
CALL = ToolCall(
    id=BlockId("c"), turn=T1, response="m1", call_id=CallId("c1"), name="ls", input={"a": None}
)
RESULT = ToolResult(
    id=BlockId("r"), turn=T1, call_id=CallId("c1"), parts=(TextPart(text="ok"),), is_error=True
)


def test_blocks_come_back_as_they_were_and_one_response_is_one_call(tmp_path: Path) -> None:
    session = read(
        tmp_path / "a.jsonl", log(HEADER, PROMPT, {}, said("s"), CALL, RESULT, said("t", "m2"))
    )
    assert (session.name, session.format) == ("talk", "foldline")
    assert session.items == (
        Arrived(at=1.0, blocks=(HEADER,)),
        Arrived(at=2.0, blocks=(PROMPT,)),
        Responded(at=3.0, id="m1", blocks=(said("s"), CALL)),
        Arrived(at=6.0, blocks=(RESULT,)),
        Responded(at=6.0, id="m2", blocks=(said("t", "m2"),)),
    )


def test_a_hidden_block_is_there_with_its_content(tmp_path: Path) -> None:
    hidden = BlocksHidden(
        id=EventId("x"), at=9.0, hidden=(Hidden(block=PROMPT.id),), reason="expired"
    )
    session = read(tmp_path / "a.jsonl", [*log(PROMPT), hidden])
    assert session.items[0].blocks == (PROMPT,)


def test_usage_goes_to_its_response(tmp_path: Path) -> None:
    usage = UsageRecorded(id=EventId("u"), at=9.0, model="claude-x", response="m1", uncached=4)
    session = read(tmp_path / "a.jsonl", [*log(PROMPT, said("s"), said("t", "m2")), usage])
    assert [call.usage for call in session.calls] == [usage, None]
    assert session.model == "claude-x"


def test_the_window_and_the_calls_outside_the_conversation_come_back(tmp_path: Path) -> None:
    used = UsageRecorded(id=EventId("u"), at=3.0, model="m", response="m1", window=900, uncached=7)
    aside = UsageRecorded(id=EventId("v"), at=3.0, model="m", window=900, uncached=5, aside=True)
    session = read(tmp_path / "e.jsonl", [*log(HEADER, PROMPT, said("a")), used, aside])
    assert session.window == 900
    assert [call.usage for call in session.calls] == [used]
    assert session.aside == (aside,)


def test_answers_without_a_response_id_are_one_call_as_long_as_nothing_is_between(
    tmp_path: Path,
) -> None:
    events = log(PROMPT, said("a", ""), said("b", ""), RESULT, said("c", ""))
    session = read(tmp_path / "a.jsonl", events)
    assert [len(call.blocks) for call in session.calls] == [2, 1]


def test_a_note_of_the_host_and_a_kind_of_tomorrow_just_arrive(tmp_path: Path) -> None:
    note = Note(id=BlockId("n"), turn=T1, text="mind")
    unknown = OpaqueBlock("user.gesture", {"id": "g", "turn": "t1", "wave": True})
    session = read(tmp_path / "a.jsonl", log(PROMPT, note, unknown))
    assert [item.blocks[0] for item in session.items] == [PROMPT, note, unknown]


def test_an_export_of_a_later_version_asks_for_an_update(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"foldline_export": 2, "timeline": "x"}\n', encoding="utf-8")
    with pytest.raises(SessionFormatError, match="update it"):
        read_session(path)
