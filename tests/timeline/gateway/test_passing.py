"""What is not rendered goes on as it came, and comes back as the provider sent it."""

import gzip
import re
from contextlib import closing
from threading import Event
from typing import Any, ClassVar

import attrs
import msgspec
import pytest
import zstandard
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from blocks import MisuseError, RequestRendered, StoreError, UserPrompt
from persistence import MemoryStore
from render import Json
from tests import _http
from tests._sizes import PATIENCE
from tests._table import for_each
from tests.timeline.gateway._agents import KEY, MODEL, Agent, Recording, gateway, provider, working
from timeline._serving import AppServer
from timeline.gateway import Gateway, GatewayServer

TOKEN = "tok-1"  # noqa: S105 -- of these tests
pytestmark = pytest.mark.network
SAID: Json = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
ANSWER: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "Hi."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 12, "output_tokens": 3},
}


@for_each(
    ("method", "target"),
    [
        ("HEAD", "/"),
        ("GET", "/v1/models?limit=1000&after_id=a%20b"),
        ("POST", "/v1/files%2Fodd/path?x=1&x=2"),
        ("DELETE", "/v1/skills/s1"),
    ],
)
def test_paths_that_are_not_ours_go_on_with_their_query_and_come_back(
    method: str, target: str
) -> None:
    body = b'{"x":  1}' if method == "POST" else None
    with Recording(status=207, answer={"odd": 1}, headers={"request-id": "r1"}) as up:
        with gateway(store=MemoryStore(), upstream=up.url) as server:
            found = _http.request(method, f"{server.url}{target}", content=body)
        assert (found.status_code, found.headers["request-id"]) == (207, "r1")
        [received] = up.received
        assert (received.method, received.target) == (method, target)
        assert received.body == (body or b"")


@pytest.mark.parametrize("auth", [{"x-api-key": KEY}, {"authorization": f"Bearer {KEY}"}])
def test_a_request_without_pressure_goes_on_byte_for_byte_with_all_its_headers(
    auth: dict[str, str],
) -> None:
    raw = b'{ "odd": [1.50, {"x":null}],\n' + msgspec.json.encode(SAID)[1:]
    own = {
        **auth,
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "a,b",
        "content-type": "application/json",
        "user-agent": "claude-cli/9",
        "x-odd": "1",
    }
    with (
        Recording(answer=ANSWER, headers={"request-id": "r1", "anthropic-x": "y"}) as up,
        gateway(store=MemoryStore(), upstream=up.url) as server,
    ):
        found = _http.post(f"{server.url}/v1/messages?beta=true", content=raw, headers=own)
        direct = _http.post(f"{up.url}/v1/messages?beta=true", content=raw, headers=own)
    through, straight = up.received
    assert through.body == raw == straight.body
    assert through.target == "/v1/messages?beta=true"
    for name, value in own.items():
        assert through.headers[name] == value
    assert found.content == direct.content
    left_out = {"date", "server"}
    assert {n: v for n, v in found.headers.items() if n not in left_out} == {
        n: v for n, v in direct.headers.items() if n not in left_out
    }


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_a_compressed_request_is_read_and_goes_on_as_it_came(coding: str) -> None:
    raw = msgspec.json.encode({"model": "gpt-5.1", "input": [{"role": "user", "content": "Hi"}]})
    packed = zstandard.compress(raw) if coding == "zstd" else gzip.compress(raw)
    store = MemoryStore()
    with Recording(answer={"id": "r", "output": []}) as up:
        with gateway(store=store, upstream=up.url) as server:
            headers = {"content-encoding": coding, "authorization": "Bearer x"}
            _http.post(f"{server.url}/v1/responses", content=packed, headers=headers)
            assert len(store.list()) == 1, "it was read"
        [received] = up.received
        assert (received.body, received.headers["content-encoding"]) == (packed, coding)


UNREADABLE = (
    b"",
    b"{",
    b"[]",
    b"\xff\xfe",
    b'{"messages": 1}',
    b'{"messages": []}',
    b'{"model": "m", "messages": [1]}',
    b'{"model": 5, "messages": [{"role": "user", "content": "x"}]}',
    b'{"model": "m", "messages": [{"role": "user"}], "tools": [{"odd": 1}]}',
    b'{"model": "m", "messages": [{"role": "martian", "content": []}]}',
    b'{"messages": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
)


