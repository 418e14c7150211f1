"""mini-swe-agent: times only on answers, and an old form without tool calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import ToolResult, UserAttachment
from persistence.sessions import Session, read_session

Document = Callable[[Any], Path]
Kinds = Callable[[Session], list[str]]


def answer(at: float, text: str, call: str) -> dict[str, Any]:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    response = {"id": f"r-{call}", "model": "deep", "usage": usage}
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": call, "type": "function", "function": function}],
        "extra": {"timestamp": at, "response": response},
    }


def output(at: float, call: str, code: int) -> dict[str, Any]:
    extra = {"timestamp": at, "returncode": code}
    return {"role": "tool", "tool_call_id": call, "content": "out", "extra": extra}


def trajectory(*messages: dict[str, Any]) -> dict[str, Any]:
    head = [{"role": "system", "content": "Be helpful."}, {"role": "user", "content": "Fix it."}]
    return {
        "info": {"mini_version": "2.0"},
        "trajectory_format": "mini-swe-agent-1.1",
        "messages": [*head, *messages, {"role": "exit", "content": "diff"}],
    }


def test_the_first_question_is_five_seconds_older_than_its_answer(document: Document) -> None:
    session = read_session(
        document(
            trajectory(
                answer(1000.0, "a", "c1"), output(1003.0, "c1", 0), answer(1010.0, "b", "c2")
            )
        )
    )
    assert [call.at for call in session.calls] == [995.0, 1003.0]
    assert session.items[0].at == pytest.approx(995.0)


def test_system_model_usage_and_exit_codes_are_kept(document: Document, kinds: Kinds) -> None:
    session = read_session(document(trajectory(answer(1000.0, "a", "c1"), output(1001.0, "c1", 2))))
    assert (session.system, session.model) == ("Be helpful.", "deep")
    assert kinds(session) == ["turn prompt", "[text call]", "result"]
    used = session.calls[0].usage
    assert used is not None
    assert (used.uncached, used.cache_read, used.output) == (36, 64, 7)
    block = session.items[-1].blocks[0]
    assert isinstance(block, ToolResult)
    assert block.envelope.key_fields == {"exit_code": 2}
    assert block.envelope.outcome == "failure"


def test_a_complaint_of_the_environment_opens_no_turn(document: Document, kinds: Kinds) -> None:
    complaint = {"role": "user", "content": "Format error: one action, please."}
    session = read_session(document(trajectory(answer(1000.0, "a", "c1"), complaint)))
    assert kinds(session) == ["turn prompt", "[text call]", "attachment"]


def test_observations_of_the_old_list_can_be_pruned(document: Document, kinds: Kinds) -> None:
    session = read_session(
        document(
            [
                {"role": "system", "content": "One block."},
                {"role": "user", "content": "Fix it."},
                {"role": "assistant", "content": "```bash\nls\n```"},
                {"role": "user", "content": "<returncode>0</returncode>\n<output>a</output>"},
                {"role": "assistant", "content": "```bash\ncat a\n```"},
            ]
        )
    )
    assert session.format == "mini-swe-agent"
    assert kinds(session) == ["turn prompt", "[text]", "attachment", "[text]"]
    block = session.items[2].blocks[0]
    assert isinstance(block, UserAttachment)
    assert block.name == "observation"


def test_without_any_time_the_clock_stays_at_zero(document: Document) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    session = read_session(document(messages))
    assert {item.at for item in session.items} == {0.0}
