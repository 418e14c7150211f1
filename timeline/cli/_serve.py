"""`foldline serve`: the timelines of a store in a browser, as they grow."""

import argparse
import secrets
import socket
from ipaddress import ip_address

from timeline.cli._console import DONE, UsageError, say
from timeline.cli._plan import size_options
from timeline.cli._report import WITH_HIDDEN, showing
from timeline.cli._store import existing, fixed_options, store_option

NAME = "serve"
HELP = "show timelines in a browser, as they grow; changes nothing"
PORT, PORT_MAX = 8642, 65_535


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add = parser.add_argument
    add("--port", type=int, default=PORT, metavar="N", help=f"default: {PORT}; 0: any free one")
    add(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="for others than this machine: a token is asked for, and printed (default: 127.0.0.1)",
    )
    add("--token", default="", metavar="TEXT", help="that token (default: one is made)")
    add("--with-hidden", action="store_true", help=WITH_HIDDEN)
    size_options(parser)
    fixed_options(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until it is interrupted."""
    try:
        import uvicorn

        from timeline.report import live_app
    except ModuleNotFoundError as error:
        raise UsageError(f"serve needs {error.name}: pip install 'foldline[serve]'") from error
    token = options.token or ("" if _is_loopback(options.host) else secrets.token_urlsafe(24))
    app = live_app(existing(options), showing=showing(options), token=token or None)
    listener = _listening(options.host, options.port)
    port = listener.getsockname()[1]
    host = f"[{options.host}]" if ":" in options.host else options.host
    say(f"http://{host}:{port}/{f'?token={token}' if token else ''}  (Ctrl-C ends it)")
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])
    return DONE


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        UsageError: it cannot, there.
    """
    if not 0 <= port <= PORT_MAX:
        raise UsageError(f"--port {port}: give a number from 0 to {PORT_MAX}")
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        raise UsageError(f"--host {host} --port {port}: {error}") from error
