"""Timelines in a browser: `report` writes one HTML file, `serve` shows a store as it grows."""

import re
import secrets
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs

from timeline._serving import AppServer, is_loopback
from timeline.cli._console import answer
from timeline.cli._options import (
    FIXED,
    ID,
    SIZE,
    STORE,
    UsageError,
    Values,
    command,
    existing_store,
    fixed_parts,
    log_of,
    option,
    sized,
    store_to_read,
)
from timeline.cli._terminal import DONE, say
from timeline.replay import atomic_write
from timeline.report import Showing, report_html, reported_log

PORT, PORT_MAX = 8642, 65_535
WITH_HIDDEN: Final = option(
    "--with-hidden",
    is_flag=True,
    help="also show blocks hidden on request, with their original text",
)


@command(
    "report",
    ID,
    option(
        "--output",
        type=Path,
        metavar="FILE",
        help="the file to write (default: ID.html in this folder)",
    ),
    WITH_HIDDEN,
    *SIZE,
    *FIXED,
    STORE,
)
def report(options: Values) -> int:
    """Write the file and print its path."""
    showing = _showing(options)
    with store_to_read(options) as store:
        log = log_of(store, options.id)
        prompting = showing.prompting(options.id, store, log)
    facts = showing.facts(options.id, prompting)
    reported = reported_log(log, prompting, facts, hidden=showing.hidden)
    file_name = re.sub(r"[^\w.-]+", "_", options.id).strip(".") or "timeline"
    path = options.output or Path(f"{file_name}.html")
    page = report_html(options.id, [reported])
    with atomic_write(path) as file:
        file.write(page)
    return answer(options, {"report": str(path), "bytes": len(page)}, f"report: {path}")


def _showing(options: Values) -> Showing:
    system, tools = fixed_parts(options)
    return Showing(options=sized(options), system=system, tools=tools, hidden=options.with_hidden)


@command(
    "serve",
    option("--port", type=int, default=PORT, metavar="N", help=f"default: {PORT}; 0: any free one"),
    option(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on; other machines need a token, which is printed (default: 127.0.0.1)",
    ),
    option("--token", default="", metavar="TEXT", help="that token (default: a random one)"),
    WITH_HIDDEN,
    *SIZE,
    *FIXED,
    STORE,
)
def serve(options: Values) -> int:
    """Serve until it is interrupted."""
    token = options.token or ("" if is_loopback(options.host) else secrets.token_urlsafe(24))
    if not 0 <= options.port <= PORT_MAX:
        raise UsageError(f"--port {options.port}: give a number from 0 to {PORT_MAX}")
    where, showing = existing_store(options), _showing(options)

    @attrs.define
    class LiveServer(AppServer):
        extra: ClassVar[str] = "serve"

        def make_app(self) -> Any:
            from timeline.report import live_app  # needs the extra

            return live_app(where, showing=showing, token=token or None)

    server = LiveServer(host=options.host, port=options.port)
    try:
        server.listen()
    except OSError as error:
        raise UsageError(f"--host {options.host} --port {options.port}: {error}") from error
    say(f"{server.url}/{f'?token={token}' if token else ''}  (Ctrl-C ends it)")
    server.run()
    return DONE
