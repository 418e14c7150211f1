"""Cost against recall, drawn with characters: one letter a policy, a dot for each of its sessions.

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

from timeline.cli._curve import append_runs

if TYPE_CHECKING:
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
