"""OpenCode: what its export writes, and the files of its storage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blocks import (
    AssistantThinking,
    DocumentPart,
    ImagePart,
    TextPart,
    ToolResult,
    UserPrompt,
    text_of,
)
from persistence.sessions import Session, read_session

Document = Callable[[Any], Path]
Kinds = Callable[[Session], list[str]]
Json = dict[str, Any]

START = 1_730_000_000_000


def times(start: int, end: int = 0) -> Json:
    ends = {"end": START + end * 1_000} if end else {}
    return {"start": START + start * 1_000, **ends}


def info(second: int, own: str, role: str, **more: Any) -> Json:
    created = {"created": START + second * 1_000}
    return {"id": own, "sessionID": "s1", "role": role, "time": created, **more}


def tool(start: int, end: int, call: str, **state: Any) -> Json:
    known = {"status": "completed", "input": {"command": "ls"}, "output": "a", **state}
    return {
        "type": "tool",
        "callID": call,
        "tool": "bash",
        "state": {**known, "time": times(start, end)},
    }


def text(value: str, **more: Any) -> Json:
    return {"type": "text", "text": value, **more}


def exported(*messages: tuple[Json, list[Json]]) -> Json:
    told = [{"info": message, "parts": parts} for message, parts in messages]
    return {"info": {"id": "s1", "title": "t"}, "messages": told}


ASK = (info(1, "m1", "user", system="Be brief."), [text("go")])
TOKENS = {"input": 30, "output": 5, "reasoning": 2, "cache": {"read": 60, "write": 10}}


def test_each_step_of_a_message_is_a_response(document: Document, kinds: Kinds) -> None:
    step = {"type": "step-start"}
    thought = {"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "c2ln"}}}
    parts: list[Json] = [
        *(step, thought, tool(3, 4, "c1"), tool(5, 6, "c2", metadata={"exit": 2})),
        {"type": "step-finish", "tokens": TOKENS},
        *(step, text("Done."), {"type": "step-finish", "tokens": TOKENS}),
    ]
    answer = info(2, "m2", "assistant", modelID="gpt-x", tokens={"input": 999})
    session = read_session(document(exported(ASK, (answer, parts))))
    assert (session.format, session.model, session.system) == ("opencode", "gpt-x", "Be brief.")
    assert kinds(session) == ["turn prompt", "[thinking call call]", "result", "result", "[text]"]
    for call in session.calls:
        used = call.usage
        assert used is not None
        assert (used.uncached, used.cache_read, used.cache_write, used.output) == (30, 60, 10, 7)
    assert session.calls[1].at - session.calls[0].at == pytest.approx(4)
    thinking, result = session.calls[0].blocks[0], session.items[3].blocks[0]
    assert isinstance(thinking, AssistantThinking)
    assert thinking.provider == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert isinstance(result, ToolResult)
    assert result.envelope.key_fields == {"exit_code": 2}


def test_what_a_model_says_after_a_result_is_the_next_response(
    document: Document, kinds: Kinds
) -> None:
    broken = tool(3, 4, "c1", status="error", error="denied")
    parts: list[Json] = [
        broken,
        tool(3, 4, "c2", status="running"),
        text("It failed.", time=times(5)),
    ]
    answer = info(2, "m2", "assistant", tokens=TOKENS)
    session = read_session(document(exported(ASK, (answer, parts))))
    assert kinds(session) == ["turn prompt", "[call call]", "result", "[text]"]
    result = session.items[2].blocks[0]
    assert isinstance(result, ToolResult)
    assert (result.is_error, text_of(result)) == (True, "denied")
    assert [bool(call.usage) for call in session.calls] == [False, True]


def test_a_summary_and_what_nobody_sent_are_left_out(document: Document, kinds: Kinds) -> None:
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}
    parts = [text("look"), picture, text("a file", synthetic=True), text("not sent", ignored=True)]
    summary = (info(3, "m3", "assistant", summary=True), [text("all so far")])
    session = read_session(document(exported((info(1, "m1", "user"), parts), summary)))
    assert kinds(session) == ["turn prompt", "attachment"]
    prompt = session.items[0].blocks[1]
    assert isinstance(prompt, UserPrompt)
    assert (prompt.text, len(prompt.parts)) == ("look", 1)


def storage() -> Json:
    """Two sessions, the subagent's first in the alphabet; parts without an owner lie in its folder."""
    return {
        "storage/session/p/s0.json": {"id": "s0", "parentID": "s1", "time": {"created": START}},
        "storage/session/p/s1.json": {"id": "s1", "time": {"created": START + 9}},
        "storage/message/s0/m0.json": {**info(3, "m0", "user"), "sessionID": "s0"},
        "storage/message/s1/m2.json": info(2, "m2", "assistant", model={"modelID": "gpt-x"}),
        "storage/message/s1/m1.json": info(4, "m1", "user"),
        "storage/part/m0/p1.json": text("Find it."),
        "storage/part/m1/p1.json": {**text("thanks"), "messageID": "m1"},
        "storage/part/m2/p1.json": text("Hello."),
        "storage/part/m2/p2.json": tool(2, 3, "c1"),
    }


def test_files_of_the_storage_are_put_together(document: Document, kinds: Kinds) -> None:
    path = document(storage())
    session = read_session(path)
    assert (session.format, session.model) == ("opencode", "gpt-x")
    assert kinds(session) == ["turn", "[text call]", "result", "turn prompt"]
    assert "the first of 2 conversations" in session.notices[0].text
    agent = read_session(f"{path}#1")
    assert text_of(agent.items[0].blocks[1]) == "Find it."


def test_files_that_the_user_attaches_and_those_that_a_tool_reads_are_seen(
    document: Document,
) -> None:
    """The user's files say where the text mentions them (`[Image 1]`), and at which path they were."""
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGVsbG8="}
    paper = {"type": "file", "mime": "application/pdf", "url": "data:application/pdf;base64,aGVs"}
    mention = {"text": {"value": "[Image 1]", "start": 0, "end": 9}, "type": "file", "path": "/a"}
    attached = [{**file, "filename": "a", "source": mention} for file in (picture, paper)]
    read = tool(3, 4, "c1", attachments=[{**picture, "id": "p2"}])
    told = (info(1, "m1", "user"), [text("[Image 1] look"), *attached])
    session = read_session(document(exported(told, (info(2, "m2", "assistant"), [read]))))
    prompt, result = session.items[0].blocks[1], session.items[-1].blocks[0]
    assert isinstance(prompt, UserPrompt)
    assert prompt.parts == (ImagePart(data="aGVsbG8="), DocumentPart(data="aGVs", name="a"))
    assert isinstance(result, ToolResult)
    assert result.parts == (TextPart(text="a"), ImagePart(data="aGVsbG8="))


def test_a_file_that_is_sent_as_text_is_not_sent_itself(document: Document, kinds: Kinds) -> None:
    """OpenCode writes what it read beside it, in a synthetic text; a picture is sent."""
    folder = {"type": "file", "mime": "application/x-directory", "url": "file:///src/", "id": "p1"}
    listing = text("Called the list tool: a.py b.py", synthetic=True)
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGVsbG8="}
    session = read_session(
        document(
            exported(
                (info(1, "m1", "user"), [text("look"), folder, {**folder, "mime": "text/plain"}]),
                (info(2, "m2", "user"), [text("this"), listing, picture]),
            )
        )
    )
    prompts = [b for item in session.items for b in item.blocks if isinstance(b, UserPrompt)]
    assert [[type(part) for part in prompt.parts] for prompt in prompts] == [[], [ImagePart]]
    assert kinds(session)[-1] == "attachment"
