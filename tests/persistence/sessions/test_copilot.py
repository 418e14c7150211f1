"""Copilot CLI's events, and the conversations of its subagents."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import AssistantThinking, ToolResult, UserPrompt, text_of
from persistence.sessions import Session, read_session

Write = Callable[..., Path]
Kinds = Callable[[Session], list[str]]


def event(second: int, kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "timestamp": f"2026-01-01T00:00:{second:02}Z"}


def asks(second: int, call: str, **data: Any) -> dict[str, Any]:
    request = {"toolCallId": call, "name": "task", "arguments": {"prompt": "Find the bug."}}
    return event(second, "assistant.message", content="", toolRequests=[request], **data)


def done(second: int, call: str, **data: Any) -> dict[str, Any]:
    return event(second, "tool.execution_complete", toolCallId=call, **data)


START = event(0, "session.start", selectedModel="gpt-x", copilotVersion="1")
ASK = event(1, "user.message", content="go", transformedContent="<now/> go")


def test_calls_results_models_and_times_are_kept(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            *(START, event(0, "system.message", content="You are it."), ASK),
            event(1, "hook.start", input={"toolName": "shell"}),
            event(2, "assistant.reasoning", content="hm"),
            asks(3, "c1", messageId="m1", outputTokens=3),
            event(3, "tool.execution_start", toolCallId="c1", arguments={}),
            done(4, "c1", success=False, error={"message": "no such file"}),
            event(5, "session.model_change", newModel="gpt-y"),
            event(6, "assistant.message", content="Done.", messageId="m2"),
        )
    )
    assert (session.format, session.model, session.system) == ("copilot", "gpt-y", "You are it.")
    assert kinds(session) == ["turn prompt", "[thinking call]", "result", "[text]"]
    assert [(call.id, call.model) for call in session.calls] == [("m1", "gpt-x"), ("m2", "gpt-y")]
    assert [call.usage for call in session.calls] == [None, None], "it has no count of the prompt"
    assert session.calls[1].at - session.calls[0].at == pytest.approx(3)
    result = session.items[2].blocks[0]
    assert isinstance(result, ToolResult)
    assert (result.is_error, text_of(result)) == (True, "no such file")


def test_events_inside_the_lines_of_another_program_are_the_same_session(write: Write) -> None:
    """wasa-cli shows some as chat messages, which have no calls of tools; each line has its event."""
    events = [START, ASK, asks(2, "c1"), done(3, "c1", success=True, result={"content": "ok"})]
    plain = read_session(write(*events))
    lines = [{"role": "assistant", "content": "", "raw": event} for event in events]
    assert read_session(write(*lines)) == plain


def test_messages_of_one_call_of_the_api_are_one_response(write: Write, kinds: Kinds) -> None:
    said = {"reasoningText": "hm", "reasoningOpaque": "c2ln"}
    session = read_session(
        write(
            *(START, ASK, asks(2, "c1", apiCallId="a", messageId="m1", **said)),
            asks(2, "c2", apiCallId="a", messageId="m2"),
            done(3, "c2", success=True, result={"content": "ok", "detailedContent": "more"}),
        )
    )
    assert kinds(session) == ["turn prompt", "[thinking call call]", "result"]
    thought = session.calls[0].blocks[0]
    assert isinstance(thought, AssistantThinking)
    assert thought.provider == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert text_of(session.items[2].blocks[0]) == "ok"


def test_words_between_tool_rounds_steer_and_notices_are_context(
    write: Write, kinds: Kinds
) -> None:
    more = event(4, "user.message", content="also this")
    notice = event(5, "system.notification", content="the agent is done")
    session = read_session(write(START, ASK, asks(2, "c1"), more, notice))
    assert kinds(session)[2:] == ["steer", "attachment"]
    stopped = read_session(write(START, ASK, asks(2, "c1"), event(3, "abort", reason="u"), more))
    assert kinds(stopped)[2:] == ["turn prompt"]


@pytest.mark.parametrize("is_new", [False, True])
def test_a_subagent_is_a_conversation_of_its_own(
    write: Write, kinds: Kinds, *, is_new: bool
) -> None:
    """Old versions name the call that made it, new ones the agent."""
    own = {"agentId": "a1"} if is_new else {}
    data = {} if is_new else {"parentToolCallId": "c1"}
    path = write(
        *(START, ASK, asks(2, "c1"), {**event(2, "subagent.started", toolCallId="c1"), **own}),
        {**event(3, "assistant.message", content="I look.", **data), **own},
        {**event(3, "assistant.message", content="Found.", model="small", **data), **own},
        done(5, "c1", success=True, result={"content": "Found."}),
        event(6, "assistant.message", content="There it is."),
    )
    session = read_session(path)
    assert kinds(session) == ["turn prompt", "[call]", "result", "[text]"]
    assert "the first of 2 conversations" in session.notices[0].text
    agent = read_session(f"{path}#1")
    assert kinds(agent) == ["turn prompt", "[text]", "[text]"]
    prompt = agent.items[0].blocks[1]
    assert isinstance(prompt, UserPrompt)
    assert prompt.text == "Find the bug."