def test_what_cannot_be_read_goes_on_and_the_provider_says_what_is_wrong() -> None:
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    with Recording(status=400, answer=refusal) as up:
        with gateway(store=MemoryStore(), upstream=up.url) as server:
            for raw in UNREADABLE:
                found = _http.post(f"{server.url}/v1/messages", content=raw)
                assert (found.status_code, found.json()) == (400, refusal), raw[:80]
        assert [received.body for received in up.received] == list(UNREADABLE)


def test_a_conversation_that_the_provider_holds_is_not_rendered() -> None:
    held = [
        {"model": "gpt-5.1", "previous_response_id": "r0", "input": [{"role": "user"}]},
        {"model": "gpt-5.1", "input": [{"type": "compaction_trigger"}]},
        {"model": "gpt-5.1", "conversation": "c1", "input": "And now?"},
    ]
    store = MemoryStore()
    with Recording(answer={"id": "r", "output": []}) as up:
        with gateway(store=store, upstream=up.url) as server:
            for request in held:
                _http.post(f"{server.url}/v1/responses", json=request)
        assert [msgspec.json.decode(r.body) for r in up.received] == held
    assert not store.list()


def test_a_text_in_place_of_a_list_is_one_message_of_the_user() -> None:
    store = MemoryStore()
    with provider() as up, gateway(store=store, upstream=up.url) as server:
        request: Json = {"model": "gpt-5.1", "input": "Hello."}
        headers = {"authorization": "Bearer sk-openai"}
        found = _http.post(f"{server.url}/v1/responses", json=request, headers=headers)
        assert found.status_code == 200
        assert up.requests == [request]
        server.stop()
        assert server.gateway.savings().calls == 1
    [info] = store.list()
    texts = (getattr(e, "block", None) for _, e in store.read(info.id))
    assert [block.text for block in texts if isinstance(block, UserPrompt)] == ["Hello."]


def test_a_request_with_a_key_reaches_only_the_vendor_of_the_key() -> None:
    openais = {"authorization": "Bearer sk-openai"}
    with Recording(answer=ANSWER) as one, Recording(answer=ANSWER) as other:
        servers = {"anthropic": one.url, "openai": other.url}
        for target, headers, receiver in [
            ("/v1/messages", {"x-api-key": KEY}, one),
            ("/v1/messages", {"authorization": "Bearer a-subscription"}, one),
            ("/v1/v1/messages/batches", {"authorization": "Bearer a-subscription"}, one),
            ("/v1/chat/completions/c1/messages", openais, other),
            ("/v1/threads/t1/messages", openais, other),
            ("/v1/embeddings", openais, other),
            ("/v1beta/models/gemini-3-pro:generateContent", {}, None),
            ("/v1beta/cachedContents", {"x-goog-api-key": "AIza"}, None),
        ]:
            one.received.clear()
            other.received.clear()
            with gateway(store=MemoryStore(), upstream=servers) as server:
                found = _http.post(f"{server.url}{target}", json=SAID, headers=headers)
            received = [each for each in (one, other) if each.received]
            assert received == [receiver] * (receiver is not None), target
            assert found.status_code == (200 if receiver else 404), target
            assert receiver or "Gemini" in found.json()["error"]["message"]
        with gateway(store=MemoryStore(), upstream=one.url) as server:  # one server for all
            found = _http.post(f"{server.url}{target}", json=SAID, headers=headers)
            assert found.status_code == 200


def test_a_call_that_is_forwarded_unread_costs_what_its_answer_says() -> None:
    store = MemoryStore()
    with Recording(answer=ANSWER) as up, gateway(store=store, upstream=up.url) as server:
        headers = {"x-api-key": KEY, "accept-encoding": "gzip"}
        request = {**SAID, "messages": [{"role": "nobody", "content": 7}]}
        assert (
            _http.post(f"{server.url}/v1/messages", json=request, headers=headers).status_code
            == 200
        )
        server.stop()
        savings = server.gateway.savings()
    assert up.received[0].headers["accept-encoding"] == "identity", "or it could not be read"
    assert (savings.calls, savings.tokens, savings.unreported) == (1, 12, 0)
    assert savings.paid == savings.full > 0
    assert not store.list()


def test_a_websocket_is_refused_so_that_the_client_falls_back_to_http() -> None:
    with Recording() as up, gateway(store=MemoryStore(), upstream=up.url) as server:
        headers = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        found = _http.get(f"{server.url}/v1/responses", headers=headers)
        assert found.status_code == 426
        assert not up.received


