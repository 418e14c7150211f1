"""`foldline serve`: the timelines of a store in a browser, as they grow."""

import argparse
import secrets
from typing import TYPE_CHECKING, Any

from timeline.cli._console import DONE, UsageError, say
from timeline.cli._plan import size_options
from timeline.cli._report import WITH_HIDDEN, showing
from timeline.cli._store import existing, fixed_options, store_option

if TYPE_CHECKING:
    from timeline._serving import AppServer

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
        help="address to listen on; other machines need a token, which is printed (default: 127.0.0.1)",
    )
    add("--token", default="", metavar="TEXT", help="that token (default: a random one)")
    add("--with-hidden", action="store_true", help=WITH_HIDDEN)
    size_options(parser)
    fixed_options(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until it is interrupted."""
    from timeline._serving import is_loopback

    token = options.token or ("" if is_loopback(options.host) else secrets.token_urlsafe(24))
    server = _server(options, token)
    try:
        server.listen()
    except OSError as error:
        raise UsageError(f"--host {options.host} --port {options.port}: {error}") from error
    say(f"{server.url}/{f'?token={token}' if token else ''}  (Ctrl-C ends it)")
    server.run()
    return DONE


def _server(options: argparse.Namespace, token: str) -> "AppServer":
    """The live view of the store, as these options say.

    Raises:
        UsageError: there is no such port.
        StoreError: there is no such store.
    """
    import attrs

    from timeline._serving import AppServer

    if not 0 <= options.port <= PORT_MAX:
        raise UsageError(f"--port {options.port}: give a number from 0 to {PORT_MAX}")
    where, how = existing(options), showing(options)

    @attrs.define
    class LiveServer(AppServer):
        @property
        def extra(self) -> str:
            return "serve"

        def make_app(self) -> Any:
            from timeline.report import live_app

            return live_app(where, showing=how, token=token or None)

    return LiveServer(host=options.host, port=options.port)
