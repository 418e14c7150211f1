"""A response of any format is recorded once, whole or as it streams, for both shells."""

import asyncio
from typing import Any

import pytest

from blocks import (
    AlreadyRecordedError,
    ArgumentError,
    AssistantThinking,
    BlockAppended,
    MisuseError,
    OpaqueBlock,
    ToolCall,
    UsageRecorded,
)
from blocks.formats import Format
from persistence import MemoryStore
from tests._builders import LOOSE, CharCounter, open_timeline
from tests._table import for_each
from tests.blocks.formats.test_stream import STREAMS
from tests.foreign import Model, responded
from timeline import AsyncTimeline, Timeline
from timeline._timeline import Recording

FORMATS: list[Format] = [
    *("anthropic", "openai.chat", "openai.responses", "gemini", "langchain", "pydantic_ai")
]
SAYS = Model("let me see", ("c1", "c2"))


def opened() -> Timeline:
    timeline = open_timeline()
    timeline.user("go")
    return timeline


def stream(timeline: Timeline, name: Format, events: int | None = None) -> Recording:
    """Record a stream; one that breaks off after some events, if a number is given."""
    with timeline.recording(name) as recording:
        for event in STREAMS[name][:events]:
            recording.add(event)
        if events is not None:
            raise ConnectionError
    return recording


@for_each("name", FORMATS)
def test_a_response_of_any_format_is_recorded_in_one_commit_and_once(name: Format) -> None:
    timeline = opened()
    timeline.record(responded(SAYS, name, "r1"), format=name)
    assert timeline.open_calls == ("c1", "c2")
    version = timeline.version
    with pytest.raises(AlreadyRecordedError):
        timeline.record(responded(SAYS, name, "r1"), format=name)
    assert timeline.version == version
    timeline.tool_result("c1", "one")
    timeline.tool_result("c2", "two")
    assert timeline.render().violations == ()


@for_each("name", list(STREAMS))
def test_a_stream_of_another_format_is_refused(name: Format) -> None:
    for other in STREAMS.keys() - {name}:
        timeline = opened()
        recording = timeline.recording(name)
        for event in STREAMS[other]:
            recording.add(event)
        with pytest.raises(ArgumentError, match="no event of the stream is of this format"):
            recording.__exit__(None)
        assert timeline.open_calls == ()


def test_events_of_the_helper_of_openais_client_are_chunks_too() -> None:
    timeline = opened()
    with timeline.recording("openai.chat") as recording:
        for chunk in STREAMS["openai.chat"]:
            recording.add({"type": "chunk", "chunk": chunk, "snapshot": {"id": "snapshot"}})
            recording.add({"type": "content.delta", "delta": "again", "usage": {"total_tokens": 9}})
    assert recording.response == stream(opened(), "openai.chat").response


def test_blocks_and_usage_are_one_commit_and_usage_has_one_meaning() -> None:
    timeline = opened()
    usage = {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 90}}
    timeline.record({**responded(SAYS, "openai.chat", "r1"), "usage": usage}, format="openai.chat")
    [found] = [e for _, e in timeline.events() if isinstance(e, UsageRecorded)]
    assert (found.uncached, found.cache_read, found.response) == (10, 90, "r1")


def test_reasoning_and_what_only_a_provider_reads_is_kept_with_its_ids() -> None:
    timeline = opened()
    reasoning = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": []}
    search = {"type": "web_search_call", "id": "ws_1"}
    response = {"id": "resp_1", "output": [reasoning, search], "status": "completed"}
    timeline.record(response, format="openai.responses")
    blocks = [e.block for _, e in timeline.events() if isinstance(e, BlockAppended)][2:]
    thought, kept = blocks
    assert isinstance(thought, AssistantThinking)
    assert isinstance(kept, OpaqueBlock)
    assert (thought.provider, kept.fields["value"]) == (reasoning, search)
    assert [block.source for block in blocks] == ["rs_1", "ws_1"]


def test_a_call_at_the_end_of_an_answer_that_was_cut_off_is_no_call() -> None:
    timeline = opened()
    response = responded(SAYS, "openai.chat", "r1")
    response["choices"][0]["finish_reason"] = "length"
    timeline.record(response, format="openai.chat")
    assert timeline.open_calls == ("c1",)


def test_no_format_is_the_providers_own() -> None:
    timeline = opened()
    with pytest.raises(MisuseError, match="not a response of OpenAI's Chat Completions"):
        timeline.record(responded(SAYS, "openai.chat", "r1"))
    with pytest.raises(ArgumentError, match="no format 'openai'"):
        timeline.record({}, format="openai")  # type: ignore[arg-type]


@for_each("name", STREAMS)
def test_a_stream_is_recorded_when_it_ends(name: Format) -> None:
    timeline = opened()
    version = timeline.version
    recording = stream(timeline, name)
    assert recording.version == timeline.version > version
    assert timeline.open_calls == ("c",)
    with pytest.raises(AlreadyRecordedError):
        stream(timeline, name)


@for_each("name", STREAMS)
def test_a_stream_that_breaks_off_leaves_what_was_whole(name: Format) -> None:
    for events in range(len(STREAMS[name])):
        timeline = opened()
        with pytest.raises(ConnectionError):
            stream(timeline, name, events)
        blocks = [e.block for _, e in timeline.events() if isinstance(e, BlockAppended)]
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        assert all(call.input == {"a": 1} for call in calls)
        assert timeline.open_calls == tuple(call.call_id for call in calls)
        assert timeline.render().violations == ()


def test_what_is_no_event_is_refused() -> None:
    recording = opened().recording("anthropic")
    with pytest.raises(ArgumentError, match="expected an event of the stream, not 'x'"):
        recording.add("x")


def test_an_async_timeline_does_the_same() -> None:
    async def main() -> None:
        timeline = await AsyncTimeline.open(
            "talk", store=MemoryStore(), model=LOOSE, counter=CharCounter()
        )
        history: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        assert (await timeline.sync(history, format="openai.chat")).appended == 1
        async with timeline.recording("openai.chat") as recording:
            for event in STREAMS["openai.chat"]:
                recording.add(event)
        assert timeline.open_calls == ("c",)
        edited = [{"role": "user", "content": "stop"}]
        forked = await timeline.sync(edited, format="openai.chat", on_divergence="fork")
        assert isinstance(forked.timeline, AsyncTimeline)
        assert (forked.diverged_at, forked.appended) == (0, 1)
        await timeline.close()

    asyncio.run(main())
