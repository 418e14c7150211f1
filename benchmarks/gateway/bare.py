"""A proxy that changes nothing: the baseline cost of starlette, uvicorn and httpx2."""

import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

_HOPS: Final = frozenset({"host", "content-length", "connection", "transfer-encoding"})
_START_SECONDS_MAX: Final = 30.0


def bare_proxy(upstream: str) -> Starlette:
    """An app that passes every request on and streams the answer back."""
    client = httpx2.AsyncClient(base_url=upstream, timeout=600, trust_env=False)

    async def passed(http: Request) -> StreamingResponse:
        headers = [(k, v) for k, v in http.headers.items() if k not in _HOPS]
        target = f"{http.url.path}?{http.url.query}" if http.url.query else http.url.path
        body = await http.body()
        request = client.build_request(http.method, target, headers=headers, content=body)
        answer = await client.send(request, stream=True)
        kept = {k: v for k, v in answer.headers.items() if k not in _HOPS}

        async def streamed() -> AsyncIterator[bytes]:
            try:
                async for chunk in answer.aiter_raw():
                    yield chunk
            finally:
                await answer.aclose()

        return StreamingResponse(streamed(), answer.status_code, kept)

    @asynccontextmanager
    async def closing(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    methods = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"]
    return Starlette(routes=[Route("/{path:path}", passed, methods=methods)], lifespan=closing)


def server_of(app: ASGIApp, port: int = 0) -> uvicorn.Server:
    """A server with the settings of all servers here: quiet, on loopback, with the parser in Python."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            port=port,
            http="h11",
            ws="none",
            lifespan="on" if isinstance(app, Starlette) else "off",
            log_config=None,
            log_level="critical",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=75,
        )
    )


def url_of(server: uvicorn.Server) -> str:
    """The URL of a started server."""
    address = server.servers[0].sockets[0].getsockname()
    return f"http://{address[0]}:{address[1]}"


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serve an app on a free port in a thread; yields its URL."""
    server = server_of(app)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_SECONDS_MAX
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the server did not start")
        time.sleep(0.002)
    try:
        yield url_of(server)
    finally:
        server.force_exit = server.should_exit = True
        thread.join(_START_SECONDS_MAX)
