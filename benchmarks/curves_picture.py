"""Draws docs/images/tuning.svg from the stored figures: what a policy keeps against what it costs.

There is a line for the front (policies from cheap ones to those that keep much), one for each changed number of the
default, and a diamond for each aim.

    .venv/bin/python -m benchmarks.curves_picture

The picture has no background and its colours have a medium brightness, so it can be read on light and dark pages.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from benchmarks.results import kept

Point: TypeAlias = tuple[float, float]

OUT: Final = Path(__file__).parents[1] / "docs" / "images" / "tuning.svg"
MEASURES: Final = ("far", "farctx", "farwide", "quotes")
AIMS: Final = {
    "30,000": {"cost": 0.37, "far": 0.96, "farctx": 0.89, "farwide": 0.86, "quotes": 0.9},
    "60,000": {"cost": 0.43, "far": 0.99, "farctx": 0.95, "farwide": 0.95, "quotes": 0.95},
}
"""The aims that were set for the default, by window."""
COSTS: Final = {"30,000": (0.3, 0.46), "60,000": (0.36, 0.52)}
SHARES: Final = {"30,000": (0.76, 1.0), "60,000": (0.9, 1.0)}
"""The ranges of the two axes, by window; points outside are not drawn."""
LINES: Final = {
    "page_tokens": "#d9822b",
    "clip_ratio": "#4a86c8",
    "keep_ratio": "#b25cc4",
}
"""The numbers whose effect is large enough to draw, with the colours of their lines."""
FRONT, TEXT, AIM = "#2f9e6e", "#7b828c", "#d64550"
WIDTH, HEIGHT, PANEL, DOWN = 760, 506, 158, 166
LEFT, TOP, STEP, ROW = 44, 46, 180, 230


@attrs.frozen
class Panel:
    """One measure in one window."""

    window: str
    measure: str
    left: float
    top: float

    def at(self, cost: float, share: float) -> Point:
        """The position of a point in the picture; a point outside the axes is moved to their edge."""
        (least, most), (low, high) = COSTS[self.window], SHARES[self.window]
        across = (min(max(cost, least), most) - least) / (most - least)
        up = (max(share, low) - low) / (high - low)
        return self.left + PANEL * across, self.top + DOWN * (1 - up)

    def points(self, name: str, about: str = "") -> list[Point]:
        """Cost and share of the rows of this window in a file of figures; only of one number if `about` names it."""
        results = kept(name)
        rows = (dict(zip(results.columns, row, strict=True)) for row in results.rows)
        return [
            (float(row["cost"]), float(row[self.measure]))
            for row in rows
            if row["window"] == self.window and about in row.get("number", "")
        ]


def picture() -> str:
    """The content of the SVG file."""
    return "".join(f"{line}\n" for line in drawn())


def drawn() -> Iterator[str]:
    """The lines of the SVG file."""
    told = (
        "What is kept against what it costs, in windows of 30,000 and 60,000 tokens: from frugal to generous, and "
        "along one number of the policy at a time. The figures are on the page."
    )
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="system-ui, sans-serif" font-size="11" role="img">'
    )
    yield f"<title>{told}</title>"
    for row, window in enumerate(AIMS):
        top = TOP + row * ROW
        yield words((LEFT, top - 26), f"window of {window} tokens", "start")
        for column, measure in enumerate(MEASURES):
            panel = Panel(window, measure, LEFT + column * STEP, top)
            yield from axes(panel)
            yield from curves(panel)
    yield from legend()
    yield "</svg>"


def axes(panel: Panel) -> Iterator[str]:
    """The grid lines, the labels of the axes and the title of a panel."""
    (least, most), (low, high) = COSTS[panel.window], SHARES[panel.window]
    for part in range(5):
        share = low + (high - low) * part / 4
        x, y = panel.at(least, share)
        yield f'<path d="M{x:.1f} {y:.1f}h{PANEL}" stroke="{TEXT}" stroke-opacity="0.3"/>'
        if panel.left == LEFT:
            yield words((x - 5, y + 4), f"{share:.3g}", "end")
        cost = least + (most - least) * part / 4
        if part % 2:
            x, y = panel.at(cost, low)
            yield words((x, y + 14), f"{cost:.2f}", "middle")
    x, _ = panel.at((least + most) / 2, low)
    yield words((x, panel.top - 8), panel.measure, "middle")


def curves(panel: Panel) -> Iterator[str]:
    """The lines of single numbers, the front on top of them, then the aim."""
    for number, colour in LINES.items():
        yield from curve(panel, panel.points("tuning-numbers", number), (colour, 1.2, 2))
    yield from curve(panel, panel.points("tuning-front"), (FRONT, 2.4, 3))
    aims = AIMS[panel.window]
    x, y = panel.at(aims["cost"], aims[panel.measure])
    yield f'<path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z" fill="none" stroke="{AIM}" stroke-width="1.8"/>'


def curve(panel: Panel, points: Sequence[Point], look: tuple[str, float, float]) -> Iterator[str]:
    """A line through the points within the axes; `look` is its colour, its width and the radius of a point."""
    colour, width, size = look
    (least, most), (low, _) = COSTS[panel.window], SHARES[panel.window]
    inside = [panel.at(*p) for p in sorted(points) if least <= p[0] <= most and p[1] >= low]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in inside)
    yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
    for x, y in inside:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>'


def legend() -> Iterator[str]:
    """The legend: the name of each line, the sign for an aim, and the label of the cost axis."""
    x, y = LEFT, HEIGHT - 14
    for name, colour in {"front": FRONT, **LINES}.items():
        yield f'<path d="M{x} {y - 4}h22" stroke="{colour}" stroke-width="2.4"/>'
        yield words((x + 28, y), name, "start")
        x += 120
    yield f'<path d="M{x + 8} {y - 10}l6 6l-6 6l-6 -6z" fill="none" stroke="{AIM}" stroke-width="1.8"/>'
    yield words((x + 20, y), "aim", "start")
    yield words((WIDTH - 14, y), "cost →", "end")


def words(at: Point, text: str, anchor: str) -> str:
    """A text element; `anchor` is `start`, `middle` or `end`."""
    x, y = at
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{TEXT}">{text}</text>'


if __name__ == "__main__":
    OUT.write_text(picture(), encoding="utf-8")
