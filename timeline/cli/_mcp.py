"""`foldline mcp`: an MCP server that reads a store, for agents that want back what was folded."""

import argparse

from timeline.cli._console import DONE, UsageError
from timeline.cli._parser import tokens
from timeline.cli._store import existing, store_option

NAME = "mcp"
HELP = "let an agent read a store, through MCP tools on standard input and output"
READER = "mcp"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "--tenant", default="", metavar="NAME", help="read the artifacts of this tenant"
    )
    parser.add_argument(
        "--window", type=tokens, metavar="N", help="the agent's window, which limits an answer"
    )
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    from contextlib import closing

    from blocks import StoreLockedError
    from persistence import Requester
    from timeline.engine._settings import Options
    from timeline.gateway._reader import PATH, StoreReader, serve_stdio

    where = existing(options)
    try:
        store = where.open()
    except StoreLockedError as error:
        raise UsageError(
            f"{error}. If that process is `foldline proxy` or `foldline wrap`, it serves the same tools:"
            f" register the URL http://127.0.0.1:PORT{PATH} instead of this command"
        ) from error
    room = Options() if options.window is None else Options(window=options.window)
    with closing(store):
        reader = StoreReader(
            store=store, requester=Requester(READER, tenant=options.tenant), options=room
        )
        serve_stdio(reader)
    return DONE
