"""Gemini CLI chats: a document or lines, calls and results in one message."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from blocks import ToolResult, text_of
from persistence.sessions import Session, read_session

Kinds = Callable[[Session], list[str]]

HEADER = {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z"}
ASK = {"id": "u1", "type": "user", "timestamp": "2026-01-01T00:00:01Z", "content": "go"}


def answer(response: dict[str, Any], **more: Any) -> dict[str, Any]:
    result = [{"functionResponse": {"id": "c1", "name": "ls", "response": response}}]
    call = {"id": "c1", "name": "ls", "args": {"dir": "."}, "result": result, "status": "success"}
    tokens = {"input": 100, "cached": 60, "output": 5, "thoughts": 2}
    return {
        "id": "g1",
        "type": "gemini",
        "timestamp": "2026-01-01T00:00:03Z",
        "content": "",
        "model": "gem",
        "tokens": tokens,
        "toolCalls": [{**call, **more}],
    }


def test_a_document_brings_calls_and_their_results(
    document: Callable[[Any], Path], kinds: Kinds
) -> None:
    note = {"id": "i", "type": "info", "content": "update available"}
    session = read_session(document({**HEADER, "messages": [ASK, answer({"output": "a"}), note]}))
    assert (session.format, session.model) == ("gemini-cli", "gem")
    assert kinds(session) == ["turn prompt", "[call]", "result"]
    used = session.calls[0].usage
    assert used is not None
    assert (used.uncached, used.cache_read, used.output) == (40, 60, 7)


def test_lines_are_read_and_the_last_state_of_a_message_counts(
    write: Callable[..., Path], kinds: Kinds
) -> None:
    early = {**answer({}), "toolCalls": []}
    session = read_session(
        write(HEADER, ASK, early, {"$set": {"lastUpdated": "x"}}, answer({"output": "a"}))
    )
    assert kinds(session) == ["turn prompt", "[call]", "result"]


def test_an_error_is_an_error(write: Callable[..., Path]) -> None:
    session = read_session(write(HEADER, ASK, answer({"error": "denied"}, status="error")))
    block = session.items[-1].blocks[0]
    assert isinstance(block, ToolResult)
    assert block.is_error
    assert text_of(block) == "denied"


def test_a_cancelled_call_has_no_result(write: Callable[..., Path], kinds: Kinds) -> None:
    session = read_session(write(HEADER, ASK, answer({}, result=None, status="cancelled")))
    assert kinds(session) == ["turn prompt", "[call]"]


def test_an_answer_of_many_shapes_is_shown_as_json(write: Callable[..., Path]) -> None:
    session = read_session(write(HEADER, ASK, answer({"output": {"n": 1}})))
    assert text_of(session.items[-1].blocks[0]) == '{"n":1}'


def returned(*more: dict[str, Any]) -> dict[str, Any]:
    """The message that brought the result of `answer` to the model, as newer versions write it."""
    response = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a"}}}
    return {"id": "u2", "type": "user", "content": [response, *more]}


def test_a_result_that_is_written_twice_is_one_result_and_no_prompt(
    write: Callable[..., Path], kinds: Kinds
) -> None:
    session = read_session(write(HEADER, ASK, answer({"output": "a"}), returned()))
    assert kinds(session) == ["turn prompt", "[call]", "result"]
    assert session.notices == ()


def test_a_result_that_only_the_message_to_the_model_has_is_the_result(
    write: Callable[..., Path], kinds: Kinds
) -> None:
    session = read_session(write(HEADER, ASK, answer({}, result=None), returned()))
    assert kinds(session) == ["turn prompt", "[call]", "result"]
    assert text_of(session.items[-1].blocks[0]) == "a"


def test_words_beside_a_result_are_the_users_and_a_picture_is_the_tools(
    write: Callable[..., Path], kinds: Kinds
) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    session = read_session(
        write(HEADER, ASK, answer({"output": "a"}), returned(picture, {"text": "only *.py"}))
    )
    assert kinds(session) == ["turn prompt", "[call]", "result", "steer"]
    assert text_of(session.items[-1].blocks[0]) == "only *.py"


def test_what_the_chat_begins_with_is_read_and_what_a_compression_puts_there_is_not(
    write: Callable[..., Path], kinds: Kinds
) -> None:
    context = {"id": "c", "type": "user", "content": "<session_context>today</session_context>"}
    summary = {"id": "z", "type": "user", "content": "<state_snapshot>short</state_snapshot>"}
    session = read_session(
        write(
            HEADER,
            {"$set": {"messages": [context]}},
            ASK,
            answer({"output": "a"}),
            {"$set": {"messages": [summary]}},
        )
    )
    assert kinds(session) == ["turn attachment", "prompt", "[call]", "result"]


def test_what_the_user_took_back_is_not_in_the_session(
    write: Callable[..., Path], kinds: Kinds
) -> None:
    again = {**ASK, "id": "u3", "content": "rather this"}
    session = read_session(
        write(HEADER, ASK, answer({"output": "a"}), returned(), {"$rewindTo": "g1"}, again)
    )
    assert kinds(session) == ["turn prompt", "turn prompt"]
    assert kinds(read_session(write(HEADER, ASK, {"$rewindTo": "gone"}, again))) == ["turn prompt"]
    assert kinds(read_session(write(HEADER, ASK, {"$rewindTo": {"a": []}}, again))) == [
        "turn prompt"
    ]


def test_what_the_program_prints_as_a_stream_is_read_with_its_calls(
    write: Callable[..., Path], kinds: Kinds
) -> None:
    at = {"timestamp": "2026-01-01T00:00:01Z"}
    call = {"type": "tool_use", "tool_name": "ls", "parameters": {"dir": "."}, **at}
    result = {"type": "tool_result", "status": "success", "output": "a", **at}
    failure = {"type": "tool_result", "status": "error", "error": {"message": "denied"}, **at}
    session = read_session(
        write(
            {"type": "init", "session_id": "s", "model": "gem", **at},
            {"type": "message", "role": "user", "content": "go", **at},
            {"type": "message", "role": "assistant", "content": "I lo", "delta": True, **at},
            {"type": "message", "role": "assistant", "content": "ok.", "delta": True, **at},
            {**call, "tool_id": "c1"},
            {**call, "tool_id": "c2"},
            {**result, "tool_id": "c1"},
            {**failure, "tool_id": "c2"},
            {"type": "message", "role": "assistant", "content": "Done.", "delta": True, **at},
            {"type": "result", "status": "success", "stats": {}, **at},
        )
    )
    assert (session.format, session.id, session.model) == ("gemini-cli", "s", "gem")
    assert kinds(session) == [
        "turn prompt",
        "[text call call]",
        "result",
        "result",
        "[text]",
    ]
    texts = [text_of(block) for item in session.items for block in item.blocks]
    assert {"I look.", "a", "denied", "Done."} <= set(texts)
