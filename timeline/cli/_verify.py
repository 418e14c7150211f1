"""`foldline verify`: check a whole store for inconsistencies."""

import argparse

from timeline.cli._console import DONE, FAILED, answer, complain, plural, say
from timeline.cli._store import existing, store_option, tell_copy

PROBLEMS_MAX = 100
"""The number of problems after which `persistence.verify` stops."""
NAME = "verify"
HELP = "read a whole store and report inconsistencies"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each problem; exit code 1 if there is any."""
    import attrs

    from persistence import looking, verify

    place = existing(options)
    with looking(place, verify) as (report, is_copy):
        if is_copy:
            tell_copy(place)
    for problem in () if options.json else report.problems:
        where = f" {problem.timeline} version {problem.version}:" if problem.timeline else ""
        say(f"problem:{where} {problem.what}")
    what = f"{plural(report.timelines, 'timeline')}, {plural(report.events, 'event')}"
    found = "holds together" if report.ok else plural(len(report.problems), "problem")
    if len(report.problems) >= PROBLEMS_MAX:
        complain(f"only the first {PROBLEMS_MAX} problems are listed; there may be more")
    facts = {**attrs.asdict(report), "ok": report.ok, "store": str(place)}
    answer(options, facts, f"{place}: {what}, {found}")
    return DONE if report.ok else FAILED
