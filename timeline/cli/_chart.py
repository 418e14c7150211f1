"""A chart of cost against recall, drawn with matplotlib: an extra that only `--plot` imports."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timeline.cli._console import UsageError
from timeline.cli._visible import line

if TYPE_CHECKING:
    from timeline.replay import Means, ReplayResult

KINDS = (".png", ".svg")
_INCHES = (7.0, 4.5)
_LABEL_POINTS = (7, 5)


def check_chart(path: Path) -> None:
    """Check before the replays begin that the chart can be written.

    Raises:
        UsageError: the file is neither .png nor .svg, or matplotlib is missing.
    """
    if path.suffix.lower() not in KINDS:
        raise UsageError(f"--plot {path}: give the name of a {' or '.join(KINDS)} file")
    if find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'foldline[plot]'")


def write_chart(path: Path, means: "Sequence[Means]", results: "Sequence[ReplayResult]") -> None:
    """Draw a point for each policy, a faint one for each session, and a line through the front."""
    from timeline.replay import atomic_write

    kind = path.suffix.lower().lstrip(".")
    figure = _figure(means, results)
    with atomic_write(path) as file:
        figure.savefig(file, format=kind, dpi=150)


def _figure(means: "Sequence[Means]", results: "Sequence[ReplayResult]") -> Any:
    figure = import_module("matplotlib.figure").Figure(figsize=_INCHES, layout="constrained")
    axes = figure.add_subplot()
    for index, mean in enumerate(means):
        own = [r for r in results if r.policy == mean.policy and r.recall.far is not None]
        colour = f"C{index}"
        axes.scatter(
            [r.units.ratio for r in own], [r.recall.far for r in own], 12, colour, alpha=0.35
        )
        axes.scatter([mean.cost], [mean.far], 70, colour, zorder=3)
        place = {"xytext": _LABEL_POINTS, "textcoords": "offset points"}
        axes.annotate(line(mean.policy), (mean.cost, mean.far), parse_math=False, **place)
    front = sorted((mean.cost, mean.far) for mean in means if mean.is_front)
    axes.plot([c for c, _ in front], [f for _, f in front], color="grey", linewidth=1, zorder=1)
    axes.set_xlabel("cost (share of the cost of sending everything)")
    axes.set_ylabel("far (share of older names still in the request)")
    axes.set_title(f"window {results[0].window:,}; front: the line")
    axes.grid(alpha=0.2)
    return figure
