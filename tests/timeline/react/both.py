"""One test, both agents: the sync one, and the async one in a loop of its own."""

import asyncio
from collections.abc import Iterable
from typing import Any

import attrs

from blocks import Block, BlockAppended, Event, ToolResult, text_of
from tests._practice import Practice
from timeline import AsyncReactAgent, AsyncTimeline, ReactAgent, Timeline
from timeline.fake_provider import FakeServer, Fault, Reply
from timeline.react import Outcome


def read_file(path: str) -> str:
    """Read a file."""
    return f"text of {path}"


@attrs.define
class Ran:
    """What one agent did."""

    outcome: Outcome
    events: list[Event]
    server: FakeServer

    def blocks(self, kind: type[Block] | Any) -> list[Any]:
        appended = (event.block for event in self.events if isinstance(event, BlockAppended))
        return [block for block in appended if isinstance(block, kind)]

    @property
    def results(self) -> list[tuple[str, bool]]:
        return [(text_of(block), block.is_error) for block in self.blocks(ToolResult)]


@attrs.define
class Agents:
    """Runs the same script with both agents."""

    practice: Practice
    prompt: str = "Look at a.txt."
    timeline: dict[str, Any] = attrs.field(factory=dict[str, Any])

    def run(
        self, script: Iterable[Reply | Fault], window: int | None = None, **options: Any
    ) -> Iterable[Ran]:
        said = list(script)
        given = {"tools": [read_file], "system": "You read files.", **options}
        for shell in (self._sync, self._async):
            server = self.practice.serve(responder=list(said), window=window)
            ran = shell(server, given)
            assert not server.refused
            yield ran

    def _sync(self, server: FakeServer, given: dict[str, Any]) -> Ran:
        with Timeline.open("agent", validate=True, **self.timeline) as timeline:
            client = self.practice.client(server, max_retries=2)
            outcome = ReactAgent(timeline, client, **given).run(self.prompt)
            assert timeline.open_calls == ()
            timeline.render()
            return Ran(outcome, [event for _, event in timeline.events()], server)

    def _async(self, server: FakeServer, given: dict[str, Any]) -> Ran:
        async def run() -> Ran:
            timeline = await AsyncTimeline.open("agent", validate=True, **self.timeline)
            async with self.practice.aclient(server, max_retries=2) as client:
                outcome = await AsyncReactAgent(timeline, client, **given).run(self.prompt)
            assert timeline.open_calls == ()
            events = [event for _, event in await timeline.events()]
            await timeline.close()
            return Ran(outcome, events, server)

        return asyncio.run(run())
