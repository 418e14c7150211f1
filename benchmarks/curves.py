"""Measure the figures of docs/tuning.md on the recorded sessions, store them, and draw the picture of that page.

    .venv/bin/python -m benchmarks.curves                                # all: half an hour on one core
    .venv/bin/python -m benchmarks.curves --only tuning-front --jobs 1

    tuning-front     policies from cheap ones to those that keep much
    tuning-numbers   the default with one number changed at a time
    tuning-clips     the default with other rules for which results are clipped when they are first shown
    tuning-sources   the policy chosen without looking at one source, measured on that source
    tuning-windows   the default in windows of similar size

Each study writes one file in benchmarks/results; `make docs` copies the figures into the page.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any, TypeAlias

import attrs

from benchmarks.curves_picture import OUT, picture
from benchmarks.results import keep_all
from benchmarks.tune import FIGURES, sessions, tried
from render import Policy
from timeline import policy_named
from timeline.replay import Trial

Row: TypeAlias = dict[str, str]
Changes: TypeAlias = Mapping[str, Any]

WINDOWS = (30_000, 60_000)
BESIDE = (28_000, 29_000, 30_000, 31_000, 32_000)
SHOWN = ("cost", "far", "far_context", "far_wide", "quotes", "edits", "standing")
FRONT: Mapping[str, Changes] = {
    "index 0.12, keep 0.04": {"index_ratio": 0.12, "keep_ratio": 0.04},
    "`frugal` (index 0.25, keep 0.06)": {"policy": "frugal"},
    "index 0.38, keep 0.06": {"index_ratio": 0.38, "keep_ratio": 0.06},
    "`default` (index 0.5, keep 0.08)": {},
    "index 0.6, keep 0.1": {"index_ratio": 0.6, "keep_ratio": 0.1},
    "`generous` (index 0.65, keep 0.12)": {"policy": "generous"},
    "`generous` with clip 0.04": {"policy": "generous", "clip_ratio": 0.04},
    "`generous` with clip 0.04, keep 0.16": {
        "policy": "generous",
        "clip_ratio": 0.04,
        "keep_ratio": 0.16,
    },
}
"""Changes to the default, or to another shipped policy, by the name of the row; the cheapest policy first."""
NUMBERS: Mapping[str, Sequence[Any]] = {
    "index_ratio": (0.12, 0.25, 0.38, 0.5, 0.6, 0.7),
    "keep_ratio": (0.04, 0.06, 0.08, 0.12, 0.16),
    "clip_ratio": (0.02, 0.025, 0.03, 0.04, 0.05, 0.08),
    "index_rebuilt": (0.5, 0.65, 0.75, 0.9),
    "index_layer": (0.0, 0.2, 0.4, 0.6),
    "trigger_ratio": (0.85, 0.9, 0.97),
    "enough_ratio": (0.3, 0.5, 0.65, 0.75),
    "pointer_tokens": (0, 300),
}
"""The values that are tried for each number of the default, one number at a time."""
CLIPS: Mapping[str, Changes] = {
    "0.03 (`clip_ratio`)": {},
    "0.08": {"clip_ratio": 0.08},
    "0.4": {"clip_ratio": 0.4},
}
"""How much a compaction keeps of a result that was shown, by the name of the row."""
CANDIDATES: Mapping[str, Sequence[Any]] = {
    "keep_ratio": (0.06, 0.08, 0.12),
    "index_ratio": (0.2, 0.3, 0.4),
    "clip_ratio": (0.025, 0.03, 0.04),
}
"""Values whose combinations are the candidates; one combination is the default."""


def policy_of(changes: Changes) -> Policy:
    """The policy with these changes: the default, or the shipped one named under `policy`."""
    given = dict(changes)
    return attrs.evolve(policy_named(given.pop("policy", "default")), **given)


def over_windows(
    named: Sequence[tuple[Row, Changes]], jobs: int, more: Callable[[Trial], Row] | None = None
) -> Iterator[Row]:
    """A row for each policy in each window. Equal policies are replayed only once; `more` adds columns."""
    policies = {policy_of(changes): changes for _, changes in named}
    for window in WINDOWS:
        trials = dict(zip(policies, tried(list(policies.items()), window, jobs), strict=True))
        for cells, changes in named:
            trial = trials[policy_of(changes)]
            extra = more(trial) if more else {}
            yield {"window": f"{window:,}", **cells, **shown(trial), **extra}


def shown(trial: Trial) -> Row:
    """The means of a trial with three digits; a dash if no session has a value."""
    values = {FIGURES[field]: getattr(trial.means, field) for field in SHOWN}
    return {name: "-" if value is None else f"{value:.3f}" for name, value in values.items()}


def front(jobs: int) -> Iterator[Row]:
    """Policies from cheap ones to those that keep much."""
    yield from over_windows([({"policy": name}, FRONT[name]) for name in FRONT], jobs)


def numbers(jobs: int) -> Iterator[Row]:
    """The default with one number changed at a time."""
    named = [
        ({"number": f"`{field}`", "value": f"{value:g}"}, {field: value})
        for field, values in NUMBERS.items()
        for value in values
    ]
    yield from over_windows(named, jobs)


def clips(jobs: int) -> Iterator[Row]:
    """Rules for which results are clipped when they are first shown, and their effects in a session."""
    named = [({"what is clipped": name}, CLIPS[name]) for name in CLIPS]
    yield from over_windows(named, jobs, in_a_session)


def in_a_session(trial: Trial) -> Row:
    """Columns for `near` and for what happens in a session, as means over the sessions."""
    near = fmean(result.recall.near or 0.0 for result in trial.results)
    return {
        "near": f"{near:.3f}",
        "mean tokens": f"{fmean(result.tokens_mean for result in trial.results) / 1000:.1f}k",
        "warm rewrites in 100 calls": f"{trial.means.busts:.1f}",
        "clips a session": f"{fmean(result.clips for result in trial.results):.1f}",
    }


def sources(jobs: int) -> Iterator[Row]:
    """For each source, two rows measured on it: the policy that is chosen without looking at it, and the
    default."""
    candidates = [
        dict(zip(CANDIDATES, values, strict=True)) for values in product(*CANDIDATES.values())
    ]
    for window in WINDOWS:
        trials = tried([(policy_of(changes), changes) for changes in candidates], window, jobs)
        default = next(trial for trial in trials if trial.policy == policy_named("default"))
        formats = [result.format for result in default.results]
        for source in sorted(set(formats)):
            there = {at for at, name in enumerate(formats) if name == source}
            chosen = best_without(there, trials, default)
            for name, trial in ((in_words(chosen), chosen), ("`default`", default)):
                cells = {"window": f"{window:,}", "left out": source, "policy": name}
                yield {**cells, **shown(trial.on(there))}


def best_without(there: set[int], trials: Sequence[Trial], default: Trial) -> Trial:
    """Of the candidates that cost no more than the default on all sessions but these, the one that keeps most
    on those sessions."""
    others = set(range(len(default.results))) - there
    most = default.on(others).means.cost
    within = [trial for trial in trials if trial.on(others).means.cost <= most]
    return max(within, key=lambda trial: trial.on(others).means.kept)


def in_words(trial: Trial) -> str:
    """The changes of a trial as text, such as `keep 0.08, index 0.5, clip 0.03`."""
    return ", ".join(f"{name.split('_')[0]} {value:g}" for name, value in trial.changes.items())


def beside(jobs: int) -> Iterator[Row]:
    """The default in windows close to the one of the other figures."""
    for window in BESIDE:
        (trial,) = tried([(policy_named("default"), {})], window, jobs)
        yield {"window": f"{window:,}", **shown(trial)}


STUDIES: Mapping[str, Callable[[int], Iterator[Row]]] = {
    "tuning-front": front,
    "tuning-numbers": numbers,
    "tuning-clips": clips,
    "tuning-windows": beside,
    "tuning-sources": sources,
}
"""The studies, by the name of their file in benchmarks/results."""


def main() -> None:
    """Run the chosen studies, store their figures and draw the picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves")
    parser.add_argument("--only", action="append", choices=[*STUDIES], help="these, not all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    about = f"{len(sessions())} recorded sessions, means over those that exceed the window"
    for name in given.only or STUDIES:
        keep_all(name, list(STUDIES[name](given.jobs)), about)
    OUT.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
