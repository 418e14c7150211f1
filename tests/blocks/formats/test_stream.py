"""A stream comes to its response, or to what of it had arrived whole."""

from typing import Any

import pytest

from blocks import ArgumentError
from blocks.formats import Call, Content, Format, ModelText, response_from, stream_of
from tests._table import for_each

ANTHROPIC: list[Any] = [
    {"type": "message_start", "message": {"id": "m1", "role": "assistant", "content": [], "usage": {"input_tokens": 7, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": " 1}"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]  # fmt: skip
CHAT: list[Any] = [
    {"id": "m1", "choices": [{"delta": {"role": "assistant", "content": "I "}}]},
    {"id": "m1", "choices": [{"delta": {"content": "look"}}]},
    {"id": "m1", "choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]}}]},
    {"id": "m1", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}}]},
    {"id": "m1", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]}}]},
    {"id": "m1", "choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    {"id": "m1", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 20}},
]  # fmt: skip
_SAID = {"type": "message", "role": "assistant", "id": "msg", "content": [{"type": "output_text", "text": "I look"}]}  # fmt: skip
_CALL = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": '{"a": 1}'}
RESPONSES: list[Any] = [
    {"type": "response.created", "response": {"id": "m1", "output": [], "status": "in_progress"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**_SAID, "content": []}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "I "},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "look"},
    {"type": "response.output_item.done", "output_index": 0, "item": _SAID},
    {"type": "response.output_item.added", "output_index": 1, "item": {**_CALL, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a":'},
    {"type": "response.output_item.done", "output_index": 1, "item": _CALL},
    {"type": "response.completed", "response": {"id": "m1", "status": "completed", "output": [_SAID, _CALL], "usage": {"input_tokens": 7, "output_tokens": 20}}},
]  # fmt: skip
GEMINI: list[Any] = [
    {"responseId": "m1", "candidates": [{"content": {"role": "model", "parts": [{"text": "I "}]}}]},
    {"responseId": "m1", "candidates": [{"content": {"role": "model", "parts": [{"text": "look"}]}}]},
    {"responseId": "m1", "candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}}]}}]},
    {"responseId": "m1", "candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 20}},
]  # fmt: skip
STREAMS: dict[Format, list[Any]] = {
    "anthropic": ANTHROPIC,
    "openai.chat": CHAT,
    "openai.responses": RESPONSES,
    "gemini": GEMINI,
}
DONE: dict[Format, int] = {"anthropic": 10, "openai.chat": 6, "openai.responses": 8, "gemini": 3}
"""Events after which the call is whole."""


def arrived(name: Format, events: int) -> tuple[Content, ...]:
    stream = stream_of(name, "recording()")
    for event in STREAMS[name][:events]:
        stream.add(event)
    response = stream.response()
    return response_from(response, name).message.content if response else ()


@for_each("name", STREAMS)
def test_a_stream_comes_to_its_response(name: Format) -> None:
    stream = stream_of(name, "recording()")
    for event in STREAMS[name]:
        stream.add(event)
    found = response_from(stream.response(), name)
    said, call = found.message.content
    assert isinstance(said, ModelText)
    assert isinstance(call, Call)
    assert (found.id, said.text, call.call_id, call.input) == ("m1", "I look", "c", {"a": 1})
    assert found.usage is not None
    assert (found.usage.uncached, found.usage.output) == (7, 20)


@for_each("name", STREAMS)
def test_of_a_stream_that_breaks_off_there_is_what_was_whole(name: Format) -> None:
    for events in range(len(STREAMS[name])):
        content = arrived(name, events)
        texts = [c.text for c in content if isinstance(c, ModelText)]
        assert "I look".startswith("".join(texts))
        calls = [c for c in content if isinstance(c, Call)]
        assert len(calls) == (events >= DONE[name])
        assert all(call.input == {"a": 1} for call in calls)


@for_each("name", ["langchain", "pydantic_ai"])
def test_a_format_without_events_says_so(name: Format) -> None:
    with pytest.raises(ArgumentError, match="has no stream of events; record its whole response"):
        stream_of(name, "recording()")


def test_a_signature_that_comes_last_stays_in_a_part_of_its_own() -> None:
    """Texts of one kind are joined, thoughts apart from what is said; what is signed is joined to nothing."""
    stream = stream_of("gemini", "recording()")
    said = [
        {"text": "I ", "thought": True},
        {"text": "think.", "thought": True},
        {"text": "So "},
        {"text": "it is."},
        {"text": "", "thoughtSignature": "AAEC"},
    ]
    for part in said:
        stream.add({"candidates": [{"content": {"parts": [part]}}]})
    assert not stream.is_over
    [candidate] = (stream.response() or {})["candidates"]
    assert candidate["content"]["parts"] == [
        {"text": "I think.", "thought": True},
        {"text": "So it is."},
        {"text": "", "thoughtSignature": "AAEC"},
    ]


def test_a_prompt_that_was_blocked_is_the_end_of_its_stream() -> None:
    stream = stream_of("gemini", "recording()")
    used = {"prompt_token_count": 9}
    stream.add({"prompt_feedback": {"block_reason": "SAFETY"}, "usage_metadata": used})
    assert stream.is_over
    assert response_from(stream.response(), "gemini").message.content == ()
