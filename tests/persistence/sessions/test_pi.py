"""pi's sessions: flat and as a tree, with words typed while the agent worked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import AssistantThinking, ToolCall, UserAttachment, text_of
from persistence.sessions import Session, read_session

Write = Callable[..., Path]
Kinds = Callable[[Session], list[str]]

HEADER = {"type": "session", "id": "s", "timestamp": "2026-01-01T00:00:00Z", "modelId": "m-0"}


def entry(second: int, role: str, content: Any = None, **fields: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **fields}
    return {"type": "message", "timestamp": f"2026-01-01T00:00:{second:02}Z", "message": message}


def answer(second: int, *content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return entry(second, "assistant", list(content), **{"model": "m-1", **fields})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool(call: str) -> dict[str, Any]:
    return {"type": "toolCall", "id": call, "name": "read", "arguments": {"path": "a"}}


def result(second: int, call: str) -> dict[str, Any]:
    return entry(second, "toolResult", [text("ok")], toolCallId=call, isError=False)


def test_a_flat_session_is_read_in_order(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            HEADER,
            entry(1, "user", "go"),
            answer(2, text("look"), tool("c1"), stopReason="toolUse"),
            result(3, "c1"),
            answer(4, text("done"), stopReason="stop"),
            entry(5, "user", [text("thanks")]),
        )
    )
    assert (session.format, session.model) == ("pi", "m-1")
    assert kinds(session) == ["turn prompt", "[text call]", "result", "[text]", "turn prompt"]
    assert session.calls[1].at - session.calls[0].at == pytest.approx(2)


def test_words_between_tool_rounds_steer(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            HEADER,
            entry(1, "user", "go"),
            answer(2, tool("c1"), stopReason="toolUse"),
            result(3, "c1"),
            entry(4, "user", "the other file"),
            answer(5, text("part"), stopReason="aborted"),
            entry(6, "user", "again"),
        )
    )
    assert kinds(session)[3:] == ["steer", "[text]", "turn prompt"]


def test_a_shell_command_of_the_user_is_context(write: Write) -> None:
    command = {"role": "bashExecution", "command": "ls", "output": "a.txt", "exitCode": 0}
    session = read_session(
        write(HEADER, entry(1, "user", "go"), {**entry(2, "x"), "message": command})
    )
    block = session.items[-1].blocks[0]
    assert isinstance(block, UserAttachment)
    assert (block.name, text_of(block)) == ("bash", "$ ls\na.txt")


def test_broken_off_answers_count_when_they_said_something(write: Write) -> None:
    session = read_session(
        write(
            HEADER,
            entry(1, "user", "go"),
            answer(2, stopReason="aborted"),
            answer(3, {"type": "thinking", "thinking": "hm"}, stopReason="aborted"),
            answer(4, {**tool("c1"), "partialJson": '{"pa'}, stopReason="aborted"),
        )
    )
    (call,) = session.calls
    assert isinstance(call.blocks[0], ToolCall)
    assert call.usage is None


def test_thinking_gets_the_shape_its_provider_gave_it(write: Write) -> None:
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"}
    session = read_session(write(HEADER, entry(1, "user", "go"), answer(2, thought, text("ok"))))
    block = session.calls[0].blocks[0]
    assert isinstance(block, AssistantThinking)
    assert block.provider == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def test_usage_parts_are_taken_as_they_are(write: Write) -> None:
    usage = {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}
    session = read_session(
        write(HEADER, entry(1, "user", "go"), answer(2, text("ok"), usage=usage))
    )
    used = session.calls[0].usage
    assert used is not None
    assert (used.uncached, used.output, used.cache_read, used.cache_write) == (1, 2, 3, 4)


def test_of_a_tree_only_the_branch_of_the_last_entry_counts(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            {**HEADER, "version": 3},
            {**entry(1, "user", "go"), "id": "a", "parentId": None},
            {**answer(2, text("left"), usage={"input": 7}), "id": "b", "parentId": "a"},
            {**answer(3, text("right")), "id": "c", "parentId": "a"},
            {"type": "branch_summary", "id": "d", "parentId": "c", "summary": "left: tried"},
            {"type": "compaction", "id": "e", "parentId": "d", "summary": "all so far"},
            {
                "type": "custom_message",
                "customType": "memo",
                "content": "mind",
                "id": "f",
                "parentId": "e",
            },
        )
    )
    assert kinds(session) == ["turn prompt", "[text]", "attachment", "attachment"]
    assert text_of(session.calls[0].blocks[0]) == "right"
    names = [b.name for i in session.items for b in i.blocks if isinstance(b, UserAttachment)]
    assert names == ["branch_summary", "memo"]
    assert [used.input for used in session.aside] == [7], "the other branch was paid for, too"


def test_a_missing_parent_is_the_entry_before(write: Write, kinds: Kinds) -> None:
    session = read_session(
        write(
            {**HEADER, "version": 3},
            {**entry(1, "user", "go"), "id": "a", "parentId": "s"},
            {**answer(2, tool("c1")), "id": "b", "parentId": "a"},
            {**result(3, "c1"), "id": "c", "parentId": "c1"},
            {**answer(4, text("ok")), "id": "d", "parentId": "d"},
        )
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "[text]"]


def test_response_ids_that_repeat_are_told_apart(write: Write) -> None:
    session = read_session(
        write(
            HEADER,
            entry(1, "user", "go"),
            answer(2, text("a"), responseId="x"),
            answer(3, text("b"), responseId="x"),
        )
    )
    assert [call.id for call in session.calls] == ["x", "x_2"]


def test_a_session_tells_its_id_its_folder_and_its_newest_title(write: Write) -> None:
    header = HEADER | {"cwd": "/home/me/shop"}
    names = [{"type": "session_info", "name": name} for name in ("A cart", "The cart")]
    session = read_session(write(header, entry(1, "user", "go"), answer(2, text("ok")), *names))
    assert (session.id, session.folder, session.title) == ("s", "/home/me/shop", "The cart")
