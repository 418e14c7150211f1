"""`foldline replay --tune`: find the cheapest policy for some sessions, and print the trials."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timeline.cli._comparison import (
    COLUMNS_MEAN,
    FRONT_MEANS,
    explain,
    letter,
    open_table,
    two_digits,
)
from timeline.cli._console import (
    DONE,
    FAILED,
    UsageError,
    complain,
    plural,
    print_json,
    progress_bar,
    screen,
)
from timeline.cli._parser import AUTO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from persistence.sessions import Session
    from timeline.replay import Means, ReplayOptions, Trial, Tuned, Tuning

OUTPUT = Path("tuned.toml")
ROWS_MAX = 16
"""Up to this many trials, all are shown."""
AROUND_MEANS = "around: share of the text around these names that was still in the request"
_ALONE = ("dump", "name", "store", "plot")
"""Options for one replay or for a comparison, which `--tune` rejects."""
_FIGURES = {
    "cost": "cost",
    "far": "far",
    "far_context": "line",
    "far_wide": "wide",
    "quotes": "quotes",
    "surroundings": "around",
    "rules": "rules",
}
"""The fields of `Means` that are shown, and the names of their columns."""


def tuning_options(parser: argparse.ArgumentParser) -> None:
    """Add `--tune` and the options that need it."""
    add = parser.add_argument
    add("--tune", action="store_true", help="find the cheapest policy for these sessions")
    add(
        "--at-least",
        metavar="M=X,...",
        help="with --tune: least recall to keep (default: far=0.95)",
    )
    add(
        "--trials",
        type=int,
        metavar="N",
        help="with --tune: number of policies to try (default: 40)",
    )
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="with --tune: file for the policy (default: tuned.toml)",
    )


def check_tuning(options: argparse.Namespace) -> None:
    """Check the options before the replays begin.

    Raises:
        UsageError: options that cannot be combined, or an output file that exists already.
    """
    if not options.tune:
        for name in ("at_least", "trials", "output"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} works only with --tune")
        return
    for name in _ALONE:
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
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, least = part.partition("=")
        try:
            found[name.strip()] = float(least)
        except ValueError:
            raise UsageError(f"--at-least {text}: write it as far=0.95,quotes=0.85") from None
    return found


def tune_and_tell(sessions: "Sequence[Session]", options: "ReplayOptions", given: Any) -> int:
    """Find the policy, write its file, print the trials; exit code 1 if no policy keeps the bounds."""
    from timeline.replay import tune

    with progress_bar("tuning", 0) as progress:
        tuned = tune(sessions, options, _tuning(given), progress=progress)
    if given.json:
        print_json(_json(tuned))
    else:
        tell_tuned(tuned, len(sessions))
    output = given.output or OUTPUT
    if not tuned.is_kept:
        complain(f"no policy of {len(tuned.trials)} keeps {_aim(tuned)}; {output} is not written")
        return FAILED
    _write(output, tuned)
    if not given.json:
        screen().print(f"{output}: {_gain(tuned)}; use it with --policy {output}")
    return DONE


def _tuning(given: argparse.Namespace) -> "Tuning":
    from timeline.replay import Tuning

    asked: dict[str, Any] = {"processes": os.cpu_count() or 1}
    if given.at_least is not None:
        asked["at_least"] = bounds(given.at_least)
    if given.trials is not None:
        asked["trials"] = given.trials
    return Tuning(**asked)


def tell_tuned(tuned: "Tuned", sessions: int) -> None:
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
    console.print(_tried(tuned, rows))
    what = (
        "all"
        if len(rows) == len(tuned.trials)
        else "the front ●, the first policy, and those checked below"
    )
    console.print(f"{len(tuned.trials):,} policies tried; shown: {what}", style="dim")
    explain((*COLUMNS_MEAN[:-1], AROUND_MEANS, FRONT_MEANS), console)
    if not tuned.left_out:
        console.print("The choice cannot be checked: that needs more than one session", style="dim")
        return
    console.print(_left_out(tuned, letters))
    held = sum(not row.there.shortfall(tuned.at_least) for row in tuned.left_out)
    said = f"the bounds hold on the one left out in {held} of {len(tuned.left_out)} cases"
    console.print(f"Chosen on the other sessions, {said}", style="dim")


def _rows(tuned: "Tuned") -> "list[Trial]":
    """The trials to show, cheapest first."""
    checked = (row.chosen for row in tuned.left_out)
    trials = (*tuned.front, tuned.trials[0], tuned.best, *checked)
    if len(tuned.trials) <= ROWS_MAX:
        trials = tuned.trials
    found = {id(trial): trial for trial in trials}.values()
    return sorted(found, key=lambda trial: (trial.means.cost, trial.means.kept))


def _tried(tuned: "Tuned", rows: "Sequence[Trial]") -> "Table":
    table = _figures_table("")
    for name in ("", "changed"):
        table.add_column(name, overflow="fold")
    front = {id(trial) for trial in tuned.front}
    for index, trial in enumerate(rows):
        is_best = trial is tuned.best
        mark = "best" if is_best else "●" if id(trial) in front else ""
        changed = _changed(trial.changes) or "unchanged"
        figures = _figures(trial.means)
        table.add_row(letter(index), *figures, mark, changed, style="bold" if is_best else None)
    return table


def _left_out(tuned: "Tuned", letters: dict[int, str]) -> "Table":
    table = _figures_table("left out")
    table.add_column("chosen", no_wrap=True)
    table.add_column("kept", overflow="fold")
    for row in tuned.left_out:
        missed = ", ".join(_FIGURES[name] for name, _ in row.there.missed(tuned.at_least))
        kept = f"not {missed}" if missed else "yes"
        table.add_row(row.name, *_figures(row.there.means), letters[id(row.chosen)], kept)
    return table


def _figures_table(name: str) -> "Table":
    table = open_table(name)
    for figure in _FIGURES.values():
        table.add_column(figure, justify="right", no_wrap=True)
    return table


def _changed(changes: "Mapping[str, Any]") -> str:
    return " ".join(f"{field}={value}" for field, value in changes.items())


def _figures(means: "Means") -> list[str]:
    return [two_digits(getattr(means, field)) for field in _FIGURES]


def _aim(tuned: "Tuned") -> str:
    return ", ".join(f"{name} >= {least:g}" for name, least in tuned.at_least.items())


def _gain(tuned: "Tuned") -> str:
    before, now = tuned.trials[0], tuned.best
    if now is before:
        return f"{before.policy.name!r} unchanged is the best policy tried"
    return (
        f"cost {now.means.cost:.2f} instead of {before.means.cost:.2f} with {before.policy.name!r}"
    )


def _write(path: Path, tuned: "Tuned") -> None:
    from timeline._policies import policy_toml
    from timeline.replay import atomic_write

    means, first = tuned.best.means, tuned.trials[0]
    measured = ", ".join(
        f"{name} {two_digits(getattr(means, field))}" for field, name in _FIGURES.items()
    )
    head = (
        f"# From {first.policy.name!r}, tuned on {plural(len(first.results), 'session')} in a window of "
        f"{first.results[0].window:,}\n# tokens, as cheap as possible at {_aim(tuned)}. "
        f"Measured there:\n# {measured}.\n\n"
    )
    with atomic_write(path) as file:
        file.write((head + policy_toml(tuned.best.policy)).encode())


def _json(tuned: "Tuned") -> dict[str, Any]:
    guesses = dict.fromkeys(result.guess for result in tuned.trials[0].results if result.guess)
    return {
        "guesses": list(guesses),
        "at_least": dict(tuned.at_least),
        "is_kept": tuned.is_kept,
        "best": _trial_json(tuned.best),
        "trials": [_trial_json(trial) for trial in tuned.trials],
        "left_out": [{"name": row.name, **_trial_json(row.there)} for row in tuned.left_out],
    }


def _trial_json(trial: "Trial") -> dict[str, Any]:
    figures = {field: getattr(trial.means, field) for field in _FIGURES}
    rounded = {name: None if v is None else round(v, 4) for name, v in figures.items()}
    return {"changes": dict(trial.changes), "sessions": len(trial.results), **rounded}
