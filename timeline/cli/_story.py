"""The printed result of a replay: a full account for one, a table to compare several."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from timeline.cli._comparison import dollars, tell_comparison, two_digits
from timeline.cli._console import plural, screen
from timeline.cli._curve import curve, short
from timeline.cli._notes import of_results
from timeline.cli._visible import line

if TYPE_CHECKING:
    from rich.console import Console

    from timeline.replay import Recall, ReplayResult

CURVE_COLUMNS = 100
NOTES_SHOWN = 5


def tell(results: "Sequence[ReplayResult]") -> None:
    """Print one result in full, or several side by side; with a warning if prices are a guess."""
    console = screen()
    if len(results) == 1:
        _tell_one(results[0], console)
    elif results:
        for guess in dict.fromkeys(result.guess for result in results if result.guess):
            console.print(guess, style="bold")
        tell_comparison(results, console)


def _tell_one(result: "ReplayResult", console: "Console") -> None:
    from rich.table import Table
    from rich.text import Text

    title = Text(line(result.session), style="bold")
    console.print(title.append(f"  {line(_recorded(result))}", style="not bold dim"))
    facts = f"replayed with policy {result.policy} in a window of {result.window:,} tokens"
    console.print(Text(line(f"{facts}, priced as {result.model}"), style="dim"))
    if result.guess:
        console.print(result.guess, style="bold")
    console.print()
    if result.points:
        console.print(curve(result.points, result.window, min(console.width, CURVE_COLUMNS)))
        console.print()
    table = Table.grid(padding=(0, 2))
    for name, value, more in _lines(result):
        table.add_row(Text(name, style="dim"), Text(value, style="bold"), more)
    console.print(table)
    _tell_notes(result, console)


def _recorded(result: "ReplayResult") -> str:
    model = f"with {result.recorded}" if result.recorded else "with a model that it does not name"
    return f"a {result.format} session, recorded {model}"


def _tell_notes(result: "ReplayResult", console: "Console") -> None:
    from rich.text import Text

    notes = list(of_results(result.notices))
    for note in notes[:NOTES_SHOWN]:
        console.print(f"note: {note}", style="dim")
    if (left := len(notes) - NOTES_SHOWN) > 0:
        console.print(Text(f"note: and {plural(left, 'more note')} (--json)", style="dim"))


def _lines(result: "ReplayResult") -> Iterator[tuple[str, str, str]]:
    """Lines of the result: a label, the main number, and details."""
    traffic = f"{result.tool_calls:,} tool calls, {result.tool_results:,} results"
    yield "model calls", f"{result.calls:,}", f"in {plural(result.turns, 'turn')}; {traffic}"
    yield (
        "tokens a call",
        f"{result.tokens_mean:,}",
        f"on average, {result.tokens_max:,} at most; {_over(result)}",
    )
    yield from _work(result)
    yield "blocks", f"{result.blocks:,}", _blocks(result)
    yield from _money(result)
    yield from _kept(result)
    ms = result.ms_per_call
    yield "time", f"{ms.p50:.1f} ms", f"per call in this engine; {ms.max:.0f} ms at most"
    yield "log", f"{result.events:,}", f"events, {short(result.store_bytes)}B as a DuckDB file"
    yield _promises(result)


def _over(result: "ReplayResult") -> str:
    over = result.over_window_calls
    return f"{plural(over, 'call')} over the window" if over else "never over the window"


def _work(result: "ReplayResult") -> Iterator[tuple[str, str, str]]:
    """Lines on what was done to stay inside the window."""
    split = f", {result.split_turns} of them inside a turn" if result.split_turns else ""
    wrote = f"{result.folds:,} wrote a summary{split}" if result.folds else "no summary was needed"
    yield "compactions", f"{result.compactions:,}", wrote
    if result.prunes or result.clips:
        done = _both(
            (result.prunes, f"expired results hidden {_times(result.prunes)}"),
            (result.clips, f"long results shortened {_times(result.clips)}"),
        )
        yield "between them", f"{result.prunes + result.clips:,}", done
    if moved := result.externalized + result.cleared + result.dropped:
        done = _both(
            (result.externalized, f"{result.externalized:,} into the artifact store"),
            (result.cleared, f"{result.cleared:,} emptied"),
            (result.dropped, f"{result.dropped:,} left out"),
        )
        yield "taken out", f"{moved:,}", f"large blocks: {done}; the log keeps them"


def _both(*parts: tuple[int, str]) -> str:
    return ", ".join(said for count, said in parts if count)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _blocks(result: "ReplayResult") -> str:
    cover = result.coverage
    return _both(
        (cover.visible, f"{cover.visible:,} unchanged in the last request"),
        (cover.hidden, f"{cover.hidden:,} shortened or hidden there"),
        (cover.folded, f"{cover.folded:,} folded into the summary"),
        (cover.carried, f"{cover.carried:,} carried over word for word"),
    )


def _money(result: "ReplayResult") -> Iterator[tuple[str, str, str]]:
    cache, cost = result.cache, result.cost
    share = cache.read / max(cache.read + cache.write + cache.uncached, 1)
    billed = f"{short(cache.read)} read, {short(cache.write)} written to it, {short(cache.uncached)} without it"
    busts = f"; {plural(result.warm_busts, 'call')} lost a cache that was still warm"
    yield (
        "prompt cache",
        f"{share:.0%}",
        f"of the prompt tokens read from it; {billed}{busts if result.warm_busts else ''}",
    )
    written = f", {dollars(cost.summaries, result)} of it for summaries" if cost.summaries else ""
    everything = dollars(cost.full_history, result)
    yield (
        "cost",
        dollars(cost.total, result),
        f"for prompts{written}; {cost.ratio:.0%} of sending everything, which costs {everything}",
    )


def _kept(result: "ReplayResult") -> Iterator[tuple[str, str, str]]:
    """Lines on how much the requests still had of what the agent used next."""
    recall = result.recall
    if recall.far is not None:
        yield "older names", two_digits(recall.far), _names(recall)
    if recall.quotes is not None:
        yield (
            "older lines",
            two_digits(recall.quotes),
            "of those that the agent repeated next were still in its request",
        )
    if result.rules is not None:
        yield (
            "user's words",
            two_digits(result.rules),
            "of the user's texts were in the request, word for word",
        )


def _names(recall: "Recall") -> str:
    lines = f"{two_digits(recall.far_context)} with the whole line around them"
    wide = f"{two_digits(recall.far_wide)} with the lines above and below"
    return f"of those that the agent used next were still in its request; {lines}, {wide}"


def _promises(result: "ReplayResult") -> tuple[str, str, str]:
    if result.problems:
        return "promises", "broken", "; ".join(result.problems[:NOTES_SHOWN])
    held = "requests valid, every block accounted for, the reopened log gives the same request"
    if over := result.over_window_calls:
        return "promises", "not all", f"{plural(over, 'request')} did not fit the window; {held}"
    return "promises", "kept", held
