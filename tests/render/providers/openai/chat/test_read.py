"""An answer of Chat Completions as blocks: of OpenAI, and of the servers that speak it."""

from typing import Any

import pytest

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    BlockId,
    CodecError,
    MisuseError,
    ToolCall,
    TurnId,
    tag_of,
)
from blocks.formats._message import Answer
from render import PROVIDERS
from tests._builders import Ids, deep
from tests._table import for_each

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "bash", "arguments": '{"command":"ls"}'},
}
CUSTOM = {"id": "call_2", "type": "custom", "custom": {"name": "patch", "input": "***"}}
USAGE = {
    "prompt_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 50},
    "completion_tokens": 7,
    "total_tokens": 107,
}


def answer(reason: str = "stop", **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": None, **message}
    choice = {"index": 0, "finish_reason": reason, "message": said}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-5.6",
        "choices": [choice],
    }


def read(found: object) -> Answer:
    ids = Ids()
    return PROVIDERS["openai.chat"].read(found, lambda: BlockId(ids()), TurnId("t1"))


def test_a_message_becomes_its_text_and_its_calls() -> None:
    found = read({**answer(content="I look.", tool_calls=[CALL, CUSTOM]), "usage": USAGE})
    assert found.id == "chatcmpl-1"
    text, call, free = found.blocks
    assert isinstance(text, AssistantCompletion)
    assert text.text == "I look."
    assert isinstance(call, ToolCall)
    assert (call.call_id, call.name, call.input) == ("call_1", "bash", {"command": "ls"})
    assert call.provider == {}
    assert isinstance(free, ToolCall)
    assert (free.input, free.provider) == ({"input": "***"}, {"type": "custom"})
    assert found.usage is not None
    assert (found.usage.uncached, found.usage.cache_read, found.usage.cache_write) == (10, 40, 50)
    assert found.usage.input == 100


@for_each("name", ["reasoning_content", "reasoning"])
def test_what_a_server_tells_of_its_models_reasoning_is_kept(name: str) -> None:
    thinking, text = read(answer(content="so", **{name: "hm"})).blocks
    assert isinstance(thinking, AssistantThinking)
    assert thinking.provider == {"type": name, name: "hm"}
    assert isinstance(text, AssistantCompletion)
    assert len(read(answer(content="so", **{name: ""})).blocks) == 1


def test_a_refusal_is_said_and_marked_as_one() -> None:
    [block] = read(answer(refusal="No.")).blocks
    assert isinstance(block, AssistantCompletion)
    assert (block.text, block.provider) == ("No.", {"refusal": True})


def test_texts_in_a_list_are_one_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    [block] = read(answer(content=parts)).blocks
    assert isinstance(block, AssistantCompletion)
    assert block.text == "ab"


@for_each("reason", ["length", "content_filter"])
def test_the_last_call_of_an_answer_that_was_cut_off_is_discarded(reason: str) -> None:
    blocks = read(answer(reason, content="so", tool_calls=[CALL, CUSTOM])).blocks
    assert [tag_of(block) for block in blocks] == ["assistant.completion", "react.tool.call"]


def test_arguments_may_be_an_object_already() -> None:
    function = {"name": "bash", "arguments": {"command": "ls"}}
    [call] = read(answer(tool_calls=[{**CALL, "function": function}])).blocks
    assert isinstance(call, ToolCall)
    assert (call.input, call.provider) == ({"command": "ls"}, {})


def test_usage_alone_is_an_answer() -> None:
    found = read({"id": "x", "choices": [], "usage": USAGE})
    assert found.blocks == ()
    assert found.usage is not None


@for_each(
    ("found", "said"),
    [
        ({"output": []}, "not a response of OpenAI's Responses API"),
        ({"content": []}, "not a response of Anthropic's"),
        ({"error": {"message": "boom"}}, "an error of the provider.*boom"),
        ({"choices": "hm"}, "choices must be a list"),
        ({"choices": []}, "empty"),
        ({"choices": [{}, {}]}, "2 choices"),
        ({"choices": [{"delta": {"content": "hm"}}]}, "chunks of a stream"),
        ({"choices": ["hm"]}, "choices.0 must be an object"),
        (answer(role="user"), "the role must be 'assistant', not 'user'"),
        (answer(tool_calls="hm"), "tool_calls must be a list"),
        (answer(tool_calls=["hm"]), r"tool_calls\.0\.id must be a text"),
        (answer(tool_calls=[{**CALL, "id": None}]), "id must be a text"),
        (answer(tool_calls=[{**CALL, "id": " "}]), "id is empty"),
        (answer(function_call={"name": "f", "arguments": "{}"}), "function_call has no id"),
        ({**answer(content="so"), "model": 5}, "model must be a text"),
        (None, "not None"),
    ],
)
def test_what_is_no_answer_is_refused_by_name(found: object, said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        read(found)


def test_what_cannot_be_stored_is_refused_and_says_where() -> None:
    function = {"name": "bash", "arguments": deep(300)}
    with pytest.raises(CodecError, match=r"choices\.0, .* nested deeper than"):
        read(answer(tool_calls=[{**CALL, "function": function}]))
