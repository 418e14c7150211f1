"""Runs servers in separate processes: a bare proxy, the gateway, and an upstream with little overhead.

python -m benchmarks.gateway.serve bare URL
python -m benchmarks.gateway.serve gateway URL --store FILE --window 60000
python -m benchmarks.gateway.serve upstream --seconds 0.5

Each takes a free port and prints its URL.  The upstream answers with the content of the header `x-say`, and
returns in headers when the request had arrived and its size.
"""

import argparse
import asyncio
import base64
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

import attrs
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.gateway.bare import bare_proxy, server_of, url_of

ARRIVED: Final = "x-arrived"
"""The header with the time of arrival, in seconds of the machine's monotonic clock."""
ANSWERED: Final = "x-answered"
RECEIVED: Final = "x-received"
"""The header with the bytes of the request."""
SAY: Final = "x-say"
"""The header with the answer, as base64."""


@attrs.frozen
class Said:
    """The upstream: waits like a model, then returns the given answer."""

    seconds: float

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = Request(scope, receive)
        body = await http.body()
        arrived = time.monotonic()
        await asyncio.sleep(self.seconds)
        said = base64.b64decode(http.headers.get(SAY, ""))
        told = {ARRIVED: arrived, RECEIVED: len(body), ANSWERED: time.monotonic()}

        async def streamed() -> AsyncIterator[bytes]:
            yield said

        headers = {name: repr(value) for name, value in told.items()}
        answer = StreamingResponse(streamed(), 200, headers, "text/event-stream")
        await answer(scope, receive, send)


@attrs.frozen
class Child:
    """A server in a process of its own."""

    url: str
    process: "subprocess.Popen[str]"

    @property
    def megabytes(self) -> float:
        """The memory of the process, in MB."""
        asked = ["ps", "-o", "rss=", "-p", str(self.process.pid)]
        return int(subprocess.run(asked, capture_output=True, check=True).stdout) / 1_024


@contextmanager
def started(*arguments: str) -> Iterator[Child]:
    """Start one of the servers; it stops at the end."""
    command = [sys.executable, "-m", "benchmarks.gateway.serve", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield Child(process.stdout.readline().strip(), process)
        finally:
            process.kill()


async def run(app: ASGIApp) -> None:
    """Serve until killed."""
    server = server_of(app)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 -- uvicorn has no event for it
        await asyncio.sleep(0.01)
    print(url_of(server), flush=True)
    await serving


def gateway(upstream: str, store: str, window: int) -> None:
    """Serve the gateway, as `foldline proxy` does."""
    from timeline.gateway import Gateway, GatewayServer

    server = GatewayServer(Gateway(store=store, upstream=upstream, window=window))
    server.listen()
    print(server.url, flush=True)
    server.run()


def main() -> None:
    """Serve the server named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("what", choices=["bare", "gateway", "upstream"])
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("--store")
    parser.add_argument("--window", type=int, default=60_000)
    parser.add_argument("--seconds", type=float, default=0.5)
    given = parser.parse_args()
    match given.what:
        case "bare":
            asyncio.run(run(bare_proxy(given.url)))
        case "upstream":
            asyncio.run(run(Said(given.seconds)))
        case _:
            gateway(given.url, given.store, given.window)


if __name__ == "__main__":
    main()
