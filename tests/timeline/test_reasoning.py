"""What a model thought, and what it led to: together in every request of a provider that wants both."""

import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import AssistantThinking, BlockAppended, ToolCall
from render import Json
from tests._builders import Clock, open_timeline, steady
from timeline import Timeline, model_named
from timeline.fake_provider import Call, FakeProvider, Reply

MODELS = {
    "openai.chat": attrs.evolve(
        model_named("gpt-5.5"), provider="openai.chat", thinking_modes=("between_tools",)
    ),
    "openai.responses": model_named("gpt-5.5"),
    "gemini": model_named("gemini-3.8-flash"),
    "anthropic": model_named("claude-sonnet-5-5"),
}


def answer(format_: str, number: int, thought: str) -> Mapping[str, Any]:
    """A response with reasoning, a text, and two calls."""
    ids = [f"k{number}_{index}" for index in range(2)]
    said = f"step {number}"
    if format_ == "openai.chat":
        asked = {"name": "f", "arguments": "{}"}
        calls = [{"id": each, "type": "function", "function": asked} for each in ids]
        message = {"role": "assistant", "content": said, "tool_calls": calls}
        choice = {"message": {**message, "reasoning_content": thought}}
        return {"id": f"c{number}", "choices": [choice]}
    if format_ == "openai.responses":
        text = {"type": "output_text", "text": said, "annotations": []}
        items: list[Json] = [
            {"type": "function_call", "call_id": each, "name": "f", "arguments": "{}"}
            for each in ids
        ]
        words: Json = {"type": "message", "role": "assistant", "content": [text]}
        reasoning = {"type": "reasoning", "summary": [], "encrypted_content": thought}
        return {"id": f"c{number}", "output": [reasoning, words, *items]}
    if format_ == "gemini":
        calls = [{"functionCall": {"id": each, "name": "f", "args": {}}} for each in ids]
        signed = {**calls[0], "thoughtSignature": "AAEC"}
        parts = [{"text": thought, "thought": True, "thoughtSignature": "AAEC"}, {"text": said}]
        content = {"role": "model", "parts": [*parts, signed, *calls[1:]]}
        return {"responseId": f"c{number}", "candidates": [{"content": content}]}
    calls = [{"type": "tool_use", "id": each, "name": "f", "input": {}} for each in ids]
    thinking = {"type": "thinking", "thinking": thought, "signature": f"s{number}"}
    return {"id": f"c{number}", "content": [thinking, {"type": "text", "text": said}, *calls]}


def assert_together(timeline: Timeline) -> None:
    """The cut separates no call from the thinking of its response."""
    compaction = timeline.view.compaction
    cut = compaction.event.cut if compaction else 0
    blocks = [(v, e.block) for v, e in timeline.events() if isinstance(e, BlockAppended)]
    thought = {b.response: v for v, b in blocks if isinstance(b, AssistantThinking)}
    for version, block in blocks:
        if isinstance(block, ToolCall):
            assert (version < cut) == (thought[block.response] < cut)


@pytest.mark.parametrize("format_", MODELS)
@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.integers(1, 400), st.sampled_from("......tw")),
        min_size=12,
        max_size=30,
    ),
    st.sampled_from([3000, 6000]),
)
def test_reasoning_and_its_calls_are_folded_or_sent_together_whatever_was_compacted_and_pruned(
    format_: str, rounds: list[tuple[int, int, str]], window: int
) -> None:
    clock = Clock()
    policy = steady(
        turns_intact=1, turns_visible=3, rounds_intact=2, prune_block_tokens=5, prune_tokens_min=1
    )
    timeline = open_timeline(model=MODELS[format_], window=window, clock=clock, policy=policy)
    timeline.user("go")
    for number, (thinks, reads, then) in enumerate(rounds):
        timeline.record(answer(format_, number, f"I think of {number}. " * thinks))
        for index in range(2):
            timeline.tool_result(f"k{number}_{index}", f"row {number} " * reads)
        if then == "t":
            timeline.user(f"next {number}")
        if then == "w":
            clock.wait(10_000.0)
        rendered = timeline.render()
        assert not rendered.violations
        assert_together(timeline)
        if format_ == "openai.chat":
            for message in rendered.openai_chat()["messages"]:
                assert not message.get("tool_calls") or message.get("reasoning_content")


# What it was thought behind.

TOOLS = [{"name": "f", "description": "F.", "input_schema": {"type": "object"}}]


def edited(history: list[Json], kind: str, place: int) -> None:
    """A program changes its own history, and leaves the thinking behind the change where it is."""
    prompts = [n for n, message in enumerate(history) if message["role"] == "user"]
    at = prompts[place % len(prompts)]
    message = history[at]
    match kind:
        case "change" if isinstance(message["content"], str):
            history[at] = {"role": "user", "content": f"{message['content']} Please."}
        case "change":
            results = [{**result, "content": "[cleared]"} for result in message["content"]]
            history[at] = {"role": "user", "content": results}
        case "drop" if 0 < at < len(history) - 2:
            del history[at - 1 : at + 1]
        case "summarise" if at < len(history) - 2 and history[at + 1]["role"] == "assistant":
            history[: at + 1] = [{"role": "user", "content": "What happened: much."}]
            _answered(history)
        case _:
            history.insert(0, {"role": "user", "content": f"Rules {len(history)}."})


def _answered(history: list[Json]) -> None:
    """Leave out results of calls that are gone."""
    asked = {
        c["id"] for m in history if m["role"] == "assistant" for c in m["content"] if "id" in c
    }
    for message in history:
        if isinstance(message["content"], list) and message["role"] == "user":
            kept = [r for r in message["content"] if r["tool_use_id"] in asked]
            message["content"] = kept or "Go on."


@given(
    st.lists(
        st.tuples(st.sampled_from(["change", "drop", "summarise", "insert"]), st.integers(0, 9)),
        min_size=1,
        max_size=3,
    ),
    st.integers(2, 4),
    st.sampled_from([4_000, 100_000]),
    st.sampled_from(["recorded", "synced"]),
)
def test_thinking_behind_an_edited_dropped_or_summarised_prompt_is_sent_no_more(
    edits: list[tuple[str, int]], rounds: int, window: int, answered: str
) -> None:
    """The provider refuses thinking that other content precedes than when it was thought."""
    script = FakeProvider(
        responder=lambda _: Reply(thinking=f"Hm {len(script.exchanges)}.", calls=[Call("f", {})]),
    )
    timeline = open_timeline(model="claude-sonnet-5-5", window=window, policy=steady())
    history: list[Json] = [{"role": "user", "content": "Look at a.txt."}]
    for kind, place in [*edits, ("end", 0)]:
        for _ in range(rounds):
            synced = timeline.sync(history, format="anthropic", on_divergence="fork")
            timeline = synced.timeline
            rendered = timeline.render(tools=TOOLS)
            request = {"model": "claude-sonnet-5-5", "thinking": {"type": "adaptive"}}
            request |= rendered.anthropic(max_tokens=2_000)
            exchange = script.create(json.loads(json.dumps(request)))
            assert exchange.message, exchange.error
            content = exchange.message["content"]
            if answered == "recorded":
                timeline.record(exchange.message, rendered)
            calls = [c for c in content if c["type"] == "tool_use"]
            results = [
                {"type": "tool_result", "tool_use_id": c["id"], "content": f"{c['id']} " * 50}
                for c in calls
            ]
            history += [
                {"role": "assistant", "content": content},
                {"role": "user", "content": results},
            ]
        if kind != "end":
            edited(history, kind, place)
