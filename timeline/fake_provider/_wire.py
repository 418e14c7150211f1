"""An exchange as an HTTP response, with the damage that was asked for."""

import asyncio
import json
from collections.abc import Iterator, Sequence

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from render import Json
from timeline.fake_provider._fault import ApiError, Fault
from timeline.fake_provider._provider import Exchange
from timeline.fake_provider._stream import event, events

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
