"""Several replays side by side: a row each, the means of each policy, the front, and a plot.

The plot has one letter a policy, a dot for each of its sessions.

far
1.00 │            ·     B
     │      A  ·
     │  ·
0.60 │C
     └────────────────────────
      0.35                0.60  cost
"""

from collections.abc import Iterable, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING

import attrs

from timeline.cli._console import plural
from timeline.cli._curve import append_runs, short

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from timeline.replay import Means, ReplayResult

DOT = "·"
MORE = "*"
"""From the 27th policy on."""
AXIS_COLUMNS = 7


@attrs.frozen
class Scale:
    """From a number to its cell, on one axis."""

    low: float
    high: float
    cells: int

    @classmethod
    def over(cls, values: Iterable[float], cells: int) -> "Scale":
        """An axis from the twentieth below the least value to the one above the greatest."""
        known = sorted(values)
        low = int(known[0] * 20) / 20
        high = -int(-known[-1] * 20 - 0.999) / 20
        return cls(low, max(high, low + 0.05), cells)

    def cell(self, value: float) -> int:
        """Which cell, from 0."""
        share = (value - self.low) / (self.high - self.low)
        return min(max(round(share * (self.cells - 1)), 0), self.cells - 1)


def letter(index: int) -> str:
    """What stands for a policy."""
    return ascii_uppercase[index] if index < len(ascii_uppercase) else MORE


def scatter(
    means: "Sequence[Means]", results: "Sequence[ReplayResult]", width: int = 80, height: int = 12
) -> "Text":
    """The plot; policies of the front are bold."""
    sessions = [(r.units.ratio, r.recall.far) for r in results if r.recall.far is not None]
    policies = [(mean.cost, mean.far) for mean in means]
    across = Scale.over((cost for cost, _ in (*sessions, *policies)), width - AXIS_COLUMNS)
    upward = Scale.over((far for _, far in (*sessions, *policies)), height)
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    for cost, far in sessions:
        cells[upward.cell(far), across.cell(cost)] = (DOT, "dim")
    for index, mean in reversed(list(enumerate(means))):  # of two in one cell the first is seen
        style = "bold green" if mean.is_front else "yellow"
        cells[upward.cell(mean.far), across.cell(mean.cost)] = (letter(index), style)
    return _drawn(cells, across, upward)


def _drawn(cells: dict[tuple[int, int], tuple[str, str]], across: Scale, upward: Scale) -> "Text":
    from rich.text import Text

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


PLOT_COLUMNS = 80
_MEASURES = ("cost", "far", "line", "wide", "quotes", "rules", "busts")
_SIZES = ("calls", "folds", "mean", "over", "$")
COLUMNS_MEAN = (
    "cost: share of sending everything, in tokens at the usual price: one read from the cache is a tenth",
    "far: share of the older names, used next, that were still in the request",
    "line, wide: of these with their line, with the lines around it",
    "quotes: share of the older lines",
    "rules: share of the user's texts",
    "busts: calls in 100 that lost a warm cache",
)
SIZES_MEAN = (
    "folds: compactions that wrote a summary",
    "mean: tokens of a request, on average",
    "over: requests larger than the window",
    "$: what the prompts cost",
)
FRONT_MEANS = "front ●: no other policy here costs less and keeps as much"
_SIZES_COLUMNS = 104
"""On a narrower screen a row has its measures only."""
_UNMEASURED = "fits the window, or used no older name once it did not"
_NOTHING = "–"


def tell_comparison(results: "Sequence[ReplayResult]", console: "Console") -> None:
    """Everything that there is to say about several replays."""
    from timeline.replay import compared

    console.print(_rows(results, console.width))
    if console.width >= _SIZES_COLUMNS:
        explain((*SIZES_MEAN, *_baseline(results)), console)
    means = compared(results)
    if not means:
        console.print(f"No recall to compare: every session {_UNMEASURED}", style="dim")
        return
    console.print(_scope(means, results), style="dim")
    console.print(_means(means))
    explain((*COLUMNS_MEAN, FRONT_MEANS), console)
    console.print()
    if len(means) > 1:
        console.print(scatter(means, results, min(console.width, PLOT_COLUMNS)))


def _baseline(results: "Sequence[ReplayResult]") -> "list[str]":
    """What sending everything costs, where it is one session."""
    if len({result.session for result in results}) > 1:
        return []
    return [f"sending everything costs {dollars(results[0].cost.full_history, results[0])}"]


def _scope(means: "Sequence[Means]", results: "Sequence[ReplayResult]") -> str:
    """Over what the means are taken."""
    counted, total = means[0].sessions, len([r for r in results if r.policy == means[0].policy])
    left = f" of {total}; each of the others {_UNMEASURED}" if counted < total else ""
    return f"means over {plural(counted, 'session')}{left}"


def _rows(results: "Sequence[ReplayResult]", columns: int) -> "Table":
    table = open_table("session", "policy")
    is_wide = columns >= _SIZES_COLUMNS
    for name in (*(_SIZES if is_wide else ()), *_MEASURES):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        recall = result.recall
        table.add_row(
            result.session,
            result.policy,
            *(_sizes(result) if is_wide else ()),
            two_digits(result.units.ratio),
            *map(two_digits, (recall.far, recall.far_context, recall.far_wide, recall.quotes)),
            two_digits(result.rules),
            f"{100 * result.warm_busts / max(result.calls, 1):.1f}",
        )
    return table


def _sizes(result: "ReplayResult") -> "tuple[str, ...]":
    return (
        f"{result.calls:,}",
        f"{result.folds:,}",
        short(result.tokens_mean),
        f"{result.over_window_calls:,}",
        f"{'about ' if result.guess else ''}{result.cost.total:,.2f}",
    )


def _means(means: "Sequence[Means]") -> "Table":
    table = open_table("", "policy")
    for name in (*_MEASURES, "front"):
        table.add_column(name, justify="right", no_wrap=True)
    for index, mean in enumerate(means):
        table.add_row(
            letter(index),
            mean.policy,
            *map(two_digits, (mean.cost, mean.far, mean.far_context, mean.far_wide)),
            *map(two_digits, (mean.quotes, mean.rules)),
            f"{mean.busts:.1f}",
            "●" if mean.is_front else "",
        )
    return table


def explain(meanings: Sequence[str], console: "Console") -> None:
    """What columns mean, in small print."""
    console.print("; ".join(meanings), style="dim")


def open_table(*names: str) -> "Table":
    """A table without lines between its columns; these are of text."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True)
    for name in names:
        table.add_column(
            name, overflow="fold"
        )  # on a narrow screen a name is folded, no number cut
    return table


def two_digits(value: float | None) -> str:
    """Two digits; a dash for what is not defined."""
    return _NOTHING if value is None else f"{value:.2f}"


def dollars(amount: float, result: "ReplayResult") -> str:
    """Money; with `about` where the prices are a guess."""
    said = f"${amount:,.2f}" if amount >= 1 else f"${amount:.3f}"
    return f"about {said}" if result.guess else said
