"""Draws the figures saved by `benchmarks.load --json`: four curves for each store, as an SVG.

    python -m benchmarks.load.picture load.json docs/images/stores.svg

Needs matplotlib (`pip install 'matplotlib>=3.11'`) and nothing else of the project.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Row = dict[str, Any]
STORES = {"duckdb": "DuckDB", "sqlite": "SQLite", "postgresql": "PostgreSQL"}
PANELS: tuple[tuple[str, str, str, Callable[[Row], float]], ...] = (
    ("append", "writers", "durable events a second", lambda row: 2 * row["a_second"]),
    ("window", "events in the log", "window, ms", lambda row: row["best"]),
    ("open", "timelines", "open, ms", lambda row: row["best"]),
    ("list", "timelines", "list, ms", lambda row: row["best"]),
)
"""For each panel: what was measured, over which size, and the value drawn."""


def points(rows: list[Row], store: str, what: str) -> list[tuple[float, Row]]:
    """The points of one curve by size, the best of several runs each.  Size 0 is left out of the logarithmic axis."""
    found: dict[float, Row] = {}
    for row in rows:
        size = row.get("writers", row.get("at"))
        if (row["store"], row["what"]) == (store, what) and size:
            found[size] = min(row, found.get(size, row), key=_slowness)
    return sorted(found.items(), key=lambda each: each[0])


def _slowness(row: Row) -> float:
    return -float(row["a_second"]) if "a_second" in row else float(row["best"])


def draw(found: dict[str, Any]) -> Any:
    """The figure."""
    figure = import_module("matplotlib.figure").Figure(figsize=(9, 6.5), layout="constrained")
    for axes, (what, over, figures, value) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        for store, name in STORES.items():
            curve = points(found["rows"], store, what)
            axes.plot([at for at, _ in curve], [value(row) for _, row in curve], "o-", label=name)
        axes.set_xscale("log", base=2 if over == "writers" else 10)
        axes.set_xlabel(over)
        axes.set_ylabel(figures)
        axes.set_yscale("log" if what == "list" else "linear")
        axes.set_ylim(bottom=1 if what == "list" else 0)
        axes.grid(alpha=0.2)
    figure.axes[0].legend()
    figure.suptitle(f"{found['cores']} cores, {found['system']}, {found['date']}", fontsize=9)
    return figure


def main(source: str, target: str) -> None:
    """Read the figures and write the picture."""
    import_module("matplotlib").rcParams["svg.hashsalt"] = (
        "foldline"  # the same figures give the same file
    )
    figure = draw(json.loads(Path(source).read_text(encoding="utf-8")))
    figure.savefig(target, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
