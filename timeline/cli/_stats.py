"""`foldline stats`: count the events, blocks, tools and tokens of a timeline."""

import argparse
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from timeline.cli._console import DONE, print_json, screen
from timeline.cli._store import log_of, looked_at, store_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blocks import Recorded
    from timeline import Quality

NAME = "stats"
HELP = "count the events, blocks, tools and tokens of a timeline"
SIGNALS: Final[dict[Literal["asked_again", "explicit_read", "rehydrated"], str]] = {
    "asked_again": "asked again",
    "explicit_read": "read back",
    "rehydrated": "brought back by itself",
}
"""The signals that too much was folded, and their labels; see the page on recovery."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("id", metavar="ID", help="the timeline")
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print counts of events, blocks and tools, and the recorded usage."""
    with looked_at(options) as store:
        events = log_of(store, options.id)
    stats = {"timeline": options.id, **_stats(events)}
    if options.json:
        print_json(stats)
    else:
        _tell(stats)
    return DONE


def _stats(events: "Sequence[Recorded]") -> dict[str, Any]:
    from blocks import BlockAppended, ToolCall, UsageRecorded, kind_of, tag_of
    from timeline import quality_of
    from timeline.replay import places

    blocks = [event.block for _, event in events if isinstance(event, BlockAppended)]
    usage = [event for _, event in events if isinstance(event, UsageRecorded)]
    return {
        "turns": len({block.turn for block in blocks}),
        "events": _counted(kind_of(event) for _, event in events),
        "blocks": _counted(tag_of(block) for block in blocks),
        "states": _counted(places(events).values()),
        "tools": _counted(block.name for block in blocks if isinstance(block, ToolCall)),
        "usage": {
            "calls": len(usage),
            "uncached": sum(event.uncached for event in usage),
            "cache_read": sum(event.cache_read for event in usage),
            "cache_write": sum(event.cache_write for event in usage),
            "output": sum(event.output for event in usage),
        },
        "quality": _quality(quality_of(events)),
    }


def _quality(quality: "Quality") -> dict[str, Any]:
    """The number of signals of each kind, in total and per compaction."""
    totals = quality.totals
    return {
        "compactions": quality.compactions,
        **{
            signal: {"count": totals[signal], "per_compaction": quality.per_compaction.get(signal)}
            for signal in SIGNALS
        },
        "task_end": {"count": totals["task_end"], "completed": quality.completed},
    }


def _counted(names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, most frequent first."""
    return dict(Counter(names).most_common())


def _tell(stats: dict[str, Any]) -> None:
    from rich.table import Table

    console = screen()
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    table.add_column(justify="right", style="bold")
    table.add_row("turns", "", f"{stats['turns']:,}")
    sections = ["events", "blocks", "states", "tools", *["usage"] * bool(stats["usage"]["calls"])]
    for section in sections:
        for index, (name, count) in enumerate(stats[section].items()):
            table.add_row("" if index else section, name, f"{count:,}")
    for index, (name, value) in enumerate(_signals(stats["quality"])):
        table.add_row("" if index else "quality", name, value)
    console.print(stats["timeline"], style="bold")
    console.print(table)


def _signals(quality: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """A label and a value for each signal."""
    yield "compactions", f"{quality['compactions']:,}"
    for signal, meaning in SIGNALS.items():
        found = quality[signal]
        rate = found["per_compaction"]
        each = "" if rate is None else f" ({rate:.2f} per compaction)"
        yield meaning + each, f"{found['count']:,}"
    ends = quality["task_end"]
    yield "turns that ended in an answer", f"{ends['completed']:,} of {ends['count']:,}"
