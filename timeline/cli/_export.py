"""`foldline export`: write a timeline as lines of JSON, which `import` and `replay` can read."""

import argparse
import sys
from functools import partial
from pathlib import Path

from timeline.cli._console import DONE, answer, plural
from timeline.cli._store import hidden_option, log_of, looked_at, pages, store_option

NAME = "export"
HELP = "write the log of a timeline as lines of JSON"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("id", metavar="ID", help="the timeline")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the file to write (default: standard output)"
    )
    hidden_option(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write a header, then every event as it is stored."""
    from blocks import TimelineId
    from persistence.sessions import export_lines
    from timeline.engine._hiding import without_hidden
    from timeline.replay import atomic_write

    with looked_at(options) as store:
        events = log_of(store, options.id)
        shown = events if options.hidden else without_hidden(events)
        read = partial(store.read_bytes, TimelineId(options.id))
        stored = pages(read, events[0][0] - 1) if shown is events else ()
    lines = export_lines(TimelineId(options.id), stored or shown)
    if options.out is None:
        sys.stdout.writelines(lines)
        return DONE
    with atomic_write(options.out) as file:
        file.writelines(line.encode() for line in lines)
    facts = {"timeline": options.id, "file": str(options.out), "events": len(events)}
    said = f"{options.id}: {plural(len(events), 'event')} in {options.out}"
    return answer(options, facts, said)
