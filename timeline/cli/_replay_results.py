"""The printed result of a replay: a full account with a curve for one; tables and a plot to compare several.

The curve shows tokens by call, in block characters an eighth of a cell high:

    60k ┤──────────────────────────────── window
        │                    ·    ▂▄▆█
        │            ·  ▂▄▆█ ▂▄▆█ ████
      0 ┤▁▂▃▄▅▆▇█▃▄▅▆▇██████ ████ ████
                 ▲          ▲

In the plot each policy is a letter, and each of its sessions a dot:

    far
    1.00 │            ·     B
         │      A  ·
         │  ·
    0.60 │C
         └────────────────────────
          0.35                0.60  cost
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from string import ascii_uppercase
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from timeline.billing import money, plural
from timeline.cli._console import number_columns, screen, wide_table
from timeline.cli._sessions import grouped_notices
from timeline.cli._terminal import line, short
from timeline.replay import Means, Point, ReplayResult, compared, means_of

CURVE_ROWS: Final = 10
NOTES_SHOWN: Final = 5


def tell(results: Sequence[ReplayResult]) -> None:
    """Print one result in full, or several side by side; with a warning if prices are a guess."""
    console = screen()
    if len(results) == 1:
        _tell_one(results[0], console)
    elif results:
        for each in results:
            if (bill := each.recorded_bill).calls:
                console.print(Text(line(f"{each.session}, {each.policy}: {bill.headline()}")))
        for guess in dict.fromkeys(result.guess for result in results if result.guess):
            console.print(guess, style="bold")
        _tell_several(results, console)


def _tell_one(result: ReplayResult, console: Console) -> None:
    bill = result.recorded_bill
    if bill.calls:
        console.print(Text(line(bill.headline()), style="bold"))
        console.print(Text("\n".join(map(line, (*bill.lines(), ""))), style="dim"))
    model = result.recorded or "a model that it does not name"
    origin = line(f"a {result.format} session, recorded with {model}")
    title = Text(line(result.session), style="bold")
    console.print(title.append(f"  {origin}", style="not bold dim"))
    facts = f"replayed with policy {result.policy} in a window of {result.window:,} tokens"
    if result.room < result.window:
        facts += f", {result.room:,} of them for what the log has"
    if result.capacity < result.room:
        facts += f", filled up to {result.capacity:,}"
    console.print(Text(line(f"{facts}, priced as {result.model}"), style="dim"))
    if not bill.calls:
        console.print(Text(line(bill.headline()), style="dim"))
    if result.guess:
        console.print(result.guess, style="bold")
    console.print()
    if result.points:
        console.print(curve(result.points, result.room, min(console.width, 100)))
        console.print()
    table = Table.grid(padding=(0, 2))
    for name, value, more in _lines(result):
        table.add_row(Text(name, style="dim"), Text(value, style="bold"), more)
    console.print(table)
    notes = list(grouped_notices(result.notices))
    for note in notes[:NOTES_SHOWN]:
        console.print(f"note: {note}", style="dim")
    if (left := len(notes) - NOTES_SHOWN) > 0:
        console.print(Text(f"note: and {plural(left, 'more note')} (--json)", style="dim"))


def _lines(result: ReplayResult) -> Iterator[tuple[str, str, str]]:
    """Lines of the result: a label, the main number, and details."""
    over = plural(result.over_window_calls, "call") if result.over_window_calls else "never"
    traffic = f"{plural(result.tool_calls, 'tool call')}, {plural(result.tool_results, 'result')}"
    yield "model calls", f"{result.calls:,}", f"in {plural(result.turns, 'turn')}; {traffic}"
    yield (
        "tokens a call",
        f"{result.tokens_mean:,}",
        f"on average, {result.tokens_max:,} at most; {over} over the window",
    )
    yield from _work(result)
    yield "blocks", f"{result.blocks:,}", _blocks(result)
    yield from _money(result)
    yield from _shares(result)
    ms = result.ms_per_call
    yield "time", f"{ms.p50:.1f} ms", f"per call in this engine; {ms.max:.0f} ms at most"
    yield "log", f"{result.events:,}", f"events, {short(result.store_bytes)}B as a DuckDB file"
    yield _promises(result)


def _work(result: ReplayResult) -> Iterator[tuple[str, str, str]]:
    """Lines on what was done to stay inside the window."""
    split = f", {result.split_turns} of them inside a turn" if result.split_turns else ""
    written = f"{result.folds:,} wrote a summary{split}"
    yield (
        "compactions",
        f"{result.compactions:,}",
        written if result.folds else "no summary was needed",
    )
    if result.prunes or result.clips:
        changes = _counted(
            (result.prunes, f"expired results hidden {_times(result.prunes)}"),
            (result.clips, f"long results shortened {_times(result.clips)}"),
        )
        yield "between them", f"{result.prunes + result.clips:,}", changes
    if moved := result.externalized + result.cleared + result.dropped:
        ways = _counted(
            (result.externalized, f"{result.externalized:,} into the artifact store"),
            (result.cleared, f"{result.cleared:,} emptied"),
            (result.dropped, f"{result.dropped:,} left out"),
        )
        yield "taken out", f"{moved:,}", f"large blocks: {ways}; the log keeps them"


def _counted(*parts: tuple[int, str]) -> str:
    """The texts whose count is not 0."""
    return ", ".join(text for count, text in parts if count)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _blocks(result: ReplayResult) -> str:
    cover = result.coverage
    return _counted(
        (cover.visible, f"{cover.visible:,} unchanged in the last request"),
        (cover.hidden, f"{cover.hidden:,} shortened or hidden there"),
        (cover.folded, f"{cover.folded:,} folded into the summary"),
        (cover.carried, f"{cover.carried:,} carried over word for word"),
    )


def _money(result: ReplayResult) -> Iterator[tuple[str, str, str]]:
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
    if not cost.full_history:
        text = "tokens of ordinary input for prompts, at a price that is not known"
        whole = f"{result.units.ratio:.0%} of sending everything"
        yield "cost", short(round(result.units.total)), f"{text}; {whole}"
        return
    everything = f"sending everything, which nobody paid: {dollars(cost.full_history, result)}"
    yield (
        "cost",
        dollars(cost.total, result),
        f"for prompts of what the log has{written}; {cost.ratio:.0%} of {everything}",
    )


def _shares(result: ReplayResult) -> Iterator[tuple[str, str, str]]:
    """Lines on how much the requests still had of what the agent used next, and what they handed over."""
    recall, handover = result.recall, result.handover
    lines = f"{two_digits(recall.far_context)} with the whole line around them"
    wide = f"{two_digits(recall.far_wide)} with the lines above and below"
    names = "of those that the agent used next were still in its request"
    words = "of the user's texts were in the request, word for word"
    if handover.prompts is not None:
        words += f"; {two_digits(handover.prompts)} of them whole"
    edits = "edits that could be written from the request, of those that the agent made next"
    standing = "standing instructions kept: of their lines, those that were in the request"
    quotes = "of those that the agent repeated next were still in its request"
    for name, share, text in (
        ("older names", recall.far, f"{names}; {lines}, {wide}"),
        ("older lines", recall.quotes, quotes),
        ("user's words", result.rules, words),
        ("next edits", handover.edits, edits),
        ("instructions", handover.standing, standing),
    ):
        if share is not None:
            yield name, two_digits(share), text


def _promises(result: ReplayResult) -> tuple[str, str, str]:
    if result.problems:
        return "promises", "broken", "; ".join(result.problems[:NOTES_SHOWN])
    promises = "requests valid, every block accounted for, the reopened log gives the same request"
    if over := result.over_window_calls:
        return (
            "promises",
            "not all",
            f"{plural(over, 'request')} did not fit the window; {promises}",
        )
    return "promises", "kept", promises


# Several results

PLOT_AXIS_COLUMNS: Final = 7
PLOT_ROWS: Final = 12
SIZES_COLUMNS: Final = 128
"""On a narrower screen the columns of `SIZES` are left out."""
MEASURES: Final = {
    "cost": "cost",
    "far": "far",
    "line": "far_context",
    "wide": "far_wide",
    "quotes": "quotes",
    "rules": "rules",
    "edits": "edits",
    "standing": "standing",
    "whole": "prompts",
}
"""The columns of the measures, and their fields in `Means`; `busts` follows them."""
SIZES: Final = ("calls", "folds", "mean", "over", "$")
MEASURES_MEAN: Final = (
    "cost: share of the cost of sending everything; a token read from the cache counts a tenth",
    "far: share that the request still had of the older names that the agent used next",
    "line, wide: the same for the name with its whole line, with the lines around it",
    "quotes: the same for older lines that the agent repeated",
    "rules: share of the user's texts that were in the request word for word, up to their 300th character",
    "edits: share of the edits that could be written from the request, which had every old line of them",
    "standing: standing instructions kept, as the share of their lines",
    "whole: share of the user's prompts that were in the request whole",
    "busts: calls in 100 that lost a cache that was still warm",
)
SIZES_MEAN: Final = (
    "folds: compactions that wrote a summary",
    "mean: average tokens of a request",
    "over: requests larger than the window",
    "$: cost of the prompts",
)
FRONT_MEANS: Final = "front ●: no other policy here costs less and keeps as much"
UNMEASURED: Final = "fits the window, or uses no older name after exceeding it"


def _tell_several(results: Sequence[ReplayResult], console: Console) -> None:
    """Print the tables and the plot for several replays."""
    console.print(_rows(results, console.width))
    if console.width >= SIZES_COLUMNS:
        everything = dollars(results[0].cost.full_history, results[0])
        is_one = len({result.session for result in results}) == 1
        whole = [f"sending everything costs {everything}"] * is_one
        console.print("; ".join((*SIZES_MEAN, *whole)), style="dim")
    means = compared(results)
    if not means:
        console.print(f"No recall to compare: every session {UNMEASURED}", style="dim")
        return
    counted, total = means[0].sessions, len([r for r in results if r.policy == means[0].policy])
    left = f" of {total}; each of the others {UNMEASURED}" if counted < total else ""
    console.print(f"means over {plural(counted, 'session')}{left}", style="dim")
    console.print(_means(means))
    console.print("; ".join((*MEASURES_MEAN, FRONT_MEANS)), style="dim")
    console.print()
    if len(means) > 1:
        console.print(scatter(means, results, min(console.width, 80)))


def _rows(results: Sequence[ReplayResult], columns: int) -> Table:
    table = wide_table("session", "policy")
    is_wide = columns >= SIZES_COLUMNS
    number_columns(table, (*(SIZES if is_wide else ()), *MEASURES, "busts"))
    for result in results:
        sizes = _sizes(result) if is_wide else ()
        measures = _measures(means_of([result]))
        table.add_row(result.session, result.policy, *sizes, *measures)
    return table


def _measures(mean: Means) -> Iterator[str]:
    """The values of the columns of `MEASURES`."""
    yield from (two_digits(getattr(mean, field)) for field in MEASURES.values())
    yield f"{mean.busts:.1f}"


def _sizes(result: ReplayResult) -> tuple[str, ...]:
    return (
        f"{result.calls:,}",
        f"{result.folds:,}",
        short(result.tokens_mean),
        f"{result.over_window_calls:,}",
        f"{'about ' if result.guess else ''}{result.cost.total:,.2f}",
    )


def _means(means: Sequence[Means]) -> Table:
    table = wide_table("", "policy")
    number_columns(table, (*MEASURES, "busts", "front"))
    for index, mean in enumerate(means):
        front = "●" if mean.is_front else ""
        table.add_row(letter(index), mean.policy, *_measures(mean), front)
    return table


def two_digits(value: float | None) -> str:
    """The value with two decimals; a dash for None."""
    return "–" if value is None else f"{value:.2f}"


def dollars(amount: float, result: ReplayResult) -> str:
    """An amount in dollars; with `about` if the model's prices are a guess."""
    return f"about {money(amount)}" if result.guess else money(amount)


