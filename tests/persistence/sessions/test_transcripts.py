"""Agents whose logs are plain messages with one thing of their own: Cursor, Droid, Grok."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import AssistantThinking, ImagePart, ToolResult, UserAttachment, UserPrompt, text_of
from persistence.sessions import Session, read_session

Write = Callable[..., Path]
Kinds = Callable[[Session], list[str]]
Json = dict[str, Any]


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def used(path: str, **more: Any) -> Json:
    return {"type": "tool_use", "name": "Read", "input": {"file_path": path}, **more}


def result(call: str, words: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": [text(words)]}


def cursor(role: str, *content: Json) -> Json:
    return {"role": role, "message": {"content": list(content)}}


def test_cursors_calls_have_no_ids_and_results_come_in_their_order(
    write: Write, kinds: Kinds
) -> None:
    session = read_session(
        write(
            cursor("user", text("go")),
            cursor("assistant", text("I look."), used("a"), used("b"), used("c", id="own")),
            cursor("user", result("own", "C"), result("t1", "A"), result("t2", "B")),
            cursor("assistant", text("Done.")),
        )
    )
    assert session.format == "cursor"
    assert kinds(session) == [
        *("turn prompt", "[text call call call]", "result", "result", "result", "[text]")
    ]
    assert not session.notices
    shown = [(b.call_id, text_of(b)) for i in session.items for b in i.blocks if isinstance(b, ToolResult)]  # fmt: skip
    assert shown == [("own", "C"), ("call_1", "A"), ("call_2", "B")]


def test_a_result_of_cursors_with_nobody_to_have_asked_is_reported(write: Write) -> None:
    session = read_session(write(cursor("user", text("go")), cursor("user", result("t1", "A"))))
    assert [notice.line for notice in session.notices] == [2]


def droid(second: int, role: str, *content: Json) -> Json:
    message = {"role": role, "content": list(content)}
    at = f"2026-01-01T00:00:{second:02}Z"
    return {"type": "message", "id": f"m{second}", "timestamp": at, "message": message}


def _named(line: Json, model: str) -> Json:
    return {**line, "message": {**line["message"], "model": model}}


def test_droids_messages_are_read_in_the_order_of_the_file(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            {"type": "session_start", "id": "s", "title": "t"},
            droid(1, "user", text("<system-reminder>mind</system-reminder>"), text("go")),
            droid(3, "assistant", text("I look."), used("a", id="c1")),
            {"type": "todo_state", "todos": []},
            droid(4, "user", result("c1", "A"), text("also this")),
            _named(droid(6, "assistant", text("Done.")), "claude-x"),
        )
    )
    assert (session.format, session.model) == ("droid", "claude-x")
    assert kinds(session) == ["turn attachment prompt", "[text call]", "result", "steer", "[text]"]
    assert [call.id for call in session.calls] == ["m3", "m6"]
    assert session.calls[1].at - session.calls[0].at == pytest.approx(3)


def test_groks_reasoning_belongs_to_what_it_led_to(write: Write, kinds: Kinds) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    call = {"id": "c1", "name": "read_file", "arguments": '{"target_file": "a"}'}
    picture = {"type": "image", "url": "data:image/png;base64,AAAA"}
    told = {"type": "user", "content": [text("on a Mac")], "synthetic_reason": "environment"}
    answer = {"type": "assistant", "content": "", "tool_calls": [call], "model_id": "grok-x"}
    session = read_session(
        write(
            {"type": "system", "content": "You are it."},
            *(told, {"type": "user", "content": [text("go")], "prompt_index": 0}),
            *(reasoning, answer, {"type": "tool_result", "tool_call_id": "c1", "content": "A"}),
            {"type": "backend_tool_call", "kind": {"tool_type": "web_search"}},
            {"type": "assistant", "content": "Done.", "model_id": "grok-x"},
            *(reasoning, {"type": "user", "content": [picture, text("this one")]}),
            {"type": "assistant", "content": "Seen.", "model_id": "grok-x"},
        )
    )
    assert (session.format, session.model, session.system) == ("grok", "grok-x", "You are it.")
    assert kinds(session) == [
        *("turn attachment", "prompt", "[thinking call]", "result"),
        *("[text]", "turn prompt", "[text]"),
    ]
    context, prompt = session.items[0].blocks[1], session.items[5].blocks[1]
    assert isinstance(context, UserAttachment)
    assert context.name == "environment"
    assert isinstance(prompt, UserPrompt)
    assert isinstance(prompt.parts[0], ImagePart)
    thought = session.calls[0].blocks[0]
    assert isinstance(thought, AssistantThinking)
    assert thought.provider == reasoning
