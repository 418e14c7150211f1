"""Loops on Google's client, as the page has them, and agents that ask it: many rounds, a death in between."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google import genai

from blocks import AssistantCompletion, BlockAppended, ImagePart
from tests.timeline.integrations._play import (
    LAST_WORDS,
    PIXEL,
    ROUNDS,
    SCHEMA,
    Program,
    Reader,
    check_log,
    part,
    programs,
)
from timeline import AsyncReactAgent, AsyncTimeline, ReactAgent, Timeline, model_named
from timeline.fake_provider import FakeServer, Fault, Reply
from timeline.react import Limits

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]

MODEL = model_named("gemini-3.8-flash")
FOUND = '{"colour": "red"}'


@pytest.mark.parametrize("number", [0, 1], ids=["whole", "streamed"])
def test_the_program_of_the_page_goes_on_after_it_was_killed(
    number: int, tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    reader = Reader(thinks=True)
    server = serve(responder=reader)
    program = Program(text=programs("google-genai")[number], folder=tmp_path, server=server)

    def die(rounds: int) -> None:
        if rounds == ROUNDS // 2:
            program.kill()

    reader.before = die
    program.run_until_killed()
    assert reader.said == ROUNDS // 2
    assert program.run() == LAST_WORDS
    assert server.refused == []
    with Timeline.open("audit", store=tmp_path / "audit.duckdb") as timeline:
        check_log([event for _, event in timeline.events()])
    report(rounds=reader.said, tools="ok", lost=0, resumed="ok")
    report(**({"streaming": "ok"} if number else {}))


def test_pictures_and_structured_output_in_two_runs(
    serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    server = serve(responder=lambda _: Reply(text=FOUND))
    client = genai.Client(api_key="test", http_options={"base_url": server.url})
    wanted = {"response_mime_type": "application/json", "response_json_schema": SCHEMA["schema"]}
    with Timeline.open("look", model=MODEL) as timeline:
        timeline.user("Which colour?", ImagePart(data=PIXEL))
        for _ in range(2):
            rendered = timeline.render()
            request = rendered.gemini()
            request["config"] = {**request["config"], **wanted}
            timeline.record(client.models.generate_content(**request), rendered)
            timeline.user("And now?")
        said = [event.block for _, event in timeline.events() if isinstance(event, BlockAppended)]
    assert [one.text for one in said if isinstance(one, AssistantCompletion)] == [FOUND, FOUND]
    assert PIXEL in str(server.requests[-1])
    assert server.refused == []
    report(images="ok", structured="ok", runs="ok", ids="stable")


def read_file(path: str) -> str:
    """Read a file."""
    return part(int(path.removeprefix("part-").removesuffix(".log")))


def options(server: FakeServer, *, stream: bool) -> dict[str, Any]:
    """What an agent is made with."""
    retries = {"attempts": 3, "initial_delay": 0.01}
    found = {"base_url": server.url, "retry_options": retries}
    return {
        "client": genai.Client(api_key="test", http_options=found),
        "tools": [read_file],
        "system": "You read logs.",
        "max_tokens": 2_000,
        "limits": Limits(rounds=ROUNDS + 1),
        "stream": stream,
    }


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_agent_of_many_rounds(serve: Callable[..., FakeServer], *, stream: bool) -> None:
    reader = Reader(thinks=True)
    server = serve(responder=reader)
    server.fault(Fault.overloaded())
    with Timeline.open("agent", model=MODEL, window=20_000) as timeline:
        outcome = ReactAgent(timeline, **options(server, stream=stream)).run("Read all parts.")
        check_log([event for _, event in timeline.events()])
    assert (outcome.text, outcome.stop, reader.said) == (LAST_WORDS, "end_turn", ROUNDS)
    assert server.refused == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_async_agent_of_many_rounds(serve: Callable[..., FakeServer], *, stream: bool) -> None:
    server = serve(responder=Reader(thinks=True))

    async def run() -> None:
        timeline = await AsyncTimeline.open("agent", model=MODEL, window=20_000)
        given = options(server, stream=stream)
        async with given["client"].aio as client:
            agent = AsyncReactAgent(timeline, **{**given, "client": client})
            outcome = await agent.run("Read all parts.")
        assert outcome.text == LAST_WORDS
        check_log([event for _, event in await timeline.events()])
        await timeline.close()

    asyncio.run(run())
    assert server.refused == []
