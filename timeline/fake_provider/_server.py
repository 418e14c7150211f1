"""The fake provider on a loopback port: in a thread for tests, in the foreground by hand."""

import socket
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import attrs

from blocks import FoldlineError, MisuseError
from render import Json
from timeline.fake_provider._fault import Fault
from timeline.fake_provider._http_request import HttpRequest
from timeline.fake_provider._provider import Exchange, FakeProvider

if TYPE_CHECKING:
    import uvicorn

_HOST: Final = "127.0.0.1"
_START_SECONDS_MAX: Final = 30.0
_BACKLOG: Final = 128


def _listening(port: int) -> socket.socket:
    """Said to be TCP, or asyncio leaves Nagle's algorithm on, which costs 40 ms an answer."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


@attrs.define
class FakeServer:
    """Serves a provider between `start` and `stop`, or inside a `with`."""

    provider: FakeProvider = attrs.field(factory=FakeProvider)
    port: int = 0
    """0: any free one."""
    _socket: socket.socket | None = attrs.field(default=None, init=False)
    _server: "uvicorn.Server | None" = attrs.field(default=None, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    @property
    def url(self) -> str:
        """The `base_url` for a client."""
        return f"http://{_HOST}:{self.port}"

    @property
    def requests(self) -> list[Json]:
        """Every request for a message, refused ones too."""
        return [exchange.request for exchange in self.provider.exchanges]

    @property
    def refused(self) -> list[Exchange]:
        """Requests that broke a rule of the provider; what a fault refused is not among them."""
        return [e for e in self.provider.exchanges if e.error and not e.fault]

    @property
    def http_requests(self) -> list[HttpRequest]:
        """All that arrived, to any path, as it was sent but for keys."""
        return self.provider.http_requests

    def fault(self, *faults: Fault) -> None:
        """Make the next valid requests go wrong, one fault each."""
        self.provider.fault(*faults)

    def start(self) -> None:
        """Serve in a thread; back when requests are taken."""
        server = self._open()
        run = {"sockets": [self._socket]}
        self._thread = threading.Thread(target=server.run, kwargs=run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS_MAX
        while not server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise FoldlineError("the fake server did not start")
            time.sleep(0.002)

    def run(self) -> None:
        """Serve in the foreground, until a signal."""
        server = self._open()
        assert self._socket  # noqa: S101 -- just opened
        server.run(sockets=[self._socket])

    def listen(self) -> None:
        """Take the port, so that `url` is known.  Idempotent.

        Raises:
            OSError: the port is taken.
        """
        if self._socket is None:
            self._socket = _listening(self.port)
            self.port = self._socket.getsockname()[1]

    def _open(self) -> "uvicorn.Server":
        try:
            import uvicorn

            from timeline.fake_provider._app import app_of
        except ModuleNotFoundError as error:
            raise MisuseError(
                f"the fake server needs {error.name}: pip install 'foldline[fake-provider]'"
            ) from error
        self.listen()
        config = uvicorn.Config(
            app_of(self.provider),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        return self._server

    def stop(self) -> None:
        """Close every connection.  Idempotent."""
        if self._server and self._thread:
            self._server.force_exit = self._server.should_exit = True
            self._thread.join(_START_SECONDS_MAX)
        if self._socket:
            self._socket.close()
        self._socket = self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if kind is None and self.provider.failures:
            raise FoldlineError("the responder raised") from self.provider.failures[0]
