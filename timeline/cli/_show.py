"""`foldline show`: the blocks of a timeline, and where each of them is now; or what one says."""

import argparse
import sys
from typing import TYPE_CHECKING

import attrs

from timeline.cli._console import DONE, UsageError, print_json, screen, when
from timeline.cli._store import hidden_option, log_of, opened, store_option
from timeline.cli._visible import line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.table import Table

    from blocks import Block, Naming, Recorded
    from persistence import EventStore
    from render import TokenCounter

NAME = "show"
HELP = "show the blocks of a timeline, and where each of them is"
STYLES = {"visible": "green", "hidden": "yellow", "folded": "dim", "carried": "cyan"}
PATH_COLUMNS, PATH_COLUMNS_WIDE, WORDS = 26, 46, 160
WIDE_COLUMNS = 120
"""From this width on there is room for the kind of a block, which its path tells too."""


@attrs.frozen(kw_only=True)
class Row:
    """One block."""

    version: int
    at: float
    turn: str
    path: str
    kind: str
    state: str
    tokens: int
    """Estimated."""
    text: str


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("id", metavar="ID", help="the timeline")
    parser.add_argument("path", nargs="?", metavar="PATH", help="only this block, all that it says")
    parser.add_argument("--at", type=int, metavar="VERSION", help="as it was at this version")
    parser.add_argument(
        "--follow", action="store_true", help="go on with what comes, until it is interrupted"
    )
    hidden_option(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """A row for each block, oldest first; or the block at a path."""
    from blocks import TimelineId
    from timeline.engine._sharing import without_hidden
    from timeline.replay import places

    if options.follow and (options.path or options.at is not None):
        raise UsageError("--follow shows what comes: give it neither a PATH nor --at")
    with opened(options) as store:
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
    rows = list(_Rows.new(paths).of(shown, places(shown)))
    if options.json:
        print_json([attrs.asdict(row) for row in rows])
    else:
        _print_table(rows)
    return DONE


def _follow(options: argparse.Namespace, store: "EventStore", events: "Sequence[Recorded]") -> int:
    """What there is, then each block as it comes; in JSON, a line each."""
    from timeline import Timeline
    from timeline.engine._sharing import without_hidden
    from timeline.replay import places

    shown, rows = events if options.hidden else without_hidden(events), _Rows.new()
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
    """Rows below a table that was printed before."""
    if rows:
        console = screen()
        table = _table(rows, console.width)
        table.show_header = False
        console.print(table)
        sys.stdout.flush()


def _as_shown(block: "Block", events: "Sequence[Recorded]", options: argparse.Namespace) -> "Block":
    """The block, or what stands for it where somebody asked for it to be hidden."""
    from render import stand_in
    from timeline.engine._sharing import withheld_in

    withheld = {} if options.hidden else withheld_in(events)
    return stand_in(block, withheld[block.id]) if block.id in withheld else block


def _show_one(options: argparse.Namespace, block: "Block") -> int:
    """Its text as it is, or all its fields."""
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
    """The paths in the window, where the beginning of the log is forgotten: counted from there on, the
    others would be wrong."""
    from timeline import Timeline

    if not events or events[0][0] == 1:
        return None
    with Timeline.open(name, store=store) as timeline:
        return {entry.version: entry.path for entry in timeline.view.entries}


@attrs.frozen
class _Rows:
    """Makes rows of a log, piece by piece."""

    naming: "Naming"
    counter: "TokenCounter"
    paths: "Mapping[int, str] | None" = None
    """Where the beginning of the log is forgotten: those that are known all the same."""

    @classmethod
    def new(cls, paths: "Mapping[int, str] | None" = None) -> "_Rows":
        from blocks import Naming
        from timeline import model_named
        from timeline.tokens import counter_for

        return cls(Naming(), counter_for("estimate", model_named("")), paths)

    def of(self, events: "Sequence[Recorded]", states: "Mapping[int, str]") -> "Iterator[Row]":
        """A row for each block; what is not in `states` is visible."""
        from blocks import BlockAppended, tag_of, text_of

        for version, event in events:
            if not isinstance(event, BlockAppended):
                continue
            block, text = event.block, text_of(event.block)
            yield Row(
                version=version,
                at=event.at,
                turn=block.turn,
                path=self._path(block, version),
                kind=tag_of(block),
                state=states.get(version, "visible"),
                tokens=self.counter.count(text),
                text=" ".join(text[: 4 * WORDS].split())[:WORDS],
            )

    def _path(self, block: "Block", version: int) -> str:
        from blocks import path_at

        path = self.naming.path(block, version)
        return path if self.paths is None else self.paths.get(version) or path_at(block, version)


def _table(rows: "Sequence[Row]", width: int) -> "Table":
    """As much of paths and texts as the width allows; beginnings and ends of paths tell most."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    is_wide = width >= WIDE_COLUMNS
    path_columns = PATH_COLUMNS_WIDE if is_wide else PATH_COLUMNS
    columns = {"version": 7, "time": 8, "path": path_columns, "state": 7, "~tokens": 7}
    if is_wide:
        columns = {"version": 7, "time": 8, "turn": 6, "kind": 20, **columns}
    rest = max(width - sum(columns.values()) - 2 * len(columns) - 1, 8)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for name, size in {**columns, "text": rest}.items():
        table.add_column(name, width=size, no_wrap=True, overflow="ellipsis")
    for index in (0, len(columns) - 1):
        table.columns[index].justify = "right"
    for row in rows:
        table.add_row(
            str(row.version),
            when(row.at, "%H:%M:%S"),
            *((row.turn, row.kind) if is_wide else ()),
            _shortened(line(row.path), path_columns),
            Text(row.state, style=STYLES[row.state]),
            f"{row.tokens:,}",
            Text(line(row.text), style="dim" if row.state == "folded" else ""),
        )
    return table


def _shortened(path: str, columns: int) -> str:
    """The path without its middle."""
    if len(path) <= columns:
        return path
    tail = columns // 3
    return f"{path[: columns - tail - 1]}…{path[-tail:]}"
