"""The fake provider over HTTP: routes, bodies, and answers as JSON or server-sent events, damaged by faults."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlencode

import attrs
import zstandard
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from render import Json, Model
from timeline.fake_provider._provider import Exchange, FakeProvider, HttpRequest
from timeline.fake_provider._reply import ApiError, Fault, invalid
from timeline.fake_provider.wires import MESSAGES, RESPONSES, WIRES, Wire

CODEX: Final = "/backend-api/codex"
"""The prefix of the paths, in place of `/v1`."""
_LOGGED_IN: Final = f"{CODEX}/responses"
_BYTES_MAX: Final = 2**26
"""Largest size of a request in bytes, both compressed and decompressed. The provider's own limit is half of it and
one of its rules."""
_TOO_LARGE: Final = ApiError(413, "request_too_large", "Request exceeds the maximum size")
_KEYS: Final = frozenset(
    {"authorization", "cookie", "proxy-authorization", "x-api-key", "x-goog-api-key"}
)
_KEY_PARAMETER: Final = "key"
_REMOVED: Final = "***"


def app_of(provider: FakeProvider) -> ASGIApp:
    """The app that serves a provider; it adds all requests to `http_requests`."""
    served = _Served(provider)
    app = Starlette(
        routes=[
            Route("/", served.greeting),
            *(Route(path, served.socket) for path in (RESPONSES.path, _LOGGED_IN)),
            Route(_LOGGED_IN, partial(served.create, RESPONSES), methods=["POST"]),
            *(Route(w.path, partial(served.create, w), methods=["POST"]) for w in WIRES),
            *(
                Route(w.path + w.counts, partial(served.count, w), methods=["POST"])
                for w in WIRES
                if w.counts
            ),
            *ROUTES,
            Route("/v1/models", served.models),
            Route("/v1/models/{name}", served.model),
        ],
        exception_handlers={404: served.unknown},
    )
    return Recorded(app, provider.http_requests)


@attrs.frozen
class _Served:
    """The handlers of the routes."""

    provider: FakeProvider

    async def greeting(self, _: Request) -> Response:
        """Answer `HEAD /`, with which Claude Code opens its connection."""
        return Response()

    async def socket(self, http: Request) -> Response:
        """Refuse a websocket, which Codex tries first; it then uses HTTP."""
        is_socket = http.headers.get("upgrade", "").lower() == "websocket"
        status, text = (426, "This server speaks no websocket") if is_socket else (405, "Use POST")
        return self._refused(RESPONSES, ApiError(status, "invalid_request_error", text))

    async def create(self, wire: Wire, http: Request) -> Response:
        request = await self._request(wire, http)
        if isinstance(request, ApiError):
            return self._refused(wire, request)
        return await self._response(wire, self.provider.create(request, wire))

    async def _request(self, wire: Wire, http: Request) -> Json | ApiError:
        body = wire.key_error(http.headers) or await json_of(http)
        if isinstance(body, ApiError):
            return body
        return wire.request_of(body, http.path_params, http.headers)

    async def count(self, wire: Wire, http: Request) -> Response:
        request = await self._request(wire, http)
        counted = request if isinstance(request, ApiError) else self.provider.count(request, wire)
        if isinstance(counted, ApiError):
            return self._refused(wire, counted)
        return JSONResponse({"input_tokens": counted})

    async def models(self, http: Request) -> Response:
        wire: Wire = MESSAGES if _is_anthropics(http) else RESPONSES
        if error := wire.key_error(http.headers):
            return self._refused(wire, error)
        if wire is MESSAGES:
            data = [model_info(model) for model in self.provider.known()]
            ends = (data[0]["id"], data[-1]["id"]) if data else (None, None)
            return JSONResponse(
                {"data": data, "has_more": False, "first_id": ends[0], "last_id": ends[1]}
            )
        listed = [openai_info(model) for model in self.provider.known(RESPONSES.provider)]
        return JSONResponse({"object": "list", "data": listed})

    async def model(self, http: Request) -> Response:
        name = http.path_params["name"]
        info = self.provider.model(name)
        if info is None:
            return self._refused(MESSAGES, ApiError(404, "not_found_error", f"model: {name}"))
        return JSONResponse(model_info(info) if _is_anthropics(http) else openai_info(info))

    async def unknown(self, _: Request, __: Exception) -> Response:
        return self._refused(MESSAGES, ApiError(404, "not_found_error", "Not found"))

    def _refused(self, wire: Wire, error: ApiError) -> Response:
        """The response for a refusal, with its status and headers."""
        request_id = self.provider.new_id("req")
        status, body = wire.error(error, request_id)
        headers = {**error.headers, "request-id": request_id, "x-request-id": request_id}
        return JSONResponse(body, status, headers)

    async def _response(self, wire: Wire, exchange: Exchange) -> Response:
        """The response for an exchange; it is delayed as the exchange says."""
        if exchange.error:
            return self._refused(wire, exchange.error)
        headers = {"request-id": self.provider.new_id("req")}
        await asyncio.sleep(exchange.delay_seconds)
        fault = exchange.fault or Fault()
        if exchange.request.get("stream"):
            sent = tuple(_streamed(wire, exchange))
            kind = "text/event-stream; charset=utf-8"
        else:
            whole = json.dumps(exchange.message).encode()
            broken = fault.damage in ("cut", "garbled")
            sent = (whole[: len(whole) // 2],) if broken else (whole,)
            kind = "application/json"
            length = len(sent[0]) if fault.damage == "garbled" else len(whole)
            headers["content-length"] = str(length)
        return _ChunkedResponse(sent, headers, kind, complete=fault.damage != "cut")


def _is_anthropics(http: Request) -> bool:
    """Whether Anthropic's client has sent the request, because both companies have some routes in common."""
    return "anthropic-version" in http.headers


