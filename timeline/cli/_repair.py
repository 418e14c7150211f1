"""`foldline repair`: copy what is readable in a damaged store into a new one."""

import argparse

from timeline.cli._console import DONE, FAILED, answer, plural, say
from timeline.cli._store import existing, store_option

NAME = "repair"
HELP = "copy what is readable in a damaged store into a new one; the damaged one is not changed"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("target", metavar="TARGET", help="path or URL of the new store")
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each loss; exit code 1 if there is any."""
    import attrs

    from persistence import repair

    place = existing(options)
    report = repair(place, options.target)
    for what in () if options.json else report.lost:
        say(f"lost: {what}")
    saved = f"{plural(report.timelines, 'timeline')}, {plural(report.events, 'event')}"
    saved += f", {plural(report.artifacts, 'artifact')} of {place} saved in {options.target}"
    facts = {**attrs.asdict(report), "store": str(place), "target": options.target}
    answer(options, facts, saved)
    return FAILED if report.lost else DONE
