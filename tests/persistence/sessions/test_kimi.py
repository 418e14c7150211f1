"""Kimi's wire log: steps with their parts, usage and ids that come last."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import AssistantThinking, ToolResult, UserAttachment
from persistence.sessions import Session, read_session

Write = Callable[..., Path]
Kinds = Callable[[Session], list[str]]

SECOND = 1_000
START = 1_785_000_000_000
Line = dict[str, Any]
HEAD: tuple[Line, ...] = (
    {"type": "metadata", "protocol_version": "1.4", "created_at": START},
    {"type": "config.update", "systemPrompt": "You are it.", "time": START},
)


def loop(second: int, kind: str, step: str, **fields: Any) -> Line:
    event = {"type": kind, **({"uuid": step} if kind in {"step.begin", "step.end"} else {})}
    event = {**event, "stepUuid": step, **fields}
    return {
        "type": "context.append_loop_event",
        "event": event,
        "time": START + second * SECOND,
    }


def said(second: int, text: str, origin: str = "user", **more: Any) -> Line:
    content = [{"type": "text", "text": text}]
    message = {"role": "user", "content": content, "origin": {"kind": origin, **more}}
    return {"type": "context.append_message", "message": message, "time": START + second * SECOND}


def asked(second: int, step: str) -> list[Line]:
    request = {"type": "llm.request", "model": "kimi-x", "time": START + second * SECOND}
    return [loop(second, "step.begin", step), request]


def called(second: int, step: str, call: str) -> Line:
    return loop(second, "tool.call", step, toolCallId=call, name="Bash", args={"command": "ls"})


def returned(second: int, call: str, **result: Any) -> Line:
    return loop(second, "tool.result", "", toolCallId=call, result={"output": "a", **result})


def ended(second: int, step: str, reason: str) -> Line:
    usage = {"inputOther": 10, "output": 5, "inputCacheRead": 80, "inputCacheCreation": 2}
    return loop(second, "step.end", step, usage=usage, finishReason=reason, messageId=f"m-{step}")


def test_a_step_is_a_response_with_its_usage_and_its_id(write: Write, kinds: Kinds) -> None:
    think = {"type": "think", "think": "hm"}
    prompt = {"type": "turn.prompt", "input": [{"type": "text", "text": "go"}]}
    session = read_session(
        write(
            *(*HEAD, prompt, said(1, "go"), *asked(2, "s1")),
            loop(4, "content.part", "s1", part=think),
            called(4, "s1", "c1"),
            returned(5, "c1", isError=True),
            ended(5, "s1", "tool_use"),
            {"type": "usage.record", "usage": {"inputOther": 10}},
            *asked(6, "s2"),
            loop(7, "content.part", "s2", part={"type": "text", "text": "Done."}),
            ended(7, "s2", "end_turn"),
            {"type": "context.apply_compaction", "summary": "all so far"},
        )
    )
    assert (session.format, session.model, session.system) == ("kimi", "kimi-x", "You are it.")
    assert kinds(session) == ["turn prompt", "[thinking call]", "result", "[text]"]
    assert [call.id for call in session.calls] == ["m-s1", "m-s2"]
    used = session.calls[0].usage
    assert used is not None
    assert (used.uncached, used.cache_read, used.cache_write, used.output) == (10, 80, 2, 5)
    assert session.calls[1].at - session.calls[0].at == pytest.approx(4)
    thought, result = session.calls[0].blocks[0], session.items[2].blocks[0]
    assert isinstance(thought, AssistantThinking)
    assert thought.provider == {"type": "reasoning_content", "reasoning_content": "hm"}
    assert isinstance(result, ToolResult)
    assert result.is_error


def test_a_prompt_that_nothing_answered_keeps_its_turn(write: Write, kinds: Kinds) -> None:
    session = read_session(write(*HEAD, said(1, "hi"), *asked(2, "s1"), said(3, "hi")))
    assert kinds(session) == ["turn prompt", "turn prompt"]


def test_words_after_a_step_that_never_ended_are_a_prompt(write: Write, kinds: Kinds) -> None:
    asked_for = (called(3, "s1", "c1"), returned(4, "c1"), ended(4, "s1", "tool_use"))
    broken = asked(5, "s2")
    session = read_session(
        write(*HEAD, said(1, "go"), *asked(2, "s1"), *asked_for, *broken, said(6, "again"))
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "turn prompt"]


def test_reminders_are_context_and_words_between_steps_steer(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            *(*HEAD, said(1, "go"), *asked(2, "s1"), called(3, "s1", "c1"), returned(4, "c1")),
            ended(4, "s1", "tool_use"),
            said(5, "mind the list", "injection", variant="todo"),
            said(6, "the other file"),
        )
    )
    assert kinds(session)[3:] == ["attachment", "steer"]
    reminder = session.items[3].blocks[0]
    assert isinstance(reminder, UserAttachment)
    assert reminder.name == "todo"
