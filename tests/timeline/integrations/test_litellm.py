"""A loop on LiteLLM that keeps its own list of messages, as the page has it; and what else a request may have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from blocks import AssistantCompletion, BlockAppended, ToolCall, UsageRecorded
from tests.timeline.integrations._play import PICTURE, SCHEMA, check_page
from timeline import Timeline, model_named
from timeline.fake_provider import Call, FakeServer, Reply

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("ignore")]
FOUND = '{"colour": "red"}'
QUESTION = [
    {"type": "text", "text": "Which colour?"},
    {"type": "image_url", "image_url": {"url": PICTURE}},
]


@pytest.fixture
def completion(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """LiteLLM's, without a look at the network for prices."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    return litellm.completion


def opened() -> Timeline:
    model = attrs.evolve(model_named("gpt-5.6"), provider="openai.chat")
    timeline = Timeline.open("look", model=model)
    timeline.sync([{"role": "user", "content": QUESTION}], format="openai.chat")
    return timeline


def to(server: FakeServer) -> dict[str, Any]:
    return {"model": "openai/gpt-5.6", "api_base": f"{server.url}/v1", "api_key": "test"}


def test_the_program_of_the_page_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    report(**check_page("litellm", tmp_path, serve))


def test_a_streamed_answer_is_recorded(
    serve: Callable[..., FakeServer], report: Callable[..., None], completion: Callable[..., Any]
) -> None:
    calls = [Call("read_file", {"path": "a.log"}), Call("read_file", {"path": "b.log"})]
    server, timeline = serve(responder=[Reply(text="I read.", calls=calls)]), opened()
    rendered = timeline.render(tools=[{"name": "read_file", "input_schema": {"type": "object"}}])
    more = {"stream": True, "stream_options": {"include_usage": True}}
    with timeline.recording("openai.chat", rendered) as recording:
        for chunk in completion(**rendered.openai_chat() | to(server) | more):
            recording.add(chunk)
    log = [event for _, event in timeline.events()]
    said = [event.block for event in log if isinstance(event, BlockAppended)]
    assert [one.text for one in said if isinstance(one, AssistantCompletion)] == ["I read."]
    assert [one.input for one in said if isinstance(one, ToolCall)] == [
        call.input for call in calls
    ]
    [usage] = [event for event in log if isinstance(event, UsageRecorded)]
    assert usage.output > 0
    assert server.refused == []
    report(streaming="ok")


def test_pictures_and_structured_output_in_two_runs(
    serve: Callable[..., FakeServer], report: Callable[..., None], completion: Callable[..., Any]
) -> None:
    server, timeline = serve(responder=lambda _: Reply(text=FOUND)), opened()
    wanted = {"type": "json_schema", "json_schema": SCHEMA}
    for _ in range(2):
        rendered = timeline.render()
        response = completion(**rendered.openai_chat() | to(server), response_format=wanted)
        timeline.record(response, rendered, format="openai.chat")
        timeline.user("And now?")
    assert PICTURE in str(server.requests[-1])
    assert server.requests[-1]["response_format"]["json_schema"]["name"] == SCHEMA["name"]
    said = [event.block for _, event in timeline.events() if isinstance(event, BlockAppended)]
    assert [one.text for one in said if isinstance(one, AssistantCompletion)] == [FOUND, FOUND]
    assert server.refused == []
    report(images="ok", structured="ok", runs="ok", ids="stable")
