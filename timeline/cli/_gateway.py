"""The gateway: `proxy` serves it, `wrap` runs an agent behind it, `savings` adds up its bills, `mcp` reads its store."""

import json
import logging
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from importlib.util import find_spec
from secrets import token_urlsafe
from shlex import quote
from typing import Final

import click
from rich import box
from rich.table import Table

from blocks import StoreError, StoreLockedError, TimelineId, UsageRecorded, install_command
from persistence import EventStore, Requester, StoreLocation
from timeline import Options
from timeline._serving import take_turns
from timeline.billing import money
from timeline.cli._child import run_child, signals_passed
from timeline.cli._console import number_columns, print_json, screen
from timeline.cli._options import (
    SHARED,
    STORE,
    VARIABLE,
    OneOf,
    UsageError,
    Values,
    argument,
    command,
    existing_store,
    gateway_store,
    option,
    store_location,
    store_to_read,
    tell_away,
    tokens,
)
from timeline.cli._terminal import DONE, complain, line, say, visible, when
from timeline.gateway import PATH, Gateway, GatewayServer, StoreReader, serve_stdio
from timeline.gateway.clients import CLIENTS, Client, Link, past_proxies
from timeline.report import Savings, accounts, conversation_of

PORT: Final = 8787
AGENTS: Final = tuple(CLIENTS)
WARNINGS_MAX: Final = 10
GATEWAY: Final = (
    option(
        "--window",
        type=tokens,
        metavar="N",
        help="most tokens in a prompt (default: the model's window)",
    ),
    option("--policy", default="default", metavar="NAME", help="policy: its name, or a TOML file"),
    option("--upstream", metavar="URL", help="where requests go (default: the model's vendor)"),
    option("--record-only", is_flag=True, help="change no request; report what would be saved"),
    option("--fail-closed", is_flag=True, help="refuse requests that cannot be rendered"),
)
"""How requests are rendered, and where they go."""


@command(
    "proxy",
    STORE,
    *GATEWAY,
    option("--host", default="127.0.0.1", help="address to listen on (default: this machine only)"),
    option("--port", type=int, default=PORT, metavar="N", help=f"default {PORT}; 0: any free one"),
    option("--token", metavar="TEXT", help="clients must send it; required with another --host"),
)
def proxy(options: Values) -> int:
    """Serve until interrupted, then say what was saved."""
    where = _location(options)
    with closing(where.open()) as store:
        gateway = _gateway(options, store, options.upstream, options.token)
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
        print(json.dumps(savings.json()) if options.json else "\n".join(savings.lines()))
    return DONE


def _location(options: Values) -> StoreLocation:
    """As `store_location`, for a gateway, which makes a new store outside this folder.

    Raises:
        MisuseError: there cannot be one.
        StoreError: the folder for it cannot be made.
    """
    place = gateway_store()
    where = store_location(options, new=place)
    if str(where) == str(place):
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{place.parent} cannot be created: {error.strerror}; choose another folder with --store or {VARIABLE}"
            ) from error
    return where


def _gateway(
    options: Values, store: EventStore, upstream: str | Mapping[str, str] | None, token: str | None
) -> Gateway:
    """A gateway as the options of `GATEWAY` say."""
    return Gateway(
        store=store,
        upstream=upstream,
        window=options.window,
        policy=options.policy,
        record_only=options.record_only,
        fail_closed=options.fail_closed,
        token=token,
    )


# wrap


class Wrap(click.Command):
    """Our own options end at the agent's name; or, if a `--` follows that, there."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        super().parse_args(ctx, args)
        arguments = ctx.params["arguments"]
        if "--" in arguments:
            end = arguments.index("--")
            ctx.params.clear()
            ctx.allow_interspersed_args = True
            super().parse_args(ctx, words[: len(words) - len(arguments) + end])
            if others := ctx.params["arguments"]:
                ctx.fail(f"unrecognized arguments: {' '.join(others)}")
            ctx.params["arguments"] = arguments[end + 1 :]
        return ctx.args


@command(
    "wrap",
    *GATEWAY,
    STORE,
    argument(
        "client",
        type=OneOf(AGENTS),
        metavar="AGENT",
        help=f"the agent to run: {', '.join(AGENTS[:-1])} or {AGENTS[-1]}",
    ),
    argument(
        "arguments",
        nargs=-1,
        metavar="ARGS",
        type=click.UNPROCESSED,
        help="arguments of the agent; put foldline's options before its name, or before a --",
    ),
    kind=Wrap,
)
def wrap(options: Values) -> int:
    """End as the agent does; its standard output is its own, ours comes on standard error."""
    client = CLIENTS[options.client]
    program = shutil.which(client.program)
    if program is None:
        raise UsageError(f"{client.program} is not installed here: {client.install}")
    status, savings = _run(options, client, program)
    with _terminal_or_none():
        if options.json:
            print(visible(json.dumps(savings.json())), file=sys.stderr)
        elif not savings.requests:
            complain(
                f"no request came by; if {options.client} called a model, its own settings name another URL"
            )
        else:
            for text in savings.lines():
                complain(text)
            if savings.calls:
                store = f" --store {quote(options.store)}" if options.store is not None else ""
                complain(
                    f"kept in {store_location(options)}: `foldline list{store}` shows it,"
                    f" `foldline savings{store}` adds up its costs"
                )
    return status


def _run(options: Values, client: Client, program: str) -> tuple[int, Savings]:
    """The agent's exit status, and what its calls cost."""
    environment = dict(os.environ)
    upstreams = client.upstreams(program, environment)
    if options.upstream:
        upstreams = {maker: str(options.upstream) for maker in upstreams}
    token = token_urlsafe(24)
    with signals_passed() as passing, _warnings_at_end(), _store(options) as store:
        gateway = _gateway(options, store, upstreams, token)
        take_turns()
        with GatewayServer(gateway=gateway) as server:
            tools = _tools_at(server.url, options)
            link = Link(url=server.url, token=token, tools=tools, upstreams=upstreams)
            start = client.start(link, environment)
            run = [program, *start.arguments, *options.arguments, *start.more]
            own = {**past_proxies(environment), **start.environment}
            status = run_child(run, {**environment, **own}, passing)
        return status, gateway.savings()  # now that the last answer is noted, too


