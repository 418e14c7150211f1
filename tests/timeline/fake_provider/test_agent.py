"""A scripted agent on a real socket: the engine's requests against the provider's rules."""

from collections.abc import Iterator
from typing import Any

import pytest

from blocks import RangeCompacted
from tests._practice import Practice
from timeline import Timeline
from timeline.fake_provider import Call, Reply

from .requests import MODEL, TOOL, UNBOUND

WINDOW = 30_000
ANSWER = 2_000
OUTPUT = "2026-11-21 INFO the job read /srv/data/part-{}.csv and wrote 1000 rows\n"


def script(rounds: int) -> Iterator[Reply]:
    """Thinking, a text and one or two calls a round; every 25th round ends the turn."""
    for number in range(rounds):
        if number % 25 == 24:
            yield Reply(thinking="Enough.", text=f"Part {number} is read.")
        else:
            calls = [
                Call("read_file", {"path": f"part-{number}-{n}.csv"}) for n in range(1 + number % 2)
            ]
            yield Reply(thinking=f"On to {number}.", text=f"I read part {number}.", calls=calls)


def run(name: str, call: Any) -> str:
    return "".join(OUTPUT.format(f"{call['path']}-{n}") for n in range(len(name) + 20))


def has_thinking(asked: dict[str, Any]) -> bool:
    return any(b["type"] == "thinking" for m in asked["messages"] for b in m["content"])


@pytest.mark.parametrize(("model", "rounds"), [(MODEL, 300), (UNBOUND, 60)])
def test_no_request_is_ever_refused(practice: Practice, model: str, rounds: int) -> None:
    server = practice.serve(responder=script(rounds), window=WINDOW)
    client = practice.client(server)
    with Timeline.open("agent", model=model, window=WINDOW - ANSWER) as timeline:
        timeline.user("Read all parts.")
        for _ in range(rounds):
            rendered = timeline.render(system="You read files.", tools=[TOOL])
            message = client.messages.create(**rendered.anthropic(max_tokens=ANSWER))
            timeline.record(message)
            for block in message.content:
                if block.type == "tool_use":
                    timeline.tool_result(block.id, run(block.name, block.input))
            if message.stop_reason == "end_turn":
                timeline.user("Go on.")
        compactions = [e for _, e in timeline.events() if isinstance(e, RangeCompacted)]
    assert not server.refused
    assert len(server.requests) == rounds
    assert sum(map(has_thinking, server.requests)) > rounds // 2
    assert len(compactions) >= rounds // 60
