"""`foldline report`: write a timeline as one HTML file."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from timeline.cli._console import answer
from timeline.cli._plan import size_options, sized
from timeline.cli._store import fixed_from, fixed_options, log_of, looked_at, store_option

if TYPE_CHECKING:
    from timeline.report import Showing

NAME = "report"
HELP = "write a timeline as one HTML file that opens offline"
WITH_HIDDEN = "also show blocks hidden on request, with their original text"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add = parser.add_argument
    add("id", metavar="ID", help="the timeline")
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="the file to write (default: ID.html in this folder)",
    )
    add("--with-hidden", action="store_true", help=WITH_HIDDEN)
    size_options(parser)
    fixed_options(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file and print its path."""
    from timeline.report import report_html, reported_log

    how = showing(options)
    with looked_at(options) as store:
        log = log_of(store, options.id)
        prompting = how.prompting(options.id, store, log)
    facts = how.facts(options.id, prompting)
    reported = reported_log(log, prompting, facts, hidden=how.hidden)
    path = options.output or Path(f"{file_name(options.id)}.html")
    size = write_report(path, report_html(options.id, [reported]))
    return answer(options, {"report": str(path), "bytes": size}, f"report: {path}")


def showing(options: argparse.Namespace) -> "Showing":
    """How to show a timeline, according to the options."""
    from timeline.report import Showing

    system, tools = fixed_from(options)
    return Showing(options=sized(options), system=system, tools=tools, hidden=options.with_hidden)


def file_name(name: str) -> str:
    """A timeline's name with only characters that a file name may have."""
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "timeline"


def write_report(path: Path, page: bytes) -> int:
    """Write the file atomically; returns its size in bytes."""
    from timeline.replay import atomic_write

    with atomic_write(path) as file:
        file.write(page)
    return len(page)
