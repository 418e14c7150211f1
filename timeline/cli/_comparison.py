"""The output for several replays: a row for each, the means and the front of policies, a plot.

In the plot each policy is a letter, and each of its sessions a dot.

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
"""The letter of every policy after the 26th."""
AXIS_COLUMNS = 7


@attrs.frozen
class Scale:
    """Maps the values on one axis to character cells."""

    low: float
    high: float
    cells: int

    @classmethod
    def over(cls, values: Iterable[float], cells: int) -> "Scale":
        """An axis that covers the values; its ends are rounded outwards to multiples of 0.05."""
        known = sorted(values)
        low = int(known[0] * 20) / 20
        high = -int(-known[-1] * 20 - 0.999) / 20
        return cls(low, max(high, low + 0.05), cells)

    def cell(self, value: float) -> int:
        """The cell of a value, counted from 0."""
        share = (value - self.low) / (self.high - self.low)
        return min(max(round(share * (self.cells - 1)), 0), self.cells - 1)


def letter(index: int) -> str:
    """The letter of a policy in the plot."""
    return ascii_uppercase[index] if index < len(ascii_uppercase) else MORE


def scatter(
    means: "Sequence[Means]", results: "Sequence[ReplayResult]", width: int = 80, height: int = 12
) -> "Text":
    """The plot; policies on the front are bold."""
    sessions = [(r.units.ratio, r.recall.far) for r in results if r.recall.far is not None]
    policies = [(mean.cost, mean.far) for mean in means]
    across = Scale.over((cost for cost, _ in (*sessions, *policies)), width - AXIS_COLUMNS)
    upward = Scale.over((far for _, far in (*sessions, *policies)), height)
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    for cost, far in sessions:
        cells[upward.cell(far), across.cell(cost)] = (DOT, "dim")
    for index, mean in reversed(list(enumerate(means))):  # the first policy wins a shared cell
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
    "cost: share of the cost of sending everything; a token read from the cache counts a tenth",
    "far: share that the request still had of the older names that the agent used next",
    "line, wide: the same for the name with its whole line, with the lines around it",
    "quotes: the same for older lines that the agent repeated",
    "rules: share of the user's texts that were in the request word for word",
    "busts: calls in 100 that lost a cache that was still warm",
)
SIZES_MEAN = (
    "folds: compactions that wrote a summary",
    "mean: average tokens of a request",
    "over: requests larger than the window",
    "$: cost of the prompts",
)
FRONT_MEANS = "front ●: no other policy here costs less and keeps as much"
_SIZES_COLUMNS = 104
"""On a narrower screen the columns of `_SIZES` are left out."""
_UNMEASURED = "fits the window, or uses no older name after exceeding it"
_NOTHING = "–"


def tell_comparison(results: "Sequence[ReplayResult]", console: "Console") -> None:
    """Print the tables and the plot for several replays."""
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
    """What sending everything costs; empty if there are several sessions."""
    if len({result.session for result in results}) > 1:
        return []
    return [f"sending everything costs {dollars(results[0].cost.full_history, results[0])}"]


def _scope(means: "Sequence[Means]", results: "Sequence[ReplayResult]") -> str:
    """How many sessions the means cover."""
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
    """Print what the columns mean."""
    console.print("; ".join(meanings), style="dim")


def open_table(*names: str) -> "Table":
    """A table without lines between its columns; `names` are its text columns."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True)
    for name in names:
        table.add_column(name, overflow="fold")  # a narrow screen wraps names, not numbers
    return table


def two_digits(value: float | None) -> str:
    """The value with two decimals; a dash for None."""
    return _NOTHING if value is None else f"{value:.2f}"


def dollars(amount: float, result: "ReplayResult") -> str:
    """An amount in dollars; with `about` if the model's prices are a guess."""
    said = f"${amount:,.2f}" if amount >= 1 else f"${amount:.3f}"
    return f"about {said}" if result.guess else said
