"""The MCP server on a gateway: the official client reads what the gateway's own process holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from persistence import DuckDBStore
from tests import _http
from timeline import Timeline
from timeline.gateway import Gateway, GatewayServer
from timeline.gateway._reader import PATH
from timeline.gateway.clients import HEADER

pytestmark = pytest.mark.network

FACT = "The gateway answers on port 48231."
NOWHERE = "http://127.0.0.1:9"
TOKEN = "t0ken"  # noqa: S105 -- as good as any


@asynccontextmanager
async def session(url: str, token: str = "") -> AsyncIterator[ClientSession]:
    async with _http.async_client(headers={HEADER: token}) as http:
        opened = streamable_http_client(url + PATH, http_client=http)
        async with opened as streams, ClientSession(*streams[:2]) as agent:
            await agent.initialize()
            yield agent


async def said(agent: ClientSession, name: str, given: dict[str, object]) -> str:
    result = await agent.call_tool(name, given)
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("token", [None, TOKEN])
def test_agents_read_a_store_that_only_the_gateway_can_open(
    tmp_path: Path, token: str | None
) -> None:
    with DuckDBStore(tmp_path / "s.duckdb") as store:
        with Timeline.open("agent", store=store) as timeline:
            timeline.user(FACT)

        async def one(url: str) -> None:
            async with session(url, token or "") as agent:
                found = await said(agent, "search", {"query": "48231"})
                name, path = found.splitlines()[1].split()
                given: dict[str, object] = {"timeline": name, "path": path}
                assert FACT in await said(agent, "read_timeline", given)

        async def several(url: str) -> None:
            await asyncio.gather(*(one(url) for _ in range(4)))

        gateway = Gateway(store=store, upstream=NOWHERE, token=token)
        with GatewayServer(gateway=gateway) as server:
            asyncio.run(several(server.url))


def test_who_does_not_know_the_token_or_comes_by_another_name_is_refused(tmp_path: Path) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}

    def status(url: str, method: str = "POST", **headers: str) -> int:
        return _http.request(
            method, url + PATH, json=body, headers={**accept, **headers}
        ).status_code

    closed = Gateway(store=tmp_path / "a.duckdb", upstream=NOWHERE, token=TOKEN)
    with GatewayServer(gateway=closed) as server:
        assert status(server.url) == 401
        assert status(server.url, **{HEADER: "other"}) == 401
        assert status(server.url, **{HEADER: TOKEN}) == 200
        assert status(server.url, "GET", **{HEADER: TOKEN}) == 405
    open_to_all = Gateway(store=tmp_path / "b.duckdb", upstream=NOWHERE)
    with GatewayServer(gateway=open_to_all) as server:
        assert status(server.url) == 200
        assert status(server.url, host="evil.example") in {403, 421}
        assert status(server.url, "DELETE") == 405, "it does not go on to the provider"