def test_a_provider_that_is_not_there_is_a_502_that_says_so() -> None:
    with Recording() as up:
        gone = up.url
    with gateway(store=MemoryStore(), upstream=gone) as server:
        found = _http.post(f"{server.url}/v1/messages", json=SAID)
        assert found.status_code == 502
        assert "could not be reached" in found.json()["error"]["message"]


def test_whatever_fails_here_the_agent_goes_on_unless_it_is_told_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr("timeline.gateway._rewriting.Rewriter.call", broken)
    with provider(working(3)) as up:
        with gateway(store=MemoryStore(), upstream=up.url) as server:
            assert Agent(server.url).work() == 4
        assert not up.refused
        with gateway(store=MemoryStore(), upstream=up.url, fail_closed=True) as server:
            agent = Agent(server.url)
            agent.say("Go on.")
            found = agent.post()
    assert found.status_code == 500
    assert "a bug of ours" in found.json()["error"]["message"]


def test_a_window_without_room_for_a_conversation_is_refused_with_one_that_has() -> None:
    """As it came, the request would go on without the window that was asked for; and rendered, it is over it."""
    store = MemoryStore()
    with provider(working(3)) as up:
        for window in (0, -5):
            with pytest.raises(MisuseError, match="window must be a positive number"):
                Gateway(store=store, upstream=up.url, window=window)
        with gateway(store=store, upstream=up.url, window=900) as server:
            agent = Agent(server.url)
            agent.say("Go on.")
            for _ in range(2):
                refused = agent.post()
                assert refused.status_code == 400
                error = refused.json()["error"]
                assert error["type"] == "invalid_request_error"
        assert not up.requests
        assert not store.list(), "nothing is kept of it"
        found = re.search(
            r"^foldline: window 900: .* larger window: one of (\d+)", error["message"]
        )
        assert found is not None
        with gateway(store=store, upstream=up.url, window=int(found[1])) as server:
            assert Agent(server.url).work() == 4
        with gateway(store=store, upstream=up.url, window=900, record_only=True) as server:
            assert Agent(server.url).work() == 1, "which changes nothing"


def test_a_request_that_cannot_be_rendered_does_not_spoil_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it recorded is in memory only, and must not be taken for stored."""

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a bug of ours")

    store = MemoryStore()
    with provider(working(3)) as up, gateway(store=store, upstream=up.url) as server:
        agent = Agent(server.url)
        agent.work(rounds_max=2)
        with monkeypatch.context() as patch:
            patch.setattr("timeline.gateway._rewriting.Rewriter._made", broken)
            assert agent.work(prompt="", rounds_max=1) == 1
        assert agent.work(prompt="") == 1
    (info,) = store.list()
    events = [event for _, event in store.read(info.id)]
    assert all(f"Step {n}." in str(events) for n in (1, 2, 3))
    assert sum(isinstance(event, RequestRendered) for event in events) == 3


def test_a_store_that_fails_does_not_stop_the_agent() -> None:
    store = MemoryStore()
    with provider(working(3)) as up, gateway(store=store, upstream=up.url) as server:
        agent = Agent(server.url)
        agent.work(rounds_max=2)
        store.close()
        assert agent.work(prompt="") == 2
        assert not up.refused


def full(*_: Any, **__: Any) -> int:
    raise StoreError("the disk is full")


def test_what_a_full_disk_cannot_keep_is_sent_unchanged_until_there_is_room_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the model would be pointed to what nobody can read back. One line says so, and each call counts once."""
    with (
        provider(working(60)) as up,
        gateway(store=MemoryStore(), upstream=up.url, window=5_000) as server,
    ):
        agent = Agent(server.url)
        agent.work(rounds_max=12)
        with monkeypatch.context() as patch:
            patch.setattr(MemoryStore, "append", full)
            agent.work(prompt="", rounds_max=12)
        agent.work(prompt="", rounds_max=12)
        whole = [len(request["messages"]) == 2 * n + 1 for n, request in enumerate(up.requests)]
    assert not whole[11], "it is folded"
    assert whole[13:25] == [True] * 12, (
        "and neither before nor in the first request that is kept again"
    )
    assert not any(whole[25:])
    assert caplog.text.count("a request was not kept: StoreError: the disk is full") == 1
    savings = server.gateway.savings()
    assert (savings.requests, savings.calls) == (36, 36)