@attrs.frozen
class Axis:
    """Maps the values on one axis to character cells."""

    low: float
    high: float
    cells: int

    @classmethod
    def over(cls, values: Iterable[float], cells: int) -> "Axis":
        """An axis that covers the values; its ends are rounded outwards to multiples of 0.05."""
        in_order = sorted(values)
        low = int(in_order[0] * 20) / 20
        high = -int(-in_order[-1] * 20 - 0.999) / 20
        return cls(low, max(high, low + 0.05), cells)

    def cell(self, value: float) -> int:
        """The cell of a value, counted from 0."""
        share = (value - self.low) / (self.high - self.low)
        return min(max(round(share * (self.cells - 1)), 0), self.cells - 1)


def letter(index: int) -> str:
    """The letter of a policy in the plot; the same sign for all after the 26th."""
    return ascii_uppercase[index] if index < len(ascii_uppercase) else "*"


def scatter(means: Sequence[Means], results: Sequence[ReplayResult], width: int = 80) -> Text:
    """The plot; policies on the front are bold."""
    sessions = [(r.units.ratio, r.recall.far) for r in results if r.recall.far is not None]
    policies = [(mean.cost, mean.far) for mean in means]
    across = Axis.over((cost for cost, _ in (*sessions, *policies)), width - PLOT_AXIS_COLUMNS)
    upward = Axis.over((far for _, far in (*sessions, *policies)), PLOT_ROWS)
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    for cost, far in sessions:
        cells[upward.cell(far), across.cell(cost)] = ("·", "dim")
    for index, mean in reversed(list(enumerate(means))):  # the first policy wins a shared cell
        style = "bold green" if mean.is_front else "yellow"
        cells[upward.cell(mean.far), across.cell(mean.cost)] = (letter(index), style)
    return _drawn(cells, across, upward)


