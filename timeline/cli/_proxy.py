"""`foldline proxy`: between an agent and its provider."""

import argparse
import signal
from contextlib import closing
from typing import TYPE_CHECKING

from timeline.cli._console import DONE, complain
from timeline.cli._parser import tokens
from timeline.cli._store import gateway_location, store_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from persistence import EventStore
    from timeline.gateway import Gateway, Savings

NAME = "proxy"
HELP = "forward an agent's requests to its provider, rendered by a timeline"
PORT = 8787


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    store_option(parser)
    gateway_options(parser)
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    add("--port", type=int, default=PORT, metavar="N", help=f"default {PORT}; 0: any free one")
    add("--token", metavar="TEXT", help="clients must send it; required with another --host")


def gateway_options(parser: argparse.ArgumentParser) -> None:
    """How requests are rendered, and where they go."""
    add = parser.add_argument
    add(
        "--window",
        type=tokens,
        metavar="N",
        help="most tokens in a prompt (default: the model's window)",
    )
    add("--policy", default="default", metavar="NAME", help="policy: its name, or a TOML file")
    add("--upstream", metavar="URL", help="where requests go (default: the model's vendor)")
    add("--record-only", action="store_true", help="change no request; report what would be saved")
    add("--fail-closed", action="store_true", help="refuse requests that cannot be rendered")


def gateway_of(
    options: argparse.Namespace,
    store: "EventStore",
    upstream: "str | Mapping[str, str] | None",
    token: str | None,
) -> "Gateway":
    """A gateway as its options say."""
    from timeline.gateway import Gateway

    return Gateway(
        store=store,
        upstream=upstream,
        window=options.window,
        policy=options.policy,
        record_only=options.record_only,
        fail_closed=options.fail_closed,
        token=token,
    )


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted, then say what was saved."""
    from timeline.gateway import GatewayServer

    where = gateway_location(options)
    with closing(where.open()) as store:
        gateway = gateway_of(options, store, options.upstream, options.token)
        server = GatewayServer(gateway=gateway, host=options.host, port=options.port)
        server.listen()
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, which it raises
        complain(f"listening on {server.url}; kept in {where}; Ctrl-C ends it")
        try:
            server.run()
        except KeyboardInterrupt:
            pass
        finally:
            server.stop()
        savings = gateway.savings()
        print(savings_json(savings) if options.json else "\n".join(savings.lines()))
    return DONE


def savings_json(savings: "Savings") -> str:
    """What was saved, for machines."""
    import json

    return json.dumps(savings.json())
