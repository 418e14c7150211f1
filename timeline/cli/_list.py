"""`foldline list`: the timelines of a store."""

import argparse
from typing import TYPE_CHECKING

from timeline.cli._console import DONE, print_json, screen, when
from timeline.cli._store import opened, store_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from persistence import TimelineInfo

NAME = "list"
HELP = "list the timelines of a store"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """A row each, oldest first."""
    import attrs

    with opened(options) as store:
        found = store.list()
    if options.json:
        print_json([attrs.asdict(info) for info in found])
    else:
        _tell(found)
    return DONE


def _tell(found: "Sequence[TimelineInfo]") -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("timeline", overflow="fold")
    table.add_column("events", justify="right", no_wrap=True)
    table.add_column("began", no_wrap=True)
    table.add_column("last event", no_wrap=True)
    for info in found:
        table.add_row(info.id, f"{info.version:,}", when(info.created_at), when(info.updated_at))
    screen().print(table if found else "no timelines yet")
