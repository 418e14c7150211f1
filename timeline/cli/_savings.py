"""`foldline savings`: what the calls through a gateway cost, and what they would have cost without it."""

import argparse
from typing import TYPE_CHECKING, Any, Final

from timeline.cli._console import DONE, print_json, say, screen, when
from timeline.cli._store import looked_at, store_option
from timeline.cli._visible import line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from blocks import TimelineId, UsageRecorded
    from timeline.report._savings import Savings

NAME = "savings"
HELP = "add up what the calls of `wrap` and `proxy` cost, and would have cost without them"
DAY: Final = "%Y-%m-%d"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    store_option(parser)
    parser.add_argument(
        "--by", choices=("day", "conversation"), help="a row for each day or each conversation, too"
    )


def run(options: argparse.Namespace) -> int:
    """Print a row for each day or conversation, if asked for, and the sum."""
    from timeline.report._savings import accounts, conversation_of

    group: Callable[[TimelineId, UsageRecorded], str]
    group = _day if options.by == "day" else conversation_of
    with looked_at(options) as store:
        total, parts = accounts(store, group)
    if options.by == "day":
        parts = dict(sorted(parts.items()))
    if options.json:
        rows = {name: part.json() for name, part in parts.items()}
        print_json({"total": total.json(), **({"by": rows} if options.by else {})})
        return DONE
    if options.by and parts:
        _tell(options.by, parts)
    for text in total.lines() if total.requests else ("no calls through a gateway yet",):
        say(line(text))
    return DONE


def _day(_: "TimelineId", usage: "UsageRecorded") -> str:
    return when(usage.bill.sent_at if usage.bill else usage.at, DAY)


def _tell(by: str, parts: "Mapping[str, Savings]") -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    right: dict[str, Any] = {"justify": "right", "no_wrap": True}
    table.add_column(by, overflow="fold")
    for heading in ("calls", "paid", "sending everything"):
        table.add_column(heading, **right)
    table.add_column("", overflow="fold")
    for name, part in parts.items():
        known = (f"${part.paid:.4f}", f"${part.full:.4f}", part.verdict()) if part.calls else ()
        table.add_row(line(name), f"{part.requests:,}", *known)
    console = screen()
    console.print(table)
    console.print()
