"""`foldline search`: find blocks by their text, also those that are no longer in the prompt."""

import argparse
from typing import TYPE_CHECKING

import attrs

from timeline.cli._console import DONE, complain, plural, print_json, screen, when
from timeline.cli._store import checked_name, forgotten_of, hidden_option, looked_at, store_option
from timeline.cli._visible import line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from persistence import Hit

NAME = "search"
HELP = "find blocks by their text"
LIMIT = 20
MATCH = "bold yellow"
TABLE_COLUMNS = 110


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "query",
        nargs="+",
        metavar="QUERY",
        help="words that must all occur; or, in quotes, '\"a phrase\" -without type:KIND turn:ID'",
    )
    parser.add_argument("--timeline", metavar="ID", help="search only this timeline")
    parser.add_argument(
        "--limit",
        type=int,
        default=LIMIT,
        metavar="N",
        help="most hits to show (default: %(default)s)",
    )
    hidden_option(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the hits, best first."""
    from blocks import TimelineId
    from persistence import search_blocks

    name = TimelineId(options.timeline) if options.timeline else None
    query = " ".join(options.query)
    with looked_at(options) as store:
        if name:
            checked_name(store, name)
        for each in [name] if name else store.trimmed():
            forgotten_of(store, each)
        count = options.limit + min(options.limit, 1)
        found = search_blocks(store, query, name, count, hidden=options.hidden)
    hits = found[: options.limit]
    if options.json:
        print_json([attrs.asdict(hit) for hit in hits])
    else:
        _tell(query, hits)
    if len(found) > options.limit:
        complain(f"more blocks match; --limit {2 * options.limit} shows more")
    return DONE


def _tell(query: str, hits: "Sequence[Hit]") -> None:
    """Print the hits with full paths, which can be copied; a narrow screen gets no table."""
    console = screen()
    if not hits:
        console.print(f"nothing matches {query!r}")
        return
    if console.width >= TABLE_COLUMNS:
        console.print(_table(hits))
    else:
        for hit in hits:
            _tell_below(hit, console)
    console.print(plural(len(hits), "hit"), style="dim")


def _table(hits: "Sequence[Hit]") -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("timeline", overflow="fold")
    table.add_column("when", no_wrap=True)
    table.add_column("path and text", overflow="fold", ratio=1)
    for hit in hits:
        found = Text(line(hit.path), style="cyan") + Text("\n") + _marked(hit)
        table.add_row(hit.timeline, when(hit.at), found)
    return table


def _tell_below(hit: "Hit", console: "Console") -> None:
    from rich.text import Text

    console.print(Text(line(f"{hit.timeline}  {when(hit.at)}"), style="bold"), overflow="fold")
    console.print(Text(f"  {line(hit.path)}", style="cyan"), overflow="fold")
    console.print(Text("  ") + _marked(hit), overflow="fold")
    console.print()


def _marked(hit: "Hit") -> "Text":
    """The snippet on one line, with its matches highlighted."""
    from rich.text import Text

    text = Text("".join(letter if letter.isprintable() else " " for letter in hit.snippet))
    for start, end in hit.matches:
        text.stylize(MATCH, start, end)
    return text
