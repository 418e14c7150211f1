"""`foldline report`: a timeline as one HTML file to look at."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timeline.cli._console import DONE, answer
from timeline.cli._plan import chosen, size_options
from timeline.cli._store import fixed_from, fixed_options, log_of, opened, store_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blocks import Recorded

NAME = "report"
HELP = "write a timeline as one HTML file that opens offline"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add = parser.add_argument
    add("id", metavar="ID", help="the timeline")
    add("--output", type=Path, metavar="FILE", help="where to (default: ID.html in this folder)")
    add(
        "--with-hidden",
        action="store_true",
        help="also what is hidden on request, as it was appended",
    )
    size_options(parser)
    fixed_options(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file, and say where it is."""
    from timeline import Timeline
    from timeline.report import Prompting, report_html, reported_log

    system, tools = fixed_from(options)
    with opened(options) as store:
        log = log_of(store, options.id)
        if not options.model:
            options.model = model_in(log)
        with Timeline.open(options.id, **chosen(options, store)) as timeline:
            settings = timeline.settings
    prompting = Prompting(settings=settings, system=system, tools=tools)
    facts: dict[str, Any] = {"name": options.id, "title": options.id, "timeline": options.id}
    facts["guess"] = "; ".join(settings.notices)
    reported = reported_log(log, prompting, facts, hidden=options.with_hidden)
    path = options.output or Path(f"{file_name(options.id)}.html")
    size = write_report(path, report_html(options.id, [reported]))
    return answer(options, {"report": str(path), "bytes": size}, f"report: {path}")


def model_in(log: "Sequence[Recorded]") -> str:
    """The model that answered last and is in the table; empty: there is none."""
    from blocks import UsageRecorded
    from timeline import model_named

    named = (event.model for _, event in reversed(log) if isinstance(event, UsageRecorded))
    return next((name for name in named if name and model_named(name).known), "")


def file_name(name: str) -> str:
    """A timeline's name as that of a file."""
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "timeline"


def write_report(path: Path, page: bytes) -> int:
    """Write it whole or not at all; its size in bytes."""
    from timeline.replay import atomic_write

    with atomic_write(path) as file:
        file.write(page)
    return len(page)
