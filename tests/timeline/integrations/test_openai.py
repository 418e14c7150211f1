"""Loops on OpenAI's client, as the page has them: many rounds, a death in between, and nothing twice."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.timeline.integrations._play import (
    LAST_WORDS,
    ROUNDS,
    Program,
    Reader,
    check_log,
    programs,
)
from timeline import Timeline
from timeline.fake_provider import FakeServer

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("number", [0, 1], ids=["responses", "chat, streamed"])
def test_the_program_of_the_page_goes_on_after_it_was_killed(
    number: int, tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    reader = Reader(thinks=number == 0)
    server = serve(responder=reader)
    program = Program(text=programs("openai")[number], folder=tmp_path, server=server)

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