def _drawn(cells: dict[tuple[int, int], tuple[str, str]], across: Axis, upward: Axis) -> Text:
    drawn = Text("far\n", style="")
    for row in range(upward.cells - 1, -1, -1):
        label = {0: f"{upward.low:.2f}", upward.cells - 1: f"{upward.high:.2f}"}.get(row, "")
        drawn.append(f"{label:>4} │", style="dim")
        end = max((column for at, column in cells if at == row), default=-1) + 1
        append_runs(drawn, (cells.get((row, column), (" ", "")) for column in range(end)))
        drawn.append("\n")
    drawn.append(f"{'└':>6}{'─' * across.cells}\n", style="dim")
    ends = f"{across.low:.2f}", f"cost {across.high:.2f}"
    return drawn.append(f"{ends[0]:>10}{ends[1]:>{across.cells - 4}}", style="dim")


# The curve

EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
FULL, WINDOW, FRAME = "·", "─", "│"
MARKS: Final = (
    ("compacted", "▲", "bold magenta", "summary written"),
    ("moved", "◆", "blue", "large blocks taken out"),
    ("pruned", "△", "cyan", "expired results hidden"),
    ("clipped", "×", "yellow", "long results shortened"),
)
"""The marks under the curve. If a column has several, the first one here is shown."""
AXIS_COLUMNS: Final = 8
ZOOM: Final = 0.35
"""A curve that stays below this share of the window is scaled to its own maximum."""


