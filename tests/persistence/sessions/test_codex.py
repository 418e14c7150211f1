"""Codex rollouts: items without response ids, screen events, raw tool input."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import (
    AssistantThinking,
    ImagePart,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserPrompt,
    text_of,
)
from persistence.sessions import Session, read_session

Write = Callable[..., Path]
Kinds = Callable[[Session], list[str]]


def line(second: float, kind: str, **payload: Any) -> dict[str, Any]:
    return {
        "timestamp": f"2026-01-01T00:00:{second:06.3f}Z",
        "type": kind,
        "payload": payload,
    }


def item(second: float, kind: str, **fields: Any) -> dict[str, Any]:
    return line(second, "response_item", **{"type": kind, **fields})


def event(second: float, kind: str, **fields: Any) -> dict[str, Any]:
    return line(second, "event_msg", **{"type": kind, **fields})


def said(second: float, role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(second, "message", role=role, content=[{"type": kind, "text": text}])


def call(second: float, call_id: str, arguments: str = '{"cmd": "ls"}') -> dict[str, Any]:
    return item(second, "function_call", name="exec", arguments=arguments, call_id=call_id)


def output(second: float, call_id: str, text: Any = "ok") -> dict[str, Any]:
    return item(second, "function_call_output", call_id=call_id, output=text)


def tokens(second: float, total: int, prompt: int, cached: int = 0) -> dict[str, Any]:
    last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": 5}
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    return event(second, "token_count", info=info)


def test_items_without_an_output_between_them_are_one_call(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            said(0, "user", "go"),
            item(1, "reasoning", summary=[], encrypted_content="REDACTED"),
            said(2, "assistant", "I look"),
            call(3, "c1"),
            call(4, "c2"),
            output(5, "c1"),
            output(6, "c2"),
            said(9, "assistant", "done"),
        )
    )
    assert kinds(session) == [
        "turn prompt",
        "[thinking text call call]",
        "result",
        "result",
        "[text]",
    ]
    first, second = session.calls
    assert second.at - first.at == pytest.approx(6)
    assert len({call.id for call in session.calls}) == 2


def test_reasoning_is_kept_whole_and_without_an_answer_it_is_no_call(write: Write) -> None:
    session = read_session(
        write(
            said(0, "user", "go"),
            item(1, "reasoning", summary=[], encrypted_content="lost"),
            said(2, "user", "wait"),
            item(3, "reasoning", summary=[], encrypted_content="REDACTED"),
            said(4, "assistant", "ok"),
        )
    )
    (response,) = session.calls
    assert isinstance(response.blocks[0], AssistantThinking)
    assert response.blocks[0].provider == {
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "REDACTED",
    }
    assert len(response.blocks) == 2


def test_the_first_user_messages_are_the_environment(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            said(0, "developer", "<permissions instructions>all"),
            said(0, "developer", "mode: default"),
            said(0, "user", "<environment_context>cwd</environment_context>"),
            said(0, "user", "# AGENTS.md instructions for /x"),
            said(1, "user", "fix it"),
            said(2, "assistant", "ok"),
        )
    )
    assert kinds(session)[:5] == ["turn instruction", "instruction", *["attachment"] * 2, "prompt"]
    blocks = [b for i in session.items for b in i.blocks]
    assert [b.name for b in blocks if isinstance(b, UserAttachment)] == [
        "environment_context",
        "AGENTS.md",
    ]
    roles = [(b.role, b.text) for b in blocks if isinstance(b, SystemMessage)]
    assert roles == [("developer", "<permissions instructions>all"), ("developer", "mode: default")]


def test_words_inside_a_running_task_steer_and_after_it_they_prompt(
    write: Write, kinds: Kinds
) -> None:
    session = read_session(
        write(
            event(0, "task_started"),
            said(0, "user", "go"),
            call(1, "c1"),
            output(2, "c1"),
            said(3, "user", "not that one"),
            said(4, "assistant", "ok"),
            event(5, "task_complete"),
            said(6, "user", "next"),
        )
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "steer", "[text]", "turn prompt"]


def test_custom_tools_get_raw_text_and_broken_arguments_stay_text(write: Write) -> None:
    custom = item(1, "custom_tool_call", name="apply_patch", input='{"no": json}', call_id="c1")
    session = read_session(write(said(0, "user", "go"), custom, call(2, "c2", '{"cut": ')))
    calls = [block for block in session.calls[0].blocks if isinstance(block, ToolCall)]
    assert [block.input for block in calls] == [{"input": '{"no": json}'}, {"input": '{"cut": '}]


@pytest.mark.parametrize(
    ("text", "code", "outcome"),
    [
        ("Wall time: 1\nProcess exited with code 128\nOutput:\nno", 128, "failure"),
        ("Exit code: 0\nOutput:\nExit code: 7", 0, "success"),
        (
            '{"output":"Exit code: 0","metadata":{"exit_code":7,"duration_seconds":0.5}}',
            7,
            "failure",
        ),
    ],
)
def test_the_exit_code_of_an_output_is_a_key_field(
    write: Write, text: str, code: int, outcome: str
) -> None:
    session = read_session(write(said(0, "user", "go"), call(1, "c1"), output(2, "c1", text)))
    block = session.items[-1].blocks[0]
    assert isinstance(block, ToolResult)
    assert block.envelope.key_fields == {"exit_code": code}
    assert block.envelope.outcome == outcome
    assert not block.is_error


def test_usage_counts_once_without_its_cached_part_and_not_for_compactions(write: Write) -> None:
    session = read_session(
        write(
            said(0, "user", "go"),
            call(1, "c1"),
            output(2, "c1"),
            tokens(2, 100, prompt=90, cached=80),
            event(3, "token_count", info=None),
            said(4, "assistant", "done"),
            tokens(4, 100, prompt=90, cached=80),
            tokens(5, 150, prompt=0),
        )
    )
    first, second = session.calls
    assert first.usage is not None
    assert (first.usage.uncached, first.usage.cache_read, first.usage.output) == (10, 80, 5)
    assert second.usage is None


def test_every_call_is_counted_even_if_its_response_is_not_by_itself_in_the_log(
    write: Write,
) -> None:
    session = read_session(
        write(
            said(0, "user", "go"),
            call(1, "c1"),
            tokens(2, 100, prompt=90, cached=80),
            tokens(3, 210, prompt=110, cached=90),
            output(4, "c1"),
        )
    )
    assert [call.usage and call.usage.input for call in session.calls] == [110]
    assert [used.input for used in session.aside] == [90]


def test_the_log_says_the_window(write: Write) -> None:
    window = event(2, "token_count", info={"model_context_window": 258_400})
    session = read_session(write(said(0, "user", "go"), call(1, "c1"), window))
    assert session.window == 258_400


def test_instructions_model_and_folder_come_from_their_first_mention(write: Write) -> None:
    session = read_session(
        write(
            line(0, "session_meta", id="s", cwd="/w", base_instructions={"text": "You are it."}),
            line(0, "turn_context", model="gpt-x"),
            said(0, "user", "go"),
            said(1, "assistant", "ok"),
            line(2, "session_meta", id="s", base_instructions={"text": "Other."}),
            line(2, "turn_context", model="gpt-y"),
            said(3, "assistant", "ok"),
        )
    )
    assert (session.system, session.model) == ("You are it.", "gpt-x")
    assert (session.id, session.folder) == ("s", "/w")


def test_screen_events_searches_and_compactions_are_no_history(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            said(0, "user", "go"),
            event(0, "user_message", message="go"),
            said(1, "assistant", "I search"),
            item(2, "web_search_call", status="completed"),
            said(3, "assistant", "found"),
            event(3, "agent_message", message="found"),
            line(4, "compacted", message="", replacement_history=[{"type": "message"}]),
        )
    )
    assert kinds(session) == ["turn prompt", "[text text]"]


def test_a_picture_keeps_its_place_between_the_words(write: Write) -> None:
    content = [
        {"type": "input_text", "text": "before"},
        {"type": "input_image", "image_url": "data:image/webp;base64,REDACTED=="},
        {"type": "input_image", "image_url": None},
        {"type": "input_text", "text": "after"},
    ]
    session = read_session(write(item(0, "message", role="user", content=content)))
    prompt = session.items[0].blocks[1]
    assert isinstance(prompt, UserPrompt)
    assert prompt.text == "before"
    assert prompt.parts[0] == ImagePart(media_type="image/webp", data="REDACTED==")
    assert "after" in str(prompt.parts[1:])


def test_an_output_of_unknown_shape_is_shown_as_json(write: Write) -> None:
    session = read_session(
        write(said(0, "user", "go"), call(1, "c1"), output(2, "c1", [{"type": "x", "n": 1}]))
    )
    assert text_of(session.items[-1].blocks[0]) == '[{"type":"x","n":1}]'
