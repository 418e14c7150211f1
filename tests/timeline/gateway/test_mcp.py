"""The MCP server on a gateway: the official client reads what the gateway's own process holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from blocks import MisuseError, TimelineId
from persistence import (
    ArtifactDescription,
    DuckDBStore,
    MemoryStore,
    Requester,
    open_artifacts,
)
from tests import _http
from timeline import Options, Timeline
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


def test_agents_read_artifacts_where_the_gateway_keeps_them(tmp_path: Path) -> None:
    """In a folder of their own, and of the tenant for which they are kept."""
    folder, ours = tmp_path / "apart", Requester("agents", tenant="ours")
    with open_artifacts(folder) as artifacts:
        about = ArtifactDescription(timeline=TimelineId("t"), tenant="ours")
        artifact = artifacts.put(FACT.encode(), about)

    async def read(url: str) -> str:
        async with session(url) as agent:
            return await said(agent, "read_artifact", {"artifact_id": artifact})

    for requester, is_told in ((ours, True), (Requester("agents", tenant="theirs"), False)):
        options: Options = {"artifacts": folder, "requester": requester}
        gateway = Gateway(store=MemoryStore(), upstream=NOWHERE, options=options)
        with GatewayServer(gateway=gateway) as server:
            assert (FACT in asyncio.run(read(server.url))) is is_told


@pytest.mark.parametrize("name", ["store", "model", "policy", "window", "clock"])
def test_what_the_gateway_has_itself_is_no_option_of_its_timelines(name: str) -> None:
    """A window among the options would hold for the requests, and neither for answers nor for what is only counted."""
    with pytest.raises(MisuseError, match=f"options: not {name};"):
        Gateway(store=MemoryStore(), options=cast("Options", {name: 60_000}))
