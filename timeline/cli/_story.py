"""What a replay says to people: a story for one, a table to compare several."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from timeline.cli._console import plural, screen
from timeline.cli._curve import curve, short

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from timeline.replay import ReplayResult

CURVE_COLUMNS = 100
NOTICES_SHOWN = 5


def tell(results: "Sequence[ReplayResult]") -> None:
    """One result in full, or several side by side."""
    console = screen()
    if len(results) == 1:
        _tell_one(results[0], console)
    elif results:
        console.print(_comparison(results))


def _tell_one(result: "ReplayResult", console: "Console") -> None:
    from rich.table import Table
    from rich.text import Text

    title = Text(result.session, style="bold")
    facts = f"{result.format}, {result.model}, policy {result.policy}, window {result.window:,}"
    console.print(title.append(f"  {facts}", style="not bold dim"))
    console.print()
    if result.points:
        console.print(curve(result.points, result.window, min(console.width, CURVE_COLUMNS)))
        console.print()
    table = Table.grid(padding=(0, 2))
    for name, value, more in _lines(result):
        table.add_row(Text(name, style="dim"), Text(value, style="bold"), more)
    console.print(table)
    for notice in result.notices[:NOTICES_SHOWN]:
        console.print(Text(f"note: {notice}", style="dim"), overflow="ellipsis", no_wrap=True)
    if (left := len(result.notices) - NOTICES_SHOWN) > 0:
        console.print(Text(f"note: and {plural(left, 'more note')} (--json)", style="dim"))


def _lines(result: "ReplayResult") -> Iterator[tuple[str, str, str]]:
    """A name, the number that counts, and what belongs to it."""
    cover, cache, ms = result.coverage, result.cache, result.ms_per_call
    traffic = f"{result.tool_calls:,} tool calls, {result.tool_results:,} results"
    yield "calls", f"{result.calls:,}", f"in {plural(result.turns, 'turn')}; {traffic}"
    yield (
        "tokens a call",
        f"{result.tokens_mean:,}",
        f"on average, {result.tokens_max:,} at most ({result.counter}); {_over(result)}",
    )
    split = f"{result.split_turns} through a turn" if result.split_turns else "none through a turn"
    pruned = f"{plural(result.prunes, 'prune')}, {plural(result.clips, 'clip')}"
    yield "compactions", f"{result.compactions:,}", f"{split}; {pruned}"
    gone = f"{cover.folded:,} folded, {cover.carried:,} carried"
    yield (
        "blocks",
        f"{result.blocks:,}",
        f"{cover.visible:,} visible, {cover.hidden:,} hidden, {gone}",
    )
    share = cache.read / max(cache.read + cache.write + cache.uncached, 1)
    billed = (
        f"{short(cache.read)} read, {short(cache.write)} written, {short(cache.uncached)} neither"
    )
    busts = plural(result.warm_busts, "warm bust")
    yield "prompt cache", f"{share:.0%}", f"read; {billed}; {busts}"
    yield "cost", _dollars(result.cost.total), _saved(result)
    yield "engine", f"{ms.p50:.1f} ms", f"a call; p99 {ms.p99:.0f} ms, at most {ms.max:.0f} ms"
    yield "log", f"{result.events:,}", f"events in {short(result.store_bytes)}B of DuckDB"
    yield "promises", *_promises(result)


def _over(result: "ReplayResult") -> str:
    over = result.over_window_calls
    return f"{plural(over, 'call')} over the window" if over else "never over the window"


def _saved(result: "ReplayResult") -> str:
    cost = result.cost
    summaries = f", {_dollars(cost.summaries)} of it for summaries" if cost.summaries else ""
    return (
        f"for prompts{summaries}; {_dollars(cost.full_history)} for sending everything "
        f"({cost.ratio:.0%})"
    )


def _promises(result: "ReplayResult") -> tuple[str, str]:
    if result.problems:
        return "broken", "; ".join(result.problems[:NOTICES_SHOWN])
    return "kept", "requests valid, all blocks accounted for, reopened equal"


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.3f}"


def _comparison(results: "Sequence[ReplayResult]") -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True)
    table.add_column("session", no_wrap=True)
    table.add_column("policy", no_wrap=True)
    for name in ("calls", "folds", "mean", "max", "over", "read", "cost", "of full", "ms"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        cache = result.cache
        billed = max(cache.read + cache.write + cache.uncached, 1)
        table.add_row(
            result.session,
            result.policy,
            f"{result.calls:,}",
            f"{result.compactions:,}",
            short(result.tokens_mean),
            short(result.tokens_max),
            f"{result.over_window_calls:,}",
            f"{cache.read / billed:.0%}",
            _dollars(result.cost.total),
            f"{result.cost.ratio:.0%}",
            f"{result.ms_per_call.p50:.1f}",
        )
    return table
