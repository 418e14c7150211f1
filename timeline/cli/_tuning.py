"""`foldline replay --tune`: find the cheapest policy for some sessions, and print the trials."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from persistence.sessions import Session
from timeline._policies import policy_toml
from timeline.cli._console import number_columns, print_json, progress_bar, screen, wide_table
from timeline.cli._options import AUTO, UsageError, Values, option
from timeline.cli._results import FRONT_MEANS, MEASURES_MEAN, explain, letter, two_digits
from timeline.cli._terminal import DONE, FAILED, complain, plural
from timeline.replay import Means, ReplayOptions, Trial, Tuned, Tuning, atomic_write, tune

OUTPUT: Final = Path("tuned.toml")
ROWS_MAX: Final = 16
"""Up to this many trials, all are shown."""
AROUND_MEANS: Final = "around: share of the text around these names that was still in the request"
ALONE: Final = ("dump", "name", "store", "plot")
"""Options for one replay or for a comparison, which `--tune` rejects."""
FIGURES: Final = {
    "cost": "cost",
    "far": "far",
    "far_context": "line",
    "far_wide": "wide",
    "quotes": "quotes",
    "surroundings": "around",
    "rules": "rules",
    "edits": "edits",
    "standing": "standing",
    "prompts": "whole",
}
"""The fields of `Means` that are shown, and the names of their columns."""


TUNING: Final = (
    option("--tune", is_flag=True, help="find the cheapest policy for these sessions"),
    option(
        "--at-least", metavar="M=X,...", help="with --tune: least recall to keep (default: far=0.8)"
    ),
    option(
        "--trials",
        type=int,
        metavar="N",
        help="with --tune: number of policies to try (default: 40)",
    ),
    option(
        "--output",
        type=Path,
        metavar="FILE",
        help="with --tune: file for the policy (default: tuned.toml)",
    ),
)


def check_tuning(options: Values) -> None:
    """Check the options before the replays begin.

    Raises:
        UsageError: options that cannot be combined, or an output file that exists already.
    """
    if not options.tune:
        for name in ("at_least", "trials", "output"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} works only with --tune")
        return
    for name in ALONE:
        if getattr(options, name):
            raise UsageError(f"--{name} cannot be used with --tune")
    if options.window == AUTO:
        raise UsageError("--window auto cannot be used with --tune: give a number of tokens")
    if len(options.policy or ()) > 1:
        raise UsageError("--tune starts from one policy: give --policy once")
    if options.summarizer == "anthropic":
        raise UsageError("--tune calls no model: leave --summarizer anthropic out")
    output = options.output or OUTPUT
    if output.suffix != ".toml":
        raise UsageError(f"--output {output}: give the name of a .toml file")
    if output.exists():
        raise UsageError(f"{output} exists already: remove it, or give another --output")


def bounds(text: str) -> dict[str, float]:
    """Parse `far=0.95,quotes=0.85` into the least value of each measure.

    Raises:
        UsageError: the text has another form.
    """
    pairs = (part.partition("=") for part in text.split(","))
    try:
        return {name.strip(): float(least) for name, _, least in pairs}
    except ValueError:
        raise UsageError(f"--at-least {text}: write it as far=0.95,quotes=0.85") from None


def tune_and_tell(sessions: Sequence[Session], replay: ReplayOptions, options: Values) -> int:
    """Find the policy, write its file, print the trials; exit status 1 if no policy keeps the bounds."""
    tuning: dict[str, Any] = {"processes": os.cpu_count() or 1}
    if options.at_least is not None:
        tuning["at_least"] = bounds(options.at_least)
    if options.trials is not None:
        tuning["trials"] = options.trials
    with progress_bar("tuning", 0) as progress:
        tuned = tune(sessions, replay, Tuning(**tuning), progress=progress)
    if options.json:
        print_json(_json(tuned))
    else:
        tell_tuned(tuned, len(sessions))
    output = options.output or OUTPUT
    if not tuned.is_kept:
        complain(f"no policy of {len(tuned.trials)} keeps {_aim(tuned)}; {output} is not written")
        return FAILED
    _write(output, tuned)
    if not options.json:
        before, best = tuned.trials[0], tuned.best
        name = repr(before.policy.name)
        gain = f"cost {best.means.cost:.2f} instead of {before.means.cost:.2f} with {name}"
        if best is before:
            gain = f"{name} unchanged is the best policy tried"
        screen().print(f"{output}: {gain}; use it with --policy {output}")
    return DONE


def tell_tuned(tuned: Tuned, sessions: int) -> None:
    """Print the trials, and how their choice fares on sessions left out of it."""
    console = screen()
    first = tuned.trials[0]
    for guess in dict.fromkeys(result.guess for result in first.results if result.guess):
        console.print(guess, style="bold")
    counted = len(first.results)
    of = f" of {sessions}; the others have no recall to measure" if counted < sessions else ""
    where = f"window {first.results[0].window:,}, {plural(counted, 'session')}{of}"
    console.print(f"As cheap as possible at {_aim(tuned)}; {where}", style="bold")
    rows = _rows(tuned)
    letters = {id(trial): letter(index) for index, trial in enumerate(rows)}
    console.print(_trials(tuned, rows))
    some = "the front ●, the first policy, and those checked below"
    shown = "all" if len(rows) == len(tuned.trials) else some
    console.print(f"{len(tuned.trials):,} policies tried; shown: {shown}", style="dim")
    explain((*MEASURES_MEAN[:-1], AROUND_MEANS, FRONT_MEANS), console)
    if not tuned.left_out:
        console.print("The choice cannot be checked: that needs more than one session", style="dim")
        return
    console.print(_left_out(tuned, letters))
    number = sum(not row.there.shortfall(tuned.at_least) for row in tuned.left_out)
    cases = f"in {number} of {len(tuned.left_out)} cases"
    text = f"Chosen on the other sessions, the bounds hold on the one left out {cases}"
    console.print(text, style="dim")


def _rows(tuned: Tuned) -> list[Trial]:
    """The trials to show, cheapest first."""
    checked = (row.chosen for row in tuned.left_out)
    trials = (*tuned.front, tuned.trials[0], tuned.best, *checked)
    if len(tuned.trials) <= ROWS_MAX:
        trials = tuned.trials
    different = {id(trial): trial for trial in trials}.values()
    return sorted(different, key=lambda trial: (trial.means.cost, trial.means.kept))


def _trials(tuned: Tuned, rows: Sequence[Trial]) -> Table:
    table = _figures_table("")
    for name in ("", "changed"):
        table.add_column(name, overflow="fold")
    front = {id(trial) for trial in tuned.front}
    for index, trial in enumerate(rows):
        is_best = trial is tuned.best
        mark = "best" if is_best else "●" if id(trial) in front else ""
        changes = " ".join(f"{field}={value}" for field, value in trial.changes.items())
        changed = changes or "unchanged"
        figures = _figures(trial.means)
        table.add_row(letter(index), *figures, mark, changed, style="bold" if is_best else None)
    return table


def _left_out(tuned: Tuned, letters: dict[int, str]) -> Table:
    table = _figures_table("left out")
    table.add_column("chosen", no_wrap=True)
    table.add_column("kept", overflow="fold")
    for row in tuned.left_out:
        missed = ", ".join(FIGURES[name] for name, _ in row.there.missed(tuned.at_least))
        kept = f"not {missed}" if missed else "yes"
        table.add_row(row.name, *_figures(row.there.means), letters[id(row.chosen)], kept)
    return table


def _figures_table(name: str) -> Table:
    table = wide_table(name)
    number_columns(table, FIGURES.values())
    return table


def _figures(means: Means) -> list[str]:
    return [two_digits(getattr(means, field)) for field in FIGURES]


def _aim(tuned: Tuned) -> str:
    return ", ".join(f"{name} >= {least:g}" for name, least in tuned.at_least.items())


def _write(path: Path, tuned: Tuned) -> None:
    first = tuned.trials[0]
    figures = zip(FIGURES.values(), _figures(tuned.best.means), strict=True)
    measured = ", ".join(f"{name} {value}" for name, value in figures)
    head = (
        f"# From {first.policy.name!r}, tuned on {plural(len(first.results), 'session')} in a window of "
        f"{first.results[0].window:,}\n# tokens, as cheap as possible at {_aim(tuned)}. "
        f"Measured there:\n# {measured}.\n\n"
    )
    with atomic_write(path) as file:
        file.write((head + policy_toml(tuned.best.policy)).encode())


def _json(tuned: Tuned) -> dict[str, Any]:
    guesses = dict.fromkeys(result.guess for result in tuned.trials[0].results if result.guess)
    return {
        "guesses": list(guesses),
        "at_least": dict(tuned.at_least),
        "is_kept": tuned.is_kept,
        "best": _trial_json(tuned.best),
        "trials": [_trial_json(trial) for trial in tuned.trials],
        "left_out": [{"name": row.name, **_trial_json(row.there)} for row in tuned.left_out],
    }


def _trial_json(trial: Trial) -> dict[str, Any]:
    figures = {field: getattr(trial.means, field) for field in FIGURES}
    rounded = {name: None if v is None else round(v, 4) for name, v in figures.items()}
    return {"changes": dict(trial.changes), "sessions": len(trial.results), **rounded}
