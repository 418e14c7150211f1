"""What a web page elsewhere sends to a gateway is refused on every path, before anything is stored or forwarded."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import httpx2
import pytest

from persistence import MemoryStore
from tests import _http
from tests._table import for_each
from tests.timeline.gateway._agents import MODEL, Recording, gateway
from timeline.gateway import GatewayServer

pytestmark = pytest.mark.network
TOKEN = "tok-1"  # noqa: S105 -- of these tests
EVIL = "http://evil.example"
FOREIGN = (
    {"host": "evil.example"},
    {"host": "evil.example", "origin": EVIL},
    {"origin": EVIL},
    {"origin": "null"},
    {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site"},
    {"origin": EVIL, "sec-fetch-mode": "no-cors", "content-type": "text/plain"},
    {"origin": EVIL, "access-control-request-method": "POST"},
)
"""Headers, as a page sends them: with a name of its own for this machine, with a form, as an image, and before a
request with headers of its own."""
PATHS = (
    "/",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/responses",
    "/v1/chat/completions",
    "/v1/models",
    "/backend-api/codex/responses",
    "/token/x/v1/messages",
    "/foldline/",
    "/foldline/savings",
    "/foldline/mcp",
    "/foldline/timelines.json",
    "/foldline/changes",
    "/anything/else",
)
METHODS = ("GET", "POST", "OPTIONS", "DELETE")
SAID = {"role": "user", "content": "Run this: MARK"}
BODY = json.dumps({"model": MODEL, "max_tokens": 9, "messages": [SAID]})


@attrs.frozen
class House:
    """A gateway, its provider, and its store."""

    server: GatewayServer
    up: Recording
    store: MemoryStore
    http: httpx2.Client

    def ask(self, method: str, path: str, **headers: str) -> httpx2.Response:
        body = BODY if method == "POST" else None
        return self.http.request(method, self.server.url + path, content=body, headers=headers)


@contextmanager
def housed(token: str | None) -> Iterator[House]:
    store = MemoryStore()
    with (
        Recording(answer={"id": "r", "output": []}) as up,
        gateway(store=store, upstream=up.url, token=token) as server,
        _http.client() as http,
    ):
        yield House(server, up, store, http)


@pytest.fixture(params=[None, TOKEN], ids=["open", "with a token"])
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    with housed(request.param) as found:
        yield found


@for_each("path", PATHS)
def test_a_page_elsewhere_gets_a_typed_refusal_and_nothing_of_it_is_kept(
    house: House, path: str
) -> None:
    token = house.server.gateway.token
    known = (
        {} if token is None else {"x-foldline-token": token, "cookie": f"foldline-token={token}"}
    )
    for method in METHODS:
        for headers in FOREIGN:
            name = headers.get("host")
            if token and name and headers.get("origin", EVIL) == f"http://{name}":
                continue  # a page of the gateway itself, which has any name for who knows the token
            found = house.ask(method, path, **known, **headers)
            assert found.status_code == 403, (method, headers)
            assert found.json()["error"]["type"] == "permission_error"
            assert not [name for name in found.headers if name.startswith("access-control")]
    assert not house.up.received
    assert not house.store.list()


def test_who_is_on_this_machine_is_served_as_before(house: House) -> None:
    token = house.server.gateway.token
    known = {} if token is None else {"x-foldline-token": token}
    port = house.server.port
    for headers in (
        {},
        {"host": "localhost:1"},
        {"host": "[::1]:9"},
        {"sec-fetch-mode": "cors"},
        {"sec-fetch-site": "none"},
        {"host": f"localhost:{port}", "origin": f"http://localhost:{port}"},
    ):
        assert house.ask("POST", "/v1/messages", **known, **headers).status_code == 200
        assert house.ask("GET", "/foldline/savings", **known, **headers).status_code == 200
    assert len(house.up.received) == 6


def test_with_the_token_a_gateway_has_any_name_and_without_it_nobody_is_let_in() -> None:
    with housed(TOKEN) as house:
        box = {"host": "agents.example:8787"}
        assert house.ask("POST", "/v1/messages", **box).status_code == 401
        assert not house.up.received
        assert not house.store.list()
        path = f"/token/{TOKEN}/v1/messages"
        assert house.ask("POST", path, **box).status_code == 200
        page = house.ask("GET", f"/foldline/?token={TOKEN}", **box)
        assert page.status_code == 303
