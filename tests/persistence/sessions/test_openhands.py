"""OpenHands' events, old and new."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import ToolCall, ToolResult, text_of
from persistence.sessions import Session, read_session

Write = Callable[..., Path]
Kinds = Callable[[Session], list[str]]


def event(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": number, "timestamp": f"2026-01-01T00:00:{number:02}", **fields}


def action(number: int, response: str = "", call: str = "toolu_01") -> dict[str, Any]:
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    message = {"content": "I look", "tool_calls": [{"id": call, "function": function}]}
    completion = {
        "id": response or f"gen-{number}",
        "model": "llama",
        "choices": [{"message": message}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 4},
    }
    metadata = {"function_name": "bash", "tool_call_id": call, "model_response": completion}
    args = {"command": "ls", "thought": "I look", "blocking": False}
    return event(number, source="agent", action="run", args=args, tool_call_metadata=metadata)


def observation(number: int, cause: int, code: int = 0, kind: str = "run") -> dict[str, Any]:
    extras = {"metadata": {"exit_code": code}}
    return event(number, source="agent", observation=kind, content="a", extras=extras, cause=cause)


SYSTEM = event(0, source="agent", action="system", args={"content": "You are it.", "tools": []})
ASK = event(1, source="user", action="message", args={"content": "go"})
RECALL = event(2, source="user", action="recall", args={"query": "go"})
RECALLED = event(3, source="environment", observation="recall", content="x", extras={}, cause=2)


def test_observations_find_their_action_by_its_event_id(write: Write, kinds: Kinds) -> None:
    run = {
        "instance_id": "i",
        "history": [
            *(SYSTEM, ASK, RECALL, RECALLED),
            *(action(5), observation(6, 5), action(7), observation(8, 7, code=2)),
            event(
                9, source="environment", observation="agent_state_changed", content="", extras={}
            ),
            event(10, source="agent", action="finish", args={"thought": "done"}),
        ],
    }
    session = read_session(write(run))
    assert (session.format, session.system, session.model) == ("openhands", "You are it.", "llama")
    assert kinds(session) == [
        "turn prompt",
        *("[text call]", "result", "[text call]", "result"),
        "[text call]",
    ]
    last = session.items[4].blocks[0]
    assert isinstance(last, ToolResult)
    assert last.envelope.key_fields == {"exit_code": 2}
    assert session.calls[1].at - session.calls[0].at == pytest.approx(5)


def test_actions_of_one_response_are_one_call_with_the_input_that_the_model_wrote(
    write: Write, kinds: Kinds
) -> None:
    session = read_session(
        write(ASK, action(5, "g", "a"), observation(6, 5), action(7, "g", "b"), observation(8, 7))
    )
    assert kinds(session) == ["turn prompt", "[text call call]", "result", "result"]
    block = session.calls[0].blocks[1]
    assert isinstance(block, ToolCall)
    assert block.input == {"command": "ls"}


RUN = {"action": "run", "args": {"command": "ls", "thought": "I look"}}
SEEN = {"observation": "run", "content": "a", "extras": {"exit_code": 2}}


@pytest.mark.parametrize(
    "entries",
    [[RUN, SEEN], [[RUN, SEEN]], [{"action": RUN, "observation": SEEN}], [{**RUN, **SEEN}]],
    ids=["in a row", "as a pair", "by name", "as one"],
)
def test_a_resolver_run_of_any_age_is_read(entries: list[Any], write: Write, kinds: Kinds) -> None:
    """Old ones have neither ids nor times, and the task stands beside the history."""
    run = {
        "issue": {"number": 7, "title": "It breaks"},
        "instruction": "Fix issue 7.",
        "git_patch": "",
        "history": [*entries, {"action": "message", "args": {"content": "Shall I go on?"}}],
        "metrics": {"costs": [{"model": "claude-x", "cost": 0.1}]},
        "success": True,
        "result_explanation": "It is fixed.",
    }
    session = read_session(write(run))
    assert (session.format, session.model) == ("openhands", "claude-x")
    assert kinds(session) == ["turn prompt", "[text call]", "result", "[text]"]
    prompt, result = session.items[0].blocks[1], session.items[2].blocks[0]
    assert isinstance(result, ToolResult)
    assert result.envelope.key_fields == {"exit_code": 2}
    assert text_of(prompt) == "Fix issue 7."


def test_a_resolver_run_that_holds_its_task_says_it_once(write: Write, kinds: Kinds) -> None:
    asked = {"action": "message", "args": {"content": "Fix issue 7, please."}}
    bare = read_session(write({"instruction": "Fix it.", "history": [asked, RUN, SEEN]}))
    assert kinds(bare) == ["turn prompt", "[text call]", "result"]
    new = read_session(write({"instruction": "Fix it.", "history": [SYSTEM, ASK, action(5)]}))
    assert kinds(new) == ["turn prompt", "[text call]"]


def test_of_several_runs_of_the_resolver_one_is_chosen(write: Write) -> None:
    path = write(*({"instruction": f"Fix {n}.", "history": [RUN, SEEN]} for n in (1, 2)))
    assert text_of(read_session(f"{path}#1").items[0].blocks[1]) == "Fix 2."


def typed(second: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "timestamp": f"2026-01-01T00:00:{second:02}", **fields}


def acted(second: int, call: str, response: str) -> dict[str, Any]:
    return typed(
        second,
        "ActionEvent",
        source="agent",
        thought=[{"type": "text", "text": "hm"}],
        tool_name="terminal",
        tool_call_id=call,
        tool_call={"id": call, "name": "terminal", "arguments": '{"command": "ls"}'},
        llm_response_id=response,
    )


def observed(second: int, call: str, **observation: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": "a"}]
    return typed(
        second,
        "ObservationEvent",
        tool_call_id=call,
        observation={"content": content, **observation},
    )


def test_typed_events_share_the_id_of_their_response(write: Write, kinds: Kinds) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "go"}]}
    session = read_session(
        write(
            typed(0, "SystemPromptEvent", system_prompt={"type": "text", "text": "You are it."}),
            typed(1, "MessageEvent", source="user", llm_message=message),
            typed(1, "ConversationStateUpdateEvent", key="stats", value={}),
            acted(2, "c1", "r1"),
            acted(2, "c2", "r1"),
            observed(3, "c1", is_error=True, exit_code=1),
            typed(4, "AgentErrorEvent", tool_call_id="c2", error="no such tool"),
            observed(5, "before"),
        )
    )
    assert (session.format, session.system) == ("openhands-v1", "You are it.")
    assert kinds(session) == ["turn prompt", "[text call text call]", "result", "result"]
    results = [b for i in session.items for b in i.blocks if isinstance(b, ToolResult)]
    assert [b.is_error for b in results] == [True, True]
    assert [notice.line for notice in session.notices] == [8]


def told(second: int, source: str, role: str, text: str, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": text}], **more}
    return typed(second, "MessageEvent", source=source, llm_message=message)


def test_a_result_that_is_also_a_message_is_one_result_and_no_prompt(
    write: Write, kinds: Kinds
) -> None:
    """OpenHands-Tab writes both; only the message has the text that the model got, only the event the exit code."""
    seen = typed(3, "ObservationEvent", tool_call_id="c1", observation={"stdout": "", "exit_code": 1})  # fmt: skip
    session = read_session(
        write(
            *(told(1, "user", "user", "go"), acted(2, "c1", "r1"), acted(2, "c2", "r1"), seen),
            told(3, "environment", "tool", "no such file", tool_call_id="c1"),
            typed(4, "AgentErrorEvent", tool_call_id="c2", error="no such tool"),
            told(4, "environment", "tool", "no such tool", tool_call_id="c2"),
            *(acted(5, "c3", "r2"), told(6, "environment", "tool", "ok", tool_call_id="c3")),
        )
    )
    assert kinds(session) == [
        *("turn prompt", "[text call text call]", "result", "result", "[text call]", "result")
    ]
    results = [b for i in session.items for b in i.blocks if isinstance(b, ToolResult)]
    assert [text_of(b) for b in results] == ["no such file", "no such tool", "ok"]
    assert [b.envelope.outcome for b in results] == ["failure", "failure", "success"]
    assert not session.notices


def test_what_the_program_says_in_the_role_of_the_user_is_no_prompt(
    write: Write, kinds: Kinds
) -> None:
    hook = told(3, "environment", "user", "[Stop hook feedback] Run the tests first.")
    session = read_session(write(told(1, "user", "user", "go"), acted(2, "c1", "r1"), hook))
    assert kinds(session) == ["turn prompt", "[text call]", "attachment"]
