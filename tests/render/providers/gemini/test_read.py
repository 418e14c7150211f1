"""A response of Gemini as blocks: of the REST interface, or of the SDK, which names its fields otherwise."""

from typing import Any

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
from tests.render.providers.gemini._play import SEALED

PROVIDER = PROVIDERS["gemini"]
SEAL = {"thoughtSignature": SEALED}
CALL = {"functionCall": {"id": "c1", "name": "bash", "args": {"command": "ls"}}}
USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 40,
    "toolUsePromptTokenCount": 5,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 30,
    "totalTokenCount": 142,
}


def answer(*parts: Any, reason: str = "STOP", **fields: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": reason}
    known = {"responseId": "r1", "modelVersion": "gemini-9-flash"}
    return {**known, "candidates": [candidate], **fields}


def read(found: object) -> Answer:
    ids = Ids()
    return PROVIDER.read(found, lambda: BlockId(ids()), TurnId("t1"))


def test_parts_become_blocks_that_keep_their_signatures() -> None:
    found = read(
        answer(
            {"text": "I think.", "thought": True},
            {"text": "So.", **SEAL},
            {**CALL, **SEAL},
            {"functionCall": {"name": "bash"}},
            {"executableCode": {"code": "1"}},
            {"text": "", **SEAL},
            usageMetadata=USAGE,
        )
    )
    thinking, text, call, bare, code, seal = found.blocks
    assert isinstance(thinking, AssistantThinking)
    assert thinking.provider == {"text": "I think.", "thought": True}
    assert isinstance(text, AssistantCompletion)
    assert (text.text, text.provider) == ("So.", SEAL)
    assert isinstance(call, ToolCall)
    assert (call.call_id, call.input, call.provider) == ("c1", {"command": "ls"}, SEAL)
    assert isinstance(bare, ToolCall)
    assert (bare.call_id, bare.input, bare.provider) == (f"call_{bare.id}", {}, {})
    assert isinstance(code, OpaqueBlock)
    assert tag_of(code) == "provider.gemini.part"
    assert isinstance(seal, AssistantThinking)
    assert seal.provider == {"text": "", **SEAL}
    assert (found.id, {b.response for b in (text, call, bare)}) == ("r1", {"r1"})


def test_what_came_from_the_cache_is_not_counted_twice_and_thoughts_are_output() -> None:
    for found in (read(answer({"text": "a"}, usageMetadata=USAGE)).usage, PROVIDER.usage({"usage_metadata": {"prompt_token_count": 105, "cached_content_token_count": 40, "candidates_token_count": 37}})):  # fmt: skip
        assert found is not None
        assert (found.uncached, found.cache_read, found.cache_write) == (65, 40, 0)
        assert (found.input, found.output) == (105, 37)
    assert PROVIDER.usage(answer()) is None


def test_the_sdks_object_is_read_with_its_names_its_bytes_and_its_nothings() -> None:
    class Response:
        def model_dump(self) -> dict[str, Any]:
            parts = [
                {"text": "So.", "thought": None, "thought_signature": b"sealed", "function_call": None},
                {"function_call": {"id": None, "name": "bash", "args": {"a_b": None}}, "text": None},
                {"executable_code": {"code": "1", "language": None}, "text": None},
            ]  # fmt: skip
            content = {"role": "model", "parts": parts}
            return {
                "candidates": [{"content": content, "finish_reason": "STOP"}],
                "response_id": "r1",
                "prompt_feedback": None,
            }

    text, call, code = read(Response()).blocks
    assert isinstance(text, AssistantCompletion)
    assert text.provider == SEAL
    assert isinstance(call, ToolCall)
    assert call.input == {"a_b": None}
    assert isinstance(code, OpaqueBlock)
    assert code.fields["value"] == {"executableCode": {"code": "1"}}
    assert PROVIDER.stop(Response()) == "tool_use"


@for_each(
    ("found", "stop"),
    [
        (answer({"text": "a"}), "end_turn"),
        (answer(CALL), "tool_use"),
        (answer(CALL, reason="MAX_TOKENS"), "max_tokens"),
        (answer(reason="SAFETY"), "refusal"),
        (answer(reason="MALFORMED_FUNCTION_CALL"), "malformed_function_call"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "refusal"),
        ({"candidates": [{}], "usageMetadata": USAGE}, ""),
    ],
)
def test_why_it_stopped(found: Any, stop: str) -> None:
    assert PROVIDER.stop(found) == stop


def test_the_last_call_of_a_response_that_was_cut_off_is_discarded() -> None:
    blocks = read(answer({"text": "a"}, CALL, reason="MAX_TOKENS")).blocks
    assert [tag_of(block) for block in blocks] == ["assistant.completion"]


def test_a_response_without_a_word_is_one_if_it_says_what_it_cost_or_why() -> None:
    assert read({"usageMetadata": USAGE}).usage is not None
    blocked = read({"promptFeedback": {"blockReason": "SAFETY"}})
    assert (blocked.blocks, blocked.usage) == ((), None)


@for_each(
    ("found", "said"),
    [
        ({"output": []}, "not a response of OpenAI's Responses API"),
        ({"choices": []}, "not a response of OpenAI's Chat Completions API"),
        ({"content": []}, "not a response of Anthropic's"),
        ({"error": {"message": "boom"}}, "an error of the provider.*boom"),
        ({"candidates": "hm"}, "candidates must be a list, not 'hm'"),
        ({"candidates": []}, "empty"),
        ({"candidates": [{}, {}]}, "2 candidates"),
        (answer({"functionCall": {"args": {"a": 1}}}), r"parts\.0: the function call has no name"),
        (None, "not None"),
        ("hm", "not 'hm'"),
    ],
)
def test_what_is_no_response_is_refused_by_name(found: object, said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        read(found)


def test_what_cannot_be_stored_is_refused_and_says_where() -> None:
    with pytest.raises(CodecError, match="nested deeper than"):
        read(answer({"functionCall": {"name": "bash", "args": deep(300)}}))
