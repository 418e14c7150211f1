"""One request sent directly and through the gateway: what a client sees of each."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest

from tests import _http
from timeline.fake_provider import FakeProvider, FakeServer, Fault
from timeline.gateway import Gateway, GatewayServer

KEY = "sk-ant-0123456789-of-nobody-else"
NOW = 1_700_000_000.0
OF_THE_CONNECTION = {"connection", "content-length", "date", "server", "transfer-encoding"}
"""Headers that say nothing about the answer."""


@attrs.frozen
class Wire:
    """One API: where its requests go, and what a small one has."""

    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]


_TOOL = {"name": "read_file", "description": "Read it."}
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
_SAID = {"role": "user", "content": "Look at notes.md."}
_BEARER = {"authorization": f"Bearer {KEY}"}
WIRES = {
    "messages": Wire(
        "/v1/messages?beta=true",
        {
            "model": "claude-sonnet-5-5",
            "max_tokens": 1_000,
            "messages": [_SAID],
            "tools": [{**_TOOL, "input_schema": _SCHEMA}],
        },
        {"x-api-key": KEY, "anthropic-version": "2023-06-01"},
    ),
    "responses": Wire(
        "/v1/responses",
        {
            "model": "gpt-5.5",
            "store": False,
            "input": [{**_SAID, "type": "message"}],
            "tools": [{**_TOOL, "type": "function", "parameters": _SCHEMA, "strict": False}],
        },
        _BEARER,
    ),
    "chat": Wire(
        "/v1/chat/completions",
        {
            "model": "gpt-5.5",
            "messages": [_SAID],
            "tools": [{"type": "function", "function": {**_TOOL, "parameters": _SCHEMA}}],
        },
        _BEARER,
    ),
}


@attrs.frozen(kw_only=True)
class Seen:
    """What a client sees of an answer."""

    status: int = 0
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    body: bytes = b""
    broke: str = ""
    """What kind of error ended it."""


@attrs.define
class Ways:
    """Two servers of the same script: one that is asked directly, one behind the gateway."""

    direct: FakeServer
    behind: FakeServer
    gateway: GatewayServer
    store: Path

    @property
    def proxy(self) -> str:
        """Where the gateway is."""
        return self.gateway.url

    def close(self) -> None:
        """Stop all of them; each takes a tenth of a second."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda one: one.stop(), (self.gateway, self.direct, self.behind)))

    def fault(self, *faults: Fault) -> None:
        """Make the same go wrong with both."""
        for server in (self.direct, self.behind):
            server.fault(*faults)

    def both(self, wire: Wire, **more: Any) -> tuple[Seen, Seen]:
        """The same request both ways."""
        body = {**wire.body, **more}
        first, second = (
            seen(url + wire.path, wire.headers, json=body) for url in (self.direct.url, self.proxy)
        )
        return first, second

    def raw(self, method: str, path: str, **given: Any) -> tuple[Seen, Seen]:
        """Anything else, both ways."""
        headers = {**WIRES["messages"].headers, **given.pop("headers", {})}
        first, second = (
            seen(url + path, headers, method=method, **given)
            for url in (self.direct.url, self.proxy)
        )
        return first, second


def seen(url: str, headers: Mapping[str, str], method: str = "POST", **given: Any) -> Seen:
    """Send a request, and take what comes to its end, whatever that is."""
    status, told, body = 0, dict[str, str](), b""
    try:
        with (
            _http.client() as http,
            http.stream(method, url, headers=headers, **given) as answer,
        ):
            status = answer.status_code
            told = {k: v for k, v in answer.headers.items() if k not in OF_THE_CONNECTION}
            for chunk in answer.iter_raw():
                body += chunk
    except httpx2.HTTPError as error:
        return Seen(status=status, headers=told, body=body, broke=type(error).__name__)
    return Seen(status=status, headers=told, body=body)


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[Ways]:
    """The tutorial's model in both servers, with ids and times that are the same."""
    store = tmp_path / "gateway.duckdb"
    direct, behind = (FakeServer(FakeProvider(clock=lambda: NOW)) for _ in range(2))
    direct.start()
    behind.start()
    gateway = GatewayServer(Gateway(store=store, upstream=behind.url, window=30_000))
    gateway.start()
    found = Ways(direct, behind, gateway, store)
    yield found
    found.close()
