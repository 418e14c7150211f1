"""Tune the default policy by replay, without fitting it to one agent.

    make tune                             # the shipped grids, on the recorded sessions
    .venv/bin/python benchmarks/tune.py --curves docs/images/tuning.svg   # one number at a time
    .venv/bin/python benchmarks/tune.py --window 30000 --vary keep_ratio=0.08,0.1,0.15
    .venv/bin/python benchmarks/tune.py --vary rungs=summarize+drop,externalize+summarize+drop

Every candidate is replayed over every recorded session; a candidate is *admitted* when it costs no
more than `--cost-max` and keeps the user's rules, and the best of the admitted keeps most (the mean
of the three kinds of far recall).  To see whether a choice would hold for agents that nobody tuned
on, it is made once for every source (Claude Code, Codex, pi, mini-swe-agent) from all *other*
sources, and judged on the one left out.
"""

import argparse
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

import attrs
from rich.console import Console
from rich.progress import track
from rich.table import Table

from persistence.sessions import read_session
from render import Policy
from timeline import policy_named
from timeline.replay import ReplayOptions, replay

SOURCES = ("cc", "codex", "pi", "mini")
FOLDING = "summarize+clear+drop"
GRIDS: dict[str, dict[str, Sequence[Any]]] = {
    "what a fold leaves": {
        "keep_ratio": (0.08, 0.1, 0.14),
        "index_ratio": (0.3, 0.38, 0.46),
        "clip_ratio": (0.035, 0.05, 0.07),
    },
    "the rungs before it": {
        "rungs": (FOLDING, f"externalize+{FOLDING}", "clear+summarize+externalize+drop"),
        "enough_ratio": (0.4, 0.5, 0.65),
        "pointer_tokens": (100, 300),
    },
    "the cold moment": {"rounds_intact": (6, 12, 24), "turns_intact": (1, 2)},
}
"""Numbers that are varied together, a grid after the other, around the default."""
CURVES = {
    "keep_ratio": (0.05, 0.1, 0.15, 0.25),
    "index_ratio": (0.1, 0.2, 0.3, 0.38, 0.48),
    "clip_ratio": (0.03, 0.05, 0.08, 0.16),
    "enough_ratio": (0.3, 0.5, 0.65, 0.75),
    "pointer_tokens": (0, 100, 300, 600),
}
"""One at a time, around the default."""
RULES_MIN = 0.99


@attrs.frozen(kw_only=True)
class Score:
    """One candidate on one session."""

    candidate: str
    source: str
    cost: float
    far: float
    context: float
    wide: float
    rules: float
    folds: float
    """Compactions with a summary, for 100 calls."""

    @property
    def kept(self) -> float:
        """The mean of the three kinds of far recall."""
        return fmean((self.far, self.context, self.wide))


def candidates(base: str, varied: Mapping[str, Sequence[Any]]) -> Iterator[Policy]:
    """Every combination of the varied fields, on top of a named policy."""
    for values in itertools.product(*varied.values()):
        changes = dict(zip(varied, values, strict=True))
        name = " ".join(f"{field}={value}" for field, value in changes.items())
        if "rungs" in changes:
            changes["rungs"] = str(changes["rungs"]).split("+")
        yield attrs.evolve(policy_named(base), name=name, **changes)


