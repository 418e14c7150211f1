"""Tools of MCP servers: a real server process made with the official package, over stdio and over HTTP."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from blocks import BlockId, CallId, ImagePart, MisuseError, TextPart, ToolCall, ToolResult, TurnId
from tests._practice import Practice
from tests._sizes import PATIENCE
from tests._table import for_each
from timeline.fake_provider import Call, Reply
from timeline.react import McpServer
from timeline.react._events import ToolDone
from timeline.react._tools import Caller

from .desk import EVERYWHERE, Desk

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "tests.timeline.react.mcp_server"]
HERE = ("anthropic", False)


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """The official package keeps the standard error that it is imported with, and a subtest has its own, which ends."""
    import mcp.client.stdio  # noqa: F401


def stdio(**more: Any) -> McpServer:
    """The server as a command; it finds this package by its environment."""
    return McpServer(COMMAND, env={"PYTHONPATH": str(ROOT), "PATH": ""}, **more)


@contextmanager
def over_http() -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """The URL of a running server, and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*COMMAND, str(port)], cwd=ROOT, **quiet) as process:
        try:
            until_it_listens(port)
            yield f"http://127.0.0.1:{port}/mcp", process
        finally:
            process.kill()


def until_it_listens(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)  # between two tries
        else:
            return
    raise TimeoutError("the server does not listen")


def called(server: McpServer, name: str, **given: Any) -> ToolDone:
    caller = Caller(tools={tool.name: tool for tool in server.tools}, clock=lambda: 0.0)
    block, turn = BlockId("b"), TurnId("t1")
    call = ToolCall(id=block, turn=turn, call_id=CallId("c"), name=name, input=given)
    done = caller.call(call)
    assert isinstance(done, ToolDone)
    return done


def parts_of(result: ToolDone) -> list[Any]:
    assert isinstance(result.output, list)
    return result.output


def check_tools(server: McpServer) -> None:
    """What holds over any transport."""
    tools = {tool.name: tool for tool in server.tools}
    assert list(tools) == ["stock", "item_picture", "order", "leaflet", "sleep", "die"]
    stock = tools["stock"]
    assert stock.description == "How many of an item are there."
    assert stock.input_schema["properties"]["warehouse"]["anyOf"] == [
        {"type": "string"},
        {"type": "null"},
    ], "as the server gives it"
    assert (stock.idempotent, tools["order"].idempotent) == (True, False)
    assert '"pear": 4' in str(called(server, "stock", item="pear").output)
    [picture] = parts_of(called(server, "item_picture"))
    assert isinstance(picture, ImagePart)
    assert picture.media_type == "image/png"
    terms, logo, link, sound = parts_of(called(server, "leaflet"))
    assert terms == TextPart(text="shop://terms\n30 days.")
    assert isinstance(logo, ImagePart)
    assert link == TextPart(text="[more: shop://more]")
    assert sound == TextPart(text="[audio, which cannot be shown]")
    wrong = called(server, "order", item="pear", count="many")
    assert wrong.is_error
    assert "valid integer" in str(wrong.output), "the server checks the arguments"
    assert called(server, "order", item="pear", count=10).is_error


def test_a_server_over_stdio_and_when_it_dies() -> None:
    with stdio() as server:
        check_tools(server)
        dead = called(server, "die")
        assert (dead.is_error, dead.envelope.outcome) == (True, "partial")
        assert "the MCP server ended or cannot be reached" in str(dead.output)
        assert not called(server, "stock", item="x").is_error, "it was started again"
        kept = next(tool for tool in server.tools if tool.name == "stock")
    with pytest.raises(MisuseError, match="inside its block"):
        _ = server.tools
    with pytest.raises(MisuseError, match="inside its block"):
        kept(item="x").send(None)
    assert server._connection is None, "nothing was started that nobody would end"


def test_a_server_over_http_and_when_it_dies() -> None:
    given = {"Authorization": "Bearer x"}
    with over_http() as (url, process), McpServer(url, headers=given) as server:
        check_tools(server)
        dead = called(server, "die")
        process.wait(PATIENCE)
        assert (dead.is_error, dead.envelope.outcome) == (True, "partial")
        gone = called(server, "stock", item="x")
        assert gone.is_error
        assert f"MCP server '{url}' cannot be used" in str(gone.output)
        assert "Bearer" not in repr(server)


