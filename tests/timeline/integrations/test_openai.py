"""Loops on OpenAI's client, as the page has them; and what else a request may have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from openai import OpenAI

from blocks import AssistantCompletion, BlockAppended
from blocks.formats import Format
from tests.timeline.integrations._play import PICTURE, SCHEMA, check_page
from timeline import Timeline, model_named
from timeline.fake_provider import FakeServer, Reply

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]
FOUND = '{"colour": "red"}'


def test_the_program_on_responses_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    report(**check_page("openai", tmp_path, serve))


def test_the_program_on_chat_streams_and_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    report(**check_page("openai", tmp_path, serve, program=1), streaming="ok")


def asked(client: OpenAI, timeline: Timeline, name: Format) -> Any:
    """A response with structured output, to what the timeline renders."""
    rendered = timeline.render()
    if name == "openai.chat":
        wanted: Any = {"type": "json_schema", "json_schema": SCHEMA}
        return client.chat.completions.create(**rendered.openai_chat(), response_format=wanted)
    wanted = {"format": {"type": "json_schema", **SCHEMA}}
    return client.responses.create(**rendered.openai_responses(), text=wanted)


@pytest.mark.parametrize("name", ["openai.responses", "openai.chat"])
def test_pictures_and_structured_output_in_two_runs(
    name: Format, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    server = serve(responder=lambda _: Reply(text=FOUND))
    model = attrs.evolve(model_named("gpt-5.6"), provider=name)
    timeline = Timeline.open("look", model=model)
    picture = {"type": "image_url", "image_url": {"url": PICTURE}}
    question = [{"type": "text", "text": "Which colour?"}, picture]
    timeline.sync([{"role": "user", "content": question}], format="openai.chat")
    with OpenAI(base_url=f"{server.url}/v1", api_key="test", max_retries=0) as client:
        timeline.record(asked(client, timeline, name))
        timeline.user("And now?")
        timeline.record(asked(client, timeline, name))
    assert PICTURE in str(server.requests[-1])
    said = [event.block for _, event in timeline.events() if isinstance(event, BlockAppended)]
    assert [one.text for one in said if isinstance(one, AssistantCompletion)] == [FOUND, FOUND]
    assert server.refused == []
    report(images="ok", structured="ok", runs="ok", ids="stable")