def curve(points: Sequence[Point], window: int, width: int = 80) -> Text:
    """Tokens by call; a dot shows the tokens of the full history, while it fits into the plot."""
    columns = _columns(points, width - AXIS_COLUMNS)
    peak = max(point.tokens for point in points)
    top = window if peak > ZOOM * window else max(int(peak * 1.25), 8)
    drawn = Text()
    for row in range(CURVE_ROWS, 0, -1):
        drawn.append(f"{_label(row, top):>6} {FRAME}", style="dim")
        append_runs(drawn, [_cell(column, row, top, window) for column in columns])
        drawn.append("\n")
    drawn.append(" " * AXIS_COLUMNS)
    append_runs(drawn, [_mark(column) for column in columns])
    legend = Text(" " * AXIS_COLUMNS)
    legend.append(FULL, style="yellow").append(" sending everything  ", style="dim")
    calls = f"{plural(len(points), 'call')} →"
    legend.append(f"{calls:>{max(len(columns) + AXIS_COLUMNS - legend.cell_len, 0)}}", style="dim")
    seen = [mark for mark in MARKS if any(mark[0] in point.events for point in points)]
    for index, (_, mark, style, meaning) in enumerate(seen):
        legend.append(" " if index % 2 else f"\n{' ' * AXIS_COLUMNS}")
        legend.append(mark, style=style).append(f" {meaning:<24}", style="dim")
    return drawn.append("\n").append_text(legend)


def append_runs(drawn: Text, cells: Iterable[tuple[str, str]]) -> None:
    """Append cells; neighbours of one style are joined, so that a line has few escape codes."""
    for style, run in groupby(cells, key=itemgetter(1)):
        drawn.append("".join(character for character, _ in run), style=style)


def _columns(points: Sequence[Point], width: int) -> list[Sequence[Point]]:
    """The points of each column, oldest first; if there are few, each takes two columns."""
    count = len(points)
    width = min(width, count * 2 if count * 2 <= width else count)
    return [
        points[i * count // width : max((i + 1) * count // width, i * count // width + 1)]
        for i in range(width)
    ]


def _cell(column: Sequence[Point], row: int, top: int, window: int) -> tuple[str, str]:
    """One character and its style: part of a bar, the dot of the full history, or the window's line."""
    tokens = max(point.tokens for point in column)
    full = max(point.full_tokens for point in column)
    eighths = round(tokens / top * CURVE_ROWS * 8) - (row - 1) * 8
    if eighths > 0:
        return EIGHTHS[min(eighths, 8)], "red" if tokens > window else "green"
    if (row - 1) < full / top * CURVE_ROWS <= row:
        return FULL, "yellow"
    return (WINDOW, "dim") if row == CURVE_ROWS and top == window else (" ", "")


def _mark(column: Sequence[Point]) -> tuple[str, str]:
    """The mark of a column and its style: what happened before its calls."""
    marks = (
        (mark, style) for word, mark, style, _ in MARKS if any(word in p.events for p in column)
    )
    return next(marks, (" ", ""))


def _label(row: int, top: int) -> str:
    if row == CURVE_ROWS:
        return short(top)
    if row == CURVE_ROWS // 2 + 1:
        return short(top * (CURVE_ROWS // 2) // CURVE_ROWS)
    return "0" if row == 1 else ""
