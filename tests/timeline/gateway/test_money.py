"""What is said to be saved is what the bill shows."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from persistence import MemoryStore, open_store
from render import provider_of
from tests.timeline.gateway._agents import (
    KEY,
    MODEL,
    SYSTEM,
    Agent,
    Recording,
    gateway,
    provider,
    working,
)
from timeline import model_named
from timeline.cli import main
from timeline.fake_provider import FakeServer
from timeline.gateway import Savings

pytestmark = pytest.mark.network
WINDOW = 6_500
TOKEN = "the-token"  # noqa: S105 -- of these tests


def bill(up: FakeServer) -> float:
    """What the provider's own books say."""
    model, total = model_named(MODEL), 0.0
    for exchange in up.provider.exchanges:
        assert exchange.step is not None
        assert exchange.answer is not None
        rates = provider_of(model).rates(model, exchange.tokens)
        step, output = exchange.step, exchange.answer.output_tokens
        total += rates.cost(step.uncached, step.read, step.written, output) / 1e6
    return total


@pytest.mark.parametrize("control", [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
def test_paid_is_what_the_provider_charges_and_full_what_it_charges_without_us(
    control: dict[str, str],
) -> None:
    system = [{**block, "cache_control": control} for block in SYSTEM]
    with provider(working(25), window=200_000) as direct:
        Agent(direct.url, control=control, system=system).work()
        alone = bill(direct)
    with provider(working(25)) as up:
        with gateway(store=MemoryStore(), upstream=up.url, window=WINDOW) as server:
            Agent(server.url, control=control, system=system).work()
        found = server.gateway.savings()
        assert found.paid == pytest.approx(bill(up), rel=1e-6)
        assert found.calls == len(up.requests)
        assert found.tokens == sum(exchange.tokens for exchange in up.provider.exchanges)
    assert found.full == pytest.approx(alone, rel=0.02)
    assert found.saved == pytest.approx(alone - found.paid, rel=0.1)
    assert found.uncached > found.full, "the provider's own cache is no merit of ours"


def test_without_pressure_it_costs_what_it_would_have_cost() -> None:
    with provider(working(6)) as up, gateway(store=MemoryStore(), upstream=up.url) as server:
        Agent(server.url).work()
        server.stop()
        found = server.gateway.savings()
    assert found.compactions == 0
    assert found.paid == pytest.approx(found.full, rel=0.01)


def test_a_stream_costs_the_same_as_a_whole_answer() -> None:
    import anthropic

    with provider(working(0)) as up, gateway(store=MemoryStore(), upstream=up.url) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key=KEY)
        said: list[anthropic.types.MessageParam] = [{"role": "user", "content": "Hello"}]
        with client.messages.stream(model=MODEL, max_tokens=50, messages=said) as stream:
            assert stream.get_final_text()
        server.stop()
        found = server.gateway.savings()
        assert found.paid == pytest.approx(bill(up), rel=1e-6)


def test_when_it_cost_more_than_it_saved_it_says_so() -> None:
    lost = Savings(calls=3, tokens=9_000, paid=0.3, full=0.2, full_tokens=8_000)
    assert "cost $0.1000 (50.0%) more" in lost.lines()[-1]
    same = Savings(calls=3, tokens=9_000, paid=0.2, full=0.20001, full_tokens=9_000, uncached=0.1)
    assert "nothing saved, nothing lost" in same.lines()[-1]
    assert "cache it would be $0.1000 less" in same.lines()[1]
    assert "no calls" in Savings(passed=4).lines()[0]


def test_no_key_is_kept_or_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.duckdb"
    with caplog.at_level(logging.DEBUG), provider(working(4)) as up:
        store = open_store(str(path))
        with gateway(store=store, upstream=up.url, token=TOKEN) as server:
            for auth in ({}, {"authorization": f"Bearer {KEY}"}):
                headers = {**auth, "x-foldline-token": TOKEN}
                Agent(server.url, headers=headers).work()
            server.gateway.upstream = "http://127.0.0.1:9"
        store.close()
    for file in tmp_path.iterdir():
        if file.is_file():
            assert KEY.encode() not in file.read_bytes()
    assert KEY not in caplog.text
    assert TOKEN not in caplog.text
    assert main(["list", "--json", "--store", str(path)]) == 0
    [first, *_] = json.loads(capsys.readouterr().out)
    assert main(["show", first["id"], "--json", "--store", str(path)]) == 0
    assert KEY not in capsys.readouterr().out


@attrs.define
class Lingering(Recording):
    """Says all that it has to say, and does not hang up."""

    async def _take(self, http: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            message = {"id": "m1", "usage": {"input_tokens": 900, "output_tokens": 1}}
            for event in (
                {"type": "message_start", "message": message},
                {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}},
                {"type": "message_stop"},
            ):
                yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            await asyncio.sleep(30)

        del http
        return StreamingResponse(events(), media_type="text/event-stream")


def test_a_call_counts_though_the_client_hangs_up_after_the_last_event() -> None:
    with Lingering() as up, gateway(store=MemoryStore(), upstream=up.url) as server:
        agent = Agent(server.url, more={"stream": True})
        agent.say("Hello.")
        headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
        url = f"{server.url}/v1/messages"
        with httpx2.stream("POST", url, json=agent.request(), headers=headers) as answer:
            for line in answer.iter_lines():
                if "message_stop" in line:
                    break
        for _ in range(500):
            if (savings := server.gateway.savings()).calls:
                break
            time.sleep(0.01)
        assert (savings.calls, savings.tokens, savings.output_tokens) == (1, 900, 7)
