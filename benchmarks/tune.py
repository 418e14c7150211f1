"""Tunes a policy by replaying the recorded sessions, without fitting it to one agent.

    make tune                             # foldline replay --tune, on the recorded sessions
    .venv/bin/python benchmarks/tune.py --window 30000 --vary keep_ratio=0.08,0.1,0.15
    .venv/bin/python benchmarks/tune.py --vary rungs=summarize+drop,externalize+summarize+drop

With `--vary` every combination of the given values is tried on top of the named policy. As in
`foldline replay --tune`, the cheapest one that keeps the bounds wins; the choice is repeated without each source.
`benchmarks.ablate` measures the figures of docs/tuning.md.
"""

import argparse
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from persistence.sessions import Session, read_session
from render import Policy
from timeline import policy_named
from timeline.cli._console import progress_bar
from timeline.cli._tuning import bounds, tell_tuned
from timeline.replay import ReplayOptions, Trial, Tuning, tune
from timeline.replay._tune import Bench, tuned_of, worker_map

SOURCES = ("cc", "codex", "pi", "mini")
AT_LEAST = "far=0.96,far_context=0.89,far_wide=0.86,quotes=0.8,rules=0.99"
SYSTEM = (
    50
    * (
        "You are a careful software engineering agent. Work step by step, read before you write, keep changes "
        "small, run the checks, and tell the user plainly what was done and what was not. "
    )
)[:9000]
"""As long as that of a small agent: 1,800 tokens."""
FIGURES = {
    "cost": "cost",
    "far": "far",
    "far_context": "farctx",
    "far_wide": "farwide",
    "quotes": "quotes",
    "surroundings": "around",
    "rules": "rules",
    "edits": "edits",
    "standing": "standing",
    "prompts": "whole",
}
"""The fields of `Means`, and the names of their columns."""


def candidates(
    base: str, varied: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[Policy, Mapping[str, Any]]]:
    """Every combination of the varied fields, on top of a named policy."""
    for values in itertools.product(*varied.values()):
        changes = dict(zip(varied, values, strict=True))
        made = {f: v.split("+") if f == "rungs" else v for f, v in changes.items()}
        yield attrs.evolve(policy_named(base), **made), changes


def value_of(text: str) -> object:
    """A value from the command line: an integer, a float, or words."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def tried(
    policies: Sequence[tuple[Policy, Mapping[str, Any]]], window: int, jobs: int
) -> list[Trial]:
    """Try exactly these policies, each given with its changed fields, on the recorded sessions that have a recall."""
    with progress_bar("replays", 0) as progress, worker_map(jobs) as mapped:
        bench = Bench(mapped=mapped, options=options(window), progress=progress)
        first = bench.first(recorded(), policies[0], len(policies))
        return [first, *bench.evaluate(policies[1:])]


def options(window: int, policy: Policy | str = "default") -> ReplayOptions:
    """The options for replaying the recorded sessions."""
    return ReplayOptions(
        window=window,
        counter="o200k",
        keep_thinking=False,
        policy=policy,
        provider="anthropic",
        system=SYSTEM,
    )


def figures(trial: Trial) -> Iterator[str]:
    """The means of a trial, to three digits."""
    for field in FIGURES:
        value = getattr(trial.means, field)
        yield "" if value is None else f"{value:.3f}"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--policy", default="default", help="the policy that is varied")
    parser.add_argument("--at-least", default=AT_LEAST, help=f"default: {AT_LEAST}")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--vary", action="append", default=[], metavar="FIELD=A,B,C")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def sessions() -> list[Path]:
    """The files of the recorded sessions, beside the repository or in FOLDLINE_SESSIONS."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
    folder = Path(os.environ.get("FOLDLINE_SESSIONS", beside))
    return sorted(p for p in folder.glob("*.json*") if p.name.split("-")[0] in SOURCES)


def recorded() -> list[Session]:
    """The recorded sessions, read from their files."""
    return [read_session(path) for path in sessions()]


def main() -> int:
    """Replay, choose, and print the trials."""
    given = arguments()
    if not sessions():
        print("no recorded sessions found; set FOLDLINE_SESSIONS to their folder")
        return 1
    at_least = bounds(given.at_least)
    if given.vary:
        pairs = (text.partition("=") for text in given.vary)
        varied = {field: [value_of(v) for v in values.split(",")] for field, _, values in pairs}
        policies = list(candidates(given.policy, varied))
        tuned = tuned_of(tried(policies, given.window, given.jobs), at_least)
    else:
        tuning = Tuning(at_least=at_least, trials=given.trials, processes=given.jobs)
        with progress_bar("tuning", 0) as progress:
            chosen = options(given.window, given.policy)
            tuned = tune(recorded(), chosen, tuning, progress=progress)
    tell_tuned(tuned, len(sessions()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
