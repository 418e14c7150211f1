"""`foldline wrap`: run an agent as it is, with a gateway between it and its provider, and say what that saved."""

import argparse
import logging
import os
import shutil
import sys
from collections import Counter
from contextlib import closing, contextmanager
from importlib.util import find_spec
from shlex import quote
from typing import TYPE_CHECKING, Final

from timeline.cli._console import UsageError, complain
from timeline.cli._parser import Parser
from timeline.cli._proxy import gateway_of, gateway_options, savings_json
from timeline.cli._store import SHARED, gateway_location, location, store_option
from timeline.cli._visible import visible

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from persistence import EventStore
    from timeline.gateway import Savings
    from timeline.gateway.clients import Client

NAME = "wrap"
HELP = "run Claude Code, Codex, opencode or pi through a gateway"
NAMES: Final = ("claude", "codex", "opencode", "pi")
TOKEN_BYTES: Final = 24
NOTES_MAX: Final = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    gateway_options(parser)
    store_option(parser)
    known = f"the agent to run: {', '.join(NAMES[:-1])} or {NAMES[-1]}"
    parser.add_argument("client", choices=NAMES, metavar="AGENT", help=known)
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="ARGS",
        help="arguments of the agent; put foldline's options before its name, or before a --",
    )


def run(options: argparse.Namespace) -> int:
    """What the client's exit code says; its standard output is its own, ours comes on standard error."""
    from timeline.gateway.clients import CLIENTS

    given = _separated(options)
    client = CLIENTS[options.client]
    program = shutil.which(client.program)
    if program is None:
        raise UsageError(f"{client.program} is not installed here: {client.install}")
    code, savings = _wrapped(options, client, [program, *given])
    with _terminal_or_none():
        _tell(options, savings)
    return code


def _separated(options: argparse.Namespace) -> "Sequence[str]":
    """The client's arguments; options of ours before a `--` are taken from them."""
    rest: list[str] = options.arguments
    if "--" not in rest:
        return rest
    end = rest.index("--")
    own = Parser(prog="foldline wrap", add_help=False)
    gateway_options(own)
    store_option(own)
    own.parse_args(rest[:end], options)
    return rest[end + 1 :]


def _wrapped(
    options: argparse.Namespace, client: "Client", command: "Sequence[str]"
) -> "tuple[int, Savings]":
    """The client's exit code, and what its calls cost."""
    from secrets import token_urlsafe

    from timeline._serving import take_turns
    from timeline.gateway import GatewayServer
    from timeline.gateway._child import run_child, signals_passed
    from timeline.gateway.clients import Link, past_proxies

    environment = dict(os.environ)
    program, *given = command
    upstreams = client.upstreams(program, environment)
    if options.upstream:
        upstreams = {maker: str(options.upstream) for maker in upstreams}
    token = token_urlsafe(TOKEN_BYTES)
    with signals_passed() as passing, _notes_told(), _store(options) as store:
        gateway = gateway_of(options, store, upstreams, token)
        take_turns()
        with GatewayServer(gateway=gateway) as server:
            tools = _tools_at(server.url, options)
            link = Link(url=server.url, token=token, tools=tools, upstreams=upstreams)
            start = client.start(link, environment)
            run = [program, *start.arguments, *given, *start.more]
            own = {**past_proxies(environment), **start.environment}
            code = run_child(run, {**environment, **own}, passing)
        return code, gateway.savings()  # now that the last answer is noted, too


@contextmanager
def _store(options: argparse.Namespace) -> "Generator[EventStore]":
    """The store; one that was made for nothing is taken away again."""
    from blocks import StoreLockedError

    where = gateway_location(options)
    is_new = not where.exists()
    try:
        store = where.open()
    except StoreLockedError as error:
        raise StoreLockedError(
            f"{error}. To run several agents at once, give each its own --store, or use one that processes"
            f" can share: --store {SHARED}"
        ) from error
    try:
        yield store
    finally:
        with closing(store):
            is_empty = not store.list()
        if is_new and is_empty:
            where.remove()


def _tools_at(url: str, options: argparse.Namespace) -> str:
    """Where the reading tools are; nothing is folded, so nothing is read back, when it is only recorded."""
    if options.record_only:
        return ""
    if find_spec("mcp") is None:
        complain(
            "the agent cannot read folded blocks back; to allow it: pip install 'foldline[mcp]'"
        )
        return ""
    from timeline.gateway._reader import PATH

    return url + PATH


@contextmanager
def _notes_told() -> "Generator[None]":
    """What is logged while the client has the terminal is told afterwards."""
    kept = _Kept()
    log = logging.getLogger("foldline")
    log.addHandler(kept)
    log.propagate, before = False, log.propagate
    try:
        yield
    finally:
        log.propagate = before
        log.removeHandler(kept)
        with _terminal_or_none():
            kept.tell()


@contextmanager
def _terminal_or_none() -> "Generator[None]":
    """What is told when the terminal is gone is told nobody, also by what is left in the buffer at the end."""
    try:
        yield
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


class _Kept(logging.Handler):
    """Keeps the warnings that differ, and counts those that are equal."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.counts = Counter[str]()

    def emit(self, record: logging.LogRecord) -> None:
        """Note one."""
        text = record.getMessage()
        if text in self.counts or len(self.counts) < NOTES_MAX:
            self.counts[text] += 1

    def tell(self) -> None:
        """One line for each."""
        for text, count in self.counts.items():
            complain(f"{text} ({count:,} times)" if count > 1 else text)


def _tell(options: argparse.Namespace, savings: "Savings") -> None:
    if options.json:
        print(visible(savings_json(savings)), file=sys.stderr)
    elif savings.requests:
        for text in savings.lines():
            complain(text)
        if savings.calls:
            named = f" --store {quote(options.store)}" if options.store is not None else ""
            complain(
                f"kept in {location(options)}: `foldline list{named}` shows it, `foldline savings{named}`"
                " adds up its costs"
            )
    else:
        complain(
            f"no request came by; if {options.client} called a model, its own settings name another URL"
        )
