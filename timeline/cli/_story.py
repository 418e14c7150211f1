"""What a replay says to people: a story for one, a table to compare several."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from timeline.cli._comparison import dollars, tell_comparison, two_digits
from timeline.cli._console import plural, screen
from timeline.cli._curve import curve, short
from timeline.cli._visible import line

if TYPE_CHECKING:
    from rich.console import Console

    from timeline.replay import ReplayResult

CURVE_COLUMNS = 100
NOTICES_SHOWN = 5


def tell(results: "Sequence[ReplayResult]") -> None:
    """What is a guess; then one result in full, or several side by side."""
    console = screen()
    for guess in dict.fromkeys(result.guess for result in results if result.guess):
        console.print(guess, style="bold")
    if len(results) == 1:
        _tell_one(results[0], console)
    elif results:
        tell_comparison(results, console)


def _tell_one(result: "ReplayResult", console: "Console") -> None:
    from rich.table import Table
    from rich.text import Text

    title = Text(line(result.session), style="bold")
    facts = f"{result.format}, {result.model}, policy {result.policy}, window {result.window:,}"
    console.print(title.append(f"  {line(facts)}", style="not bold dim"))
    console.print()
    if result.points:
        console.print(curve(result.points, result.window, min(console.width, CURVE_COLUMNS)))
        console.print()
    table = Table.grid(padding=(0, 2))
    for name, value, more in _lines(result):
        table.add_row(Text(name, style="dim"), Text(value, style="bold"), more)
    console.print(table)
    for notice in result.notices[:NOTICES_SHOWN]:
        console.print(f"note: {notice}", style="dim", overflow="ellipsis", no_wrap=True)
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
    folded = f"{result.folds:,} with a summary, {split}"
    yield "compactions", f"{result.compactions:,}", f"{folded}; {pruned}"
    if result.externalized:
        others = f"{result.cleared:,} cleared, {result.dropped:,} dropped"
        yield "externalized", f"{result.externalized:,}", f"to the artifact store; {others}"
    elif result.cleared or result.dropped:
        yield "cleared", f"{result.cleared:,}", f"{result.dropped:,} dropped"
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
    yield "cost", dollars(result.cost.total, result), _saved(result)
    if result.recall.far is not None:
        yield "recall", two_digits(result.recall.far), _recalled(result)
    if result.recall.quotes is not None:
        yield "quotes", two_digits(result.recall.quotes), "of the older lines that it repeated"
    if result.rules is not None:
        yield "rules", two_digits(result.rules), "of what the user wrote was there to the letter"
    yield "engine", f"{ms.p50:.1f} ms", f"a call; p99 {ms.p99:.0f} ms, at most {ms.max:.0f} ms"
    yield "log", f"{result.events:,}", f"events in {short(result.store_bytes)}B of DuckDB"
    yield "promises", *_promises(result)


def _over(result: "ReplayResult") -> str:
    over = result.over_window_calls
    return f"{plural(over, 'call')} over the window" if over else "never over the window"


def _saved(result: "ReplayResult") -> str:
    cost = result.cost
    written = f", {dollars(cost.summaries, result)} of it for summaries" if cost.summaries else ""
    everything = dollars(cost.full_history, result)
    return f"for prompts{written}; {everything} for sending everything ({cost.ratio:.0%})"


def _recalled(result: "ReplayResult") -> str:
    recall = result.recall
    return (
        f"of the older names that the agent used next; with their line {two_digits(recall.far_context)}, "
        f"with its neighbours {two_digits(recall.far_wide)}; {two_digits(recall.surroundings)} of what "
        f"stood around them; newer ones {two_digits(recall.near)}"
    )


def _promises(result: "ReplayResult") -> tuple[str, str]:
    if result.problems:
        return "broken", "; ".join(result.problems[:NOTICES_SHOWN])
    return "kept", "requests valid, all blocks accounted for, reopened equal"