def test_many_calls_at_once_and_a_timeout() -> None:
    with stdio(timeout=0.3) as server:
        caller = Caller(tools={tool.name: tool for tool in server.tools}, clock=lambda: 0.0)
        block, turn = BlockId("b"), TurnId("t1")

        def call(name: str, **given: Any) -> Any:
            made = ToolCall(id=block, turn=turn, call_id=CallId("c"), name=name, input=given)
            return caller.acall(made)

        async def run() -> list[Any]:
            late = call("sleep", seconds=PATIENCE)
            return await asyncio.gather(*(call("stock", item="i" * n) for n in range(1, 9)), late)

        *answers, late = asyncio.run(run())
        assert "no answer within 0.3 seconds" in str(late.output)
        assert len(answers) == 8


def test_two_servers_with_the_same_tools_need_a_prefix(practice: Practice) -> None:
    with stdio() as one, stdio(prefix="other", needs_approval=["order"]) as two:
        both = [*one.tools, *two.tools]
        assert "other_stock" in [tool.name for tool in both]
        waits = [tool.name for tool in both if tool.needs_approval]
        assert waits == ["other_order"]
        script = [Reply(calls=[Call("stock", {"item": "a"}), Call("other_stock", {"item": "bb"})])]
        desk = Desk.at(practice, HERE, script, tools=both)
        assert desk.run().stop == "end_turn"
        assert sorted(result.is_error for result in desk.blocks(ToolResult)) == [False, False]
        desk.agent["tools"] = [*one.tools, *one.tools]
        with pytest.raises(MisuseError, match=r"two tools have the name .* McpServer\(prefix="):
            desk.run()


@for_each("asks", ["item.picture", ("shop_item_picture",), {"item.picture"}], ids=str)
def test_a_tool_that_needs_approval_may_be_named_as_the_server_or_the_model_names_it(
    asks: Any,
) -> None:
    with stdio(prefix="shop", needs_approval=asks) as server:
        waits = [tool.name for tool in server.tools if tool.needs_approval]
    assert waits == ["shop_item_picture"], "and no other that has a part of the name"


@for_each(
    ("asks", "said"),
    [
        (["order", "ordr"], "needs_approval names ordr; its tools are stock, item.picture, order,"),
        ("or", "needs_approval names or; its tools are"),
        (
            {"order": True},
            "McpServer(): needs_approval must be True, False or names of tools, not a dict",
        ),
        ([5], "McpServer(): needs_approval must be True, False or names of tools, not a list"),
        (None, "McpServer(): needs_approval must be True, False or names of tools, not None"),
    ],
    ids=str,
)
def test_a_tool_that_needs_approval_is_one_of_the_servers(asks: Any, said: str) -> None:
    """A name with a mistake in it would let the tool run without a person."""
    with pytest.raises(MisuseError) as raised, stdio(needs_approval=asks):
        pass
    assert said in str(raised.value)


@EVERYWHERE
def test_an_agent_uses_them_like_its_own(
    practice: Practice, provider: str, *, is_async: bool
) -> None:
    calls = [
        Call("stock", {"item": "pear"}),
        Call("item_picture", {}),
        Call("order", {"item": "a"}),
    ]
    script = [Reply(text="I look.", calls=calls), Reply(text="Done.")]
    with stdio() as server:
        desk = Desk.at(practice, (provider, is_async), script, tools=server.tools)
        assert desk.run().text == "Done."
    assert sorted(result.is_error for result in desk.blocks(ToolResult)) == [False, False, True]
    assert not desk.server.refused


def test_an_async_block_works_too() -> None:
    async def run() -> list[str]:
        async with stdio() as server:
            return [tool.name for tool in server.tools]

    assert "stock" in asyncio.run(run())


@for_each(
    ("target", "said"),
    [
        ("uvx server", "target must be a URL, or a command as a list of words, not 'uvx server'"),
        ([], "target must be a URL"),
        ([1], "target must be a URL"),
        (["/no/such/server"], "MCP server '/no/such/server' cannot be used: FileNotFoundError"),
        ([sys.executable, "-c", ""], "cannot be used: "),
        ("http://127.0.0.1:9/mcp", "MCP server 'http://127.0.0.1:9/mcp' cannot be used: Connect"),
    ],
    ids=str,
)
def test_what_is_no_server_is_refused(target: Any, said: str) -> None:
    with pytest.raises(MisuseError, match=r"MCP server|target") as raised, McpServer(target):
        pass
    assert said in str(raised.value)
