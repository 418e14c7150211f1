"""The token curve of a replay, drawn with block characters an eighth of a cell high.

60k ┤──────────────────────────────── window
    │                    ·    ▂▄▆█
    │            ·  ▂▄▆█ ▂▄▆█ ████
  0 ┤▁▂▃▄▅▆▇█▃▄▅▆▇██████ ████ ████
             ▲          ▲
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from timeline.replay import Point

EIGHTHS = " ▁▂▃▄▅▆▇█"
FULL, WINDOW, FRAME = "·", "─", "│"
MARKS = (
    ("compacted", "▲", "bold magenta", "summary written"),
    ("moved", "◆", "blue", "large blocks taken out"),
    ("pruned", "△", "cyan", "expired results hidden"),
    ("clipped", "×", "yellow", "long results shortened"),
)
"""The marks under the curve. If a column has several, the first one here is shown."""
AXIS_COLUMNS = 8
ZOOM = 0.35
"""A curve that stays below this share of the window is scaled to its own maximum."""


def curve(points: "Sequence[Point]", window: int, width: int = 80, height: int = 10) -> "Text":
    """Tokens by call; a dot shows the tokens of the full history, while it fits into the plot."""
    from rich.text import Text

    columns = _columns(points, width - AXIS_COLUMNS)
    peak = max(point.tokens for point in points)
    top = window if peak > ZOOM * window else max(int(peak * 1.25), 8)
    drawn = Text()
    for row in range(height, 0, -1):
        drawn.append(f"{_label(row, height, top):>6} {FRAME}", style="dim")
        append_runs(drawn, [_cell(column, row, (height, top, window)) for column in columns])
        drawn.append("\n")
    drawn.append(" " * AXIS_COLUMNS)
    append_runs(drawn, [_mark(column) for column in columns])
    return drawn.append("\n").append_text(_legend(points, len(columns)))


def append_runs(drawn: "Text", cells: Iterable[tuple[str, str]]) -> None:
    """Append cells; neighbours of one style are joined, so that a line has few escape codes."""
    for style, run in groupby(cells, key=itemgetter(1)):
        drawn.append("".join(character for character, _ in run), style=style)


def _columns(points: "Sequence[Point]", width: int) -> "list[Sequence[Point]]":
    """The points of each column, oldest first; if there are few, each takes two columns."""
    count = len(points)
    width = min(width, count * 2 if count * 2 <= width else count)
    return [
        points[i * count // width : max((i + 1) * count // width, i * count // width + 1)]
        for i in range(width)
    ]


def _cell(column: "Sequence[Point]", row: int, scale: tuple[int, int, int]) -> tuple[str, str]:
    """One character and its style: part of a bar, the dot of the full history, or the window's line."""
    height, top, window = scale
    tokens = max(point.tokens for point in column)
    full = max(point.full_tokens for point in column)
    eighths = round(tokens / top * height * 8) - (row - 1) * 8
    if eighths > 0:
        return EIGHTHS[min(eighths, 8)], "red" if tokens > window else "green"
    if (row - 1) < full / top * height <= row:
        return FULL, "yellow"
    return (WINDOW, "dim") if row == height and top == window else (" ", "")


def _mark(column: "Sequence[Point]") -> tuple[str, str]:
    """The mark of a column and its style: what happened before its calls."""
    marks = (
        (mark, style) for word, mark, style, _ in MARKS if any(word in p.events for p in column)
    )
    return next(marks, (" ", ""))


def _label(row: int, height: int, top: int) -> str:
    if row == height:
        return short(top)
    if row == height // 2 + 1:
        return short(top * (height // 2) // height)
    return "0" if row == 1 else ""


def _legend(points: "Sequence[Point]", width: int) -> "Text":
    """The number of calls, then the meaning of each mark, two per line."""
    from rich.text import Text

    legend = Text(" " * AXIS_COLUMNS)
    legend.append(FULL, style="yellow").append(" sending everything  ", style="dim")
    calls = f"{len(points):,} calls →"
    legend.append(f"{calls:>{max(width + AXIS_COLUMNS - legend.cell_len, 0)}}", style="dim")
    seen = [mark for mark in MARKS if any(mark[0] in point.events for point in points)]
    for index, (_, mark, style, meaning) in enumerate(seen):
        legend.append(" " if index % 2 else f"\n{' ' * AXIS_COLUMNS}")
        legend.append(mark, style=style).append(f" {meaning:<24}", style="dim")
    return legend


def short(number: float) -> str:
    """A number in short form: `950`, `60k`, `4.3M`."""
    for unit, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= unit:
            value = number / unit
            return f"{value:.1f}{letter}" if value < 10 else f"{value:.0f}{letter}"  # noqa: PLR2004 -- two digits
    return f"{number:.0f}"
