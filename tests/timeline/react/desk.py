"""A desk: one timeline and its agent, at any provider, sync or async. Each call opens both anew, as another process would."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import attrs
import pytest

from blocks import Block, BlockAppended, ToolResult, text_of
from persistence import MemoryStore
from render import PROVIDERS, Model
from tests._practice import CLIENTS, Practice
from tests._table import for_each
from timeline import AsyncReactAgent, AsyncTimeline, ReactAgent, Timeline, model_named
from timeline.fake_provider import FakeServer
from timeline.react import Outcome

EVERYWHERE = for_each(
    ("provider", "is_async"),
    [
        pytest.param(provider, is_async, id=f"{provider}-{'async' if is_async else 'sync'}")
        for provider, is_async in product(PROVIDERS, [False, True])
    ],
)
NAMES = {"anthropic": "claude-sonnet-5-5", "gemini": "gemini-3.8-flash"}


def modelled(provider: str) -> Model:
    """A model of a provider; OpenAI serves its models through both of its APIs."""
    return attrs.evolve(model_named(NAMES.get(provider, "gpt-5.6")), provider=provider)


@attrs.define
class Desk:
    """One timeline, its agent, and what they did."""

    practice: Practice
    provider: str = "anthropic"
    is_async: bool = False
    server: FakeServer = attrs.field(kw_only=True)
    agent: dict[str, Any] = attrs.field(factory=dict[str, Any], kw_only=True)
    """Settings of the agent."""
    store: Any = attrs.field(factory=MemoryStore, kw_only=True)
    name: str = "desk"
    _client: Any = attrs.field(default=None, init=False)

    @classmethod
    def at(cls, practice: Practice, where: tuple[str, bool], script: Any, **agent: Any) -> "Desk":
        return cls(practice, *where, server=practice.serve(responder=script), agent=agent)

    def events(self, verb: str, *given: Any) -> list[Any]:
        """The events of `run` or `resume`."""
        events: list[Any] = self.with_agent(
            lambda agent: list(getattr(agent, f"{verb}_events")(*given)),
            lambda agent: _all(getattr(agent, f"{verb}_events")(*given)),
        )
        return events

    def do(self, verb: str, *given: Any) -> Any:
        """What a method of the agent returns."""
        return self.with_agent(
            lambda agent: getattr(agent, verb)(*given), lambda agent: getattr(agent, verb)(*given)
        )

    def run(self, prompt: str = "Go.") -> Outcome:
        outcome: Outcome = self.do("run", prompt)
        return outcome

    def resume(self) -> Outcome:
        outcome: Outcome = self.do("resume")
        return outcome

    def with_agent(self, use: Callable[[Any], Any], ause: Callable[[Any], Any]) -> Any:
        """What `use` makes of the agent; with an async one, what `ause` makes of it is awaited."""
        if self.is_async:
            return asyncio.run(self._awaited(ause))
        with Timeline.open(self.name, **self._options) as timeline:
            return use(ReactAgent(timeline, self.client(), **self.agent))

    async def _awaited(self, ause: Callable[[Any], Any]) -> Any:
        timeline = await AsyncTimeline.open(self.name, **self._options)
        try:
            async with self.aclient() as client:
                return await ause(AsyncReactAgent(timeline, client, **self.agent))
        finally:
            await timeline.close()

    @property
    def _options(self) -> Any:
        return {"store": self.store, "model": modelled(self.provider), "validate": True}

    def client(self) -> Any:
        """The client; one for all processes, because opening one takes long."""
        if self._client is None:
            self._client = self._made()
        return self._client

    def _made(self) -> Any:
        return getattr(self.practice, CLIENTS[self.provider])(self.server)

    def aclient(self) -> Any:
        return getattr(self.practice, f"a{CLIENTS[self.provider]}")(self.server)

    # What is in the log.

    def blocks(self, kind: Any, name: str = "") -> list[Any]:
        """The blocks of a kind, in the order of the log."""
        with Timeline.open(name or self.name, store=self.store) as timeline:
            return [block for block in _appended(timeline) if isinstance(block, kind)]

    @property
    def results(self) -> list[str]:
        """The texts of all results."""
        return [text_of(block) for block in self.blocks(ToolResult)]


async def _all(events: Any) -> list[Any]:
    return [event async for event in events]


def _appended(timeline: Timeline) -> Iterator[Block]:
    return (event.block for _, event in timeline.events() if isinstance(event, BlockAppended))
