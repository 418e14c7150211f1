"""`foldline replay --tune`: the cheapest policy for these sessions, and what was tried to find it."""

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
"""Up to so many trials are shown, all of them."""
AROUND_MEANS = "around: share of what stood around the names"
_ALONE = ("dump", "name", "store", "plot")
"""Options that say what to do with one replay, or with a comparison."""
_FIGURES = {
    "cost": "cost",
    "far": "far",
    "far_context": "line",
    "far_wide": "wide",
    "quotes": "quotes",
    "surroundings": "around",
    "rules": "rules",
}
"""Fields of the means, and what their columns are called."""


def tuning_options(parser: argparse.ArgumentParser) -> None:
    """The options that go with `--tune`."""
    add = parser.add_argument
    add("--tune", action="store_true", help="look for the cheapest policy for these sessions")
    add("--at-least", metavar="M=X,...", help="with --tune: what to keep (default: far=0.95)")
    add("--trials", type=int, metavar="N", help="with --tune: policies to try (default: 40)")
    add("--output", type=Path, metavar="FILE", help="with --tune: default tuned.toml")


def check_tuning(options: argparse.Namespace) -> None:
    """Complain before the work begins.

    Raises:
        UsageError: options that do not go together, or a file that is there already.
    """
    if not options.tune:
        for name in ("at_least", "trials", "output"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} goes with --tune")
        return
    for name in _ALONE:
        if getattr(options, name):
            raise UsageError(f"--{name} does not go with --tune")
    if options.window == AUTO:
        raise UsageError("--window auto does not go with --tune: give a number of tokens")
    if len(options.policy or ()) > 1:
        raise UsageError("--tune begins with one policy: give --policy once")
    if options.summarizer == "anthropic":
        raise UsageError("--tune asks no model: leave --summarizer anthropic out")
    output = options.output or OUTPUT
    if output.suffix != ".toml":
        raise UsageError(f"--output {output}: give the name of a .toml file")
    if output.exists():
        raise UsageError(f"{output} is there already: remove it, or give another --output")


def bounds(text: str) -> dict[str, float]:
    """`far=0.95,quotes=0.85` by measure.

    Raises:
        UsageError: it is no such list.
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
    """Look for the policy, write its file, say what was tried; exit code 1 if none keeps the bounds."""
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
    """Everything that there is to say about what was tried on so many sessions."""
    console = screen()
    first = tuned.trials[0]
    for guess in dict.fromkeys(result.guess for result in first.results if result.guess):
        console.print(guess, style="bold")
    counted = len(first.results)
    of = f" of {sessions}; the others say nothing" if counted < sessions else ""
    where = f"window {first.results[0].window:,}, {plural(counted, 'session')}{of}"
    console.print(f"As cheap as possible at {_aim(tuned)}; {where}", style="bold")
    rows = _rows(tuned)
    letters = {id(trial): letter(index) for index, trial in enumerate(rows)}
    console.print(_tried(tuned, rows))
    what = (
        "all"
        if len(rows) == len(tuned.trials)
        else "the front ●, where it began, what is checked below"
    )
    console.print(f"{len(tuned.trials):,} tried; shown: {what}", style="dim")
    explain((*COLUMNS_MEAN[:-1], AROUND_MEANS, FRONT_MEANS), console)
    if not tuned.left_out:
        console.print("One session: there is nothing to check the choice on", style="dim")
        return
    console.print(_left_out(tuned, letters))
    held = sum(not row.there.shortfall(tuned.at_least) for row in tuned.left_out)
    said = f"the bounds hold there in {held} of {len(tuned.left_out)}"
    console.print(f"Chosen on the other sessions, {said}", style="dim")


def _rows(tuned: "Tuned") -> "list[Trial]":
    """What is worth a row, cheapest first."""
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
        changed = _changed(trial.changes) or "as it was"
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
        return f"{before.policy.name!r} as it was is the best of what was tried"
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
        f"There it has:\n# {measured}.\n\n"
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
