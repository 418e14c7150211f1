"""`foldline show`: list the blocks of a timeline with their states, or print one block."""

import argparse
import sys
from typing import TYPE_CHECKING

import attrs

from timeline.cli._console import DONE, UsageError, plural, print_json, screen, when
from timeline.cli._curve import short
from timeline.cli._pager import paged
from timeline.cli._rows import Row, Rows, chosen_rows, filter_options
from timeline.cli._store import hidden_option, log_of, looked_at, opened, store_option
from timeline.cli._visible import line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from blocks import Block, Recorded
    from persistence import EventStore

NAME = "show"
HELP = "list the blocks of a timeline with their states, or print one block in full"
EXAMPLES = """\
examples:
  foldline show my-session --tail 20
  foldline show my-session --kind result --state folded
  foldline show my-session v57                     block v57 in full
On a terminal a long table goes through a pager; PAGER=cat turns it off.
"""
STYLES = {"visible": "green", "hidden": "yellow", "folded": "dim", "carried": "cyan"}
NARROW_COLUMNS, WIDE_COLUMNS = 110, 160
"""The screen widths from which on time and path of a block are shown, and from which on long paths."""
PATH_COLUMNS, PATH_COLUMNS_WIDE = 28, 46


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = EXAMPLES
    parser.add_argument("id", metavar="ID", help="the timeline")
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="print this block in full; v57 is the block of version 57",
    )
    parser.add_argument(
        "--at", type=int, metavar="VERSION", help="show the timeline as it was at this version"
    )
    parser.add_argument(
        "--follow", action="store_true", help="keep printing new blocks until interrupted"
    )
    filter_options(parser)
    hidden_option(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print a row for each block, oldest first; or the block at a path."""
    from blocks import TimelineId
    from timeline.engine._hiding import without_hidden
    from timeline.replay import places

    _check(options)
    with opened(options) if options.follow else looked_at(options) as store:
        events = log_of(store, options.id)
        if options.follow:
            return _follow(options, store, events)
        if options.path:
            from timeline import Timeline

            block = Timeline.open(options.id, store=store).read(options.path)
            return _show_one(options, _as_shown(block, events, options))
        last = _version(options.at, store.head(TimelineId(options.id)))
        paths = _paths_left(store, options.id, events)
    shown = events if options.hidden else without_hidden(events)
    shown = [each for each in shown if each[0] <= last]
    rows = list(Rows.new(paths).of(shown, places(shown)))
    chosen = chosen_rows(rows, options)
    if options.json:
        print_json([attrs.asdict(row) for row in chosen])
    else:
        _tell(options.id, rows, chosen)
    return DONE


def _check(options: argparse.Namespace) -> None:
    if options.follow and (options.path or options.at is not None):
        raise UsageError("--follow shows new blocks: give it neither a PATH nor --at")
    filters = [name for name in ("kind", "turn", "state", "tail") if getattr(options, name)]
    if filters and (options.follow or options.path):
        what = "--follow" if options.follow else "a PATH"
        raise UsageError(f"--{filters[0]} cannot be used with {what}")


def _tell(name: str, rows: "Sequence[Row]", chosen: "Sequence[Row]") -> None:
    """Print the timeline's name and size, the table, and how to print one block."""
    from rich.text import Text

    tokens = sum(row.tokens for row in rows)
    held = f"{plural(len(rows), 'block')}, about {short(tokens)} tokens"
    left = "" if len(chosen) == len(rows) else f"; {plural(len(chosen), 'block')} shown"
    with paged() as console:
        title = Text(line(name), style="bold")
        console.print(title.append(f"  {held}{left}", style="not bold dim"))
        console.print()
        console.print(_table(chosen, console.width))
        console.print()
        console.print(f"one block in full: foldline show {name} vN (N: its version)", style="dim")


def _follow(options: argparse.Namespace, store: "EventStore", events: "Sequence[Recorded]") -> int:
    """Print the blocks so far, then each new one as it arrives; in JSON, one per line."""
    from timeline import Timeline
    from timeline.engine._hiding import without_hidden
    from timeline.replay import places

    shown, rows = events if options.hidden else without_hidden(events), Rows.new()
    show = _print_lines if options.json else _print_table
    show([*rows.of(shown, places(events))])
    show = _print_lines if options.json else _print_more
    with Timeline.open(options.id, store=store).follow(after=len(events)) as comes:
        for recorded in comes:
            show([*rows.of([recorded], {})])
    return DONE


def _print_lines(rows: "Sequence[Row]") -> None:
    for row in rows:
        print_json(attrs.asdict(row))
    sys.stdout.flush()


def _print_table(rows: "Sequence[Row]") -> None:
    console = screen()
    console.print(_table(rows, console.width))
    sys.stdout.flush()


def _print_more(rows: "Sequence[Row]") -> None:
    """Print rows below a table that was printed before."""
    if rows:
        console = screen()
        table = _table(rows, console.width)
        table.show_header = False
        console.print(table)
        sys.stdout.flush()


def _as_shown(block: "Block", events: "Sequence[Recorded]", options: argparse.Namespace) -> "Block":
    """The block; if it was hidden on request, the placeholder that replaces it."""
    from blocks import withheld_after
    from render import stand_in

    withheld = {} if options.hidden else withheld_after(events)
    return stand_in(block, withheld[block.id].replacement) if block.id in withheld else block


def _show_one(options: argparse.Namespace, block: "Block") -> int:
    """Print the block's text unchanged, or with `--json` all its fields."""
    from blocks import encode_block, text_of

    fields = encode_block(block).decode()
    sys.stdout.write((fields if options.json else text_of(block) or fields).rstrip("\n") + "\n")
    return DONE


def _version(at: int | None, last: int) -> int:
    from blocks import MisuseError

    if at is not None and not 0 <= at <= last:
        raise MisuseError(f"--at {at}: the versions of this timeline are 0 to {last}")
    return last if at is None else at


def _paths_left(
    store: "EventStore", name: str, events: "Sequence[Recorded]"
) -> "Mapping[int, str] | None":
    """The paths in the window by version, if the beginning of the log was forgotten; otherwise None.

    Paths of earlier blocks cannot be computed from the events that are left.
    """
    from timeline import Timeline

    if not events or events[0][0] == 1:
        return None
    with Timeline.open(name, store=store) as timeline:
        return {entry.version: entry.path for entry in timeline.view.entries}


def _table(rows: "Sequence[Row]", width: int) -> "Table":
    """The table; texts are cut, and times and paths left out, to fit the width."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    has_paths = width >= NARROW_COLUMNS
    path_columns = PATH_COLUMNS_WIDE if width >= WIDE_COLUMNS else PATH_COLUMNS
    columns = {"version": 7, "turn": 5, "kind": 10, "state": 7, "~tokens": 7}
    if has_paths:
        columns = {"version": 7, "time": 8, "path": path_columns, **columns}
        del columns["turn"]
    rest = max(width - sum(columns.values()) - 2 * len(columns), 8)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name, size in {**columns, "text": rest}.items():
        right = name in {"version", "~tokens"}
        table.add_column(
            name,
            width=size,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if right else "left",
        )
    for row in rows:
        where = (when(row.at, "%H:%M:%S"), _shortened(line(row.path), path_columns))
        table.add_row(
            f"v{row.version}",
            *(where if has_paths else (row.turn,)),
            row.kind.rpartition(".")[2],
            Text(row.state, style=STYLES[row.state]),
            f"{row.tokens:,}",
            Text(line(row.text), style="dim" if row.state == "folded" else ""),
        )
    return table


def _shortened(path: str, columns: int) -> str:
    """The path with its middle replaced by `…`, to fit the columns."""
    if len(path) <= columns:
        return path
    tail = columns // 3
    return f"{path[: columns - tail - 1]}…{path[-tail:]}"
