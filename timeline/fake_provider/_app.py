"""The fake provider over HTTP: its routes, its answers as JSON or as server-sent events, damaged where asked for."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from render import Json, Model
from timeline.fake_provider._fault import ApiError, Fault
from timeline.fake_provider._provider import Exchange, FakeProvider
from timeline.fake_provider._reply import Draft
from timeline.fake_provider._rules import invalid

_PIECE_CHARS: Final = 24
_PIECES_MAX: Final = 100
"""A long text comes in longer pieces, not in more."""

_BODY_BYTES_MAX: Final = 2**26
"""Of a request, before it is read; the provider's own limit, half of it, is one of its rules."""


def event(data: Json) -> bytes:
    """One event on the wire."""
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n".encode()


def events(message: Json, drafts: tuple[Draft, ...]) -> Iterator[Json]:
    """The events of a message, in the provider's order."""
    usage = message["usage"]
    begun: Json = {**message, "content": [], "stop_reason": None, "stop_details": None}
    yield {"type": "message_start", "message": {**begun, "usage": {**usage, "output_tokens": 1}}}
    for index, draft in enumerate(drafts):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(draft)}
        if index == 0:
            yield {"type": "ping"}
        for delta in _deltas(draft):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}


def _opened(draft: Draft) -> Json:
    """The block before anything of it was said."""
    match draft.block["type"]:
        case "text":
            return {**draft.block, "text": ""}
        case "thinking":
            return {**draft.block, "thinking": "", "signature": ""}
        case "tool_use":
            return {**draft.block, "input": {}}
        case _:
            return draft.block


def _deltas(draft: Draft) -> Iterator[Json]:
    match draft.block["type"]:
        case "text":
            for piece in _pieces(draft.said):
                yield {"type": "text_delta", "text": piece}
        case "thinking":
            for piece in _pieces(draft.said):
                yield {"type": "thinking_delta", "thinking": piece}
            if draft.block["signature"]:
                yield {"type": "signature_delta", "signature": draft.block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in _pieces(draft.said):
                yield {"type": "input_json_delta", "partial_json": piece}
        case _:
            return


def _pieces(text: str) -> Iterator[str]:
    size = max(_PIECE_CHARS, -(-len(text) // _PIECES_MAX))
    return (text[at : at + size] for at in range(0, len(text), size))


_GARBAGE = b'{"type": "content_block_delta", "ind'


def refusal(error: ApiError, request_id: str) -> Response:
    """A refusal with its status and headers."""
    headers = {**error.headers, "request-id": request_id}
    return JSONResponse(error.body(request_id), error.status, headers)


async def response(exchange: Exchange, request_id: str) -> Response:
    """What goes over the wire; waits as long as it should take."""
    if exchange.error or exchange.message is None:
        return refusal(exchange.error or ApiError(500, "api_error", "no answer"), request_id)
    await asyncio.sleep(exchange.delay_seconds)
    fault = exchange.fault or Fault()
    if exchange.request.get("stream"):
        sent = tuple(_streamed(exchange, exchange.message, fault))
        kind, length = "text/event-stream; charset=utf-8", None
    else:
        whole = json.dumps(exchange.message).encode()
        broken = fault.damage in ("cut", "garbled")
        sent = (whole[: len(whole) // 2],) if broken else (whole,)
        kind = "application/json"
        length = len(sent[0]) if fault.damage == "garbled" else len(whole)
    headers = {"request-id": request_id}
    if length is not None:
        headers["content-length"] = str(length)
    return _Chunks(sent, headers, kind, complete=fault.damage != "cut")


def _streamed(exchange: Exchange, message: Json, fault: Fault) -> Iterator[bytes]:
    whole = list(events(message, exchange.drafts))
    if fault.damage == "none":
        yield from map(event, whole)
    else:
        yield from map(event, whole[:-1][: fault.after])
        yield from _damage(fault)


def _damage(fault: Fault) -> Iterator[bytes]:
    """The last thing that arrives of a damaged stream."""
    if fault.damage == "garbled":
        yield b"event: content_block_delta\ndata: " + _GARBAGE + b"\n\n"
    elif fault.error:
        yield event(fault.error.body("req_in_stream"))


class _Chunks(StreamingResponse):
    """Chunks as they are; when incomplete, the server closes the connection after the last."""

    def __init__(
        self, chunks: Sequence[bytes], headers: dict[str, str], kind: str, *, complete: bool
    ) -> None:
        super().__init__(chunks, headers=headers, media_type=kind)
        self.chunks = chunks
        self.complete = complete

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 -- ASGI's
        await send(
            {"type": "http.response.start", "status": 200, "headers": self.raw_headers},
        )
        for chunk in self.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if self.complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def model_info(model: Model) -> Json:
    """One model."""
    words = model.name.removeprefix("claude-").split("-")
    lines = [word for word in words if not word.isdigit()]
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


def model_page(models: list[Model]) -> Json:
    """All models, on one page."""
    data = [model_info(model) for model in models]
    ends = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"data": data, "has_more": False, "first_id": ends[0], "last_id": ends[1]}


def app_of(provider: FakeProvider) -> Starlette:
    """The app that serves a provider."""

    async def create(http: Request) -> Response:
        request = _unauthorised(http) or await _json(http)
        if isinstance(request, ApiError):
            return refusal(request, provider.new_id("req"))
        return await response(provider.create(request), provider.new_id("req"))

    async def count(http: Request) -> Response:
        request = _unauthorised(http) or await _json(http)
        counted = request if isinstance(request, ApiError) else provider.count(request)
        if isinstance(counted, ApiError):
            return refusal(counted, provider.new_id("req"))
        return JSONResponse({"input_tokens": counted})

    async def models(_: Request) -> Response:
        return JSONResponse(model_page(provider.known()))

    async def model(http: Request) -> Response:
        name = http.path_params["name"]
        found = provider.model(name)
        if found is None:
            error = ApiError(404, "not_found_error", f"model: {name}")
            return refusal(error, provider.new_id("req"))
        return JSONResponse(model_info(found))

    async def unknown(_: Request, __: Exception) -> Response:
        return refusal(ApiError(404, "not_found_error", "Not found"), provider.new_id("req"))

    return Starlette(
        routes=[
            Route("/v1/messages", create, methods=["POST"]),
            Route("/v1/messages/count_tokens", count, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name}", model),
        ],
        exception_handlers={404: unknown},
    )


def _unauthorised(http: Request) -> ApiError | None:
    """Any key will do, but there must be one, and a version."""
    if not (http.headers.get("x-api-key") or http.headers.get("authorization")):
        return ApiError(401, "authentication_error", "x-api-key header is required")
    if "anthropic-version" not in http.headers:
        return invalid("anthropic-version: header is required")
    return None


async def _json(http: Request) -> Json | ApiError:
    read = bytearray()
    async for piece in http.stream():
        read += piece
        if len(read) > _BODY_BYTES_MAX:
            return ApiError(413, "request_too_large", "Request exceeds the maximum size")
    try:
        body: Any = json.loads(read)
    except (ValueError, RecursionError) as error:
        return invalid(f"The request body is not valid JSON: {error}")
    if not isinstance(body, dict):
        return invalid("Input should be an object")
    return cast("Json", body)
