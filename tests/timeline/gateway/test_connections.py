"""Connections that end early: the client's in the middle of an answer, or the upstream's before it."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import anthropic
import attrs
import openai
import pytest
from starlette.types import Receive, Scope, Send

from benchmarks.gateway.bare import served
from persistence import open_store
from tests import _http
from tests._sizes import PATIENCE
from timeline.fake_provider import FakeProvider, FakeServer, Reply
from timeline.gateway import Gateway, GatewayServer

from ._two_ways import KEY, WIRES, seen

pytestmark = pytest.mark.network

BEGUN = b'event: message_start\ndata: {"type": "message_start", "message": {"id": "msg_1"}}\n\n'


@attrs.define
class Endless:
    """An upstream that never comes to the end of an answer, and notes when a client has gone."""

    begun: bytes
    """What it says at once; nothing: not even the headers."""
    is_asked: threading.Event = attrs.field(factory=threading.Event)
    is_left: threading.Event = attrs.field(factory=threading.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 -- ASGI's
        while (await receive()).get("more_body"):
            pass
        self.is_asked.set()
        if self.begun:
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": self.begun, "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        self.is_left.set()


@contextmanager
def gateway(upstream: str, store: Path) -> Iterator[str]:
    with GatewayServer(Gateway(store=store, upstream=upstream, window=30_000)) as server:
        yield server.url


def test_a_client_that_goes_away_in_mid_answer_ends_the_request_upstream(tmp_path: Path) -> None:
    store, upstream, wire = tmp_path / "agent.duckdb", Endless(BEGUN), WIRES["messages"]
    body = {**wire.body, "stream": True}
    with served(upstream) as url, gateway(url, store) as proxy:
        with (
            _http.client() as http,
            http.stream("POST", proxy + wire.path, headers=wire.headers, json=body) as answer,
        ):
            assert next(answer.iter_raw()) == BEGUN
        assert upstream.is_left.wait(PATIENCE)
    with FakeServer(FakeProvider(responder=[Reply(text="Here.")])) as well:
        with gateway(well.url, store) as proxy:
            again = seen(proxy + wire.path, wire.headers, json=body)
        assert again.status == 200
        assert well.requests[0]["messages"] == wire.body["messages"]
    with closing(open_store(store)) as opened:
        [hit] = opened.search("notes.md")
    assert "Look at notes.md." in hit.snippet


def test_a_client_that_does_not_wait_any_longer_ends_the_request_upstream(tmp_path: Path) -> None:
    upstream, wire = Endless(b""), WIRES["messages"]
    with (
        served(upstream) as url,
        gateway(url, tmp_path / "agent.duckdb") as proxy,
    ):
        with closing(_http.sent(proxy + wire.path, wire.body, wire.headers)):
            assert upstream.is_asked.wait(PATIENCE)
        assert upstream.is_left.wait(PATIENCE)


async def pouring(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 -- ASGI's
    """An upstream that says a lot as fast as it can."""
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for left in reversed(range(5_000)):
        await send({"type": "http.response.body", "body": BEGUN * 20, "more_body": left > 0})
        await asyncio.sleep(0)  # no time: its server may see that the client has gone


def test_nothing_is_said_to_a_client_that_has_gone_while_much_arrives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wire = WIRES["messages"]
    with served(pouring) as url, gateway(url, tmp_path / "agent.duckdb") as proxy:
        for _ in range(3):
            with closing(
                _http.sent(proxy + wire.path, {**wire.body, "stream": True}, wire.headers)
            ) as client:
                assert client.getresponse().read(1)
    assert "socket.send() raised exception" not in caplog.text


@contextmanager
def hanging_up() -> Iterator[str]:
    """Takes connections, and closes them."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(0.05)  # between two looks whether it has ended
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    listener.accept()[0].close()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


@contextmanager
def nobody() -> Iterator[str]:
    """A port on which nobody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("upstream", [hanging_up, nobody], ids=["hangs up", "is not there"])
def test_an_upstream_that_does_not_answer_is_an_error_that_clients_try_again(
    tmp_path: Path, upstream: Callable[[], AbstractContextManager[str]]
) -> None:
    with upstream() as url, gateway(url, tmp_path / "agent.duckdb") as proxy:
        for wire in WIRES.values():
            answer = seen(proxy + wire.path, wire.headers, json=dict(wire.body))
            assert answer.status in {502, 503, 504}
            assert answer.headers["content-type"].startswith("application/json")
            assert b'"error"' in answer.body
            assert KEY.encode() not in answer.body
        with (
            anthropic.Anthropic(base_url=proxy, api_key=KEY, max_retries=0) as claude,
            pytest.raises(anthropic.InternalServerError),
        ):
            claude.messages.create(**WIRES["messages"].body)
        with (
            openai.OpenAI(base_url=f"{proxy}/v1", api_key=KEY, max_retries=0) as gpt,
            pytest.raises(openai.InternalServerError),
        ):
            gpt.responses.create(**WIRES["responses"].body)