def test_a_gateway_that_fails_closed_sends_nothing_that_a_full_disk_cannot_keep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        provider(working(60)) as up,
        gateway(store=MemoryStore(), upstream=up.url, window=5_000, fail_closed=True) as server,
    ):
        agent = Agent(server.url)
        agent.work(rounds_max=12)
        with monkeypatch.context() as patch:
            patch.setattr(MemoryStore, "append", full)
            agent.ask()  # it is known only behind this one
            found = agent.post()
        assert found.status_code == 500
        assert "the disk is full" in found.json()["error"]["message"]
        assert len(up.requests) == 13
        assert agent.post().status_code == 200
        assert len(up.requests[-1]["messages"]) < len(agent.said)


def test_who_is_not_on_this_machine_needs_a_token() -> None:
    with pytest.raises(Exception, match="only with a token"):
        GatewayServer(gateway=Gateway(store=MemoryStore()), host="0.0.0.0")  # noqa: S104 -- not opened
    with Recording(answer=ANSWER) as up:
        with gateway(store=MemoryStore(), upstream=up.url, token=TOKEN) as server:
            for target, headers, status in [
                ("/v1/messages", {}, 401),
                ("/v1/messages", {"x-foldline-token": "tok-2"}, 401),
                ("/token/tok-2/v1/messages", {}, 401),
                ("/foldline/savings", {}, 401),
                ("/v1/messages", {"x-foldline-token": TOKEN}, 200),
                ("/token/tok-1/v1/messages", {}, 200),
            ]:
                found = _http.post(f"{server.url}{target}", json=SAID, headers=headers)
                assert found.status_code in (status, 405), target
        assert [received.target for received in up.received] == ["/v1/messages"] * 2
        assert all("tok-1" not in str(received.headers) for received in up.received)


def test_a_request_goes_to_the_configured_provider_whatever_it_names() -> None:
    with Recording(answer=ANSWER) as up, Recording() as other:
        with gateway(store=MemoryStore(), upstream={"anthropic": up.url}) as server:
            host = other.url.removeprefix("http://")
            for target in (f"//{host}/v1/messages", f"/{other.url}/v1/messages", "/v1/messages"):
                headers = {"host": host, "anthropic-version": "2023-06-01"}
                _http.post(f"{server.url}{target}", json=SAID, headers=headers)
        assert len(up.received) == 3
        assert not other.received


def test_an_upstream_that_is_no_url_is_one_clear_error() -> None:
    for wrong in (
        *("api.anthropic.com", "http://", "https://:80", "http://x?y=1", "http://x/v1/messages"),
        *({"anthropic": "ftp://x"}, {"antropic": "http://x"}),
    ):
        with pytest.raises(Exception, match="upstream"):
            Gateway(store=MemoryStore(), upstream=wrong).app()
    for right in ("http://x", "HTTPS://me:secret@x:8080/llm/v1/", "http://[::1]:1/v4"):
        Gateway(store=MemoryStore(), upstream=right).app()


def test_a_client_that_hangs_up_before_the_answer_ends_the_request_to_the_provider() -> None:
    with Slow() as up, gateway(store=MemoryStore(), upstream=up.url) as server:
        headers = {"anthropic-version": "2023-06-01"}
        url = f"{server.url}/v1/messages"
        with closing(_http.sent(url, SAID, headers)):
            assert up.asked.wait(PATIENCE)
        assert up.gone.wait(PATIENCE)


@attrs.define
class Slow(AppServer):
    """A provider that thinks until its client has gone."""

    extra: ClassVar[str] = "fake-provider"
    asked: Event = attrs.field(factory=Event)
    gone: Event = attrs.field(factory=Event)

    def make_app(self) -> Any:
        """See `AppServer`."""
        return Starlette(routes=[Route("/{path:path}", self._think, methods=["POST"])])

    async def _think(self, http: Request) -> Response:
        await http.body()
        self.asked.set()
        await http.receive()
        self.gone.set()
        return Response()


def test_a_browser_sees_the_live_view_and_nothing_of_it_reaches_the_provider() -> None:
    with (
        provider(working(1)) as up,
        gateway(store=MemoryStore(), upstream=up.url) as server,
    ):
        Agent(server.url).work()
        asked = len(up.http_requests)
        page = _http.get(server.url, headers={"accept": "text/html"}, follow_redirects=True)
        assert page.status_code == 200
        assert "<html" in page.text
        rows = _http.get(f"{server.url}/foldline/timelines.json").json()
        assert rows["all"] == 1
        assert len(up.http_requests) == asked
