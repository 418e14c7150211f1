"""Several replays side by side: a row each, the means of each policy, the front, and a plot."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from timeline.cli._console import plural
from timeline.cli._curve import short
from timeline.cli._scatter import letter, scatter

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from timeline.replay import Means, ReplayResult

PLOT_COLUMNS = 80
_MEASURES = ("cost", "far", "line", "wide", "quotes", "rules", "busts")
_SIZES = ("calls", "folds", "mean", "over", "$")
_SIZES_COLUMNS = 104
"""On a narrower screen a row has its measures only."""
_UNMEASURED = "fits the window, or used no older name once it did not"
_NOTHING = "–"


def tell_comparison(results: "Sequence[ReplayResult]", console: "Console") -> None:
    """Everything that there is to say about several replays."""
    from timeline.replay import compared

    console.print(_rows(results, console.width))
    means = compared(results)
    if not means:
        console.print(f"No recall to compare: every session {_UNMEASURED}", style="dim")
        return
    console.print(_scope(means, results), style="dim")
    console.print(_means(means))
    if len(means) > 1:
        console.print(scatter(means, results, min(console.width, PLOT_COLUMNS)))


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
        f"{result.cost.total:,.2f}",
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
