"""Looks for the cheapest policy that keeps enough, by replaying sessions, and checks that it does not fit one agent only.

    make tune                             # on the recorded sessions
    .venv/bin/python -m benchmarks.tune --sessions DIR --window 60000 --at-least far=0.9,quotes=0.8   # on your own
    .venv/bin/python -m benchmarks.tune --window 30000 --vary keep_ratio=0.08,0.1,0.15
    .venv/bin/python -m benchmarks.tune --vary rungs=summarize+drop,externalize+summarize+drop

The search varies one field after the other along a declared list of values, two steps each way first, then one, and on
for as long as it gets better. With `--vary` every combination of the given values is tried instead. The choice is
repeated without each source of sessions and measured on the sessions left out. `benchmarks.ablate` measures the figures of
docs/tuning.md.
"""

import argparse
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.trials import FIGURES, Bench, Candidate, Trial, in_folder, read, sessions
from blocks import ArgumentError
from render import Policy
from timeline import policy_named
from timeline.replay import ReplayResult

AT_LEAST: Final = "far=0.96,far_context=0.89,far_wide=0.86,quotes=0.8,rules=0.99"
SPACE: Final[Mapping[str, Sequence[Any]]] = {
    "page_tokens": (0, 5_000, 10_000, 14_000, 18_000, 24_000, 30_000),
    "working_ratio": (0.0, 0.05, 0.1, 0.15, 0.2, 0.25),
    "keep_ratio": (0.04, 0.06, 0.08, 0.1, 0.14, 0.2, 0.3),
    "clip_ratio": (0.025, 0.04, 0.06, 0.08, 0.1, 0.16),
    "trigger_ratio": (0.7, 0.8, 0.85, 0.9, 0.97),
    "found_ratio": (0.15, 0.28, 0.4),
    "target_ratio": (0.5, 0.6, 0.7, 0.8, 0.88),
    "enough_ratio": (0.3, 0.4, 0.5, 0.65, 0.75),
    "cold_ratio": (0.3, 0.4, 0.5, 0.65, 0.8),
    "user_ratio": (0.06, 0.09, 0.12, 0.18),
}
"""The fields to vary and their values in ascending order; the fields with most effect come first."""
STEPS: Final = (2, 1)
Evaluate: TypeAlias = Callable[[Sequence[Candidate]], Sequence[Trial]]


@attrs.define(kw_only=True)
class Search:
    """A search from one policy to better ones. Nothing is random: the same sessions give the same trials."""

    base: Policy
    evaluate: Evaluate
    at_least: Mapping[str, float]
    trials_max: int
    space: Mapping[str, Sequence[Any]] = SPACE
    trials: list[Trial] = attrs.field(init=False, factory=list[Trial])
    """The trials so far, in order; the first is that of `base`."""
    best: Trial = attrs.field(init=False)

    def run(self) -> None:
        """Search until no step improves the policy, or the trials are used up."""
        self.trials = [*self.evaluate([(self.base, {})])]
        (self.best,) = self.trials
        for step in STEPS:
            while self._around(step):
                pass

    def _around(self, step: int) -> bool:
        """Vary every field once; returns whether the policy improved."""
        before = self.best
        for field in self.space:
            while self._move(field, (-step, step)):
                pass
        return self.best is not before

    def _move(self, field: str, steps: Sequence[int]) -> bool:
        """Try the values that many steps away; returns whether one of them is better."""
        values = sorted({*self.space[field], getattr(self.base, field)})
        at = values.index(getattr(self.best.policy, field))
        places = [at + step for step in steps if 0 <= at + step < len(values)]
        fresh = [new for place in places if (new := self._candidate(field, values[place]))]
        trials = self.evaluate(fresh[: self.trials_max - len(self.trials)])
        self.trials += trials
        before, self.best = self.best, cheapest([self.best, *trials], self.at_least)
        return self.best is not before

    def _candidate(self, field: str, value: Any) -> Candidate | None:
        """The best policy with this value; None if it is invalid or was tried before."""
        try:
            policy = attrs.evolve(self.best.policy, **{field: value})
        except ArgumentError:
            return None
        if any(trial.policy == policy for trial in self.trials):
            return None
        return policy, {
            name: new
            for name in self.space
            if (new := getattr(policy, name)) != getattr(self.base, name)
        }


