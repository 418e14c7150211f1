"""`foldline verify`: whether a store holds together."""

import argparse

from timeline.cli._console import DONE, FAILED, answer, plural, say
from timeline.cli._store import existing, store_option

NAME = "verify"
HELP = "read a whole store and report what does not hold together"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """A line for each problem; 1 when there is one."""
    import attrs

    from persistence import verify

    place = existing(options)
    report = verify(place)
    for problem in () if options.json else report.problems:
        where = f" {problem.timeline} version {problem.version}:" if problem.timeline else ""
        say(f"problem:{where} {problem.what}")
    what = f"{plural(report.timelines, 'timeline')}, {plural(report.events, 'event')}"
    found = "holds together" if report.ok else plural(len(report.problems), "problem")
    facts = {**attrs.asdict(report), "ok": report.ok, "store": str(place)}
    answer(options, facts, f"{place}: {what}, {found}")
    return DONE if report.ok else FAILED
