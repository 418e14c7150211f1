"""An ASGI application on a port of this machine: in a thread, or in the foreground; and which requests to it may come
from a web page elsewhere."""

import errno
import gc
import re
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import attrs

from blocks import FoldlineError, MisuseError, lacking

if TYPE_CHECKING:
    import uvicorn
    from starlette.datastructures import Headers

LOOPBACK: Final = "127.0.0.1"
_START_SECONDS_MAX: Final = 30.0
_STOP_SECONDS: Final = 1
_IDLE_SECONDS: Final = 75
"""How long an idle connection is kept open, because an agent's tools may take long."""
_BACKLOG: Final = 128
_TURN_SECONDS: Final = 0.0005
_FULL_COLLECTION_AFTER: Final = 100
"""Collections of the younger generation before a full collection; Python's default is 10."""


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket with the protocol TCP named, otherwise asyncio leaves Nagle's algorithm on, which costs 40 ms
    per answer.

    Raises:
        MisuseError: it cannot listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = _REASONS.get(getattr(error, "errno", None), str(error))
        raise MisuseError(f"cannot listen on port {port} of {host!r}: {reason}") from error
    return listener


_REASONS: Final[Mapping[object, str]] = {
    None: "a port is a number from 0 to 65535; 0 is any free one",
    errno.EACCES: "this user may not; choose a port from 1024 on",
    errno.EADDRINUSE: "another program listens there; end it, or choose another port (0: any free one)",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose one that it has",
    socket.EAI_NONAME: "there is no such host; choose an address of this machine",
}
"""By the number of the error; one of the port itself has none."""


def take_turns() -> None:
    """Keep waits short in this process, which does nothing but serve.

    Threads switch ten times as often as by Python's default of 5 ms: while one thread compacts, a request that arrives
    in pieces would wait that long for each piece.  Full garbage collections are a tenth as frequent, because with
    sixteen long conversations each stops every thread for 0.3 s, and finds little: what is no longer shown is freed at
    once.
    """
    sys.setswitchinterval(_TURN_SECONDS)
    youngest, younger, _ = gc.get_threshold()
    gc.set_threshold(youngest, younger, _FULL_COLLECTION_AFTER)


def is_loopback(host: str) -> bool:
    """Whether a server at this host is reachable only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/?#@\[\]]+))(?::\d*)?")
"""A `Host` header (RFC 9110, 7.2): an IPv6 address in brackets or another name, and perhaps a port."""
_OWN_SITES: Final = ("same-origin", "none")
"""Values of `Sec-Fetch-Site`: a page of this server asks, or the user typed the address. Another port of this machine
is `same-site`; all other pages are `cross-site`."""
_SCHEMES: Final = ("http", "https")
"""Of a page of this server; a proxy before it may speak TLS."""
FOREIGN_SHOWN: Final = 80


def foreign_in(headers: "Headers", *, has_token: bool) -> str:
    """What in a request's headers shows that a web page elsewhere may have sent it, in words; empty: nothing does.

    Any page in a browser on this machine can send requests to a port of this machine, such as a form with a text, and
    with a domain name of its own that it points to 127.0.0.1 (DNS rebinding), it can read the answers, too. A browser
    says so: in `Origin`, `Sec-Fetch-Site`, or in a `Host` that is not this machine. With `has_token`, when only those
    who know a token are let in, the host may have any name; its port never matters, because ports are forwarded.
    """
    hosts = [host.lower() for host in headers.getlist("host")]
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if not has_token and (match is None or not is_loopback(match[1] or match[2])):
        return f"the host {', '.join(hosts)[:FOREIGN_SHOWN]!r} is not this machine; use localhost, or a token"
    for origin in headers.getlist("origin"):
        if origin.lower() not in [f"{scheme}://{host}" for host in hosts for scheme in _SCHEMES]:
            return (
                f"a web page of the origin {origin[:FOREIGN_SHOWN]!r} asks, not one of this server"
            )
    for site in headers.getlist("sec-fetch-site"):
        if site not in _OWN_SITES:
            return "a page of another site links here or asks; type the address into the browser"
    return ""


@attrs.define
class AppServer(ABC):
    """Serves an application between `start` and `stop`, or inside a `with` block; a subclass provides the
    application."""

    extra: ClassVar[str]
    """The extra of foldline that has the packages it needs."""
    hurries: ClassVar[bool] = True
    """Whether it stops in the middle of answers without telling the application."""
    port: int = attrs.field(default=0, kw_only=True)
    """0: any free one."""
    host: str = attrs.field(default=LOOPBACK, kw_only=True)
    _socket: socket.socket | None = attrs.field(default=None, init=False)
    _server: "uvicorn.Server | None" = attrs.field(default=None, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    @abstractmethod
    def make_app(self) -> Any:
        """The application; this imports modules that are needed only for serving."""

    @property
    def url(self) -> str:
        """The server's URL, once it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Serve in a thread; return when it accepts requests.

        Raises:
            MisuseError: its extra is not installed, or the port is taken or not there.
        """
        server = self._open()
        run = {"sockets": [self._socket]}
        self._thread = threading.Thread(target=server.run, kwargs=run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS_MAX
        while not server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise FoldlineError(f"the server at {self.url} did not start")
            time.sleep(0.002)

    def run(self) -> None:
        """Serve in the foreground, until a signal ends the process."""
        take_turns()
        server = self._open()
        assert self._socket  # noqa: S101 -- just opened
        server.run(sockets=[self._socket])

    def listen(self) -> None:
        """Bind the port, so that `url` is known.  Idempotent.

        Raises:
            MisuseError: its extra is not installed, or the port is taken or not there.
        """
        if self._server is None:
            self._server = self._made()
        if self._socket is None:
            self._socket = _listening(self.host, self.port)
            self.port = self._socket.getsockname()[1]

    def _open(self) -> "uvicorn.Server":
        self.listen()
        assert self._server  # noqa: S101 -- just made
        return self._server

    def _made(self) -> "uvicorn.Server":
        try:
            import uvicorn

            app = self.make_app()
        except ModuleNotFoundError as error:
            raise lacking("this server", self.extra) from error
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="critical",
            timeout_graceful_shutdown=_STOP_SECONDS,
            timeout_keep_alive=_IDLE_SECONDS,
        )
        return uvicorn.Server(config)

    def stop(self) -> None:
        """Close every connection.  Idempotent."""
        if self._server and self._thread:  # which closes its socket, however long that takes
            self._server.force_exit, self._server.should_exit = self.hurries, True
            self._thread.join(_START_SECONDS_MAX)
        elif self._socket:
            self._socket.close()
        self._socket = self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