@contextmanager
def _store(options: Values) -> Generator[EventStore]:
    """The store; one that was made for nothing is taken away again."""
    where = _location(options)
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


def _tools_at(url: str, options: Values) -> str:
    """Where the reading tools are; empty if nothing is folded, or the extra is missing."""
    if options.record_only:
        return ""
    if find_spec("mcp") is None:
        complain(f"the agent cannot read folded blocks back; to allow it: {install_command('mcp')}")
        return ""
    return url + PATH


@contextmanager
def _warnings_at_end() -> Generator[None]:
    """Warnings that are logged while the agent has the terminal are printed afterwards."""
    warnings = _Warnings()
    log = logging.getLogger("foldline")
    log.addHandler(warnings)
    log.propagate, before = False, log.propagate
    try:
        yield
    finally:
        log.propagate = before
        log.removeHandler(warnings)
        with _terminal_or_none():
            for text, count in warnings.counts.items():
                complain(f"{text} ({count:,} times)" if count > 1 else text)


class _Warnings(logging.Handler):
    """Keeps the warnings that differ, and counts those that are equal."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.counts = Counter[str]()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text in self.counts or len(self.counts) < WARNINGS_MAX:
            self.counts[text] += 1


@contextmanager
def _terminal_or_none() -> Generator[None]:
    """If the terminal is gone, nothing is printed, also not by what is left in the buffer at the end."""
    try:
        yield
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


# savings, mcp


@command(
    "savings",
    STORE,
    option(
        "--by",
        type=OneOf(("day", "conversation")),
        help="a row for each day or each conversation, too",
    ),
)
def savings(options: Values) -> int:
    """Print a row for each day or conversation, if asked for, and the sum."""
    with store_to_read(options) as store:
        total, parts = accounts(store, _day if options.by == "day" else conversation_of)
        status = tell_away(store)
    if options.by == "day":
        parts = dict(sorted(parts.items()))
    if options.json:
        rows = {name: part.json() for name, part in parts.items()}
        print_json({"total": total.json(), **({"by": rows} if options.by else {})})
        return status
    if options.by and parts:
        _tell_parts(options.by, parts)
    for text in total.lines() if total.requests else ("no calls through a gateway yet",):
        say(line(text))
    return status


def _day(_: TimelineId, usage: UsageRecorded) -> str:
    return when(usage.bill.sent_at if usage.bill else usage.at, "%Y-%m-%d")


def _tell_parts(by: str, parts: Mapping[str, Savings]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(by, overflow="fold")
    number_columns(table, ("calls", "bill", "without foldline"))
    table.add_column("", overflow="fold")
    for name, part in parts.items():
        costs = (money(part.paid), money(part.full), part.verdict()) if part.calls else ()
        table.add_row(line(name), f"{part.requests:,}", *costs)
    console = screen()
    console.print(table)
    console.print()


@command(
    "mcp",
    option("--tenant", default="", metavar="NAME", help="read the artifacts of this tenant"),
    option("--window", type=tokens, metavar="N", help="the agent's window, which limits an answer"),
    STORE,
)
def mcp(options: Values) -> int:
    """Serve until standard input ends."""
    where = existing_store(options)
    try:
        store = where.open()
    except StoreLockedError as error:
        raise UsageError(
            f"{error}. If that process is `foldline proxy` or `foldline wrap`, it serves the same tools:"
            f" register the URL http://127.0.0.1:PORT{PATH} instead of this command"
        ) from error
    room = Options() if options.window is None else Options(window=options.window)
    with closing(store):
        requester = Requester("mcp", tenant=options.tenant)
        serve_stdio(StoreReader(store=store, requester=requester, options=room))
    return DONE
