"""The Claude Agent SDK with the real Claude Code behind the gateway."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import attrs
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    StreamEvent,
)

from blocks import BlockAppended, Event, ToolCall, ToolResult, UsageRecorded
from persistence import SQLiteStore
from tests.timeline.integrations._play import (
    LAST_WORDS,
    PIXEL,
    ROUNDS,
    Program,
    Serve,
    part,
    programs,
    write_parts,
)
from timeline import Timeline
from timeline.fake_provider import Call, FakeServer, Reply
from timeline.gateway import Gateway, GatewayServer

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]


@attrs.define(kw_only=True)
class Reader:
    """Answers Claude Code: reads file after file where there are tools, and else says what it is asked for."""

    folder: Path
    rounds: int = ROUNDS
    said: int = 0
    before: Callable[[int], None] = lambda _: None

    def __call__(self, request: Any) -> Reply:
        if not request.get("tools"):
            return Reply(text="A title.")
        self.said += 1
        self.before(self.said)
        if self.said >= self.rounds:
            return Reply(text=LAST_WORDS)
        path = self.folder / f"part-{self.said % ROUNDS}.log"
        calls = [Call("Read", {"file_path": str(path)})]
        return Reply(text=f"I read part {self.said}.", calls=calls)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files, and another one in which Claude Code keeps its own."""
    work = tmp_path / "work"
    work.mkdir()
    write_parts(work)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(work)
    return work


@attrs.define
class Desk:
    """A provider, a gateway before it, and options of clients of it."""

    server: FakeServer
    store: Path
    _stack: ExitStack = attrs.field(factory=ExitStack, init=False)

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.__exit__(*raised)

    def options(self, **more: Any) -> ClaudeAgentOptions:
        """In a gateway of their own, as in a new process."""
        gateway = Gateway(store=self.store, upstream=self.server.url, window=60_000)
        gate = self._stack.enter_context(GatewayServer(gateway=gateway))
        env = {"ANTHROPIC_BASE_URL": gate.url, "ANTHROPIC_API_KEY": "test"}
        known = {"env": env, "model": "claude-sonnet-5-5", "allowed_tools": ["Read"], **more}
        return ClaudeAgentOptions(**known)

    def log(self) -> list[Event]:
        """The events of the longest timeline; titles have timelines of their own."""
        store = SQLiteStore(self.store)
        logs = []
        for found in store.list():
            with Timeline.open(found.id, store=store) as one:
                logs.append([event for _, event in one.events()])
        return max(logs, key=len)


def blocks(log: list[Event], kind: type[Any]) -> list[Any]:
    return [e.block for e in log if isinstance(e, BlockAppended) and isinstance(e.block, kind)]


async def say(options: ClaudeAgentOptions, *said: Any) -> list[Any]:
    """One client, and what came back for each of these."""
    found = list[Any]()
    async with ClaudeSDKClient(options) as client:
        for one in said:
            await client.query(one if isinstance(one, str) else _alone(one))
            found += [message async for message in client.receive_response()]
    return found


async def _alone(message: Any) -> AsyncIterator[Any]:
    yield message


def results(messages: list[Any]) -> list[ResultMessage]:
    return [message for message in messages if isinstance(message, ResultMessage)]


def test_the_program_of_the_page_goes_on_after_it_was_killed(
    home: Path, serve: Serve, report: Callable[..., None]
) -> None:
    reader = Reader(folder=home, rounds=12)
    server = serve(responder=reader, window=200_000)
    program = Program(text=programs("claude-agent-sdk")[0], folder=home, server=server)
    reader.before = lambda n: program.kill() if n == 6 else None
    program.run_until_killed()
    assert reader.said >= 6
    assert program.run() == LAST_WORDS
    assert server.refused == []
    report(rounds=reader.said, tools="ok", lost=0, resumed="ok")


def test_two_runs_of_one_client_are_one_timeline(
    home: Path, tmp_path: Path, serve: Serve, report: Callable[..., None]
) -> None:
    reader = Reader(folder=home)
    with Desk(serve(responder=reader, window=200_000), tmp_path / "a.sqlite") as desk:
        first = asyncio.run(say(desk.options(include_partial_messages=True), "Read all.", "Again."))
    assert [one.result for one in results(first)] == [LAST_WORDS, LAST_WORDS]
    assert sum(isinstance(message, StreamEvent) for message in first) > ROUNDS
    assert desk.server.refused == []
    log = desk.log()
    calls = [call.call_id for call in blocks(log, ToolCall)]
    assert len(calls) == ROUNDS - 1
    assert calls == [result.call_id for result in blocks(log, ToolResult)]
    assert part(1)[:60] in str(blocks(log, ToolResult)[0].parts)
    assert sum(isinstance(event, UsageRecorded) for event in log) >= ROUNDS
    report(runs="ok", ids="stable", streaming="ok")


def test_a_picture_is_sent(home: Path, tmp_path: Path, serve: Serve, report: Any) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    content = [{"type": "text", "text": "What is it?"}, {"type": "image", "source": source}]
    said = {"type": "user", "message": {"role": "user", "content": content}}
    reader = Reader(folder=home, rounds=1)
    with Desk(serve(responder=reader, window=200_000), tmp_path / "a.sqlite") as desk:
        [result] = results(asyncio.run(say(desk.options(), said)))
    assert result.result == LAST_WORDS
    assert PIXEL in str(desk.server.requests)
    assert desk.server.refused == []
    report(images="ok")


@pytest.mark.usefixtures("home")
def test_structured_output_comes_as_ever(tmp_path: Path, serve: Serve, report: Any) -> None:
    schema = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}

    def answer(request: Any) -> Reply:
        names = [tool["name"] for tool in request.get("tools") or ()]
        own = next((name for name in names if "Structured" in name), "")
        is_done = "tool_result" in str(request["messages"][-1])
        if own and not is_done:
            return Reply(calls=[Call(own, {"file": "part-1.log"})])
        return Reply(text="It is there.")

    with Desk(serve(responder=answer, window=200_000), tmp_path / "a.sqlite") as desk:
        given = desk.options(output_format={"type": "json_schema", "schema": schema})
        [result] = results(asyncio.run(say(given, "Which file?")))
    assert result.structured_output == {"file": "part-1.log"}
    assert desk.server.refused == []
    report(structured="ok")