# Requests.


async def json_of(http: Request) -> Json | ApiError:
    """The JSON object in a request's body, or the refusal."""
    read = bytearray()
    async for piece in http.stream():
        read += piece
        if len(read) > _BYTES_MAX:
            return _TOO_LARGE
    plain = unpacked(bytes(read), http.headers.get("content-encoding", ""))
    if isinstance(plain, ApiError):
        return plain
    try:
        body: Any = json.loads(plain)
    except (ValueError, RecursionError) as error:
        return invalid(f"The request body is not valid JSON: {error}")
    if not isinstance(body, dict):
        return invalid("Input should be an object")
    return cast("Json", body)


def unpacked(packed: bytes, encoding: str) -> bytes | ApiError:
    """The decompressed body, or the refusal."""
    try:
        match encoding.strip().lower():
            case "" | "identity":
                return packed
            case "gzip":
                plain = gzip.decompress(packed)
            case "zstd":
                plain = zstandard.ZstdDecompressor().stream_reader(packed).read(_BYTES_MAX + 1)
            case other:
                text = f"Unsupported content encoding: {other}"
                return ApiError(415, "invalid_request_error", text)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        return invalid(f"The request body could not be decompressed: {error}")
    return _TOO_LARGE if len(plain) > _BYTES_MAX else plain


@attrs.frozen
class Recorded:
    """An ASGI app that adds each HTTP request to a list and passes it to another app."""

    app: ASGIApp
    requests: list[HttpRequest]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        pairs = [(name.decode("latin-1"), v.decode("latin-1")) for name, v in scope["headers"]]
        request = HttpRequest(
            method=scope["method"],
            path=scope["path"],
            query=_without_key(scope["query_string"].decode("latin-1")),
            headers={name: _REMOVED if name in _KEYS else value for name, value in pairs},
        )
        self.requests.append(request)

        async def received() -> Message:
            message = await receive()
            request.pieces.append(message.get("body", b""))
            return message

        async def sent(message: Message) -> None:
            request.status = message.get("status", request.status)
            await send(message)

        await self.app(scope, received, sent)


def _without_key(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(name == _KEY_PARAMETER for name, _ in pairs):
        return query
    return urlencode([(name, _REMOVED if name == _KEY_PARAMETER else v) for name, v in pairs])


# Responses.


def _streamed(wire: Wire, exchange: Exchange) -> Iterator[bytes]:
    drafts = exchange.answer.drafts if exchange.answer else ()
    whole = list(wire.stream(exchange.message or {}, drafts, exchange.request))
    fault = exchange.fault or Fault()
    if fault.damage == "none":
        yield from whole
        return
    yield from whole[:-1][: fault.after]  # the events before the damage
    if fault.damage == "garbled":
        yield wire.garbage
    elif fault.error:
        yield wire.error_event(fault.error)


class _ChunkedResponse(StreamingResponse):
    """Sends chunks unchanged. If they are incomplete, the server closes the connection after the last one."""

    def __init__(
        self, chunks: Sequence[bytes], headers: dict[str, str], kind: str, *, complete: bool
    ) -> None:
        super().__init__(chunks, headers=headers, media_type=kind)
        self.chunks = chunks
        self.complete = complete

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 -- ASGI's
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        for chunk in self.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if self.complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def model_info(model: Model) -> Json:
    """The JSON that describes one model."""
    lines = [word for word in model.name.removeprefix("claude-").split("-") if not word.isdigit()]
    return {
        "type": "model",
        "id": model.name,
        "display_name": " ".join(word.capitalize() for word in model.name.split("-")),
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "line": lines[0] if lines else None,
        "deprecated_at": None,
        "retires_at": None,
        "capabilities": None,
        "max_input_tokens": model.tokens_window,
        "max_tokens": model.output_tokens_max,
    }


def openai_info(model: Model) -> Json:
    """The JSON that describes one model, in the form that OpenAI's client reads."""
    return {"id": model.name, "object": "model", "created": 0, "owned_by": "openai"}


# What Codex asks of ChatGPT for a logged-in user: the account, its settings and its models. Requests to models have the
# form of OpenAI's API, at another path.


async def _accounts(http: Request) -> Response:
    """The account of the request, without a special server for its requests."""
    account = {
        "id": http.headers.get("chatgpt-account-id", ""),
        "workspace_backend_origin": "https://chatgpt.com",
        "account_routing_override": "NO_CONSTRAINT",
    }
    return JSONResponse({"accounts": [account], "account_ordering": [account["id"]]})


ROUTES: Final = (
    Route("/backend-api/wham/accounts/check", _accounts),
    Route("/backend-api/wham/settings/user", JSONResponse({}), methods=["GET"]),
    # None, so that Codex uses the models that it knows.
    Route(f"{CODEX}/models", JSONResponse({"models": []}), methods=["GET"]),
)
