"""The live view on a loopback port, and a client that asks it as a browser would."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from email.message import Message
from typing import Any

import attrs
import uvicorn
from starlette.types import ASGIApp

from tests._sizes import PATIENCE, until


@attrs.frozen
class Answer:
    """What came back."""

    status: int
    headers: Message
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirection is an answer like any other."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


@attrs.frozen
class Site:
    """A server."""

    url: str

    def get(self, path: str = "", method: str = "GET", **headers: str) -> Answer:
        request = urllib.request.Request(self.url + path, method=method, headers=headers)  # noqa: S310 -- ours
        try:
            with _OPENER.open(request, timeout=PATIENCE) as answer:
                return Answer(answer.status, answer.headers, answer.read().decode())
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.headers, refused.read().decode())

    def told(self, path: str) -> Iterator[str]:
        """What server-sent events say."""
        with _OPENER.open(self.url + path, timeout=PATIENCE) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    yield line[6:].strip().decode()


@contextmanager
def serving(app: ASGIApp) -> Generator[Site]:
    """A server that is gone at the end."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until(lambda: server.started or not thread.is_alive())
    assert thread.is_alive()
    try:
        yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    finally:
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE)
        listener.close()
