"""Qwen Code's chats: a tree of records with Gemini's contents."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from blocks import ToolResult, UserAttachment, text_of
from persistence.sessions import Session, read_session

Write = Callable[..., Path]
Kinds = Callable[[Session], list[str]]
Record = dict[str, Any]


def record(second: int, own: str, parent: str | None, kind: str, *parts: Any) -> Record:
    role = "model" if kind == "assistant" else "user"
    message = {"message": {"role": role, "parts": list(parts)}} if parts else {}
    return {
        "uuid": own,
        "parentUuid": parent,
        "type": kind,
        "timestamp": f"2026-01-01T00:00:{second:02}Z",
        **message,
    }


CALL = {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}}
RESULT = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "text"}}}
ASK = record(1, "a", None, "user", {"text": "go"})
USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 60,
    "candidatesTokenCount": 4,
    "thoughtsTokenCount": 3,
}


def test_records_of_one_id_are_one_response(write: Write, kinds: Kinds) -> None:
    answer = record(3, "b", "a", "assistant", CALL, {"text": "I look."})
    session = read_session(
        write(
            ASK,
            record(2, "b", "a", "assistant", {"text": "hm", "thought": True}),
            {**answer, "model": "qwen-x", "usageMetadata": USAGE},
            record(4, "c", "b", "tool_result", RESULT),
            record(5, "d", "c", "assistant", {"text": "Done."}),
            record(6, "e", "d", "system"),
        )
    )
    assert (session.format, session.model) == ("qwen", "qwen-x")
    assert kinds(session) == ["turn prompt", "[thinking call text]", "result", "[text]"]
    used = session.calls[0].usage
    assert used is not None
    assert (used.uncached, used.cache_read, used.output) == (40, 60, 7)
    assert (used.model, used.response) == ("qwen-x", "b")
    assert text_of(session.items[2].blocks[0]) == "text"


def test_what_was_rewound_is_left_out(write: Write, kinds: Kinds) -> None:
    more = record(5, "e", "d", "user", {"text": "rather this"})
    lines = (
        ASK,
        record(2, "b", "a", "assistant", {"text": "left"}),
        record(3, "c", "b", "system"),
        {**record(4, "d", "a", "system"), "subtype": "rewind"},
    )
    assert kinds(read_session(write(*lines))) == ["turn prompt"]
    answer = record(6, "f", "e", "assistant", {"text": "right"})
    session = read_session(write(*lines, more, answer, record(7, "g", "f", "system")))
    assert kinds(session) == ["turn prompt", "turn prompt", "[text]"]
    assert text_of(session.calls[0].blocks[0]) == "right"


def test_a_missing_parent_is_the_record_before(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            ASK,
            record(2, "b", "a", "assistant", CALL),
            record(3, "c", "lost", "tool_result", RESULT),
            record(4, "d", "c", "assistant", {"text": "ok"}),
        )
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "[text]"]


def test_words_of_the_harness_are_context_and_words_in_a_turn_steer(
    write: Write, kinds: Kinds
) -> None:
    asked = record(2, "b", "a", "assistant", CALL)
    news = {**record(3, "c", "b", "user", {"text": "task ended"}), "subtype": "notification"}
    more = {**record(4, "d", "c", "user", {"text": "hurry"}), "subtype": "mid_turn_user_message"}
    failed = {
        **record(5, "e", "d", "tool_result", RESULT),
        "toolCallResult": {"callId": "c1", "status": "error"},
    }
    session = read_session(write(ASK, asked, news, more, failed))
    assert kinds(session) == ["turn prompt", "[call]", "result", "attachment", "steer"]
    result, context = session.items[2].blocks[0], session.items[3].blocks[0]
    assert isinstance(result, ToolResult)
    assert isinstance(context, UserAttachment)
    assert (result.is_error, context.name) == (True, "notification")
