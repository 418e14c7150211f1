"""Interrupted at any point, the log stays valid, and the next run goes on from it."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from blocks import Block, ToolCall, ToolResult, text_of
from persistence import DuckDBStore, MemoryStore
from tests._practice import Practice
from tests._sizes import PATIENCE, until
from tests._table import for_each
from timeline import AsyncReactAgent, AsyncTimeline, ReactAgent, Timeline
from timeline.fake_provider import Call, Reply
from timeline.react import AgentHooks, Outcome

from .both import read_file

CALLS = [Call("read_file", {"path": name}) for name in ("a", "b", "c")]
SCRIPT = [
    Reply(thinking="Hm.", text="One.", calls=CALLS),
    Reply(text="Two.", calls=CALLS[:1]),
    Reply(text="Three."),
]


@attrs.define
class Trap:
    """Raises or cancels at the n-th thing that happens."""

    at: int
    spring: Callable[[], object]
    seen: int = 0

    def step(self, *_: object) -> None:
        self.seen += 1
        if self.seen == self.at:
            self.spring()


class TrappedStore(MemoryStore):
    """Springs the trap after each commit: it is durable, but nobody heard of it."""

    trap: Trap | None = None

    def append(self, *given: Any, **named: Any) -> int:
        version = super().append(*given, **named)
        if self.trap:
            self.trap.step()
        return version


def interrupt() -> None:
    raise KeyboardInterrupt


def blocks_of(timeline: Timeline, kind: type[Any]) -> list[Any]:
    return [entry.block for entry in timeline.view.entries if isinstance(entry.block, kind)]


def check(timeline: Timeline) -> None:
    """Every call has exactly one result, and the request is valid."""
    calls: list[ToolCall] = blocks_of(timeline, ToolCall)
    results: list[ToolResult] = blocks_of(timeline, ToolResult)
    assert timeline.open_calls == ()
    assert sorted(call.call_id for call in calls) == sorted(r.call_id for r in results)
    for result in results:
        closed = text_of(result).startswith("Interrupted")
        assert closed == (result.envelope.outcome == "partial") == result.is_error
    assert timeline.render().violations == ()


@for_each("at", range(1, 15))
def test_ctrl_c_at_every_commit_tool_and_hook(practice: Practice, at: int) -> None:
    server = practice.serve(responder=list(SCRIPT))
    store, trap = TrappedStore(), Trap(at, interrupt)
    store.trap = trap

    def read_or_stop(path: str) -> str:
        trap.step()
        return read_file(path)

    tool = [read_or_stop]
    read_or_stop.__name__ = "read_file"
    hooks = AgentHooks(before_step=[trap.step], after_step=[trap.step])
    with Timeline.open("agent", store=store) as timeline:
        agent = ReactAgent(timeline, practice.client(server), tools=tool, hooks=hooks)
        with pytest.raises(KeyboardInterrupt):
            agent.run("Look.")
        check(timeline)
        agent.run("Go on.")
        check(timeline)
    with Timeline.open("agent", store=store) as reopened:
        check(reopened)
    assert not server.refused


@for_each("stream", [False, True], ids=["whole", "stream"])
@for_each("at", range(1, 26, 3))
def test_a_task_cancelled_at_any_time(practice: Practice, at: int, *, stream: bool) -> None:
    """At the n-th thing that happens: a commit, a request that arrives, a step, a piece of text, a tool."""
    store, replies = TrappedStore(), iter(SCRIPT)
    tasks: list[asyncio.Task[Outcome]] = []
    trap = Trap(at, lambda: tasks[0].get_loop().call_soon_threadsafe(tasks[0].cancel))
    store.trap = trap

    def answer(_: object) -> Reply:
        trap.step()
        return next(replies, SCRIPT[-1])

    async def slow(path: str) -> str:
        trap.step()
        await asyncio.sleep(0)  # others have their turn
        trap.step()
        return path

    slow.__name__ = "read_file"
    hooks = AgentHooks(before_step=[trap.step], after_step=[trap.step], on_text=[trap.step])
    server = practice.serve(responder=answer)

    async def run() -> None:
        timeline = await AsyncTimeline.open("agent", store=store)
        async with practice.aclient(server) as client:
            agent = AsyncReactAgent(timeline, client, tools=[slow], hooks=hooks, stream=stream)
            tasks.append(asyncio.create_task(agent.run("Look.")))
            await asyncio.wait(tasks)
            assert tasks[0].cancelled() or tasks[0].result().text == "Three."
            assert timeline.open_calls == ()
            await agent.run("Go on.")
        await timeline.close()

    asyncio.run(run())
    with Timeline.open("agent", store=store) as reopened:
        check(reopened)
    assert not server.refused


def test_what_was_done_when_the_task_was_cancelled_is_kept(practice: Practice) -> None:
    server = practice.serve(responder=list(SCRIPT))
    store, done = MemoryStore(), asyncio.Semaphore(0)

    async def read(path: str) -> str:
        if path == "b":
            await asyncio.Event().wait()  # for ever
        done.release()
        return path

    read.__name__ = "read_file"

    async def run() -> None:
        timeline = await AsyncTimeline.open("agent", store=store)
        async with practice.aclient(server) as client:
            agent = AsyncReactAgent(timeline, client, tools=[read])
            task = asyncio.create_task(agent.run("Look."))
            for _ in "ac":
                await asyncio.wait_for(done.acquire(), PATIENCE)
            await asyncio.to_thread(until, lambda: len(timeline.open_calls) == 1)  # they are noted
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await timeline.close()

    asyncio.run(run())
    with Timeline.open("agent", store=store) as reopened:
        check(reopened)
        outcomes = [result.envelope.outcome for result in blocks_of(reopened, ToolResult)]
        assert sorted(outcomes) == ["partial", "success", "success"]


CRASHING = """
import os, sys
import anthropic
from timeline import ReactAgent, Timeline

def read_file(path: str) -> str:
    if path == "b":
        os._exit(9)
    return path

timeline = Timeline.open("agent", store=sys.argv[1])
client = anthropic.Anthropic(base_url=sys.argv[2], api_key="test", max_retries=0)
ReactAgent(timeline, client, tools=[read_file], parallel_max=1).run("Look.")
"""


def test_a_process_killed_in_the_middle_of_a_tool_call_is_resumed(
    practice: Practice, tmp_path: Path
) -> None:
    server = practice.serve(responder=list(SCRIPT))
    path = tmp_path / "agent.duckdb"
    code = textwrap.dedent(CRASHING)
    done = subprocess.run(
        [sys.executable, "-c", code, path, server.url],
        timeout=PATIENCE,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 9, done.stderr.decode()
    with DuckDBStore(path) as store, Timeline.open("agent", store=store) as timeline:
        assert len(timeline.open_calls) == 2
        before: list[Block] = blocks_of(timeline, ToolResult)
        assert [text_of(block) for block in before] == ["a"]
        agent = ReactAgent(timeline, practice.client(server), tools=[read_file])
        outcome = agent.resume()
        assert (outcome.text, outcome.rounds) == ("Three.", 2)
        texts = [text_of(block) for block in blocks_of(timeline, ToolResult)]
        assert texts[0] == "a"
        assert [text.startswith("Interrupted: ") for text in texts] == [False, True, True, False]
        check(timeline)
    assert not server.refused
