"""Whole conversations: an agent of many rounds in a small window, and recorded sessions of other agents."""

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from blocks import RangeCompacted
from persistence import MemoryStore
from persistence.sessions import read_session
from render import Model, provider_of
from tests import _builders as make
from tests._sizes import sized
from tests._table import for_each
from tests.render.providers.openai._play import (
    API,
    MODELS,
    items_of,
    kwargs_of,
    plain,
)
from timeline import policy_named
from timeline.replay import ReplayOptions, replay

RECORDED = Path(
    os.environ.get("FOLDLINE_SESSIONS", Path(__file__).parents[5] / "shared/data/sessions")
)
ROUNDS = sized(40, 100)


def answer(model: Model, number: int) -> dict[str, Any]:
    """What a model of this API answers in a round: a thought, a text, two calls."""
    arguments = json.dumps({"command": f"make part_{number:03}"}, indent=number % 3 or None)
    ids = (f"call_{number}_a", f"call_{number}_b")
    usage = {"input_tokens": 10, "prompt_tokens": 10, "output_tokens": 5, "completion_tokens": 5}
    if model.provider == "openai.chat":
        calls = [
            {"id": name, "type": "function", "function": {"name": "bash", "arguments": arguments}}
            for name in ids
        ]
        message = {"role": "assistant", "content": f"Part {number}.", "tool_calls": calls}
        thought = {"reasoning_content": "First the one, then the other."}
        choice = {"finish_reason": "tool_calls", "message": {**message, **thought}}
        return {"id": f"r{number}", "choices": [choice], "usage": usage}
    text = {"type": "output_text", "text": f"Part {number}.", "annotations": []}
    items = [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x" * 900},
        {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [text]},
        {"type": "function_call", "id": "fc", "call_id": ids[0], "name": "bash", "arguments": arguments},
        {"type": "custom_tool_call", "id": "ct", "call_id": ids[1], "name": "patch", "input": "***"},
    ]  # fmt: skip
    return {"id": f"r{number}", "object": "response", "output": items, "usage": usage}


@for_each("model", MODELS, ids=lambda model: model.name)
def test_an_agent_of_many_rounds_is_never_refused_and_reopens_as_it_was(model: Model) -> None:
    store, clock = MemoryStore(), make.Clock()
    options: dict[str, Any] = {"store": store, "clock": clock, "model": model, "window": 6_000}
    timeline = make.open_timeline(policy=policy_named("default"), **options)
    timeline.user("Build all the parts, and keep the API as it is.")
    provider = provider_of(model)
    sent: list[tuple[int, list[Any]]] = []
    for number in range(ROUNDS):
        rendered = timeline.render(system="You build. " * 20, tools=[{"name": "bash"}])
        request = kwargs_of(rendered)
        assert rendered.violations == ()
        assert provider.violations(request, model) == ()
        sent.append((timeline.view.rewritten, plain(items_of(rendered))))
        timeline.record(answer(model, number))
        timeline.tool_result(f"call_{number}_a", f"part_{number:03} built\n" * 30)
        timeline.tool_result(f"call_{number}_b", "no such file", is_error=number % 5 == 0)
        clock.wait(20.0)
        if number % 20 == 0:
            live = timeline.render(system="You build.")
            timeline.flush()
            again = make.open_timeline(policy=policy_named("default"), **options)
            assert API.bytes_of(again.render(system="You build.")) == API.bytes_of(live)
    assert make.events_of(timeline, RangeCompacted)
    warm = [(a[1], b[1]) for a, b in pairwise(sent) if a[0] == b[0]]
    assert len(warm) > ROUNDS / 2
    for before, after in warm:
        assert after[: len(before)] == before


@pytest.mark.recorded
@pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded sessions here")
@for_each("name", sized(("mini-01",), ("codex-02", "mini-01", "oh-02", "pi-01")))
def test_a_recorded_session_is_as_good_for_one_provider_as_for_another(name: str) -> None:
    """No request would be refused, and what the agent refers to later is there as often."""
    [path] = RECORDED.glob(f"{name}.*")
    session = read_session(path)
    found = {
        provider: replay(session, ReplayOptions(window=30_000, counter="o200k", provider=provider))
        for provider in ("anthropic", "openai.responses", "openai.chat")
    }
    for result in found.values():
        assert result.problems == ()
        assert result.to_json()["validity_violations"] == 0
    recalls = [result.to_json()["recall"] for result in found.values()]
    for measure in ("far", "far_context", "quotes"):
        values = [recall[measure] for recall in recalls if recall[measure] is not None]
        assert max(values, default=0) - min(values, default=0) < 0.04, (measure, values)


@for_each("provider", ["openai.responses", "openai.chat"])
def test_a_replay_prices_a_session_as_another_provider_would(provider: str) -> None:
    path = Path(__file__).parents[4] / "docs/examples/invoice-service.jsonl"
    result = replay(read_session(path), ReplayOptions(window=30_000, provider=provider))
    assert result.problems == ()
    assert result.to_json()["validity_violations"] == 0
    assert result.to_json()["cache"]["read"] > 0
