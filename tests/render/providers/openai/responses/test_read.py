"""A response of the Responses API as blocks: all that was said, what it cost, and what is none."""

from typing import Any

import attrs
import pytest

from blocks import (
    AssistantCompletion,
    AssistantThinking,
    BlockId,
    CodecError,
    MisuseError,
    OpaqueBlock,
    ToolCall,
    TurnId,
    tag_of,
)
from blocks.formats._message import Answer
from render import PROVIDERS
from tests._builders import Ids, deep
from tests._table import for_each

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
TEXT = {"type": "output_text", "text": "I will look.", "annotations": []}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [TEXT],
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "bash",
    "arguments": '{"command":"ls"}',
    "status": "completed",
}
CUSTOM = {"type": "custom_tool_call", "id": "ct_1", "call_id": "c2", "name": "p", "input": "***"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 50},
    "output_tokens": 7,
    "total_tokens": 107,
}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    own = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5.6"}
    return {**own, "output": list(output), **fields}


def read(found: object) -> Answer:
    ids = Ids()
    return PROVIDERS["openai.responses"].read(found, lambda: BlockId(ids()), TurnId("t1"))


def test_every_item_becomes_a_block_in_its_order() -> None:
    answer = read(response(REASONING, MESSAGE, CALL, CUSTOM, SEARCH, usage=USAGE))
    assert answer.id == "resp_1"
    thinking, text, call, free, search = answer.blocks
    assert isinstance(thinking, AssistantThinking)
    assert thinking.provider == REASONING
    assert isinstance(text, AssistantCompletion)
    assert (text.text, text.provider) == ("I will look.", {"phase": "commentary"})
    assert isinstance(call, ToolCall)
    assert (call.call_id, call.name, call.input) == ("call_1", "bash", {"command": "ls"})
    assert call.provider == {}
    assert isinstance(free, ToolCall)
    assert (free.input, free.provider) == ({"input": "***"}, {"type": "custom"})
    assert isinstance(search, OpaqueBlock)
    assert tag_of(search) == "provider.openai.web_search_call"
    assert search.fields["value"] == SEARCH
    assert all(getattr(block, "response", "resp_1") == "resp_1" for block in answer.blocks)


@for_each(
    ("written", "parsed"),
    [
        ('{ "command": "ls" }', {"command": "ls"}),
        ('{"command": ', {"input": '{"command": '}),
        ("[1]", {"input": "[1]"}),
        ('"x"', {"input": '"x"'}),
    ],
)
def test_arguments_are_kept_as_written_where_they_would_be_sent_otherwise(
    written: str, parsed: dict[str, Any]
) -> None:
    [call] = read(response({**CALL, "arguments": written})).blocks
    assert isinstance(call, ToolCall)
    assert (call.input, call.provider) == (parsed, {"arguments": written})


def test_usage_has_one_meaning_for_every_provider() -> None:
    """What came from the cache, or went there, is no input here; it is in the provider's count."""
    usage = read(response(MESSAGE, usage=USAGE)).usage
    assert usage is not None
    assert (usage.uncached, usage.cache_read, usage.cache_write) == (10, 40, 50)
    assert (usage.output, usage.input) == (7, 100)
    assert read(response(MESSAGE)).usage is None
    bare = read(response(MESSAGE, usage={"input_tokens": 5, "output_tokens": None})).usage
    assert bare is not None
    assert (bare.uncached, bare.cache_read, bare.output) == (5, 0, 0)


def test_a_refusal_is_said_and_marked_as_one() -> None:
    refused = {**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]}
    [block] = read(response(refused)).blocks
    assert isinstance(block, AssistantCompletion)
    assert block.text == "No."
    assert block.provider == {"phase": "commentary", "refusal": True}


def test_texts_of_one_message_are_one_text() -> None:
    [block] = read(response({**MESSAGE, "content": [TEXT, {**TEXT, "text": " Now."}]})).blocks
    assert isinstance(block, AssistantCompletion)
    assert block.text == "I will look. Now."


def test_a_call_that_was_cut_off_is_discarded() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert [tag_of(b) for b in read(response(MESSAGE, CALL, **cut)).blocks] == [
        "assistant.completion"
    ]
    marked = {**CALL, "status": "incomplete"}
    assert len(read(response(MESSAGE, marked, SEARCH)).blocks) == 2
    assert len(read(response(CALL, MESSAGE, **cut)).blocks) == 2


def test_a_compaction_asked_for_is_its_last_item() -> None:
    """It repeats what the user said, which the log has."""
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}
    [block] = read(response(user, item, object="response.compaction")).blocks
    assert tag_of(block) == "provider.openai.compaction"


@attrs.frozen
class SdkObject:
    """What the client returns: something that can say what it holds."""

    value: dict[str, Any]

    def to_dict(self, **_: Any) -> dict[str, Any]:
        return self.value

    model_dump = to_dict


def test_an_object_of_the_sdk_is_read_as_its_json() -> None:
    found = SdkObject(response(MESSAGE, CALL, usage=USAGE))
    assert read(found) == read(found.value)
    nested = {**found.value, "output": [SdkObject(MESSAGE), CALL], "usage": SdkObject(USAGE)}
    assert read(nested) == read(found.value)


async def _later() -> None:
    """An answer that nobody has waited for."""


@for_each(
    ("found", "said"),
    [
        ({"choices": []}, "not a response of OpenAI's Chat Completions API"),
        ({"content": []}, "not a response of Anthropic's"),
        (response(status="failed", error={"message": "boom"}), "an error of the provider.*boom"),
        (response(status="in_progress"), "not finished: its status is 'in_progress'"),
        (response(), "empty"),
        (response(object="chat.completion"), "not 'chat.completion'"),
        (response(id=5, usage=USAGE), "id must be a text"),
        ({"output": "hm"}, "output must be a list"),
        (response("hm"), "output.0 must be an object"),
        (response({}), "output.0: .* is not a type of output item"),
        (response(MESSAGE, {**CALL, "call_id": None}), "output.1.call_id must be a text"),
        (response({**CALL, "name": " "}), "output.0.name is empty"),
        (response({"type": "function_call_output"}), "an input item"),
        ("hm", "not 'hm'"),
        (None, "not None"),
    ],
)
def test_what_is_no_response_is_refused_by_name(found: object, said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        read(found)


def test_an_answer_that_nobody_waited_for_is_told_apart() -> None:
    later = _later()
    with pytest.raises(MisuseError, match="await it first"):
        read(later)
    later.close()


def test_what_cannot_be_stored_is_refused_and_says_where() -> None:
    with pytest.raises(CodecError, match=r"output\.1, action.* nested deeper than"):
        read(response(MESSAGE, {**SEARCH, "action": deep(300)}))


@for_each("depth", [300, 100_000])
def test_arguments_that_are_too_deep_to_be_stored_are_kept_as_a_text(depth: int) -> None:
    """A model can write anything into a text."""
    written = '{"x":' * depth + "1" + "}" * depth
    [call] = read(response({**CALL, "arguments": written})).blocks
    assert isinstance(call, ToolCall)
    assert call.input == {"input": written}
