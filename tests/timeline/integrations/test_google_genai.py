"""Loops on Google's client, as the page has them, and agents that ask it: many rounds, a death in between."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google import genai

from tests.timeline.integrations._play import (
    LAST_WORDS,
    ROUNDS,
    Program,
    Reader,
    check_log,
    programs,
)
from tests.timeline.react import test_long as long
from timeline import AsyncReactAgent, AsyncTimeline, Hooks, ReactAgent, Timeline, model_named
from timeline.fake_provider import FakeServer

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]

MODEL = model_named("gemini-3.8-flash")


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
    report(rounds=reader.said, refused=len(server.refused), resumed="ok")
    report(**({"streaming": "ok"} if number else {}))


def client_of(server: FakeServer) -> genai.Client:
    retries = {"attempts": 3, "initial_delay": 0.01}
    return genai.Client(
        api_key="test", http_options={"base_url": server.url, "retry_options": retries}
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_agent_of_many_rounds(serve: Callable[..., FakeServer], *, stream: bool) -> None:
    server, counted = serve(responder=long.script(), window=long.WINDOW), long.Counted()
    options: Any = {"window": long.WINDOW - long.ANSWER, "model": MODEL}
    hooks = Hooks(on_after_compaction=[counted.compacted.append])
    with Timeline.open("agent", hooks=hooks, **options) as timeline:
        agent = ReactAgent(
            timeline,
            client_of(server),
            tools=[long.read_part],
            system="You read logs.",
            max_tokens=long.ANSWER,
            rounds_max=long.ROUNDS,
            hooks=counted.of_agent(),
            stream=stream,
        )
        outcome = agent.run(long.TASK)
        long.check(outcome, [event for _, event in timeline.events()], server, counted)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_async_agent_of_many_rounds(serve: Callable[..., FakeServer], *, stream: bool) -> None:
    server, counted = serve(responder=long.script(), window=long.WINDOW), long.Counted()

    async def run() -> None:
        options: Any = {"window": long.WINDOW - long.ANSWER, "model": MODEL}
        hooks = Hooks(on_after_compaction=[counted.compacted.append])
        timeline = await AsyncTimeline.open("agent", hooks=hooks, **options)
        async with client_of(server).aio as client:
            agent = AsyncReactAgent(
                timeline,
                client,
                tools=[long.read_part],
                system="You read logs.",
                max_tokens=long.ANSWER,
                rounds_max=long.ROUNDS,
                hooks=counted.of_agent(),
                stream=stream,
            )
            outcome = await agent.run(long.TASK)
        long.check(outcome, [event for _, event in await timeline.events()], server, counted)
        await timeline.close()

    asyncio.run(run())
