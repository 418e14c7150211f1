"""A long life: many rounds in a small window, and the provider, whichever it is, takes every request."""

import asyncio
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from blocks import BlockAppended, Event, RangeCompacted, ToolCall, ToolResult
from persistence import MemoryStore
from render import PROVIDERS, Model
from tests._practice import Practice
from tests._sizes import sized
from timeline import (
    AsyncReactAgent,
    AsyncTimeline,
    Compacted,
    Hooks,
    ReactAgent,
    Timeline,
    model_named,
)
from timeline.fake_provider import Call, FakeServer, Fault, Reply
from timeline.react import AgentHooks, Limits, Outcome

ROUNDS = sized(90, 300)
WINDOW = sized(14_000, 30_000)
ANSWER = 2_000
LINE = "2026-11-21 INFO the job read /srv/data/part-{}.csv and wrote 1000 rows\n"
TASK = "Read all parts. Never write to /srv."


def read_part(number: int) -> str:
    """Read a part of the log."""
    return "".join(LINE.format(f"{number}-{line}") for line in range(25))


def script() -> Iterator[Reply | Fault]:
    """One or two calls a round, thinking, and every 30th time something goes wrong."""
    for number in range(ROUNDS - 1):
        if number % 30 == 29:
            yield Fault.overloaded()
        calls = [Call("read_part", {"number": number + n}) for n in range(1 + number % 2)]
        yield Reply(thinking=f"On to {number}.", text=f"I read part {number}.", calls=calls)
    yield Reply(thinking="Enough.", text="All parts are read.")


@attrs.define
class Counted:
    """Hooks that count."""

    before: list[int] = attrs.field(factory=list[int])
    after: list[int] = attrs.field(factory=list[int])
    compacted: list[Compacted] = attrs.field(factory=list[Compacted])
    sources: list[str] = attrs.field(factory=list[str])

    def of_agent(self) -> AgentHooks:
        return AgentHooks(
            before_step=[lambda step: self.before.append(step.round)],
            after_step=[lambda step: self.after.append(step.round)],
            on_session_start=[lambda started: self.sources.append(started.source)],
        )


def check(outcome: Outcome, log: list[Event], server: FakeServer, counted: Counted) -> None:
    assert not server.refused
    assert (outcome.text, outcome.stop) == ("All parts are read.", "end_turn")
    assert outcome.rounds == ROUNDS
    assert counted.before == counted.after == list(range(1, ROUNDS + 1))
    compactions = [event for event in log if isinstance(event, RangeCompacted)]
    assert 3 <= len(compactions) <= len(counted.compacted)
    assert counted.sources == ["startup", *["compact"] * len(counted.compacted)]
    blocks: list[Any] = [event.block for event in log if isinstance(event, BlockAppended)]
    calls = [block.call_id for block in blocks if isinstance(block, ToolCall)]
    results = [block.call_id for block in blocks if isinstance(block, ToolResult)]
    assert len(calls) == ROUNDS - 1 + ROUNDS // 2 - 1 + ROUNDS % 2
    assert sorted(calls) == sorted(results)
    assert TASK in str(server.requests[-1])
    # Gemini's cache keeps nothing that is shorter than 4,096 tokens, and what is new is not counted as written.
    least = 2 if "contents" in server.requests[-1] else 4
    assert outcome.usage.cache_read > least * outcome.usage.uncached


def modelled(provider: str) -> Model:
    """A model of a provider; OpenAI serves its models through both of its APIs."""
    names = {"anthropic": "claude-sonnet-5-5", "gemini": "gemini-3.8-flash"}
    return attrs.evolve(model_named(names.get(provider, "gpt-5.6")), provider=provider)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_many_rounds(practice: Practice, provider: str, *, stream: bool) -> None:
    """Features 004-8 and 002-10."""
    server = practice.serve(responder=script(), window=WINDOW)
    counted = Counted()
    hooks = Hooks(on_after_compaction=[counted.compacted.append])
    clients: dict[str, Any] = {"anthropic": practice.client, "gemini": practice.google}
    opened = clients.get(provider, practice.openai)
    store = MemoryStore()
    options: Any = {"store": store, "window": WINDOW - ANSWER, "model": modelled(provider)}
    with Timeline.open("agent", hooks=hooks, **options) as timeline:
        agent = ReactAgent(
            timeline,
            opened(server, max_retries=2),
            tools=[read_part],
            system="You read logs.",
            max_tokens=ANSWER,
            limits=Limits(rounds=ROUNDS),
            hooks=counted.of_agent(),
            stream=stream,
        )
        outcome = agent.run(TASK)
        check(outcome, [event for _, event in timeline.events()], server, counted)
        live = timeline.render(system="You read logs.", tools=agent.definitions)
    with Timeline.open("agent", **options) as again:
        reopened = again.render(system="You read logs.", tools=agent.definitions)
        assert reopened.request() == live.request()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_many_async_rounds(practice: Practice, provider: str) -> None:
    server = practice.serve(responder=script(), window=WINDOW)
    counted = Counted()

    async def run() -> None:
        hooks = Hooks(on_after_compaction=[counted.compacted.append])
        timeline = await AsyncTimeline.open(
            "agent", window=WINDOW - ANSWER, hooks=hooks, model=modelled(provider)
        )
        clients: dict[str, Any] = {"anthropic": practice.aclient, "gemini": practice.agoogle}
        opened = clients.get(provider, practice.aopenai)
        async with opened(server, max_retries=2) as client:
            agent = AsyncReactAgent(
                timeline,
                client,
                tools=[read_part],
                system="You read logs.",
                max_tokens=ANSWER,
                limits=Limits(rounds=ROUNDS),
                hooks=counted.of_agent(),
            )
            outcome = await agent.run(TASK)
        check(outcome, [event for _, event in await timeline.events()], server, counted)
        await timeline.close()

    asyncio.run(run())