def cheapest(trials: Sequence[Trial], at_least: Mapping[str, float]) -> Trial:
    """The best of these trials; of equal ones the first."""
    return min(trials, key=lambda trial: trial.rank(at_least))


def choices_without(
    trials: Sequence[Trial], at_least: Mapping[str, float]
) -> Iterator[tuple[str, Trial, Trial]]:
    """Leave out each format in turn, or each session of one format: what was left out, the best trial on the other
    sessions, and the same policy on those left out. Nothing if there is only one session."""
    everything = set(range(len(trials[0].results)))
    for name, group in sources(trials[0].results).items():
        if others := everything - group:
            chosen = min(trials, key=lambda trial: trial.on(others).rank(at_least))
            yield name, chosen, chosen.on(group)


def sources(results: Sequence[ReplayResult]) -> dict[str, set[int]]:
    """The indexes of the sessions, by format or, if all have one format, by name."""
    formats = {result.format for result in results}
    groups: dict[str, set[int]] = {}
    for at, result in enumerate(results):
        name = result.format if len(formats) > 1 else f"{result.session} ({at + 1})"
        groups.setdefault(name, set()).add(at)
    return groups


def combinations(base: Policy, varied: Sequence[str]) -> Iterator[Candidate]:
    """The base, and every combination of the varied fields, each given as `field=a,b,c`, on top of it."""
    yield base, {}
    pairs = [text.partition("=") for text in varied]
    fields = [field for field, _, _ in pairs]
    for values in itertools.product(*(values.split(",") for _, _, values in pairs)):
        changes: dict[str, Any] = {
            field: value_of(field, text) for field, text in zip(fields, values, strict=True)
        }
        yield attrs.evolve(base, **changes), changes


def value_of(field: str, text: str) -> object:
    """A value from the command line: a list of rungs, an integer, a float, or words."""
    if field == "rungs":
        return text.split("+")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def bounds(text: str) -> dict[str, float]:
    """The least value of each measure, from `far=0.95,quotes=0.85`."""
    at_least = {
        name: float(least) for name, _, least in (p.partition("=") for p in text.split(","))
    }
    if unknown := set(at_least) - set(FIGURES):
        raise argparse.ArgumentTypeError(
            f"no measure {min(unknown)!r}; there are: {', '.join(FIGURES)}"
        )
    return at_least


def tell(trials: Sequence[Trial], at_least: Mapping[str, float], console: Console) -> None:
    """Print the trials, cheapest first, then how their choice fares on sessions left out of it."""
    best = cheapest(trials, at_least)
    table = titled("policy")
    for trial in sorted(trials, key=lambda trial: trial.means.cost):
        style = "bold" if trial is best else None
        table.add_row(name_of(trial), *trial.figures(), style=style)
    console.print(table)
    table = titled("left out", "chosen without it", "misses")
    for name, chosen, there in choices_without(trials, at_least):
        missed = ", ".join(FIGURES[measure] for measure, _ in there.missed(at_least))
        table.add_row(name, name_of(chosen), missed, *there.figures())
    console.print(table)
    console.print(
        "best:", *(f"{field} = {json.dumps(value)}" for field, value in best.changes.items())
    )


def name_of(trial: Trial) -> str:
    """What the policy of a trial changes."""
    return " ".join(f"{field}={value}" for field, value in trial.changes.items()) or "unchanged"


def titled(*names: str) -> Table:
    """A table with these columns, then one for each figure."""
    table = Table(*names, box=box.MARKDOWN)
    for title in FIGURES.values():
        table.add_column(title, justify="right")
    return table


def main() -> None:
    """Replay, choose, and print the trials."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sessions", type=Path, metavar="DIR", help="default: the recorded ones")
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--policy", type=policy_named, default="default", help="NAME or FILE.toml")
    parser.add_argument("--at-least", type=bounds, default=AT_LEAST, help=f"default: {AT_LEAST}")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--vary", action="append", default=[], metavar="FIELD=A,B,C")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    console = Console(width=160)
    paths = in_folder(given.sessions) if given.sessions else sessions()
    bench = Bench([*read(paths, console)], given.window, given.jobs)
    if given.vary:
        trials = bench.trials([*combinations(given.policy, given.vary)])
    else:
        search = Search(
            base=given.policy,
            evaluate=bench.trials,
            at_least=given.at_least,
            trials_max=given.trials,
        )
        search.run()
        trials = search.trials
    tell(trials, given.at_least, console)


if __name__ == "__main__":
    main()
