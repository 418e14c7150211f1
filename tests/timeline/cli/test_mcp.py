"""`foldline mcp`, in a process of its own, as an agent's MCP client talks to it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent

from persistence import DuckDBStore
from tests._sizes import PATIENCE
from tests.timeline.cli.conftest import Run
from timeline import Timeline
from timeline.cli import main

CODE = "import sys; from timeline.cli import main; sys.exit(main())"
FACT = "The gateway answers on port 48231."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a store of one timeline."""
    with Timeline.open("agent", store=tmp_path / "foldline.duckdb") as timeline:
        timeline.user(FACT)
    return tmp_path


@asynccontextmanager
async def session(folder: Path, *options: str) -> AsyncIterator[ClientSession]:
    given = StdioServerParameters(
        command=sys.executable,
        args=["-c", CODE, "mcp", *options],
        cwd=folder,
        env=dict(os.environ),
    )
    async with stdio_client(given) as streams, ClientSession(*streams) as opened:
        await opened.initialize()
        yield opened


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_an_agent_is_offered_three_tools_that_only_read_and_uses_them(folder: Path) -> None:
    async def run() -> None:
        async with session(folder) as agent:
            tools = (await agent.list_tools()).tools
            assert [each.name for each in tools] == ["read_timeline", "read_artifact", "search"]
            assert all(each.annotations and each.annotations.read_only_hint for each in tools)
            found = text(await agent.call_tool("search", {"query": "48231"}))
            timeline, path = found.splitlines()[1].split()
            given = {"timeline": timeline, "path": path}
            assert FACT in text(await agent.call_tool("read_timeline", given))

    asyncio.run(run())


def test_what_is_wrong_with_a_call_is_a_tool_error_and_the_next_one_works(folder: Path) -> None:
    async def run() -> None:
        async with session(folder, "--store", "foldline.duckdb", "--window", "30000") as agent:
            for name, given in (
                ("search", {}),
                ("search", {"query": "x", "limit": 3}),
                ("read_timeline", {"timeline": "agnet", "path": "v1"}),
                ("read_artifact", {"artifact_id": "art-no"}),
            ):
                refused = await agent.call_tool(name, given)
                assert refused.is_error, name
                assert text(refused)
            listed = await agent.call_tool("read_timeline", {})
            assert not listed.is_error
            assert "agent" in text(listed)

    asyncio.run(run())


def test_it_ends_with_its_input_and_lets_go_of_the_store(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CODE, "mcp"],
        cwd=folder,
        input=b"",
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    DuckDBStore(folder / "foldline.duckdb").close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_also_while_it_waits_for_input(
    folder: Path, number: signal.Signals
) -> None:
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    running = subprocess.Popen(
        [sys.executable, "-c", CODE, "mcp"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert running.stdin
    assert running.stdout
    running.stdin.write(ping)
    running.stdin.flush()
    assert running.stdout.readline()
    running.send_signal(number)
    assert running.wait(timeout=PATIENCE) == -number
    running.stdin.close()
    running.stdout.close()
    DuckDBStore(folder / "foldline.duckdb").close()


def test_without_a_store_it_says_how_to_get_one(run: Run) -> None:
    ran = run("mcp")
    assert ran.code == 1
    assert "no store" in ran.err


def test_of_a_store_that_is_in_use_it_says_where_else_to_ask(folder: Path) -> None:
    holds = (
        "import sys; from persistence import DuckDBStore as D; s = D(sys.argv[1]); print(); input()"
    )
    path = str(folder / "foldline.duckdb")
    holder = subprocess.Popen(
        [sys.executable, "-c", holds, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout
        holder.stdout.readline()
        ran = subprocess.run(
            [sys.executable, "-c", CODE, "mcp"],
            cwd=folder,
            input="",
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    finally:
        holder.communicate(b"\n", timeout=PATIENCE)
    assert ran.returncode == 2
    assert "http://127.0.0.1:PORT/foldline/mcp" in ran.stderr


def test_without_the_package_it_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert main(["mcp"]) == 2
    assert "pip install 'mcp" in capsys.readouterr().err
