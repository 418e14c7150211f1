"""`foldline list`: list the timelines of a store."""

import argparse
from typing import TYPE_CHECKING, Any, Final

import attrs

from timeline.cli._console import (
    DONE,
    UsageError,
    plural,
    print_json,
    progress_bar,
    say,
    screen,
    when,
)
from timeline.cli._curve import short
from timeline.cli._rows import WORDS
from timeline.cli._store import looked_at, store_option
from timeline.cli._visible import line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from blocks import TimelineId
    from persistence import EventStore, TimelineInfo
    from timeline.engine._gist import Gist

NAME = "list"
HELP = "list the timelines of a store: first prompt, model and size of each"
SHOWN: Final = 25
"""The default of `--limit`, except with `--json`."""
TABLE_MAX: Final = 500
"""The most rows of a table: laying out more takes longer than reading them from the store."""
ONE_LINE_COLUMNS: Final = 130
"""On a narrower screen the model and the prompt take a second line."""
HEADINGS: Final = ("timeline", "last event", "events", "tokens", "model", "first prompt")
COLUMNS: Final = "{:<{width}}  {:<16}  {:>9}  {:>6}  {:<20}  {}"
NAME_COLUMNS: Final = 40
MODEL_COLUMNS: Final = 24
MINUTE: Final = "%Y-%m-%d %H:%M"
UNKNOWN: Final = "–"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    store_option(parser)
    add = parser.add_argument
    add("--limit", type=int, metavar="N", help=f"only the newest N (default: {SHOWN}; --json: all)")
    add("--all", action="store_true", help="list all timelines")
    add("--brief", action="store_true", help="leave out prompt, model and tokens, which is faster")


@attrs.frozen
class _Listed:
    """A timeline and the values of its row."""

    info: "TimelineInfo"
    first: int
    """The version of the oldest event that the store still has."""
    gist: "Gist"


def run(options: argparse.Namespace) -> int:
    """Print a row for each timeline, oldest first."""
    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit}: give a number from 1 on")
    with looked_at(options) as store:
        found = store.list()
        left_out = max(0, len(found) - (_limit(options) or len(found)))
        first = {name: kept.forgotten + 1 for name, kept in store.trimmed().items()}
        listed = _listed(store, found[left_out:], first, options)
    if options.json:
        print_json([_json(each) for each in listed])
    else:
        _tell(listed)
        if left_out:
            say(f"{plural(left_out, 'older timeline')} not shown; --all shows all")
    return DONE


def _limit(options: argparse.Namespace) -> int | None:
    """The number of rows; None for all."""
    if options.limit is not None:
        return int(options.limit)
    return None if options.all or options.json else SHOWN


def _listed(
    store: "EventStore",
    found: "Sequence[TimelineInfo]",
    first: "Mapping[TimelineId, int]",
    options: argparse.Namespace,
) -> list[_Listed]:
    from timeline.engine._gist import Gist

    known = _gists(store, () if options.brief else [info.id for info in found])
    return [_Listed(info, first.get(info.id, 1), known.get(info.id) or Gist()) for info in found]


def _gists(store: "EventStore", names: "Sequence[TimelineId]") -> "Mapping[TimelineId, Gist]":
    from timeline.engine._gist import gists

    known: dict[TimelineId, Gist] = {}
    with progress_bar("reading", len(names)) as progress:
        for name, gist in gists(store, names):
            known[name] = gist
            if progress:
                progress(len(known), len(names))
    return known


def _json(listed: _Listed) -> dict[str, Any]:
    prompt = listed.gist.prompt and listed.gist.prompt[:WORDS]
    about = {**attrs.asdict(listed.gist), "prompt": prompt}
    return {**attrs.asdict(listed.info), "first": listed.first, **about}


def _tell(listed: "Sequence[_Listed]") -> None:
    rows = [_row(each) for each in listed]
    if len(rows) > TABLE_MAX:
        _tell_plainly(rows)
        return
    console = screen()
    if not rows:
        console.print("no timelines yet")
    elif console.width >= ONE_LINE_COLUMNS:
        console.print(_wide(rows, console.width))
    else:
        _narrow(rows, console)


def _row(listed: _Listed) -> tuple[str, ...]:
    info, gist = listed.info, listed.gist
    events = f"{info.version:,}" if listed.first == 1 else f"{listed.first:,} to {info.version:,}"
    tokens = UNKNOWN if gist.tokens is None else short(gist.tokens)
    return (
        line(info.id),
        when(info.updated_at, MINUTE),
        events,
        tokens,
        line(gist.model or UNKNOWN),
        line((gist.prompt or UNKNOWN)[:WORDS]),
    )


def _wide(rows: "Sequence[Sequence[str]]", columns: int) -> "Table":
    from rich import box
    from rich.table import Table

    widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
    widths[0] = min(widths[0], NAME_COLUMNS)
    widths[4] = min(widths[4], MODEL_COLUMNS)
    widths[5] = min(widths[5], max(columns - sum(widths[:5]) - 2 * len(HEADINGS), 8))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for heading, width in zip(HEADINGS, widths, strict=True):
        right = heading in {"events", "tokens"}
        table.add_column(
            heading,
            width=width,
            overflow="fold" if heading == HEADINGS[0] else "ellipsis",
            no_wrap=heading != HEADINGS[0],
            justify="right" if right else "left",
        )
    for row in rows:
        table.add_row(*row)
    return table


def _narrow(rows: "Sequence[Sequence[str]]", console: "Console") -> None:
    """Print two lines for each timeline; the second has its model and prompt."""
    from rich.text import Text

    numbers = [HEADINGS[:4], *(row[:4] for row in rows)]
    widths = [max(len(row[column]) for row in numbers) for column in range(4)]
    room = max(console.width - sum(widths[1:]) - 6, 8)
    name_columns = min(widths[0], room)
    for index, (name, time, events, tokens, *about) in enumerate((HEADINGS, *rows)):
        counts = f"{time:<{widths[1]}}  {events:>{widths[2]}}  {tokens:>{widths[3]}}"
        first = Text(f"{name:<{name_columns}}", style="bold", overflow="fold")
        if len(name) > name_columns:  # never shortened, so that it can be copied
            first.append(f"\n{'':<{name_columns}}")
        console.print(first.append(f"  {counts}", style="" if index else "bold"))
        said = ": ".join(part for part in about if part != UNKNOWN)
        if index and said:
            about_it = Text(f"  {said}", style="dim")
            console.print(about_it, no_wrap=True, overflow="ellipsis")


def _tell_plainly(rows: "Sequence[Sequence[str]]") -> None:
    width = min(40, max(len(name) for name, *_ in rows))
    for row in (HEADINGS, *rows):
        say(COLUMNS.format(*row, width=width).rstrip())