def value_of(text: str) -> object:
    """A value on the command line: a whole number, a number, or words."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def score(job: tuple[Policy, Path, int]) -> Score | None:
    """Replay one session; None when it never exceeds the window, so that nothing can be lost."""
    policy, path, window = job
    options = ReplayOptions(window=window, counter="o200k", keep_thinking=False, policy=policy)
    result = replay(read_session(path), options)
    recall = result.recall
    if recall.far is None:
        return None
    return Score(
        candidate=policy.name,
        source=path.name.split("-")[0],
        cost=result.units.ratio,
        far=recall.far,
        context=recall.far_context or 0.0,
        wide=recall.far_wide or 0.0,
        rules=1.0 if result.rules is None else result.rules,
        folds=100 * result.folds / max(result.calls, 1),
    )


def best(scores: Sequence[Score], cost_max: float) -> str:
    """The admitted candidate that keeps most; the cheapest when none is admitted."""
    by_name = grouped(scores)
    admitted = {
        name: group
        for name, group in by_name.items()
        if mean(group, "cost") <= cost_max and mean(group, "rules") >= RULES_MIN
    }
    if not admitted:
        return min(by_name, key=lambda name: mean(by_name[name], "cost"))
    return max(admitted, key=lambda name: mean(admitted[name], "kept"))


def grouped(scores: Sequence[Score]) -> dict[str, list[Score]]:
    """Scores by candidate."""
    groups: dict[str, list[Score]] = {}
    for one in scores:
        groups.setdefault(one.candidate, []).append(one)
    return groups


def mean(scores: Sequence[Score], field: str) -> float:
    """The mean of one figure."""
    return fmean(getattr(one, field) for one in scores)


def show(console: Console, title: str, rows: dict[str, list[Score]], chosen: str) -> None:
    """A table of means, cheapest first."""
    table = Table(title=title, title_justify="left")
    for column in ("candidate", "cost", "far", "farctx", "farwide", "rules", "sessions"):
        table.add_column(column, justify="left" if column == "candidate" else "right")
    for name, group in sorted(rows.items(), key=lambda row: mean(row[1], "cost")):
        figures = [f"{mean(group, f):.3f}" for f in ("cost", "far", "context", "wide", "rules")]
        mark = "* " if name == chosen else ""
        table.add_row(mark + name, *figures, str(len(group)))
    console.print(table)


def cross_validated(console: Console, scores: Sequence[Score], cost_max: float) -> None:
    """What is chosen without a source, and what it then does there."""
    table = Table(title="Chosen without a source, judged on it", title_justify="left")
    for column in ("left out", "chosen from the others", "cost", "far", "farctx", "farwide"):
        table.add_column(column, justify="right" if len(column) < 8 else "left")
    for source in SOURCES:
        there = [one for one in scores if one.source == source]
        others = [one for one in scores if one.source != source]
        if there and others:
            name = best(others, cost_max)
            held = [one for one in there if one.candidate == name]
            figures = [f"{mean(held, f):.3f}" for f in ("cost", "far", "context", "wide")]
            table.add_row(source, name, *figures)
    console.print(table)


def replayed(jobs: Sequence[tuple[Policy, Path, int]], workers: int) -> list[Score]:
    """The scores of all jobs that have one."""
    with ProcessPoolExecutor(workers) as pool:
        found = list(track(pool.map(score, jobs), total=len(jobs), console=Console()))
    return [one for one in found if one is not None]


def draw(curves: dict[str, list[list[Score]]], window: int, target: Path) -> None:
    """One panel a number: what is kept, and what it costs, along its values."""
    figure = import_module("matplotlib.figure").Figure(figsize=(15, 3.4), layout="constrained")
    panels = figure.subplots(1, len(curves), sharey=True)
    for panel, (field, rows) in zip(panels, curves.items(), strict=True):
        for name, style in (("far", "-"), ("context", "--"), ("wide", ":"), ("cost", "-.")):
            panel.plot(
                CURVES[field], [mean(row, name) for row in rows], style, marker="o", label=name
            )
        panel.axvline(getattr(policy_named("default"), field), color="0.8", zorder=0)
        panel.set_xlabel(field)
    panels[0].legend(fontsize=8)
    figure.suptitle(f"Recall and cost, window {window:,} (grey: the default)")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None})


def curves(given: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Vary one number at a time; a table each, and the drawing."""
    lines: dict[str, list[list[Score]]] = {}
    for field, values in CURVES.items():
        policies = list(candidates(given.policy, {field: values}))
        scores = replayed([(p, path, given.window) for p in policies for path in paths], given.jobs)
        groups = grouped(scores)
        show(Console(), field, groups, best(scores, given.cost_max))
        lines[field] = [groups[policy.name] for policy in policies]
    draw(lines, given.window, given.curves)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--policy", default="default", help="the policy that is varied")
    parser.add_argument("--cost-max", type=float, default=0.42)
    parser.add_argument("--vary", action="append", default=[], metavar="FIELD=A,B,C")
    parser.add_argument("--curves", type=Path, metavar="FILE.svg", help="one number at a time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def sessions() -> list[Path]:
    """The recorded sessions, beside the repository or where FOLDLINE_SESSIONS says."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
    folder = Path(os.environ.get("FOLDLINE_SESSIONS", beside))
    return sorted(p for p in folder.glob("*.json*") if p.name.split("-")[0] in SOURCES)


def main() -> int:
    """Replay, choose, show."""
    console = Console()
    given = arguments()
    pairs = (text.partition("=") for text in given.vary)
    asked = {field: [value_of(v) for v in values.split(",")] for field, _, values in pairs}
    grids = {"as asked": asked} if asked else GRIDS
    paths = sessions()
    if not paths:
        console.print("no recorded sessions found; set FOLDLINE_SESSIONS to their folder")
        return 1
    if given.curves:
        curves(given, paths)
        return 0
    for title, varied in grids.items():
        jobs = [(p, path, given.window) for p in candidates(given.policy, varied) for path in paths]
        scores = replayed(jobs, given.jobs)
        chosen = best(scores, given.cost_max)
        show(console, f"{title}, window {given.window:,}, * keeps most", grouped(scores), chosen)
        cross_validated(console, scores, given.cost_max)
    return 0


if __name__ == "__main__":
    sys.exit(main())
