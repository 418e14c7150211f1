"""Draws what `benchmarks.load --json` has kept: four curves for each store, as an SVG.

    python -m benchmarks.load.picture load.json docs/images/stores.svg

Needs matplotlib, the extra `foldline[plot]`, and nothing else of the project.
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
    ("window", "events in the log", "window, ms", lambda row: row["ms"]),
    ("open", "timelines", "open, ms", lambda row: row["best"]),
    ("list", "timelines", "list, ms", lambda row: row["best"]),
)
"""What was measured, over what, and what is drawn of it."""


def points(rows: list[Row], store: str, what: str) -> list[tuple[float, Row]]:
    """Of one curve, by size; the latest row of a size counts, and nothing has no place on the axis."""
    found = {
        row.get("writers", row.get("at")): row
        for row in rows
        if (row["store"], row["what"]) == (store, what)
    }
    return sorted((size, row) for size, row in found.items() if size)


def draw(found: dict[str, Any]) -> Any:
    """The figure."""
    figure = import_module("matplotlib.figure").Figure(figsize=(9, 6.5), layout="constrained")
    for axes, (what, over, figures, value) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        for store, name in STORES.items():
            curve = points(found["rows"], store, what)
            axes.plot([at for at, _ in curve], [value(row) for _, row in curve], "o-", label=name)
        axes.set_xscale("log")
        axes.set_xlabel(over)
        axes.set_ylabel(figures)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.2)
    figure.axes[3].set_yscale("log")
    figure.axes[0].legend()
    figure.suptitle(f"{found['cores']} cores, {found['system']}, {found['date']}", fontsize=9)
    return figure


def main(source: str, target: str) -> None:
    """Read and write."""
    import_module("matplotlib").rcParams["svg.hashsalt"] = (
        "foldline"  # the same figures, the same file
    )
    figure = draw(json.loads(Path(source).read_text(encoding="utf-8")))
    figure.savefig(target, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
