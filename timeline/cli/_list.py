"""`foldline list`: the timelines of a store."""

import argparse
from typing import TYPE_CHECKING, Final

from timeline.cli._console import DONE, UsageError, plural, print_json, say, screen, when
from timeline.cli._store import opened, store_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from blocks import TimelineId
    from persistence import Retains, TimelineInfo

NAME = "list"
HELP = "list the timelines of a store"
TABLE_MAX: Final = 500
"""Rows of a table; to lay out more would take longer than to read them from the store."""
HEADINGS: Final = ("timeline", "events", "began", "last event")
COLUMNS: Final = "{:<{width}}  {:>9}  {:<19}  {:<19}"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    store_option(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="the newest N only")


def run(options: argparse.Namespace) -> int:
    """A row each, oldest first."""
    import attrs

    from persistence import Retains

    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit}: give a number from 1 on")
    with opened(options) as store:
        found = store.list()
        first = _first_left(store) if isinstance(store, Retains) else {}
    left_out = max(0, len(found) - (options.limit or len(found)))
    found = found[left_out:]
    if options.json:
        print_json([{**attrs.asdict(info), "first": first.get(info.id, 1)} for info in found])
    else:
        _tell(found, first)
        if left_out:
            say(f"{plural(left_out, 'older timeline')} not shown")
    return DONE


def _first_left(store: "Retains") -> "dict[TimelineId, int]":
    return {name: kept.forgotten + 1 for name, kept in store.trimmed().items()}


def _tell(found: "Sequence[TimelineInfo]", first: "Mapping[TimelineId, int]") -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    name, *others = HEADINGS
    table.add_column(name, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right" if heading == "events" else "left", no_wrap=True)
    rows = [_row(info, first.get(info.id, 1)) for info in found]
    if len(rows) > TABLE_MAX:
        _tell_plainly(rows)
        return
    for row in rows:
        table.add_row(*row)
    screen().print(table if found else "no timelines yet")


def _row(info: "TimelineInfo", first: int) -> tuple[str, ...]:
    events = f"{info.version:,}" if first == 1 else f"{first:,} to {info.version:,}"
    return info.id, events, when(info.created_at), when(info.updated_at)


def _tell_plainly(rows: "Sequence[Sequence[str]]") -> None:
    width = min(40, max(len(name) for name, *_ in rows))
    for row in (HEADINGS, *rows):
        say(COLUMNS.format(*row, width=width).rstrip())
